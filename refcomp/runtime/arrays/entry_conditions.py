"""The check of a call's sizes against the conditions that its signature requires."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from refcomp.foundation.artifacts import (
    Condition,
    Dim,
    PointCondition,
    Signature,
    dim_to_plain_text,
    evaluate_dim,
)
from refcomp.foundation.errors import UserError
from refcomp.foundation.symbol_sizes import Sizes

if TYPE_CHECKING:
    from refcomp.arith.everywhere import Point
    from refcomp.ir.expr import Var
    from refcomp.ir.func import Requirement


def check_conditions(signature: Signature, sizes: Sizes) -> None:
    """Raise UserError for the first condition of `signature` that `sizes` do not fulfil."""
    for condition in signature.requires:
        if not holds(condition, sizes.values):
            raise refusal(signature, condition, sizes)


def holds(condition: Condition, values: Mapping[str, int]) -> bool:
    """Return True if sizes and scalars of the given `values` fulfil `condition`."""
    if condition.points is None:
        return bool(evaluate_dim(condition.test, values))
    return _violation(condition.points, values) is None


def refusal(
    signature: Signature, condition: Condition, sizes: Sizes, remedy: str = ""
) -> UserError:
    """Return the error for a condition that `sizes` do not fulfil."""
    given = sizes.explain_names(condition.names)
    needed = f"{condition.text or signature.name} needs {condition}"
    guard = f", or {condition.advice or 'access it under a condition only'}"
    at = f", at {condition.line}" if condition.line else ""
    if condition.points is None:
        what = _what(signature, condition, sizes.values)
    else:
        what, point = _what_at_a_point(condition, condition.points, sizes.values)
        needed += f", which fails for {point}"
    return UserError(
        what,
        where=f"{signature}{at}",
        why=f"{needed}: {given}" if given else needed,
        remedy=(remedy or "pass arrays and numbers whose sizes fit")
        + (guard if condition.buffer else ""),
    )


def _what(signature: Signature, condition: Condition, values: Mapping[str, int]) -> str:
    if condition.failure:
        return f"{condition.by}: {condition.failure}"
    test = condition.test
    # (extent <= 0) or ... or bound: the last operand is the bound itself.
    while isinstance(test, tuple) and test[0] == "or":
        test = test[2]
    if not isinstance(test, tuple) or not condition.text:
        return f"{signature.name} cannot be called with these sizes"
    operator, left, right = test
    if not condition.buffer:
        owner = condition.by or signature.name
        return f"{_valued(right, values)} is negative, and is an extent of {owner}"
    # The test is either 0 <= index or index < count.
    index = right
    ends = ""
    if operator == "lt":
        index = left
        count = evaluate_dim(right, values)
        ends = _which_has(count)
    return (
        f"{condition.by} index {_valued(index, values)} of dimension {condition.dim} of "
        f"{condition.buffer}{ends}"
    )


def _which_has(count: int) -> str:
    from refcomp.foundation.counted import counted  # noqa: PLC0415  (rare)

    return f", which has {counted(count, 'element')}"


def _valued(dim: Dim, values: Mapping[str, int]) -> str:
    """Return `m - 1 = 6`, or `6` for a constant."""
    value = evaluate_dim(dim, values)
    return str(value) if isinstance(dim, int) else f"{dim_to_plain_text(dim)} = {value}"


def _violation(points: PointCondition, values: Mapping[str, int]) -> Point | None:
    """Return a point at which the condition does not hold; None if there is none."""
    # Few functions have such a condition. Others need no compiler to check a call.
    from refcomp.arith.everywhere import first_violation  # noqa: PLC0415

    requirement, params = _parsed(points)
    return first_violation(requirement, _sizes(params, points, values))


def _sizes(
    params: tuple[Var, ...], points: PointCondition, values: Mapping[str, int]
) -> dict[Var, int]:
    named = zip(params, points.names, strict=True)
    return {var: values[name] for var, name in named}


@lru_cache(maxsize=256)
def _parsed(points: PointCondition) -> tuple[Requirement, tuple[Var, ...]]:
    """Return the requirement, and a variable for each of the names."""
    from refcomp.ir.expr import Var  # noqa: PLC0415  (see above)
    from refcomp.ir.parser import parse_func  # noqa: PLC0415  (see above)

    func = parse_func(points.func, "the condition of a call")
    params = tuple(param for param in func.params if isinstance(param, Var))
    if len(func.requires) != 1 or len(params) != len(points.names):
        raise UserError(
            f"the condition {points} of a function is malformed",
            remedy="build the module again",
        )
    return func.requires[0], params


def _what_at_a_point(
    condition: Condition, points: PointCondition, values: Mapping[str, int]
) -> tuple[str, str]:
    """Return the message about a condition that fails at some point, and that point."""
    from refcomp.arith.everywhere import operands_of_or, value_at  # noqa: PLC0415
    from refcomp.ir.expr import LT, BinaryExpr  # noqa: PLC0415  (see above)
    from refcomp.ir.printer import print_expr  # noqa: PLC0415  (see above)

    requirement, params = _parsed(points)
    at = _violation(points, values) or {}
    point = ", ".join(f"{axis.name} = {value}" for axis, value in at.items())
    # The last operand is the bound itself: 0 <= index or index < count.
    bound = operands_of_or(requirement.condition)[-1]
    if not condition.buffer or not isinstance(bound, BinaryExpr):
        return (
            f"{condition.by or 'the function'} cannot be called with these sizes",
            point,
        )
    known = {**_sizes(params, points, values), **at}
    index = bound.a if isinstance(bound, LT) else bound.b
    ends = ""
    if isinstance(bound, LT):
        count = value_at(bound.b, known)
        ends = _which_has(count)
    text = f"{print_expr(index)} = {value_at(index, known)}"
    what = f"{condition.by} index {text} of dimension {condition.dim}"
    return f"{what} of {condition.buffer}{ends}", point
