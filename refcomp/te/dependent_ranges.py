"""Ranges of reduction axes that depend on other axes, or on elements of tensors.

    C[i] = sum of A[i, k] for k in 0 .. i               a triangle
    C[i] = sum of data[k] for k in indptr[i] .. indptr[i + 1] - 1

A range may name the axes of its compute and the reduction axes that are listed before its own. A
range that ends before it begins is empty. `Reduce.ranges` holds the ranges, with extents of at
least 0. `rectangular` replaces them by constant ranges and a condition, if no element decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from refcomp.foundation.dtype import BOOL, I64
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.ir.constants import as_int
from refcomp.ir.expr import LE, LT, And, Expr, IfThenElseExpr, IntImm, Max, Var
from refcomp.ir.rewrite import variables_in, walk, with_changes
from refcomp.te.reducer import Reduce
from refcomp.te.tensor import AxisRange, IterVar, TensorRead

if TYPE_CHECKING:
    from refcomp.arith import Facts

_ZERO = IntImm(0, I64)


def with_ranges(
    body: tuple[Expr, ...], own: Sequence[IterVar], name: str
) -> tuple[Expr, ...]:
    """Return the body of a compute, whose reduction has `ranges` if it needs them.

    Args:
        body: the values of the outputs.
        own: the data-parallel axes of the compute.
        name: the name of the compute, for messages.

    Raises:
        UserError: a range depends on its own axis, or on one that is listed later.
    """
    first = body[0] if body else None
    if not isinstance(first, Reduce):
        return body
    variables = [one.var for one in (*own, *first.axes)]
    if not any(_depends(one, variables) for one in first.axes):
        return body
    ranges: list[Expr] = []
    for place, reduced in enumerate(first.axes):
        _check_order(reduced, first.axes[place:], name)
        known = [*own, *first.axes[:place]]
        extent = _nonnegative(reduced.extent, known)
        ranges += [reduced.minimum, extent]
    found = tuple(ranges)
    return tuple(with_changes(value, ranges=found) for value in body)


def _depends(reduced: IterVar, variables: Sequence[Var]) -> bool:
    bounds = (reduced.minimum, reduced.extent)
    return any(reads_element(bound) or depends_on(bound, variables) for bound in bounds)


def reads_element(expr: Expr) -> bool:
    """Return True if `expr` depends on elements of tensors."""
    return any(isinstance(item, TensorRead) for item in walk(expr))


def depends_on(expr: Expr, variables: Sequence[Var]) -> bool:
    """Return True if `expr` names one of `variables`."""
    return not set(variables).isdisjoint(variables_in(expr))


def _check_order(reduced: IterVar, later: Sequence[IterVar], name: str) -> None:
    for bound in (reduced.minimum, reduced.extent):
        for other in later:
            if depends_on(bound, [other.var]):
                raise UserError(
                    f"the range of axis {reduced.name} of compute {name} depends on axis "
                    f"{other.name}, which is listed later",
                    why="the range of a loop is known before the loop begins",
                    remedy=f"list {other.name} first: axis=[{other.name}, {reduced.name}]",
                )


def _nonnegative(extent: Expr, known: Sequence[IterVar]) -> Expr:
    """Return the extent, or 0 where it is negative."""
    from refcomp.arith import prove, simplify  # noqa: PLC0415 (few programs use it)

    if not depends_on(extent, [one.var for one in known]) and not reads_element(extent):
        return extent
    if prove(LE(_ZERO, extent), _facts(known)):
        return extent
    return simplify(Max(extent, _ZERO))


def _facts(known: Sequence[IterVar]) -> Facts:
    """Return what holds inside of loops over `known`."""
    from refcomp.arith import Facts  # noqa: PLC0415 (as above)

    facts = Facts()
    own = {one.var for one in known}
    for one in known:
        for symbol in dict.fromkeys(
            v for v in variables_in(one.extent) if v not in own
        ):
            facts = facts.nonnegative(symbol)
        facts = facts.bind(one.var, one.minimum, one.extent)
    return facts


def ranged_axes(reduce: Reduce | None) -> list[IterVar]:
    """Return the axes of a reduction with the ranges that it gives them; none without one.

    The axes have the same variables as those of the reduction.
    """
    if reduce is None or not reduce.ranges:
        return [] if reduce is None else list(reduce.axes)
    axes: list[IterVar] = []
    for one in reduce.axes:
        known = reduce.range_of(one)
        axes.append(replace(one, minimum=known.minimum, extent=known.extent))
    return axes


def dependent_axes(
    reduce: Reduce | None, variables: Sequence[Var]
) -> dict[IterVar, AxisRange]:
    """Return the axes whose ranges depend on `variables` or on elements, with their ranges.

    Ranges that depended on axes when they were made are returned, too, even if they no longer do.

    Args:
        reduce: the reduction; None has no axes.
        variables: the variables of the axes of the compute. Those of the reduction count, too.
    """
    if reduce is None or not reduce.ranges:
        return {}
    named = [*variables, *(one.var for one in reduce.axes)]
    found: dict[IterVar, AxisRange] = {}
    for one in reduce.axes:
        known = reduce.range_of(one)
        is_own = known.minimum is one.minimum and known.extent is one.extent
        bounds = (known.minimum, known.extent)
        if not is_own or any(
            reads_element(bound) or depends_on(bound, named) for bound in bounds
        ):
            found[one] = known
    return found


def hulls(reduce: Reduce, own: Sequence[IterVar]) -> list[IterVar] | None:
    """Return the axes of a reduction with ranges that do not depend on axes.

    Each range holds that of the axis for all values of the axes of the compute, `own`. Return None
    if no such range is known, as for a range that is read from a tensor.
    """
    from refcomp.arith import interval, simplify  # noqa: PLC0415 (few programs use it)
    from refcomp.arith.attained import Box  # noqa: PLC0415 (as above)

    given = ranged_axes(reduce)
    facts = _facts([*own, *given])
    box = Box(_facts(own))
    for one in own:
        box = box.with_axis(one.var, one.minimum, one.extent)
    found: list[IterVar] = []
    for one in given:
        last = simplify(one.minimum + one.extent - 1, facts)
        if reads_element(one.minimum) or reads_element(last):
            return None
        first = box.attained(one.minimum) if box.is_known else None
        end = box.attained(last) if box.is_known else None
        box = box.with_axis(one.var, one.minimum, one.extent)
        if first is not None and end is not None and not (first.wraps or end.wraps):
            found.append(_between(one, first.low, end.high))
            continue
        low = interval(one.minimum, facts).low
        high = interval(last, facts).high
        if low is None or high is None or max(-low, high) >= _MAX_END:
            return None
        found.append(_between(one, low, high))
    return found


# No loop has as many iterations: such an end follows from the limits of i64.
_MAX_END = 1 << 40


def _between(one: IterVar, low: int | Expr, high: int | Expr) -> IterVar:
    """Return the axis with the range from `low` to `high`."""
    from refcomp.arith import simplify  # noqa: PLC0415 (as above)

    first = IntImm(low, I64) if isinstance(low, int) else low
    last = IntImm(high, I64) if isinstance(high, int) else high
    extent = simplify(Max(last - first + 1, _ZERO))
    return replace(one, minimum=first, extent=extent)


def rectangular(reduce: Reduce, own: Sequence[IterVar], name: str) -> Reduce:
    """Return a reduction of the same value whose ranges do not depend on axes.

    The iterations outside of the ranges are under its condition. The axes keep their variables.

    Args:
        reduce: the reduction.
        own: the axes of its compute.
        name: the name of the compute, for messages.

    Raises:
        Unsupported: a range is read from a tensor.
    """
    if not reduce.ranges:
        return reduce
    axes = hulls(reduce, own)
    if axes is None:
        raise Unsupported(
            f"the reduction of {name} has a range that is read from a tensor",
            why="its greatest extent is known only when the elements are",
            remedy="reduce over a range of shapes, with where= for the part that counts",
        )
    condition = reduce.condition
    for one in reversed(ranged_axes(reduce)):
        bounds = (one.minimum, one.extent)
        named = [axis.var for axis in (*own, *axes)]
        if any(depends_on(bound, named) for bound in bounds):
            is_inside = And(
                LE(one.minimum, one.var), LT(one.var, one.minimum + one.extent)
            )
            # Outside, the condition must not be evaluated: it may read memory.
            never = IntImm(0, BOOL)
            if as_int(condition) == 1:
                condition = is_inside
            else:
                condition = IfThenElseExpr(is_inside, condition, never)
    return with_changes(reduce, axes=tuple(axes), condition=condition, ranges=())
