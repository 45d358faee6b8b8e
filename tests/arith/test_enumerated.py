"""Values at all points of small boxes are the interpreter's."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.arith.enumerated import MAX_POINTS, Enumeration
from refcomp.foundation.dtype import DType
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.parser import parse_expr
from refcomp.ir.rewrite import substitute
from refcomp.oracle.interpreter.interpret import evaluate_expr

_OPERATORS = [
    *("(a) + (b)", "(a) - (b)", "(a) * (b)", "(a) // (b)", "(a) % (b)", "truncmod(a, b)"),
    *("min(a, b)", "max(a, b)", "(a) & (b)", "(a) | (b)", "(a) ^ (b)"),
    *("select((a) < (b) and not (a) == 2, a, b)", "if_then_else((a) >= (b), b, a)"),
]


@st.composite
def _indices(draw: st.DrawFn, leaves: list[Expr], depth: int = 2) -> Expr:
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(leaves))
    dtype = leaves[0].dtype
    names = {name: Var(name, dtype) for name in "ab"}
    text = draw(st.sampled_from(_OPERATORS)).replace("2", f"2{dtype}" if dtype.bits < 64 else "2")
    values = {var: draw(_indices(leaves, depth - 1)) for var in names.values()}
    return substitute(parse_expr(text, names), values)


@pytest.mark.search
@given(
    st.sampled_from([DType("int", 64), DType("int", 8), DType("uint", 8)]),
    st.integers(0, 100),
    st.integers(1, 40),
    st.data(),
)
def test_values_are_those_of_the_interpreter(dtype, first, count, data):
    i, j, x = (Var(name, dtype) for name in "ijx")
    constants = [IntImm(v, dtype) for v in ([0, 3, 100] if dtype.kind == "uint" else [-3, 0, 100])]
    index = data.draw(_indices([i, j, x, *constants]))
    let = data.draw(_indices([i, *constants], 1))
    axes = {i: range(first, first + count), j: range(2)}
    found = Enumeration(axes, {x: let}).values(index)
    assert found is not None
    expected = []
    for a, b in itertools.product(*axes.values()):
        at = {i: a, j: b}
        expected.append(evaluate_expr(index, at | {x: evaluate_expr(let, at)}))
    values = found.array.ravel().tolist()
    assert (min(values), max(values)) == (min(expected), max(expected))
    assert set(values) == set(expected)


@pytest.mark.parametrize("text", ["i * k", "i + 0 * i64(x)", "popcount(i)"])
def test_what_is_not_an_integer_function_of_the_axes_has_no_values(text):
    i, k, x = Var("i", DType("int", 64)), Var("k", DType("int", 64)), Var("x", DType("float", 32))
    index = parse_expr(text, {"i": i, "k": k, "x": x})
    assert Enumeration({i: range(4)}, {}).values(index) is None


def test_a_large_box_is_not_enumerated():
    i, j, far = (Var(name, DType("int", 64)) for name in ("i", "j", "far"))
    enumeration = Enumeration({i: range(64), j: range(65), far: range(MAX_POINTS + 1)}, {})
    assert enumeration.values(i * i) is not None
    assert enumeration.values(i * j) is None
    assert enumeration.values(far) is None
