"""The check of a requirement with axes: does its condition hold at all their values?

    for i in range(m) i % 2 != 0 or i // 2 < n

All values are computed on numpy arrays, as `refcomp.ir.expr` defines them. Operands of `or` that
have no axis in common are checked one after the other. So the condition `f(i) or g(j)` for i in
range(m) and j in range(k) takes m + k steps, and not m * k.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from refcomp.arith.array_operators import Array, array_operator
from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.integers import wrap
from refcomp.ir.expr import Expr, FloatImm, IntImm, Or, Var
from refcomp.ir.func import Requirement
from refcomp.ir.rewrite import children, variables_in

# Points whose values are in memory at a time. More points take several steps.
MAX_POINTS = 1 << 18

# An axis with its first value and the number of its values.
_Axis = tuple[Var, Expr, Expr]
_Points = dict[Var, Array]  # the values of the axes at each point
Point = dict[Var, int]  # the values of the axes at one point


def first_violation(requirement: Requirement, sizes: Mapping[Var, int]) -> Point | None:
    """Return values of the axes at which the condition does not hold; None if it always holds.

    Args:
        requirement: a requirement that its type rule permits.
        sizes: the values of symbols and scalars.
    """
    at: Point = {}
    with np.errstate(all="ignore"):  # a division by zero has a value
        for axes, operands in _independent_parts(requirement):
            found = _first_violation(axes, operands, sizes)
            if found is None:
                return None
            at |= found
    return at


def value_at(expr: Expr, values: Mapping[Var, int]) -> int:
    """Return the value of an integer expression whose variables have the given values."""
    with np.errstate(all="ignore"):
        return int(_values(expr, _constants(values)))


def operands_of_or(condition: Expr) -> list[Expr]:
    """Return the operands whose disjunction is `condition`, in order."""
    found: list[Expr] = []
    stack = [condition]
    while stack:
        expr = stack.pop()
        if isinstance(expr, Or):
            stack += [expr.b, expr.a]
        else:
            found.append(expr)
    return found


def _independent_parts(
    requirement: Requirement,
) -> list[tuple[list[_Axis], list[Expr]]]:
    """Return groups of axes, each with the operands of `or` that name no axis outside of it."""
    axes = list(
        zip(requirement.axes, requirement.minima, requirement.extents, strict=True)
    )
    # The group of an axis, or of an operand, is a set that all of its members share.
    groups: list[tuple[set[Var], list[Expr]]] = [({var}, []) for var, _, _ in axes]
    own = set(requirement.axes)

    def join(named: set[Var], operand: Expr | None) -> None:
        nonlocal groups
        joined: tuple[set[Var], list[Expr]] = (set(), [])
        others: list[tuple[set[Var], list[Expr]]] = []
        for group in groups:
            if group[0] & named:
                joined[0].update(group[0])
                joined[1].extend(group[1])
            else:
                others.append(group)
        if operand is not None:
            joined[1].append(operand)
        groups = [*others, joined]

    for var, minimum, extent in axes:
        join({var, *variables_in(minimum), *variables_in(extent)} & own, None)
    for operand in operands_of_or(requirement.condition):
        join(set(variables_in(operand)) & own, operand)
    return [([axis for axis in axes if axis[0] in named], o) for named, o in groups]


def _first_violation(
    axes: Sequence[_Axis], operands: Sequence[Expr], sizes: Mapping[Var, int]
) -> Point | None:
    constants = _constants(sizes)
    for points, count in _points(axes, {}, 1, constants):
        known = {**constants, **points}
        holds = np.zeros(count, np.bool_)
        for operand in operands:
            holds |= _values(operand, known)
        if not holds.all():
            place = int(np.argmin(holds))
            return {var: int(values[place]) for var, values in points.items()}
    return None


def _constants(sizes: Mapping[Var, int]) -> _Points:
    return {
        var: np.asarray(wrap(size, var.dtype), to_numpy(var.dtype))
        for var, size in sizes.items()
        if var.dtype.is_int
    }


def _points(
    axes: Sequence[_Axis], outer: _Points, count: int, constants: _Points
) -> Iterator[tuple[_Points, int]]:
    """Yield the points of `axes` at each of the `count` points `outer`, in order."""
    if not axes:
        yield outer, count
        return
    (var, minimum, extent), *inner = axes
    known = {**constants, **outer}
    first = np.broadcast_to(_values(minimum, known), count)
    extents = np.maximum(np.broadcast_to(_values(extent, known), count), 0)
    begin = 0
    while begin < count:
        # As many outer points as fit, or a part of the range at one outer point.
        ends = np.cumsum(extents[begin:], dtype=np.int64)
        taken = max(1, int(np.searchsorted(ends, MAX_POINTS, side="right")))
        stop = begin + taken
        for low in range(0, max(int(ends[taken - 1]), 1), MAX_POINTS):
            counts = extents[begin:stop]
            if taken == 1:
                counts = np.clip(counts - low, 0, MAX_POINTS)
            total = int(counts.sum())
            if not total:
                continue
            starts = np.cumsum(counts, dtype=np.int64) - counts
            offset = np.arange(total) - np.repeat(starts, counts)
            chosen = {v: np.repeat(a[begin:stop], counts) for v, a in outer.items()}
            at = np.repeat(first[begin:stop], counts) + (offset + low)
            chosen[var] = at.astype(to_numpy(var.dtype))
            yield from _points(inner, chosen, total, constants)
        begin = stop


def _values(expr: Expr, known: Mapping[Var, Array]) -> Array:
    """Return the values of `expr`, one for each point, or a single one."""
    match expr:
        case Var():
            return known[expr]
        case IntImm(value=value) | FloatImm(value=value):
            return np.asarray(value, to_numpy(expr.dtype))
    operator = array_operator(expr)
    assert operator is not None, expr  # the type rule of requirements permits no other
    return np.asarray(operator(*(_values(child, known) for child in children(expr))))
