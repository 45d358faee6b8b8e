"""Ends of operations follow from the ends of operands, and are attained."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.arith.ends import RULES, Attained, remainder_of_axis, square
from refcomp.foundation.dtype import I64
from refcomp.ir.expr import Add, FloorDiv, FloorMod, IntImm, Max, Min, Mul, Sub, Var
from refcomp.ir.printer import print_expr
from refcomp.oracle.interpreter.interpret import evaluate_expr

AXIS, J = frozenset((Var("i", I64),)), frozenset((Var("j", I64),))


@given(st.sampled_from([*RULES]), st.integers(-5, 5), st.integers(0, 4), st.integers(-5, 5))
def test_ends_of_an_axis_and_a_constant(operator, low, count, constant):
    found = RULES[operator](
        lambda bound: bound >= 0, Attained(low, low + count, AXIS), Attained(constant, constant)
    )
    if found is None:
        assert operator in (FloorDiv, FloorMod)
        return
    nodes = [operator(IntImm(v, I64), IntImm(constant, I64)) for v in range(low, low + count + 1)]
    values = [evaluate_expr(node, {}) for node in nodes]
    assert found == Attained(min(values), max(values), AXIS)


@pytest.mark.search
@given(st.sampled_from([Add, Sub, Min, Max]), *(st.integers(-5, 5) for _ in range(4)))
def test_ends_of_two_axes(operator, a, b, c, d):
    left, right = sorted((a, b)), sorted((c, d))
    found = RULES[operator](lambda _: False, Attained(*left, AXIS), Attained(*right, J))
    pairs = itertools.product(range(left[0], left[1] + 1), range(right[0], right[1] + 1))
    values = [evaluate_expr(operator(IntImm(x, I64), IntImm(y, I64)), {}) for x, y in pairs]
    assert found == Attained(min(values), max(values), AXIS | J)


@pytest.mark.parametrize(("is_sure", "ends"), [(True, ("k", "k * 3")), (False, None)])
def test_a_factor_of_unknown_sign_may_exchange_the_ends(is_sure, ends):
    k = Var("k", I64)
    found = RULES[Mul](lambda _: is_sure, Attained(1, 3, AXIS), Attained(k, k))
    assert found is not None
    expected = ends or ("min(k, k * 3)", "max(k, k * 3)")
    texts = tuple(print_expr(end) for end in (found.low, found.high))
    assert tuple(text.replace("1 * k", "k").replace("3 * k", "k * 3") for text in texts) == expected
    product = RULES[Mul](lambda _: is_sure, Attained(1, 3, AXIS), Attained(2, 4, J))
    assert product == (Attained(2, 12, AXIS | J) if is_sure else None)


@given(st.integers(-3, 3), st.integers(0, 4))
def test_the_square_of_an_axis(low, count):
    found = square(lambda bound: bound >= 0, Attained(low, low + count, AXIS))
    assert found == (None if low < 0 else Attained(low**2, (low + count) ** 2, AXIS))


@given(st.integers(0, 5), st.integers(0, 5), st.booleans())
def test_the_remainder_of_an_axis_by_a_symbol(last, divisor, is_sure):
    n = Var("n", I64)
    found = remainder_of_axis(lambda _: is_sure, Attained(0, last, AXIS), Attained(n, n))
    if not is_sure:
        assert found is None
        return
    nodes = [FloorMod(IntImm(v, I64), IntImm(divisor, I64)) for v in range(last + 1)]
    assert found is not None and found.low == 0
    assert evaluate_expr(found.high, {n: divisor}) == max(evaluate_expr(x, {}) for x in nodes)
    assert remainder_of_axis(lambda _: True, Attained(1, last, AXIS), Attained(n, n)) is None
