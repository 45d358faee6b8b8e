"""The elements of small tensors that a model computes from extents.

The elements of `shape_of(x)` are the extents of x, which may have symbols. Models take them apart,
compute with them, and put them together as the shape of another tensor. The functions here follow
such elements through the operators that are used for this::

    shape: i64[2] = shape_of(x)                  # N, 4
    first: i64[1] = strided_slice(shape) {begin=[0], end=[1]}
    wanted: i64[2] = concatenate(first, rest) {axis=0}    # N, -1

Elements are arrays of objects: an int, or an extent that has symbols (`refcomp.graph.dims`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from refcomp.foundation.artifacts import Dim
from refcomp.foundation.dtype import BOOL, I64
from refcomp.graph import dims
from refcomp.graph.graph import Array, GraphNode, Value
from refcomp.topi.operator import find_operator

# Elements of a tensor that are followed; a shape has few.
MAX_FOLLOWED = 64
_MOVES = {
    "concatenate",
    "expand_dims",
    "identity",
    "reshape",
    "split",
    "squeeze",
    "stack",
    "strided_slice",
    "take",
    "transpose",
}


@dataclass(frozen=True, slots=True)
class _Symbolic:
    """An element that has symbols. Numpy would take a bare tuple for several elements."""

    dim: Dim


class _UndecidedError(Exception):
    """Raised if an element depends on more than extents."""


def follow(
    node: GraphNode, elements: Callable[[Value], Array | None]
) -> list[Array] | None:
    """Return the elements of each output of a node; None if they do not follow from extents.

    Args:
        node: a node that is run by a kernel.
        elements: returns the elements of a value that the node reads, or None.
    """
    if node.operator == "shape_of":
        return [as_elements(node.reads[0].shape)]
    if node.operator not in _RULES and node.operator not in _MOVES:
        return None
    inputs = [value for value in node.inputs if value is not None]
    if any(value.dtype not in (I64, BOOL) for value in (*inputs, *node.outputs)):
        return None
    operands = [elements(value) for value in inputs]
    known = [array for array in operands if array is not None]
    if len(known) < len(operands) or sum(a.size for a in known) > MAX_FOLLOWED:
        return None
    if node.operator in _MOVES:
        return _moved(node, known)
    try:
        return [_RULES[node.operator](*known)]
    except _UndecidedError:
        return None


def _moved(node: GraphNode, operands: list[Array]) -> list[Array] | None:
    """Return the results of an operator that only moves elements."""
    if node.operator == "take":
        if not is_numbers(operands[1]):
            return None
        operands[1] = operands[1].astype(np.int64)
    made = find_operator(node.operator).numpy(*operands, **node.attributes)
    return [
        np.asarray(one, object) for one in (made if isinstance(made, list) else [made])
    ]


def as_elements(extents: Sequence[Dim]) -> Array:
    """Return extents as an array of elements, of one dimension."""
    return np.array([_wrapped(dim) for dim in extents], object)


def as_extents(elements: Array) -> tuple[Dim, ...]:
    """Return the extents that an array of elements holds, in row-major order."""
    return tuple(_unwrapped(one) for one in elements.reshape(-1))


def is_numbers(elements: Array) -> bool:
    """Return True if no element has symbols."""
    return not any(isinstance(one, _Symbolic) for one in elements.reshape(-1))


def _wrapped(dim: Dim) -> object:
    return dim if isinstance(dim, int) else _Symbolic(dim)


def _unwrapped(element: object) -> Dim:
    if isinstance(element, _Symbolic):
        return element.dim
    assert isinstance(element, int | np.integer | np.bool_)
    return int(element)


def are_equal(a: Dim, b: Dim) -> bool:
    """Return True if two extents are the same product; False does not say that they differ."""
    return a == b or _factors(a) == _factors(b)


def _factors(dim: Dim) -> tuple[int, Counter[Dim]]:
    """Return the constant factor of an extent, and how often each other factor occurs."""
    constant = 1
    others: Counter[Dim] = Counter()
    pending = [dim]
    while pending:
        match pending.pop():
            case int(value):
                constant *= value
            case ("mul", left, right):
                pending += [left, right]
            case other:
                others[other] += 1
    return constant, others


def _is_natural(dim: Dim) -> bool:
    """Return True if an extent is known not to be negative."""
    match dim:
        case int():
            return dim >= 0
        case str():
            return True
        case ("add" | "mul" | "floordiv" | "floormod" | "min" | "max", left, right):
            return _is_natural(left) and _is_natural(right)
    return False


def _quotient(a: Dim, b: Dim) -> Dim:
    """Return a / b, rounded towards zero, for a natural number and a positive one."""
    if isinstance(b, int) and b > 0 and _is_natural(a):
        return dims.floor_divide(a, b)
    raise _UndecidedError


def _is_equal(a: Dim, b: Dim) -> bool:
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if are_equal(a, b):
        return True
    for one, other in ((a, b), (b, a)):
        if isinstance(one, int) and one < 0 and _is_natural(other):
            return False
    raise _UndecidedError


def _arithmetic(rule: Callable[[Dim, Dim], Dim]) -> Callable[..., Array]:
    def apply(a: object, b: object) -> object:
        return _wrapped(rule(_unwrapped(a), _unwrapped(b)))

    return lambda a, b: np.asarray(np.frompyfunc(apply, 2, 1)(a, b), object)


def _chosen(condition: Array, a: Array, b: Array) -> Array:
    return np.asarray(np.where(condition.astype(bool), a, b))


_RULES: dict[str, Callable[..., Array]] = {
    "add": _arithmetic(dims.add),
    "subtract": _arithmetic(dims.subtract),
    "multiply": _arithmetic(dims.multiply),
    "divide": _arithmetic(_quotient),
    "floor_divide": _arithmetic(_quotient),
    "trunc_divide": _arithmetic(_quotient),
    "equal": _arithmetic(_is_equal),
    "where": _chosen,
}
