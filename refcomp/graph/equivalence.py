"""Compare the outputs of a graph with those of what passes made of it.

Outputs of both have equal bits, or are equal but for rounding, by derived bounds. Each output is a
te computation, and `bound_errors` bounds how far any legal evaluation is from its value in real
arithmetic. Let v and e be value and bound of the graph, and w and f those of the changed one.

A pass that rounds makes new constants. Each is an exact value that was rounded once, such as a
weight times a scale. So the bound f is that of a graph whose new constants are rounded again. Both
v and the output of the changed graph are legal for this graph, but for a part of e. Both are within
f of w, and so the output is within e + 2 f of v.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from refcomp.foundation.dtype import as_dtype
from refcomp.foundation.errors import RefcompError
from refcomp.graph.dims import Symbols
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.graph import Array, Graph, Value
from refcomp.graph.infer import node_to_te, value_to_placeholder
from refcomp.graph.optimize import Rounding
from refcomp.ir.expr import Expr
from refcomp.oracle.compare import UNDECIDABLE, judge_bounded
from refcomp.oracle.floats.error_bounds import Bounded, bound_errors
from refcomp.te import reducer
from refcomp.te.operation import compute, placeholder
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import Tensor

EQUAL = ""
# The bounds say too little to decide.
UNKNOWN = "not known"
# Three numbers whose sum is 1, and whose products with floats are exact.
_PARTS = np.array([0.5, 0.25, 0.25])


def difference(
    graph: Graph, changed: Graph, feeds: Mapping[str, Array], *, rounding: Rounding
) -> str:
    """Return how outputs differ: EQUAL, UNKNOWN, or a sentence on the first one that is wrong.

    Args:
        graph: the graph as it was.
        changed: what passes made of it.
        feeds: name of an input -> its array; extents are constant.
        rounding: how the pass may change results.
    """
    with np.errstate(all="ignore"):
        expected = evaluate_graph(graph, feeds)
        actual = evaluate_graph(changed, feeds)
    if len(actual) != len(expected):
        return f"{len(actual)} outputs for {len(expected)}"
    unequal = []
    for place, (one, other) in enumerate(zip(expected, actual, strict=True)):
        name = graph.outputs[place].name
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return f"output {name} is {other.dtype}{other.shape}, not {one.dtype}{one.shape}"
        if not _equal_bits(one, other).all():
            unequal.append(place)
    if not unequal:
        return EQUAL
    if rounding is Rounding.NONE:
        place = unequal[0]
        text = _first_difference(expected[place], actual[place])
        return f"output {graph.outputs[place].name} has other bits: {text}"
    found = {place: (expected[place], actual[place]) for place in unequal}
    return _judged(graph, changed, feeds, found, rounding)


def _equal_bits(one: Array, other: Array) -> Array:
    """Return where elements are equal: zeros of equal signs, and NaN and NaN, too."""
    if one.dtype.kind in "iub":
        return np.asarray(one == other)
    wide = one.astype(np.float64)
    same = other.astype(np.float64)
    are_nan = np.isnan(wide) & np.isnan(same)
    are_same = (wide == same) & (np.signbit(wide) == np.signbit(same))
    return np.asarray(are_nan | are_same)


def _first_difference(one: Array, other: Array) -> str:
    place = int(np.argmin(_equal_bits(one, other).reshape(-1)))
    return f"{other.reshape(-1)[place]} for {one.reshape(-1)[place]}"


def _judged(
    graph: Graph,
    changed: Graph,
    feeds: Mapping[str, Array],
    found: Mapping[int, tuple[Array, Array]],
    rounding: Rounding,
) -> str:
    """Return the difference of some outputs, by the bounds of both graphs."""
    try:
        legal = _legal(graph, feeds, list(found), graph.constants)
        others = _legal(changed, feeds, list(found), graph.constants)
    except RefcompError:
        # An index may be out of range, where the meaning of an operator clips it.
        return UNKNOWN
    is_known = True
    for place, one, other in zip(found, legal, others, strict=True):
        overflows = np.isfinite(one.value) & ~np.isfinite(other.value)
        if rounding is Rounding.NARROWS and overflows.any():
            is_known = False
            continue
        both = replace(
            one,
            error=one.error + 2 * other.error,
            doubtful=one.doubtful | other.doubtful,
            others=one.others | other.others,
        )
        before, after = found[place]
        # What did not change needs no bound.
        is_kept = _equal_bits(before, after)
        report = judge_bounded(np.where(is_kept, both.nearest, after), both)
        if not report.agrees:
            return f"output {graph.outputs[place].name}: {report}"
        is_known = is_known and report.count(UNDECIDABLE) == 0
    return EQUAL if is_known else UNKNOWN


@np.errstate(all="ignore")
def _legal(
    graph: Graph,
    feeds: Mapping[str, Array],
    places: Sequence[int],
    exact: Mapping[Value, Array],
) -> list[Bounded]:
    """Return the legal values of outputs, if constants that are not in `exact` were rounded."""
    symbols = Symbols()
    given: dict[Value, Array] = {value: feeds[value.name] for value in graph.inputs}
    given |= graph.constants
    tensors = {value: value_to_placeholder(value, symbols) for value in given}
    arrays: dict[Tensor, Array] = {tensors[value]: given[value] for value in given}
    for value, array in graph.constants.items():
        if value.dtype.is_float and not _is_among(array, exact.values()):
            parts = placeholder(_PARTS.shape, value.dtype, "parts")
            arrays[parts] = _PARTS.astype(array.dtype)
            tensors[value] = _rounded(tensors[value], parts)
    for node in graph.nodes:
        tensors.update(node_to_te(node, tensors))
    outputs = [graph.outputs[place] for place in places]
    computed = list(dict.fromkeys(value for value in outputs if value not in given))
    bounds = bound_errors([tensors[value] for value in computed], arrays)
    known = dict(zip(computed, bounds, strict=True))
    return [
        known[value] if value in known else _exact(given[value]) for value in outputs
    ]


def _rounded(tensor: Tensor, parts: Tensor) -> Tensor:
    """Return the tensor, whose elements may each be off by two roundings.

    A bound for sums does not depend on whether they happen to be exact, as these are. The second
    rounding covers the arithmetic in f64 by which a pass makes a constant.
    """

    def element(*index: Expr) -> Expr:
        k = reduce_axis(_PARTS.size, "k")
        return reducer.sum(tensor[index] * parts[k.var], axis=k)

    return compute(tensor.shape, element, name="rounded")


def _is_among(array: Array, others: Iterable[Array]) -> bool:
    """Return True if another array has the same elements in the same order."""
    elements = array.reshape(-1)
    return any(
        elements.size == other.size
        and elements.dtype == other.dtype
        and np.array_equal(elements, other.reshape(-1), equal_nan=True)
        for other in others
    )


def _exact(array: Array) -> Bounded:
    """Return an array as its only legal values."""
    is_float = as_dtype(array.dtype).is_float
    return Bounded(
        dtype=as_dtype(array.dtype),
        value=array.astype(np.longdouble) if is_float else array,
        error=np.zeros(array.shape, np.longdouble),
        doubtful=np.zeros(array.shape, np.bool_),
        condition=np.ones(array.shape),
        others=np.zeros(array.shape, np.uint8),
    )
