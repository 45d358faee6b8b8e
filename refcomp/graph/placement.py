"""Place values that are parts of others, or have the elements of others in another shape.

A reshape has the elements of its input in the same order, so both have one place. A concatenation
along the outermost axis has its inputs one after the other. So its inputs are placed inside of its
output, and the kernels that make them write there. Neither node needs a kernel. The outermost axis
is the first one of more than one element: the channels, for a batch of one image.

A value has one place. So a concatenation needs its kernel if an input is a part of another value,
is a constant, or is given twice. Each part begins at a multiple of `PART_ALIGNMENT`, as some
kernels of GPUs need it. Nothing writes to a value after it was made, so that sharing is never seen.

The memory of a concatenation is in use from the time when its first part is made. This may need
more than copies of the parts would. Then concatenations have their kernels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from refcomp.graph.graph import GraphNode, Value
from refcomp.graph.infer import FUSED
from refcomp.graph.memory_plan import MemoryPlan, Request, plan_memory
from refcomp.graph.passes.pointwise import is_plain

# Bytes: the widest access of a GPU is 16 bytes, and 64 bytes are a cache line of hosts.
PART_ALIGNMENT = 64

# The first and the last step at which a value is used, both included.
Life = tuple[int, int]

_SAME_ORDER = frozenset({"identity", "reshape", "flatten", "squeeze", "expand_dims"})


@dataclass(frozen=True, slots=True)
class ValuePlace:
    """The place of a value in the memory of a value that holds it."""

    root: Value  # has memory of its own
    offset: int  # bytes from the beginning of `root`


@dataclass(frozen=True, slots=True)
class Places:
    """The places of values, and the nodes whose outputs are in place without a kernel."""

    of: Mapping[Value, ValuePlace]
    moved: frozenset[int]  # numbers of these nodes, among those that were given

    def requests(
        self, lives: Mapping[Value, Life], sizes: Mapping[Value, int]
    ) -> dict[Value, Request]:
        """Return what memory each root needs, while any value in it lives."""
        spans: dict[Value, Life] = {}
        for value, (first, last) in lives.items():
            root = self.of[value].root
            begin, end = spans.get(root, (first, last))
            spans[root] = (min(begin, first), max(end, last))
        return {root: Request(sizes[root], *span) for root, span in spans.items()}

    def plan(
        self, lives: Mapping[Value, Life], sizes: Mapping[Value, int]
    ) -> MemoryPlan:
        """Return a plan with the offset of each value of `lives`, in their order."""
        requests = self.requests(lives, sizes)
        placed = plan_memory(list(requests.values()))
        roots = dict(zip(requests, placed.offsets, strict=True))
        places = [self.of[value] for value in lives]
        offsets = tuple(roots[place.root] + place.offset for place in places)
        return MemoryPlan(offsets, placed.total)


def separate_places(values: Iterable[Value]) -> Places:
    """Return places in which each value has memory of its own."""
    return Places({value: ValuePlace(value, 0) for value in values}, frozenset())


def place_values(
    nodes: Sequence[GraphNode],
    shapes: Mapping[Value, tuple[int, ...]],
    sizes: Mapping[Value, int],
    lives: Mapping[Value, Life],
) -> tuple[Places, MemoryPlan]:
    """Return the places with the fewest kernels that need no more memory than separate ones.

    Args:
        nodes: in the order of a run.
        shapes: of each value that is placed. Other values, such as constants, are left alone.
        sizes: the bytes of the same values.
        lives: the first and the last step of each of them.
    """
    separate = separate_places(lives)
    plan = separate.plan(lives, sizes)
    for joins in (True, False):
        places = _shared_places(nodes, shapes, sizes, joins=joins)
        shared = places.plan(lives, sizes)
        if shared.total <= plan.total:
            return places, shared
    return separate, plan


def _shared_places(
    nodes: Sequence[GraphNode],
    shapes: Mapping[Value, tuple[int, ...]],
    sizes: Mapping[Value, int],
    *,
    joins: bool,
) -> Places:
    """Return places in which as many nodes as possible need no kernel.

    `joins` permits to place the parts of concatenations in their outputs.
    """
    of = dict(separate_places(shapes).of)
    moved = set()
    for number, node in enumerate(nodes):
        inputs = [value for value in node.reads if value in shapes]
        output = node.outputs[0]
        if len(inputs) < len(node.inputs) or output not in shapes:
            continue
        # The address of an empty value must not be that of another value.
        if not all(sizes[value] for value in (*inputs, output)):
            continue
        if _keeps_order(node):
            of[output] = of[inputs[0]]
            moved.add(number)
        elif joins and _joins_outermost(node, shapes):
            parts = _parts_of(output, inputs, of, sizes)
            if parts:
                _replace_roots(of, parts)
                moved.add(number)
    return Places(of, frozenset(moved))


def _keeps_order(node: GraphNode) -> bool:
    """Return True for a node whose output has the elements of its one input in the same order."""
    if len(node.inputs) > 1 or len(node.outputs) > 1:
        return False
    if node.operator == FUSED:
        return all(map(_keeps_order, node.subgraphs[0].nodes))
    return is_plain(node) and node.operator in _SAME_ORDER


def _joins_outermost(node: GraphNode, shapes: Mapping[Value, tuple[int, ...]]) -> bool:
    """Return True for a concatenation whose inputs lie one after the other in its output."""
    if not is_plain(node) or node.operator != "concatenate":
        return False
    shape = shapes[node.outputs[0]]
    axis = node.attributes["axis"]
    assert isinstance(axis, int)
    return math.prod(shape[: axis % len(shape)]) == 1


def _parts_of(
    output: Value,
    inputs: Sequence[Value],
    of: Mapping[Value, ValuePlace],
    sizes: Mapping[Value, int],
) -> dict[Value, ValuePlace]:
    """Return the places of the inputs' roots in `output`; nothing if one cannot be placed."""
    parts: dict[Value, ValuePlace] = {}
    offset = 0
    for value in inputs:
        root = of[value].root
        is_whole = sizes[root] == sizes[value]
        if not is_whole or root in parts or offset % PART_ALIGNMENT:
            return {}
        parts[root] = ValuePlace(output, offset)
        offset += sizes[value]
    return parts


def _replace_roots(
    of: dict[Value, ValuePlace], parts: Mapping[Value, ValuePlace]
) -> None:
    """Move all values of these roots to the new places of the roots."""
    for value, place in of.items():
        part = parts.get(place.root)
        if part is not None:
            of[value] = ValuePlace(part.root, part.offset + place.offset)
