"""Draw the memory plan of a compiled graph as text: which bytes each value has, and when."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from refcomp.foundation.artifacts import evaluate_dim
from refcomp.graph.compile import GraphModule
from refcomp.graph.graph import Value, spell
from refcomp.graph.memory_plan import Request, least_memory, plan_memory
from refcomp.graph.plan import value_lives

_WIDTH = 64  # columns of a picture
_NAME_WIDTH = 40


def memory_picture(module: GraphModule, symbols: Mapping[str, int]) -> str:
    """Return the memory plan of a graph as text, a line for each value and workspace.

    Args:
        module: the graph and its kernels, which need not be compiled.
        symbols: the value of each symbol.
    """
    lives = value_lives(module)
    requests = [
        Request(_bytes(value, symbols), first, last)
        for value, (first, last) in lives.items()
    ]
    plan = plan_memory(requests)
    return "\n".join(_lines(list(lives), requests, plan.offsets, symbols)) + "\n"


def _bytes(value: Value, symbols: Mapping[str, int]) -> int:
    extents = (evaluate_dim(dim, symbols) for dim in value.shape)
    return math.prod(extents) * value.dtype.bytes


def _lines(
    values: Sequence[Value],
    requests: Sequence[Request],
    offsets: Sequence[int],
    symbols: Mapping[str, int],
) -> Iterator[str]:
    total = plan_memory(requests).total
    least = least_memory(requests)
    sizes = "".join(f", {spell(name)} = {size}" for name, size in symbols.items())
    yield f"# memory of all values but constants{sizes}"
    yield f"# {total:,} bytes; {least:,} live at once: {total / max(least, 1):.3f} times that"
    last = max((request.last for request in requests), default=0)
    columns = min(_WIDTH, last + 2)
    yield f"# {'offset':>12} {'bytes':>12}  {'steps':<{columns}}  value"
    for place in sorted(
        range(len(values)), key=lambda k: (offsets[k], requests[k].first)
    ):
        request = requests[place]
        bar = _bar(request, last, columns)
        name = spell(values[place].name)
        if len(name) > _NAME_WIDTH:
            name = f"{name[: _NAME_WIDTH - 3]}..."
        yield f"  {offsets[place]:>12,} {request.size:>12,}  {bar}  {name}"


def _bar(request: Request, last: int, columns: int) -> str:
    """Return a line with `#` where the buffer is in use. Step -1 is at its left end."""
    scale = columns / (last + 2)
    begin = int((request.first + 1) * scale)
    end = max(begin + 1, math.ceil((request.last + 2) * scale))
    return "".join("#" if begin <= place < end else "." for place in range(columns))
