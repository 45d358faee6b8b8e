"""The check of a call's sizes against the conditions that its signature requires."""

from __future__ import annotations

from collections.abc import Mapping

from refcomp.foundation.artifacts import (
    Condition,
    Dim,
    Signature,
    dim_to_plain_text,
    evaluate_dim,
)
from refcomp.foundation.errors import UserError
from refcomp.foundation.symbol_sizes import Sizes


def check_conditions(signature: Signature, sizes: Sizes) -> None:
    """Raise UserError for the first condition of `signature` that `sizes` do not fulfil."""
    for condition in signature.requires:
        if not evaluate_dim(condition.test, sizes.values):
            raise refusal(signature, condition, sizes)


def refusal(
    signature: Signature, condition: Condition, sizes: Sizes, remedy: str = ""
) -> UserError:
    """Return the error for a condition that `sizes` do not fulfil."""
    given = sizes.explain(condition.test)
    needed = f"{condition.text or signature.name} needs {condition}"
    guard = f", or {condition.advice or 'access it under a condition only'}"
    at = f", at {condition.line}" if condition.line else ""
    return UserError(
        _what(signature, condition, sizes.values),
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
        ends = f", which has {count} element{'' if count == 1 else 's'}"
    return (
        f"{condition.by} index {_valued(index, values)} of dimension {condition.dim} of "
        f"{condition.buffer}{ends}"
    )


def _valued(dim: Dim, values: Mapping[str, int]) -> str:
    """Return `m - 1 = 6`, or `6` for a constant."""
    value = evaluate_dim(dim, values)
    return str(value) if isinstance(dim, int) else f"{dim_to_plain_text(dim)} = {value}"
