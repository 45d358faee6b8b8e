"""Dimensions have values and a text, and signatures go through JSON unchanged."""

import json
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.artifacts import (
    ACCESS_ACTIONS,
    Binary,
    BufferArgument,
    CheckedAccess,
    Condition,
    Dim,
    PackedCall,
    PointCondition,
    ScalarParam,
    Signature,
    Source,
    TensorParam,
    checked_access_from_text,
    dim_to_text,
    evaluate_dim,
    names_in_dim,
    packed_call_from_text,
    signature_from_json,
)
from refcomp.foundation.dtype import SCALAR_DTYPES, as_dtype
from refcomp.foundation.errors import UserError

OPERATORS = ["add", "sub", "mul", "floordiv", "floormod", "min", "max"]
NAMES = st.sampled_from(["n", "m", "k.outer"])
DIMS: st.SearchStrategy[Dim] = st.recursive(
    st.integers(-100, 100) | NAMES,
    lambda dims: st.tuples(st.sampled_from(OPERATORS), dims, dims),
    max_leaves=8,
)
# Never makes vector parameters: arguments of a compiled function are scalars or tensors of them.
DTYPES = st.sampled_from(SCALAR_DTYPES)
PARAMS = st.builds(
    TensorParam, NAMES, DTYPES, st.lists(DIMS, max_size=3).map(tuple), st.booleans()
) | st.builds(ScalarParam, NAMES, DTYPES)
LINES = st.text(st.characters(exclude_characters="\n"), max_size=8)
ACCESSES = st.builds(
    CheckedAccess,
    st.sampled_from(ACCESS_ACTIONS),
    LINES,
    st.integers(0, 9),
    *[LINES] * 4,
)
SIGNATURES = st.builds(
    Signature,
    NAMES,
    st.lists(PARAMS, max_size=4).map(tuple),
    st.lists(NAMES).map(tuple),
    checks=st.lists(ACCESSES, max_size=2).map(tuple),
)


def test_names_in_a_dimension_are_found() -> None:
    assert list(names_in_dim(("add", "m", ("mul", "n", ("sub", "m", 2))))) == ["m", "n", "m"]
    assert list(names_in_dim(3)) == []


@pytest.mark.parametrize(
    ("dim", "value", "text"),
    [
        (7, 7, "7"),
        ("n", 10, "n"),
        (("add", "n", 3), 13, "(n + 3)"),
        (("sub", 3, "n"), -7, "(3 - n)"),
        (("add", "n", -2), 8, "(n - 2)"),
        (("mul", "n", "n"), 100, "(n * n)"),
        (("floordiv", ("add", "n", 3), 4), 3, "((n + 3) // 4)"),
        (("floordiv", -7, 2), -4, "(-7 // 2)"),
        (("floormod", -7, 4), 1, "(-7 % 4)"),
        (("floordiv", "n", 0), 0, "(n // 0)"),
        (("floormod", "n", 0), 0, "(n % 0)"),
        (("min", "n", 3), 3, "min(n, 3)"),
        (("max", "n", 3), 10, "max(n, 3)"),
    ],
)
def test_dimensions(dim: Dim, value: int, text: str) -> None:
    assert evaluate_dim(dim, {"n": 10}) == value
    assert dim_to_text(dim) == text


def test_a_symbol_without_a_value_is_told() -> None:
    with pytest.raises(KeyError, match="m"):
        evaluate_dim(("add", "n", "m"), {"n": 1})


def test_signature_as_text() -> None:
    f32 = as_dtype("f32")
    signature = Signature(
        "matmul",
        (
            TensorParam("A", f32, ("n", 64)),
            ScalarParam("alpha", as_dtype("f64")),
            TensorParam("C", f32, (), is_output=True),
        ),
        ("n",),
    )
    assert str(signature) == "matmul(A: f32[n, 64], alpha: f64, C: f32[] (output))"


