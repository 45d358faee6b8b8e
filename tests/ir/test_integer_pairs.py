"""Products of pairs: their value, and the shapes of expressions that are recognised."""

import numpy as np
import pytest

from refcomp.foundation.dtype import I32, I64
from refcomp.ir.expr import Add, Broadcast, Expr, IntImm, Mul, ShiftLeft, ShiftRight, Var
from refcomp.ir.integer_pairs import find_pair_product, make_pair, pair_product
from refcomp.te.operation import compute
from tests.strategies.operands import run_te

X, Y = Var("x", I32), Var("y", I32)
SIXTEEN = IntImm(16, I32)


def test_the_product_of_two_pairs() -> None:
    ends = np.array([-(2**15), -256, -1, 0, 1, 255, 2**15 - 1], np.int32)
    a, b, c, d = (axis.ravel() for axis in np.meshgrid(ends, ends, ends, ends))

    def products(*operands):
        def element(i):
            a, b, c, d = (operand[i] for operand in operands)
            return pair_product(make_pair(a, b), make_pair(c, d))

        return compute(operands[0].shape, element)

    expected = (a.astype(np.int64) * c + b.astype(np.int64) * d).astype(np.int32)
    assert np.array_equal(run_te(products, a, b, c, d, is_symbolic=False), expected)


def _lows(a: Expr, b: Expr) -> Expr:
    def low(x: Expr) -> Expr:
        sixteen = SIXTEEN if x.dtype.lanes == 1 else Broadcast(SIXTEEN, x.dtype.lanes)
        return ShiftRight(ShiftLeft(x, sixteen), sixteen)

    return Mul(low(a), low(b))


def _highs(a: Expr, b: Expr) -> Expr:
    def high(x: Expr) -> Expr:
        sixteen = SIXTEEN if x.dtype.lanes == 1 else Broadcast(SIXTEEN, x.dtype.lanes)
        return ShiftRight(x, sixteen)

    return Mul(high(a), high(b))


@pytest.mark.parametrize("lows", [_lows(X, Y), _lows(Y, X)], ids=str)
@pytest.mark.parametrize("highs", [_highs(X, Y), _highs(Y, X)], ids=str)
def test_factors_and_terms_may_stand_in_any_order(lows, highs) -> None:
    for found in (find_pair_product(Add(lows, highs)), find_pair_product(Add(highs, lows))):
        assert found is not None and set(found) == {X, Y}


def test_the_product_that_is_made_is_found() -> None:
    assert find_pair_product(pair_product(X, Y)) == (X, Y)
    assert find_pair_product(pair_product(X, X)) == (X, X)


def test_a_factor_that_was_repeated_for_all_lanes_is_a_broadcast() -> None:
    vector = Var("v", I32.with_lanes(8))

    def repeated(x: Expr, product: Mul) -> Mul:
        return Mul(Broadcast(product.a, 8), product.b)

    low, high = _lows(X, Y), _highs(X, Y)
    on_vector = (_lows(vector, vector), _highs(vector, vector))
    sums = [Mul(Broadcast(one.a, 8), v.b) for one, v in zip((low, high), on_vector, strict=True)]
    found = find_pair_product(Add(*sums))
    assert found is not None
    broadcast, other = found
    assert isinstance(broadcast, Broadcast) and broadcast.value is X and other is vector


@pytest.mark.parametrize(
    "other",
    [
        Mul(X, Y),
        Add(X, Y),
        Add(_lows(X, Y), _lows(X, Y)),
        Add(_highs(X, Y), _highs(X, Y)),
        Add(_lows(X, X), _highs(X, Y)),
        Add(_lows(X, Y), _highs(X, X)),
        Add(Mul(X, Y), _highs(X, Y)),
        Add(_lows(X, Y), Mul(ShiftRight(X, IntImm(8, I32)), ShiftRight(Y, IntImm(8, I32)))),
        Add(Var("n", I64), Var("m", I64)),
    ],
    ids=str,
)
def test_other_sums_are_not_products_of_pairs(other) -> None:
    assert find_pair_product(other) is None
