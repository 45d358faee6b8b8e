"""Messages about conditions that a call does not fulfil."""

from dataclasses import replace

import numpy as np
import pytest

from refcomp.foundation.artifacts import (
    Condition,
    PointCondition,
    ScalarParam,
    Signature,
    TensorParam,
)
from refcomp.foundation.dtype import F32, I64
from refcomp.foundation.errors import UserError
from refcomp.foundation.symbol_sizes import Sizes
from refcomp.runtime.arrays.argument_rules import check_signature, shape_scalars
from refcomp.runtime.arrays.entry_checks import EntryChecks
from refcomp.runtime.arrays.entry_conditions import check_conditions

_PARAMS = (
    TensorParam("A", F32, ("n",)),
    TensorParam("C", F32, ("m",), True),
    ScalarParam("k", I64),
)


def _signature(*conditions: Condition) -> Signature:
    return Signature("f", _PARAMS, ("n", "m"), conditions)


def _call(signature: Signature, n: int, m: int, k: int) -> None:
    EntryChecks(signature).check([np.zeros(n, "f4"), np.zeros(m, "f4"), k])


def _refusal(condition: Condition, n: int, m: int, k: int) -> str:
    with pytest.raises(UserError) as caught:
        _call(_signature(condition), n, m, k)
    return str(caught.value)


HIGH = Condition(
    ("or", ("le", "m", 0), ("lt", ("add", ("sub", "m", 1), "k"), "n")),
    *("A[i + k]", "compute C reads", "x.py:3", "A", 0),
)
LOW = Condition(("le", 0, "k"), "A[i + k]", "compute C reads", "", "A", 0)


def test_an_index_beyond_the_end():
    assert _refusal(HIGH, 5, 4, 2) == (
        "compute C reads index m - 1 + k = 5 of dimension 0 of A, which has 5 elements\n"
        "  where: f(A: f32[n], C: f32[m] (output), k: i64), at x.py:3\n"
        "  why: A[i + k] needs m <= 0 or m - 1 + k < n: m is 4 by dimension 0 of C; "
        "k is 2 by argument k; n is 5 by dimension 0 of A\n"
        "  what to do: pass arrays and numbers whose sizes fit, or access it under a condition only"
    )
    _call(_signature(HIGH), 5, 4, 1)
    _call(_signature(HIGH), 5, 0, 99)


def test_an_index_before_the_beginning():
    assert _refusal(LOW, 5, 4, -1).splitlines()[0] == (
        "compute C reads index k = -1 of dimension 0 of A"
    )


def test_an_index_that_is_constant():
    first = Condition(("lt", 0, "n"), "A[0]", "compute C reads", "", "A", 0)
    assert _refusal(first, 0, 4, 0).splitlines()[0] == (
        "compute C reads index 0 of dimension 0 of A, which has 0 elements"
    )
    second = Condition(("lt", 1, "n"), "A[1]", "compute C reads", "", "A", 0)
    assert ", which has 1 element\n" in _refusal(second, 1, 4, 0)


def _at_points(requirement: str, *names: str) -> Condition:
    params = ", ".join(f"{name}: i64" for name in names)
    func = f"func check({params}) requires ({requirement}) {{ }}"
    points = PointCondition(requirement, func, names)
    return Condition(1, "A[i & 3]", "C reads", "x.py:3", "A", 0, points=points)


def test_a_condition_at_all_values_of_an_axis():
    condition = _at_points("for i in range(m) k < 0 or i & 3 < n", "m", "k", "n")
    _call(_signature(condition), 4, 9, 0)
    _call(_signature(condition), 3, 3, 0)
    _call(_signature(condition), 3, 4, -1)
    assert _refusal(condition, 3, 4, 0) == (
        "C reads index i & 3 = 3 of dimension 0 of A, which has 3 elements\n"
        "  where: f(A: f32[n], C: f32[m] (output), k: i64), at x.py:3\n"
        "  why: A[i & 3] needs for i in range(m) k < 0 or i & 3 < n, which fails for i = 3: "
        "m is 4 by dimension 0 of C; k is 0 by argument k; n is 3 by dimension 0 of A\n"
        "  what to do: pass arrays and numbers whose sizes fit, or access it under a condition only"
    )
    low = _at_points("for i in range(m) 0 <= i - k", "m", "k")
    assert _refusal(low, 1, 2, 1).startswith("C reads index i - k = -1 of dimension 0 of A\n")
    assert shape_scalars(_signature(condition)) == {"k": 2}
    with pytest.raises(UserError, match="depends on q, which is unknown"):
        check_signature(_signature(_at_points("for i in range(q) 0 <= i", "q")))


def test_a_condition_at_points_of_which_nothing_more_is_known():
    condition = replace(_at_points("for i in range(m) i == 0", "m"), buffer="")
    assert "cannot be called with these sizes" in _refusal(condition, 1, 2, 0)


@pytest.mark.parametrize("names", [(), ("m", "n")])
def test_a_damaged_condition_is_refused(names: tuple[str, ...]) -> None:
    points = _at_points("for i in range(m) i == 0", "m").points
    damaged = Condition(1, points=replace(points, names=names))
    assert "for i in range(m) i == 0 of a function is malformed" in _refusal(damaged, 1, 1, 0)


def test_a_negative_extent():
    condition = Condition(("le", 0, "k"), "axis r", "compute C")
    assert _refusal(condition, 5, 4, -1).splitlines()[::2] == [
        "k = -1 is negative, and is an extent of compute C",
        "  why: axis r needs 0 <= k: k is -1 by argument k",
    ]


def test_a_condition_of_which_nothing_more_is_known():
    assert _refusal(Condition(("eq", ("floormod", "n", 4), 0)), 5, 4, 0).splitlines()[::2] == [
        "f cannot be called with these sizes",
        "  why: f needs n % 4 == 0: n is 5 by dimension 0 of A",
    ]
    assert "f needs 0" in _refusal(Condition(0), 5, 4, 0)


def test_scalars_in_conditions_decide_each_call():
    checks = EntryChecks(_signature(LOW))
    args = [np.zeros(5, "f4"), np.zeros(5, "f4")]
    for _ in range(2):
        checks.check([*args, 0])
        with pytest.raises(UserError):
            checks.check([*args, -1])
    assert shape_scalars(_signature(LOW)) == {"k": 2}
    assert shape_scalars(_signature()) == {}


def test_a_condition_on_an_unknown_name_is_refused():
    with pytest.raises(UserError, match="the condition q < 1 depends on q, which is unknown"):
        check_signature(_signature(Condition(("lt", "q", 1))))
    check_conditions(_signature(LOW), Sizes({"k": 0}))


def test_an_assert_speaks_for_itself():
    condition = Condition(("lt", "n", "m"), "a < b", "assert of f", "x.py:3", failure="too long")
    said = _refusal(condition, 3, 2, 0)
    assert said.startswith("assert of f: too long")
    assert "a < b needs n < m: n is 3" in said
    assert "x.py:3" in said