@pytest.mark.search
@given(SIGNATURES)
def test_signatures_go_through_json(signature: Signature) -> None:
    text = json.dumps(signature.to_json())
    assert signature_from_json(json.loads(text)) == signature


GOOD: dict[str, Any] = {
    "name": "f",
    "params": [{"name": "A", "dtype": "f32", "shape": [["add", "n", 1]], "is_output": False}],
    "symbols": ["n"],
    "requires": [
        {
            "test": ["or", ["le", "n", 0], ["lt", ["sub", "n", 1], 5]],
            **{"text": "A[i]", "by": "compute C reads", "line": "x.py:1", "buffer": "A", "dim": 0},
        }
    ],
}


def _condition(**changes: Any) -> dict[str, Any]:
    return {**GOOD, "requires": [{**GOOD["requires"][0], **changes}]}


def _param(**changes: Any) -> dict[str, Any]:
    return {**GOOD, "params": [{**GOOD["params"][0], **changes}]}


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({}, KeyError),
        ({**GOOD, "params": [{"name": "A"}]}, KeyError),
        ({key: value for key, value in GOOD.items() if key != "symbols"}, KeyError),
        (_param(shape=[["pow", "n", 2]]), ValueError),
        (_param(shape=[["add", "n"]]), ValueError),
        (_param(dtype="banana"), UserError),
        (_param(dtype=None), ValueError),
        (_param(name=["A"]), ValueError),
        (_param(is_output="no"), ValueError),
        ({**GOOD, "name": 1}, ValueError),
        ({**GOOD, "symbols": [None]}, ValueError),
        (_param(shape=[["lt", "n", 1]]), ValueError),
        (_condition(test=["xor", "n", 1]), ValueError),
        (_condition(test=["lt", "n"]), ValueError),
        (_condition(test=None), TypeError),
        (_condition(dim=True), ValueError),
        (_condition(dim="0"), ValueError),
        (_condition(line=3), ValueError),
        ({**GOOD, "requires": [{}]}, KeyError),
        ({**GOOD, "requires": "no"}, TypeError),
        (_condition(points={}), KeyError),
        (_condition(points={"text": "", "func": 3, "names": []}), ValueError),
        (_condition(points=[]), TypeError),
    ],
)
def test_a_malformed_signature_is_refused(value: Any, error: type[Exception]) -> None:
    signature_from_json(GOOD)
    with pytest.raises(error):
        signature_from_json(value)


def test_artifacts_are_values() -> None:
    source = Source("text", "llvm")
    assert (source.line_map, source.requires) == ((), frozenset())
    assert Binary(b"x", "so") == Binary(b"x", "so")
    with pytest.raises(FrozenInstanceError):
        source.text = "other"  # type: ignore[misc]


def test_a_packed_call_and_its_text():
    f32, i64 = as_dtype("f32"), as_dtype("i64")
    call = PackedCall(
        "my.sum", (BufferArgument("read", f32, 2), i64, BufferArgument("write", f32, 0))
    )
    assert call.to_text() == "my.sum|read f32 2|i64|write f32 0"
    assert packed_call_from_text(call.to_text()) == call
    assert packed_call_from_text("f") == PackedCall("f", ())


@pytest.mark.parametrize("text", ["", "a|b", "returns f32", 'é "\\\n\0', "text:", "f32"])
@pytest.mark.parametrize("traces", [True, False])
def test_a_packed_call_with_a_text_and_a_value(text, traces):
    call = PackedCall("f", (text, as_dtype("i64"), text), as_dtype("f32"), traces)
    described = call.to_text()
    assert packed_call_from_text(described) == call
    assert described.isascii() and described.isprintable()
    assert '"' not in described and "\\" not in described


def test_a_condition_goes_through_json_and_reads_well() -> None:
    signature = signature_from_json(GOOD)
    (condition,) = signature.requires
    assert str(condition) == "n <= 0 or n - 1 < 5"
    assert condition.by == "compute C reads" and condition.line == "x.py:1"
    again = signature_from_json(json.loads(json.dumps(signature.to_json()))).requires[0]
    assert again == condition and again.to_json() == condition.to_json()
    assert [evaluate_dim(condition.test, {"n": n}) for n in (-3, 5, 6)] == [1, 1, 0]


