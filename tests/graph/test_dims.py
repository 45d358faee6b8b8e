"""Extents: the normal form keeps the value, and goes to te and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import refcomp as rc
from refcomp.foundation.artifacts import evaluate_dim
from refcomp.foundation.errors import Unsupported
from refcomp.graph import dims
from refcomp.graph.dims import Symbols, dim_to_expr, expr_to_dim
from refcomp.oracle.interpreter.interpret import evaluate_expr
from refcomp.te.maths import truncdiv

OPERATORS = {
    dims.add: lambda a, b: a + b,
    dims.subtract: lambda a, b: a - b,
    dims.multiply: lambda a, b: a * b,
    dims.floor_divide: lambda a, b: a // b if b else 0,
}
leaves = st.integers(0, 9) | st.sampled_from(["N", "M"])


@st.composite
def extents(draw):
    """An extent, and its value for N = 5 and M = 7, computed by Python alone."""
    dim = draw(leaves)
    value = {"N": 5, "M": 7}.get(dim, dim)
    for _ in range(draw(st.integers(0, 4))):
        operator, other = draw(st.sampled_from(list(OPERATORS))), draw(leaves)
        dim = operator(dim, other)
        value = OPERATORS[operator](value, {"N": 5, "M": 7}.get(other, other))
    return dim, value


@given(extents())
def test_normal_form_keeps_the_value(extent):
    dim, value = extent
    assert evaluate_dim(dim, {"N": 5, "M": 7}) == value


@given(extents())
def test_te_expression_has_the_same_value_and_comes_back(extent):
    dim, value = extent
    symbols = Symbols()
    expr = dim_to_expr(dim, symbols)
    assert evaluate_expr(expr, {v: {"N": 5, "M": 7}[n] for n, v in symbols.items()}) == value
    assert expr_to_dim(expr) == dim


def test_constants_are_gathered() -> None:
    assert dims.add(dims.add("N", 2), -2) == "N"
    assert dims.multiply(2, dims.multiply("N", 3)) == ("mul", "N", 6)
    assert dims.floor_divide(dims.multiply("N", 6), 3) == ("mul", "N", 2)
    assert dims.subtract("N", "N") == 0


def test_symbols_are_shared() -> None:
    symbols = Symbols()
    assert dim_to_expr("N", symbols) is dim_to_expr("N", symbols)


def test_variables_may_have_other_names_and_casts_say_nothing() -> None:
    n, other = rc.var("n"), rc.var("n", "int32")
    assert expr_to_dim(n + other.astype("int64"), {other: "n_2"}) == ("add", "n", "n_2")


def test_other_operators_are_refused() -> None:
    with pytest.raises(Unsupported, match="cannot compute an extent by Div"):
        expr_to_dim(truncdiv(dim_to_expr("N", Symbols()), 2))


def test_known_symbols_are_replaced_and_folded() -> None:
    dim = ("add", ("mul", "N", 2), ("floordiv", "M", "N"))
    assert dims.substitute(dim, {"N": 3}) == ("add", ("floordiv", "M", 3), 6)
    assert dims.substitute(dim, {"N": 3, "M": 7}) == 8
    assert dims.substitute(("lt", "N", "M"), {"N": 3}) == ("lt", 3, "M")
    assert dims.substitute(("min", "N", 2), {"N": 3}) == 2
