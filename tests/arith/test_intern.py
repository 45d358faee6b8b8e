import gc

import pytest

from refcomp.arith.intern import (
    FREE_RANK,
    LOOP_RANK,
    SYMBOL_RANK,
    ExprTable,
    bottom_up,
    free_of,
)
from refcomp.foundation.dtype import F32, I32, I64, as_dtype
from refcomp.ir.buffer import Buffer, BufferLoad, Load
from refcomp.ir.expr import Add, Call, FloatImm, IfThenElseExpr, IntImm, Let, Mul, Var
from refcomp.ir.rewrite import children

X, Y = Var("x", I64), Var("y", I64)


def _product():
    return Mul(Add(X, IntImm(1, I64)), Y)


def test_equal_structure_has_one_representative():
    table = ExprTable()
    first = table.intern(_product())
    assert table.intern(_product()) is first
    assert table.intern(Add(_product(), _product())).b is first
    assert table.make(Add, table.intern(X), table.constant(1, I64)) is first.a


def test_an_expression_is_its_own_representative_when_it_comes_first():
    expr = _product()
    assert ExprTable().intern(expr) is expr


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (X, Var("x", I64)),
        (IntImm(1, I64), IntImm(1, I32)),
        (FloatImm(0.0, F32), FloatImm(-0.0, F32)),
        (Call("exp", (Var("v", F32),), F32), Call("exp", (Var("v", F32),), F32)),
        (BufferLoad(Buffer("A", I64, (X,)), (X,)), BufferLoad(Buffer("A", I64, (X,)), (X,))),
    ],
    ids=["variables", "dtypes", "zeros", "free variables", "buffers"],
)
def test_what_differs_has_two(a, b):
    table = ExprTable()
    assert table.intern(a) is not table.intern(b)
    assert not table.is_same(b, table.intern(a))


def test_equal_structure_is_the_same():
    table = ExprTable()
    buffer = Buffer("A", I64, (X,))
    load = table.intern(BufferLoad(buffer, (_product(),)))
    assert table.is_same(BufferLoad(buffer, (_product(),)), load)
    assert not table.is_same(BufferLoad(buffer, (X,)), load)
    assert not table.is_same(Load(buffer, X, X < Y), table.intern(Load(buffer, X)))


def test_an_expression_that_is_the_same_has_that_representative():
    table = ExprTable()
    first = table.intern(_product())
    same = _product()
    assert table.is_same(same, first)
    for item in (same, same.a):
        # Neither is interned anew: `is_same` has stored the representatives of all parts.
        assert table.is_same(item, table.intern(item))
    assert table.intern(same) is first
    assert table.intern(same.a) is first.a


def test_a_difference_stores_no_representative():
    table = ExprTable()
    sum_of_both = table.intern(Add(X, Y))
    other = Add(X, _product())
    assert not table.is_same(other, sum_of_both)
    assert table.intern(other) is not sum_of_both


def test_shared_parts_are_compared_once():
    table = ExprTable()
    first, second = X + 1, X + 1
    for _ in range(100):
        first, second = Add(first, first), Add(second, second)
    assert table.is_same(second, table.intern(first))


def test_what_is_kept_stays_alive():
    table = ExprTable()
    table.keep(X + Y)
    kept = [item for item in gc.get_objects() if isinstance(item, Add) and item.b is Y]
    assert any(item.a is X for item in kept)


def test_nan_equals_itself():
    table = ExprTable()
    nans = [table.intern(FloatImm(float("nan"), F32)) for _ in range(2)]
    assert nans[0] is nans[1]


def test_constants_wrap():
    table = ExprTable()
    assert table.constant(300, as_dtype("u8")) is table.constant(44, as_dtype("u8"))
    vector = table.constant(3, as_dtype("i64x4"))
    assert vector.lanes == 4 and vector.value is table.constant(3, I64)


def test_spans_order_variables():
    table = ExprTable()
    table.declare(Y, SYMBOL_RANK)
    table.declare(X, LOOP_RANK)
    free = Var("z", I64)
    low, high = table.span(table.intern(Add(Mul(Y, free), X)))
    assert low[0] == LOOP_RANK and high[0] == LOOP_RANK
    low, high = table.span(table.intern(Add(Y, free)))
    assert (low[0], high[0]) == (FREE_RANK, SYMBOL_RANK)


def test_memory_and_choices():
    table = ExprTable()
    load = BufferLoad(Buffer("A", I64, (X,)), (X,))
    assert table.reads_memory(table.intern(Add(load, X)))
    assert not table.reads_memory(table.intern(_product()))
    condition = X < Y
    choice = IfThenElseExpr(condition, X, IfThenElseExpr(condition, Y, X))
    assert table.choices(table.intern(Add(choice, X))) == 2


def test_free_of():
    assert free_of(Let(Y, X, Y), Var("x", I64))
    assert not free_of(_product(), X)


def test_bottom_up_visits_parts_first_and_once():
    shared = Add(X, Y)
    order: dict[int, int] = {}
    seen = []
    bottom_up(Mul(shared, shared), children, order, lambda e: seen.append(e) or len(seen))
    assert [type(e).__name__ for e in seen] == ["Var", "Var", "Add", "Mul"]


@pytest.mark.search
def test_deep_trees_do_not_exhaust_the_stack():
    expr = X
    for _ in range(20_000):
        expr = Add(Mul(expr, Y), X)
    table = ExprTable()
    assert table.intern(expr) is expr
    assert table.span(expr) and not table.reads_memory(expr)