@pytest.mark.parametrize(
    ("operator", "values"),
    [
        ("lt", [1, 0, 0]),
        ("le", [1, 1, 0]),
        ("eq", [0, 1, 0]),
        ("ne", [1, 0, 1]),
        ("and", [0, 1, 1]),
        ("or", [1, 1, 1]),
    ],
)
def test_tests_are_0_or_1(operator: str, values: list[int]) -> None:
    assert [evaluate_dim((operator, "n", 1), {"n": n}) for n in (0, 1, 2)] == values


@given(ACCESSES)
def test_checked_accesses_go_through_text(access: CheckedAccess) -> None:
    assert checked_access_from_text(access.to_text()) == access


@pytest.mark.parametrize(
    "text",
    ["", "reads", "eats\nA\n0\nn\ni\ns\n", "reads\nA\n-1\nn\ni\ns\n", "reads\nA\n0\nn\ni\ns\n\n"],
)
def test_malformed_accesses_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="does not describe an access"):
        checked_access_from_text(text)
    value = Signature("f", ()).to_json() | {"checks": [text]}
    with pytest.raises(ValueError, match="does not describe an access"):
        signature_from_json(value)


def test_checks_that_are_no_texts_are_refused() -> None:
    with pytest.raises(ValueError, match="a text is expected"):
        signature_from_json(Signature("f", ()).to_json() | {"checks": [3]})


def test_a_signature_without_checks_does_not_mention_them() -> None:
    assert "checks" not in Signature("f", ()).to_json()


def test_a_size_of_u64_is_compared_as_i64():
    test = ("le", 0, ("i64", ("add", "m", 1), 0))
    assert [evaluate_dim(test, {"m": m}) for m in (0, 2**63 - 2, 2**63 - 1, 2**64 - 2)] == [
        *(1, 1, 0, 0)
    ]
    assert str(Condition(test)) == "0 <= i64(m + 1)"
    signature = Signature("f", (), ("m",), (Condition(test),))
    assert signature_from_json(signature.to_json()) == signature


@pytest.mark.parametrize(
    ("dim", "text"),
    [
        (("sub", ("add", ("sub", ("mul", "n", "m"), "m"), "p"), 1), "n * m - m + p - 1"),
        (("sub", "n", ("sub", "m", ("add", "p", -1))), "n - (m - (p - 1))"),
        (("mul", ("add", "n", 1), ("floordiv", "m", 2)), "(n + 1) * (m // 2)"),
        (("or", ("le", ("max", ("sub", "m", 6), 0), 0), ("lt", "m", "n")), None),
    ],
)
def test_a_condition_has_no_needless_parentheses(dim: Dim, text: str | None) -> None:
    assert str(Condition(dim)) == (text or "max(m - 6, 0) <= 0 or m < n")


def test_a_condition_at_points_goes_through_json() -> None:
    text = "for i in range(m) i & 3 < n"
    points = PointCondition(text, f"func check(n: i64) requires ({text}) {{ }}", ("m", "n"))
    condition = Condition(("lt", 0, "k"), points=points)
    assert str(condition) == str(points) == text
    assert condition.names == ("k", "m", "n")
    signature = Signature("f", (), ("m", "n"), (condition,))
    assert signature_from_json(json.loads(json.dumps(signature.to_json()))) == signature


def test_the_advice_of_a_condition_is_kept_and_may_be_missing():
    signature = Signature(
        "f", (), ("m",), (Condition(("lt", 0, "m"), advice="nest", failure="no"),)
    )
    value = signature.to_json()
    assert signature_from_json(value).requires[0].advice == "nest"
    assert signature_from_json(value).requires[0].failure == "no"
    del value["requires"][0]["advice"]
    assert signature_from_json(value).requires[0].advice == ""
