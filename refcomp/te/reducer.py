"""Reductions: a combiner with its identity, applied over reduction axes.

`Reduce` is an expression that exists only above the loop IR. It must be the whole body of a
compute. Lowering turns it into an initialisation and an update.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from typing import cast as cast_type

from refcomp.foundation.dtype import BOOL, I32, I64, DType
from refcomp.foundation.errors import UserError
from refcomp.foundation.names import checked_name
from refcomp.foundation.records import record
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Add, Derived, Expr, IntImm, Max, Min, Mul, Var
from refcomp.ir.node import node
from refcomp.ir.not_numbers import NotANumber
from refcomp.ir.promotion import as_expr, binary, cast, const
from refcomp.ir.rewrite import substitute
from refcomp.te.tensor import (
    REDUCTION,
    AxisRange,
    ExprLike,
    IterVar,
    RangeLike,
    as_range,
)

# The axes of a reduction: one, or several. None is refused, with advice. Instead of axes, a second
# value can be given, with which the first is combined.
AxisLike = IterVar | Sequence[IterVar] | Expr | Sequence[Expr] | None


@record(eq=False)
class CommReducer:
    """An associative and commutative combiner of tuples of values, with its identity.

    `sum`, `max` and the functions that `comm_reducer` returns make it.

    Attributes:
        name: the name in messages.
        lhs: variables that stand for the values that are combined so far.
        rhs: variables that stand for the next values, of the dtypes of `lhs`.
        results: the combined values, as expressions of `lhs` and `rhs`.
        identities: constants; combining with them changes nothing.
        result: `results`, under its classic name.
        identity_element: `identities`, under its classic name.

    Source: TVM, tir.CommReducer.

    Example::

        >>> A = rc.placeholder((8,), name="A")
        >>> k = rc.reduce_axis(8, name="k")
        >>> B = rc.compute((1,), lambda i: rc.sum(A[k], k), name="B")
        >>> reducer = B.op.reduction.reducer
        >>> reducer.name, reducer.lhs, reducer.rhs
        ('sum', (lhs0,), (rhs0,))
        >>> reducer.results, reducer.identities
        ((lhs0 + rhs0,), (0.0f32,))
        >>> reducer.result, reducer.identity_element
        ((lhs0 + rhs0,), (0.0f32,))
    """

    name: str
    lhs: tuple[Var, ...]
    rhs: tuple[Var, ...]
    results: tuple[Expr, ...]
    identities: tuple[Expr, ...]

    @property
    def result(self) -> tuple[Expr, ...]:
        """Return `results`, under its classic name."""
        return self.results

    @property
    def identity_element(self) -> tuple[Expr, ...]:
        """Return `identities`, under its classic name."""
        return self.identities

    def combine(
        self, so_far: Sequence[Expr], next_values: Sequence[Expr]
    ) -> tuple[Expr, ...]:
        """Return the combined values as expressions.

        Args:
            so_far: the values that are combined so far, one for each variable of `lhs`.
            next_values: the next values, one for each variable of `rhs`.

        Example::

            >>> A = rc.placeholder((8,), name="A")
            >>> k = rc.reduce_axis(8, name="k")
            >>> B = rc.compute((1,), lambda i: rc.sum(A[k], k), name="B")
            >>> B.op.reduction.reducer.combine([A[0]], [A[1]])
            (TensorRead(A, 0) + TensorRead(A, 1),)
        """
        bound = dict(zip((*self.lhs, *self.rhs), (*so_far, *next_values), strict=True))
        return tuple(substitute(result, bound) for result in self.results)


@node
class Reduce(Derived):
    """Value `value_index` of `reducer` over all `sources` on `axes` where `condition` holds.

    If `condition` holds nowhere, the value is the identity. The order of combination is free unless
    a schedule fixes it. The range of an axis may depend on the axes of the compute, on axes before
    it in the list, and on elements of tensors. Then `ranges` holds the ranges of all axes, so that
    a rewrite of the expression includes them.
    """

    reducer: CommReducer
    sources: tuple[Expr, ...]  # of one iteration, one for each value of `reducer`
    axes: tuple[IterVar, ...]
    condition: Expr  # bool; iterations where it is false do not count
    value_index: int  # which of the reduced values this expression is
    # Minimum and extent of each of `axes`; () if each axis has the range that it was made with.
    ranges: tuple[Expr, ...] = ()

    def range_of(self, axis: IterVar) -> AxisRange:
        """Return the range of an axis, in terms of the axes of the compute."""
        if self.ranges and axis in self.axes:
            place = 2 * self.axes.index(axis)
            return AxisRange(self.ranges[place], self.ranges[place + 1])
        return AxisRange(axis.minimum, axis.extent)

    @property
    def combiner(self) -> CommReducer:
        """Return `reducer`, under its classic name."""
        return self.reducer

    @property
    def source(self) -> tuple[Expr, ...]:
        """Return `sources`, under its classic name."""
        return self.sources

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """Return `axes`, under its classic name."""
        return self.axes

    def _derive_dtype(self) -> DType:
        return self.sources[self.value_index].dtype


def reduce_axis(dom: RangeLike, name: str = "k") -> IterVar:
    """Return an axis to reduce over.

    Args:
        dom: (begin, end), where end is exclusive; an extent; or the `dom` of another axis. Bounds
            are ints, int64 variables or expressions of them. Inside of the function of a compute,
            they may also use its indices, reduction axes that are listed before this one, and
            elements of tensors. A range without elements gives the identity of the reduction. Its
            end may lie before its begin.
        name: the name of the axis, and of its loop.

    Raises:
        UserError: `dom` has another form or a negative extent, or the name is not a text.

    Source: TVM, te.reduce_axis.

    Example::

        >>> A = rc.placeholder((8,), name="A")
        >>> k = rc.reduce_axis((2, 8), name="k")
        >>> B = rc.compute((1,), lambda i: rc.max(A[k], axis=k), name="B")
        >>> print(rc.lower(rc.create_schedule(B), [A, B], "greatest"))
        func greatest(A: f32[8], B: f32[1] out) {
          for i in range(1) {
            B[i] = -f32.inf
            for k in range(2, extent=6) {
              B[i] = max(B[i], A[k])
            }
          }
        }
        >>> def row(i):
        ...     k = rc.reduce_axis((0, i + 1), name="k")
        ...     return rc.sum(A[k], axis=k)
        >>> C = rc.compute((8,), row, name="C")
        >>> print(rc.lower(rc.create_schedule(C), [A, C], "prefix_sums"))
        func prefix_sums(A: f32[8], C: f32[8] out) {
          for i in range(8) {
            C[i] = 0.0f32
            for k in range(i + 1) {
              C[i] = C[i] + A[k]
            }
          }
        }
    """
    chosen = as_range(dom)
    var = Var(checked_name(name, "an axis"), I64)
    made = IterVar(var, chosen.minimum, chosen.extent, REDUCTION)
    count = as_int(made.extent)
    if count is not None and count < 0:
        raise UserError(f"the range {dom!r} to reduce over ends before it begins")
    return made


def _is_value(axes: object) -> bool:
    """Return True for a value, or a tuple of values, in place of the axes of a reduction."""
    items = axes if isinstance(axes, tuple | list) else (axes,)
    is_known_later = [isinstance(item, NotANumber) for item in items]
    return any(is_known_later) and not any(isinstance(i, IterVar) for i in items)


def _check_axes(axes: AxisLike, function: str) -> tuple[IterVar, ...]:
    given: tuple[object, ...] = (axes,)
    if axes is None:
        given = ()
    elif isinstance(axes, tuple | list):
        given = tuple(axes)
    checked: list[IterVar] = []
    for item in given or (None,):
        if not isinstance(item, IterVar) or item.kind != REDUCTION:
            remedy = "make one with reduce_axis((0, extent), name), and pass it as axis"
            if function in ("max", "min"):  # which Python has for numbers
                remedy += (
                    f"; of an expression and a number: refcomp.{function}imum(a, 0)"
                )
            raise UserError(
                f"{function} reduces over {repr(item) if given else 'no axis'}",
                why="only reduction axes can be reduced over",
                remedy=remedy,
            )
        if any(item is other for other in checked):
            raise UserError(
                f"{function} names axis {item.name} twice", remedy="name it once"
            )
        checked.append(item)
    return tuple(checked)


def _reduce(
    reducer: CommReducer,
    sources: tuple[Expr, ...],
    axes: tuple[IterVar, ...],
    where: ExprLike | None,
) -> list[Expr]:
    condition = IntImm(1, BOOL) if where is None else cast(BOOL, where)
    if condition.dtype.lanes > 1:
        raise UserError(
            f"the condition of {reducer.name} is a vector of {condition.dtype.lanes} lanes",
            why="an iteration counts for all lanes, or for none",
            remedy="combine select(condition, value, identity) instead",
        )
    return [Reduce(reducer, sources, axes, condition, k) for k in range(len(sources))]


def _make_reducer(
    name: str,
    dtypes: Sequence[DType],
    combine: Callable[..., object],
    identity: Callable[..., object],
) -> CommReducer:
    lhs = tuple(Var(f"lhs{k}", dtype) for k, dtype in enumerate(dtypes))
    rhs = tuple(Var(f"rhs{k}", dtype) for k, dtype in enumerate(dtypes))
    results: object
    identities: object
    if len(dtypes) == 1:
        results = (combine(lhs[0], rhs[0]),)
        identities = (identity(str(dtypes[0])),)
    else:
        results = combine(lhs, rhs)
        identities = identity(*map(str, dtypes))
    if not isinstance(results, tuple | list) or not isinstance(
        identities, tuple | list
    ):
        raise UserError(
            f"reducer {name} of {len(dtypes)} values does not combine to a tuple",
            remedy="return a tuple of results, and a tuple of identities",
        )
    if len(results) != len(dtypes) or len(identities) != len(dtypes):
        raise UserError(
            f"reducer {name} of {len(dtypes)} values combines to {len(results)} values "
            f"with {len(identities)} identities",
            remedy="return one result and one identity per value",
        )
    cast_results = tuple(cast(t, r) for t, r in zip(dtypes, results, strict=True))
    cast_identities = tuple(
        const(i, t) for t, i in zip(dtypes, identities, strict=True)
    )
    return CommReducer(name, lhs, rhs, cast_results, cast_identities)


def comm_reducer(
    fcombine: Callable[..., object],
    fidentity: Callable[..., object],
    name: str = "reduce",
) -> Callable[..., Any]:
    """Return a reduction that the user defines.

    Args:
        fcombine: combines two values, or two tuples of values. It is a commutative monoid: the
            order of combination is free unless a schedule fixes it.
        fidentity: takes the dtypes as texts and returns the identity, or a tuple of identities.
        name: the name in messages.

    Returns:
        A function `reducer(expr_or_tuple, axis=..., where=None)`. `axis` is a reduction axis or a
        list of them, and `where` a condition for the elements that count. `reducer(a, b, ...)`
        combines expressions, or tuples of them, without any axis and any condition.

    Raises:
        UserError: the combiner is not a commutative monoid. The message has numbers that show it.
            The returned function raises it, once it knows the dtypes.

    Source: TVM, te.comm_reducer.

    Example::

        >>> def later_greatest(a, b):
        ...     return rc.select(a[1] >= b[1], a[0], b[0]), rc.maximum(a[1], b[1])
        >>> def identity(index, value):
        ...     return rc.const(-1, index), rc.min_value(value)
        >>> argmax = rc.comm_reducer(later_greatest, identity, name="argmax")
        >>> A = rc.placeholder((4,), name="A")
        >>> k = rc.reduce_axis((0, 4), name="k")
        >>> I, V = rc.compute((1,), lambda i: argmax((k.var, A[k]), axis=k), name="I")
        >>> print(*rc.oracle.evaluate([I, V], {A: np.array([3, 9, 2, 1], "float32")}))
        [1] [9.]
        >>> rc.comm_reducer(lambda a, b: a - b, lambda dtype: rc.const(0, dtype))(A[k], axis=k)
        Traceback (most recent call last):
            ...
        refcomp.foundation.errors.UserError: the combiner ... is not a reduction...
    """

    # The check needs `arith`, which few programs use.
    from refcomp.te.check_reducer import check_reducer  # noqa: PLC0415

    def reduce(
        expr: ExprLike | Sequence[ExprLike],
        axis: AxisLike = None,
        *more: Any,
        where: Any = None,
    ) -> Any:
        if _is_value(axis):
            return _combine_values(fcombine, (expr, axis, *more), where, name)
        condition = _condition(more, where, name)
        axes = _check_axes(axis, name)
        values = expr if isinstance(expr, tuple | list) else (expr,)
        if not values:
            raise UserError(
                f"reducer {name} is given no values", remedy="pass at least one"
            )
        sources = tuple(as_expr(value) for value in values)
        reducer = _make_reducer(name, [s.dtype for s in sources], fcombine, fidentity)
        # Only now, since the dtypes decide what the combiner returns. Lanes are alike.
        elements = [s.dtype.element for s in sources]
        check_reducer(_make_reducer(name, elements, fcombine, fidentity))
        reduced = _reduce(reducer, sources, axes, condition)
        return tuple(reduced) if isinstance(expr, tuple | list) else reduced[0]

    return reduce


def _combine_values(
    combine: Callable[..., Any], given: tuple[Any, ...], where: object, name: str
) -> Any:
    """Return the combination of two or more values, from left to right."""
    if where is not None:
        raise UserError(
            f"{name} combines values and is given a condition",
            why="where= chooses among the iterations of reduction axes",
            remedy="combine select(condition, value, identity) instead",
        )
    first, *others = given
    for other in others:
        parts = [len(v) if isinstance(v, tuple | list) else 0 for v in (first, other)]
        if parts[0] != parts[1]:
            raise UserError(
                f"{name} combines {first!r} with {other!r}",
                remedy="pass two expressions, or two tuples of equally many",
            )
        # As over axes, where the combiner takes values, not tuples of one value.
        is_single = parts[0] == 1
        first = (combine(first[0], other[0]),) if is_single else combine(first, other)
    if isinstance(first, tuple | list):
        return tuple(as_expr(part) for part in first)
    return as_expr(first)


def _condition(more: tuple[Any, ...], where: Any, name: str) -> Any:
    """Return the condition of a reduction over axes: `where`, or the argument behind the axes."""
    given = more if where is None else (*more, where)
    if len(given) > 1:
        raise UserError(
            f"{name} is given {len(given) + 2} arguments with reduction axes",
            remedy="pass a value, axes and a condition; or expressions only",
        )
    return given[0] if given else None


def _counted(value: ExprLike) -> Expr:
    """Return a value; a bool is counted, as in C, instead of combined in one bit."""
    expr = as_expr(value)
    return cast(I32, expr) if expr.dtype.is_bool else expr


def _reduce_with(
    name: str,
    combiner: type[Add | Mul | Max | Min],
    identity: Callable[[DType], Expr],
    given: tuple[Any, ...],
    where: ExprLike | None,
) -> Expr:
    """Return `given`, (value, axes) or values, reduced over the axes or combined."""
    expr, axis, *more = given
    if _is_value(axis):

        def combine(a: ExprLike, b: ExprLike) -> Expr:
            # A number of Python takes the dtype of the other value, as in `a + 1`.
            parts = [x if isinstance(x, int | float) else _counted(x) for x in (a, b)]
            return binary(combiner, *parts)

        return cast_type(Expr, _combine_values(combine, given, where, name))
    condition = _condition(tuple(more), where, name)
    axes = _check_axes(axis, name)
    value = _counted(expr)
    lhs = Var("lhs0", value.dtype)
    rhs = Var("rhs0", value.dtype)
    reducer = CommReducer(
        name, (lhs,), (rhs,), (combiner(lhs, rhs),), (identity(value.dtype),)
    )
    return _reduce(reducer, (value,), axes, condition)[0]


def sum(
    expr: ExprLike,
    axis: AxisLike = None,
    *more: ExprLike,
    where: ExprLike | None = None,
) -> Expr:
    """Return the sum of `expr` over reduction axes, as the whole body of a compute.

    `sum(a, b, ...)` of expressions alone is their sum, an expression like any other.

    Without iterations, the result is 0. Integers wrap. Floats round after each step.

    Args:
        expr: the value at each iteration, of any scalar dtype. A bool becomes i32, and the dtype of
            the result is that of the value.
        axis: an axis of `reduce_axis`, or a list of such axes.
        more: the condition behind the axes, without its name; or further values, if `axis` is one.
        where: a condition. Iterations where it is false do not count; by default all count.

    Raises:
        UserError: `axis` is missing, a number, named twice or not a reduction axis; or values are
            combined under a condition.

    Source: TVM, te.sum.

    Example::

        >>> A = rc.placeholder((2, 4), name="A")
        >>> k = rc.reduce_axis((0, 4), name="k")
        >>> B = rc.compute((2,), lambda i: rc.sum(A[i, k], axis=k), name="B")
        >>> print(rc.lower(rc.create_schedule(B), [A, B], "rows"))
        func rows(A: f32[2, 4], B: f32[2] out) {
          for i in range(2) {
            B[i] = 0.0f32
            for k in range(4) {
              B[i] = B[i] + A[i, k]
            }
          }
        }
        >>> print(*rc.oracle.evaluate([B], {A: np.array([[1, 2, 3, 4], [5, 0, 5, 0]], "float32")}))
        [10. 10.]
    """
    return _reduce_with("sum", Add, partial(const, 0), (expr, axis, *more), where)


def prod(
    expr: ExprLike,
    axis: AxisLike = None,
    *more: ExprLike,
    where: ExprLike | None = None,
) -> Expr:
    """Return the product of `expr` over reduction axes, as the whole body of a compute.

    `prod(a, b, ...)` of expressions alone is their product, an expression like any other.

    Without iterations, the result is 1. Integers wrap. Floats round after each step.

    Args:
        expr: the value at each iteration, of any scalar dtype. A bool becomes i32, and the dtype of
            the result is that of the value.
        axis: an axis of `reduce_axis`, or a list of such axes.
        more: the condition behind the axes, without its name; or further values, if `axis` is one.
        where: a condition. Iterations where it is false do not count; by default all count.

    Raises:
        UserError: `axis` is missing, a number, named twice or not a reduction axis; or values are
            combined under a condition.

    Source: TVM, te.prod.

    Example::

        >>> A = rc.placeholder((2, 4), name="A")
        >>> k = rc.reduce_axis((0, 4), name="k")
        >>> B = rc.compute((2,), lambda i: rc.prod(A[i, k], axis=k), name="B")
        >>> print(*rc.oracle.evaluate([B], {A: np.array([[1, 2, 3, 4], [5, 0, 5, 0]], "float32")}))
        [24.  0.]
    """
    return _reduce_with("prod", Mul, partial(const, 1), (expr, axis, *more), where)


def max(
    expr: ExprLike,
    axis: AxisLike = None,
    *more: ExprLike,
    where: ExprLike | None = None,
) -> Expr:
    """Return the maximum of `expr` over reduction axes, as the whole body of a compute.

    `max(a, b, ...)` of expressions alone is their maximum, an expression like any other.

    Without iterations, the result is the minimum of the dtype, -inf for floats. NaN propagates.

    Args:
        expr: the value at each iteration, of any scalar dtype. A bool becomes i32, and the dtype of
            the result is that of the value.
        axis: an axis of `reduce_axis`, or a list of such axes.
        more: the condition behind the axes, without its name; or further values, if `axis` is one.
        where: a condition. Iterations where it is false do not count; by default all count.

    Raises:
        UserError: `axis` is missing, a number, named twice or not a reduction axis; or values are
            combined under a condition.

    Source: TVM, te.max.

    Example::

        >>> A = rc.placeholder((2, 4), name="A")
        >>> k = rc.reduce_axis((0, 4), name="k")
        >>> B = rc.compute((2,), lambda i: rc.max(A[i, k], axis=k), name="B")
        >>> print(*rc.oracle.evaluate([B], {A: np.array([[1, 2, 3, 4], [5, 0, 5, 0]], "float32")}))
        [4. 5.]
    """
    from refcomp.te.maths import min_value  # noqa: PLC0415  (as in `comm_reducer`)

    return _reduce_with("max", Max, min_value, (expr, axis, *more), where)


def min(
    expr: ExprLike,
    axis: AxisLike = None,
    *more: ExprLike,
    where: ExprLike | None = None,
) -> Expr:
    """Return the minimum of `expr` over reduction axes, as the whole body of a compute.

    `min(a, b, ...)` of expressions alone is their minimum, an expression like any other.

    Without iterations, the result is the maximum of the dtype, inf for floats. NaN propagates.

    Args:
        expr: the value at each iteration, of any scalar dtype. A bool becomes i32, and the dtype of
            the result is that of the value.
        axis: an axis of `reduce_axis`, or a list of such axes.
        more: the condition behind the axes, without its name; or further values, if `axis` is one.
        where: a condition. Iterations where it is false do not count; by default all count.

    Raises:
        UserError: `axis` is missing, a number, named twice or not a reduction axis; or values are
            combined under a condition.

    Source: TVM, te.min.

    Example::

        >>> A = rc.placeholder((2, 4), name="A")
        >>> k = rc.reduce_axis((0, 4), name="k")
        >>> B = rc.compute((2,), lambda i: rc.min(A[i, k], axis=k), name="B")
        >>> print(*rc.oracle.evaluate([B], {A: np.array([[1, 2, 3, 4], [5, 0, 5, 0]], "float32")}))
        [1. 0.]
    """
    from refcomp.te.maths import max_value  # noqa: PLC0415  (as in `comm_reducer`)

    return _reduce_with("min", Min, max_value, (expr, axis, *more), where)
