"""Reductions: a combiner with its identity, applied over reduction axes.

`Reduce` is an expression that exists only above the loop IR. It must be the whole body of a
compute. Lowering turns it into an initialisation and an update.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from refcomp.foundation.dtype import BOOL, I32, DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Add, Derived, Expr, IntImm, Max, Min, Mul, Var
from refcomp.ir.node import node
from refcomp.ir.promotion import as_expr, cast, const
from refcomp.ir.rewrite import substitute
from refcomp.te.check_reducer import check_reducer
from refcomp.te.maths import max_value, min_value
from refcomp.te.tensor import REDUCTION, IterVar, as_dim, axis


@dataclass(frozen=True, slots=True, eq=False)
class CommReducer:
    """An associative and commutative combiner of tuples of values, with its identity.

    `results[k]` is an expression over the variables `lhs` (so far) and `rhs` (next).
    """

    name: str
    lhs: tuple[Var, ...]
    rhs: tuple[Var, ...]
    results: tuple[Expr, ...]
    identities: tuple[Expr, ...]

    def combine(
        self, so_far: Sequence[Expr], next_values: Sequence[Expr]
    ) -> tuple[Expr, ...]:
        """Return the combined values as expressions."""
        bound = dict(zip((*self.lhs, *self.rhs), (*so_far, *next_values), strict=True))
        return tuple(substitute(result, bound) for result in self.results)


@node
class Reduce(Derived):
    """Value `value_index` of `reducer` over all `sources` on `axes` where `condition` holds.

    Without any, it is the identity. The order of combination is free unless a schedule fixes it.
    """

    reducer: CommReducer
    sources: tuple[Expr, ...]
    axes: tuple[IterVar, ...]
    condition: Expr
    value_index: int

    def _derive_dtype(self) -> DType:
        return self.sources[self.value_index].dtype


def reduce_axis(dom: Any, name: str = "k") -> IterVar:
    """Return an axis to reduce over.

    Args:
        dom: (begin, end), where end is exclusive, or an extent.
        name: the name of the axis.

    Raises:
        UserError: `dom` has another form or a negative extent, or the name is not a string.
    """
    bounds = tuple(dom) if isinstance(dom, tuple | list) else (0, dom)
    if len(bounds) != 2:
        raise UserError(
            f"{dom!r} is not a range to reduce over", remedy="pass (begin, end)"
        )
    begin, end = bounds
    as_dim(begin), as_dim(end)  # each is refused by itself, not their difference
    extent = end if isinstance(begin, int) and begin == 0 else end - begin
    if isinstance(extent, int) and extent < 0:
        raise UserError(f"the range {dom!r} to reduce over ends before it begins")
    return axis(name, begin, extent, REDUCTION)


_OF_TWO = ("max", "min")  # Python's own functions of these names take two values


def _check_axes(axes: Any, function: str) -> tuple[IterVar, ...]:
    if axes is None:
        axes = ()
    given = tuple(axes) if isinstance(axes, tuple | list) else (axes,)
    wrong = [a for a in given if not (isinstance(a, IterVar) and a.kind == REDUCTION)]
    if wrong or not given:
        of_two = (
            f"; of two values: refcomp.{function}imum(a, b)"
            if function in _OF_TWO
            else ""
        )
        raise UserError(
            f"{function} reduces over {repr(wrong[0]) if wrong else 'no axis'}",
            why="only reduction axes can be reduced over",
            remedy=f"make one with reduce_axis((0, extent), name), and pass it as axis{of_two}",
        )
    for k, item in enumerate(given):
        if any(item is other for other in given[:k]):
            raise UserError(
                f"{function} names axis {item.name} twice", remedy="name it once"
            )
    return given


def _reduce(
    reducer: CommReducer,
    sources: tuple[Expr, ...],
    axes: tuple[IterVar, ...],
    where: Any,
) -> list[Expr]:
    condition = IntImm(1, BOOL) if where is None else cast(BOOL, where)
    return [Reduce(reducer, sources, axes, condition, k) for k in range(len(sources))]


def _make_reducer(
    name: str,
    dtypes: Sequence[DType],
    combine: Callable[..., Any],
    identity: Callable[..., Any],
) -> CommReducer:
    lhs = tuple(Var(f"lhs{k}", dtype) for k, dtype in enumerate(dtypes))
    rhs = tuple(Var(f"rhs{k}", dtype) for k, dtype in enumerate(dtypes))
    if len(dtypes) == 1:
        results = (combine(lhs[0], rhs[0]),)
        identities = (identity(str(dtypes[0])),)
    else:
        results = combine(lhs, rhs)
        identities = identity(*map(str, dtypes))
    if not all(isinstance(made, tuple | list) for made in (results, identities)):
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
    fcombine: Callable[..., Any], fidentity: Callable[..., Any], name: str = "reduce"
) -> Callable[..., Any]:
    """Return a reduction that the user defines.

    Args:
        fcombine: combines two values, or two tuples of values.
        fidentity: takes the dtypes and returns the identity.
        name: the name in messages.

    Returns:
        A function `reducer(expr_or_tuple, axis=..., where=None)`.

    Raises:
        UserError: the combiner is not a commutative monoid. The message has numbers that show it.
    """

    def reduce(expr: Any, axis: Any = None, where: Any = None) -> Any:
        axes = _check_axes(axis, name)
        values = expr if isinstance(expr, tuple | list) else (expr,)
        if not values:
            raise UserError(
                f"reducer {name} is given no values", remedy="pass at least one"
            )
        sources = tuple(as_expr(value) for value in values)
        reducer = _make_reducer(name, [s.dtype for s in sources], fcombine, fidentity)
        check_reducer(reducer)
        reduced = _reduce(reducer, sources, axes, where)
        return tuple(reduced) if isinstance(expr, tuple | list) else reduced[0]

    return reduce


def _arithmetic(expr: Any) -> Expr:
    value = as_expr(expr)
    return cast(I32, value) if value.dtype.is_bool else value


def _standard(
    name: str, cls: type[Any], identity: Callable[[DType], Expr]
) -> Callable[..., Expr]:
    def reduce(expr: Any, axis: Any = None, where: Any = None) -> Expr:
        axes = _check_axes(axis, name)
        value = _arithmetic(expr)
        lhs = Var("lhs0", value.dtype)
        rhs = Var("rhs0", value.dtype)
        reducer = CommReducer(
            name, (lhs,), (rhs,), (cls(lhs, rhs),), (identity(value.dtype),)
        )
        return _reduce(reducer, (value,), axes, where)[0]

    reduce.__name__ = name
    reduce.__doc__ = (
        f"The {name} of `expr` over reduction `axis` (one or several), where `where` holds.\n\n"
        "Over nothing it is the identity. The dtype is the expression's; bool becomes i32."
    )
    return reduce


sum = _standard("sum", Add, lambda dtype: const(0, dtype))
prod = _standard("prod", Mul, lambda dtype: const(1, dtype))
max = _standard("max", Max, min_value)
min = _standard("min", Min, max_value)
