import ml_dtypes
import numpy as np
import pytest

from refcomp.foundation.dtype import F32, I64, as_dtype
from refcomp.ir import buffer
from refcomp.ir import expr as ir
from refcomp.ir.buffer import Buffer, BufferLoad, Load
from refcomp.ir.expr import Broadcast, Ramp, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.promotion import cast, const
from refcomp.ir.stmt import (
    Allocate,
    Block,
    BufferStore,
    For,
    LetStmt,
    Store,
)
from refcomp.oracle.interpreter import expressions as module
from refcomp.oracle.interpreter.interpret import InterpretError, evaluate_expr, interpret
from tests.oracle.programs import LANES, MASK, flat_func, integer, zeros

BF16 = as_dtype("bf16")


def test_vectors_work_lane_by_lane():
    x = Var("x", I64.with_lanes(3))
    bindings = {x: (1, 2, 3)}
    assert evaluate_expr(x * Ramp(integer(10), integer(-5), 3), bindings) == (10, 10, 0)
    assert evaluate_expr(ir.LT(x, Broadcast(integer(2), 3)), bindings) == (True, False, False)
    assert evaluate_expr(cast(F32, x), bindings) == (1.0, 2.0, 3.0)
    assert evaluate_expr(ir.Not(ir.EQ(x, x)), bindings) == (False,) * 3
    chosen = ir.Select(ir.GT(x, Broadcast(integer(1), 3)), x, Broadcast(integer(0), 3))
    assert evaluate_expr(chosen, bindings) == (0, 2, 3)
    negative = ir.Call("abs", (Ramp(integer(-1), integer(1), 3),), I64.with_lanes(3))
    assert evaluate_expr(negative) == (1, 0, 1)


def test_floats_round_after_every_node():
    x = Var("x", F32)
    total = (x + 1.0) - x
    assert evaluate_expr(total, {x: 2.0**24}) == 0
    assert type(evaluate_expr(total, {x: 1})) is np.float32
    tiny = Var("b", BF16)
    value = evaluate_expr(tiny * tiny, {tiny: 1.0078125})
    assert type(value) is ml_dtypes.bfloat16
    assert float(value) == 1.015625


def test_only_the_chosen_side_of_a_lazy_choice_is_evaluated():
    a, n = Buffer("A", I64, (integer(2),)), Var("n", I64)
    lazy = ir.IfThenElseExpr(ir.LT(n, integer(2)), BufferLoad(a, (n,)), integer(-1))
    out = Buffer("B", I64, ())
    func = PrimFunc("f", (a, out, n), BufferStore(out, (), lazy), ("B",))
    data, result = np.array([5, 6]), np.zeros((), np.int64)
    interpret(func, [data, result, 9])
    assert result == -1
    eager = func.with_body(
        BufferStore(out, (), ir.Select(lazy.condition, lazy.true_value, lazy.false_value))
    )
    with pytest.raises(InterpretError, match="index 9 in dimension 0 of A is out of range"):
        interpret(eager, [data, result, 9])


def test_a_shared_subtree_is_evaluated_once():
    total = Var("x", I64)
    expr = total
    for _ in range(200):
        expr = expr + expr
    assert evaluate_expr(expr, {total: 1}) == 0  # 2^200 wraps


def test_a_let_does_not_leak_into_what_is_shared_with_it():
    x, y = Var("x", I64), Var("y", I64)
    shared = y + 1
    lets = ir.Let(y, x, shared) + ir.Let(y, x * 10, shared)
    assert evaluate_expr(lets, {x: 2}) == 3 + 21
    with pytest.raises(InterpretError, match="variable y is used where it is not bound"):
        evaluate_expr(ir.Let(y, x, shared) + shared, {x: 2})


def test_a_masked_lane_loads_zero():
    func = flat_func(lambda a, b: Store(b, LANES, Load(a, LANES, MASK)), length=2)
    b = np.full(4, 9, np.float32)
    interpret(func, [np.array([1, 2], np.float32), b])
    assert b.tolist() == [1, 2, 0, 0]


def test_an_unmasked_lane_is_checked():
    func = flat_func(lambda a, b: Store(b, LANES, Load(a, LANES)), length=2)
    with pytest.raises(InterpretError, match="element 2 of A is out of range") as caught:
        interpret(func, [zeros(2), zeros(4)])
    assert caught.value.why == "it has 2 elements"


def test_unknown_intrinsics():
    with pytest.raises(InterpretError, match="unknown intrinsic 'launch'"):
        evaluate_expr(ir.Call("launch", (integer(1),), I64))


def test_names_that_are_not_bound():
    a = Buffer("A", F32, (integer(1),))
    with pytest.raises(InterpretError, match="variable i is used where it is not bound"):
        interpret(PrimFunc("f", (a,), BufferStore(a, (Var("i", I64),), const(0.0))), [zeros(1)])
    store = BufferStore(a, (integer(0),), const(0.0))
    with pytest.raises(InterpretError, match="buffer A is used where it is not bound"):
        interpret(PrimFunc("f", (), Block((Allocate(a, Block(())), store))), [])


def test_binding_a_variable_within_its_own_scope():
    i = Var("i", I64)
    inner = LetStmt(i, integer(1), Block(()))
    with pytest.raises(InterpretError, match="variable i is bound a second time"):
        interpret(PrimFunc("f", (), For(i, integer(0), integer(1), "serial", inner)), [])


def test_every_node_class_has_its_case():
    # An address and a text are not values: they stand among the arguments of a call.
    abstract = {ir.Expr, ir.Derived, ir.BinaryExpr, ir.Comparison}
    abstract |= {buffer.AddressOf, ir.TextImm}
    classes = {c for home in (ir, buffer) for c in vars(home).values() if isinstance(c, type)}
    assert {c for c in classes if issubclass(c, ir.Expr)} - abstract == set(module._EXPRESSIONS)
