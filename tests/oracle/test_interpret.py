import math

import ml_dtypes
import numpy as np
import pytest

from refcomp.dtype import BOOL, F32, I64, as_dtype
from refcomp.ir import buffer, stmt
from refcomp.ir import expr as ir
from refcomp.ir.buffer import Buffer, BufferLoad, Load
from refcomp.ir.expr import Broadcast, IntImm, Ramp, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func
from refcomp.ir.promotion import cast, const
from refcomp.ir.stmt import (
    LOOP_KINDS,
    Allocate,
    Block,
    BufferStore,
    For,
    IfThenElse,
    LetStmt,
    Origin,
    ParallelRegion,
    Store,
)
from refcomp.oracle import interpret as module
from refcomp.oracle.interpret import InterpretError, evaluate_expr, interpret, scrambled

BF16 = as_dtype("bf16")
U16 = as_dtype("u16")


def _int(value):
    return IntImm(value, I64)


def _run(text, *args):
    interpret(parse_func(text), args)


def _zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


# What programs compute.


def test_matmul_with_symbols_read_off_the_shapes():
    text = """
    func matmul(A: f32[n, k], B: f32[k, m], C: f32[n, m] out) {
      for i in range(n) {
        for j in range(m) {
          C[i, j] = 0.0f32
          for r in range(k) {
            C[i, j] = C[i, j] + A[i, r] * B[r, j]
          }
        }
      }
    }
    """
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.eye(3, 4, dtype=np.float32)
    c = _zeros(2, 4)
    _run(text, a, b, c)
    assert c.tolist() == (a @ b).tolist()


def test_scalar_parameters_lets_and_branches():
    text = """
    func f(A: i32[n] out, first: i64, x: i32) {
      for i in range(first, extent=n - first) {
        let twice: i32 = x * 2i32 {
          if (i % 2 == 0) {
            A[i] = twice
          } else {
            A[i] = (let y: i32 = twice + 1i32 in y * y)
          }
        }
      }
    }
    """
    a = _zeros(5, dtype=np.int32)
    _run(text, a, 1, 3)
    assert a.tolist() == [0, 49, 6, 49, 6]


def test_rank_zero_and_empty_arrays():
    text = "func f(A: f32[n], S: f32[] out) { S[] = 7.0f32 for i in range(n) { S[] = A[i] } }"
    s = np.zeros((), np.float32)
    _run(text, _zeros(0), s)
    assert s == 7


def test_views_are_written_in_place():
    whole = _zeros(4, 6)
    func = "func f(A: f32[n, m] out) { for i in range(n) { A[i, 1] = 5.0f32 } }"
    _run(func, whole[::2, ::3])
    assert whole[::2, 3].tolist() == [5, 5]
    assert whole.sum() == 10


@pytest.mark.parametrize("kind", LOOP_KINDS)
def test_every_kind_of_loop_runs_each_iteration_once(kind):
    a, i = Buffer("A", I64, (Var("n", I64),)), Var("i", I64)
    body = BufferStore(a, (i,), BufferLoad(a, (i,)) + i)
    func = PrimFunc("f", (a,), For(i, _int(1), a.shape[0] - 1, kind, body), ("A",))
    data = np.full(6, 10, np.int64)
    interpret(func, [data])
    assert data.tolist() == [10, 11, 12, 13, 14, 15]


def test_a_negative_extent_runs_nothing():
    for kind in LOOP_KINDS:
        i = Var("i", I64)
        interpret(PrimFunc("f", (), For(i, _int(0), _int(-3), kind, Block(()))), [])


def test_an_order_that_a_parallel_loop_must_not_have():
    text = """
    func f(A: i64[n] out) {
      for i in range(n - 1) parallel { A[i + 1] = A[i] + 1 }
    }
    """
    a = _zeros(6, dtype=np.int64)
    _run(text, a)
    assert a.tolist() != list(range(6))


def test_scrambled_is_a_permutation_in_no_plain_order():
    for count in range(20):
        assert sorted(scrambled(count)) == list(range(count))
    assert scrambled(3) == [1, 0, 2]
    assert scrambled(-2) == []


def _region(captures, body_of):
    a = Buffer("A", I64, (Var("n", I64),))
    task, count = Var("t", I64), Var("p", I64)
    region = ParallelRegion("f.parallel0", captures(a), task, count, body_of(a, task, count))
    return PrimFunc("f", (a,), region, ("A",))


@pytest.mark.parametrize("num_tasks", [1, 2, 3, 5])
def test_a_region_runs_every_task(num_tasks):
    def body(a, task, count):
        i = Var("i", I64)
        begin = task * a.shape[0] // count
        end = (task + 1) * a.shape[0] // count
        return For(i, begin, end - begin, "serial", BufferStore(a, (i,), i * 10))

    data = _zeros(7, dtype=np.int64)
    interpret(_region(lambda a: (a, a.shape[0]), body), [data], num_tasks=num_tasks)
    assert data.tolist() == [0, 10, 20, 30, 40, 50, 60]


def test_a_result_that_depends_on_the_tasks_shows():
    def body(a, task, count):
        return BufferStore(a, (_int(0),), BufferLoad(a, (_int(0),)) * count + task)

    results = []
    for num_tasks in (1, 3):
        data = _zeros(1, dtype=np.int64)
        interpret(_region(lambda a: (a,), body), [data], num_tasks=num_tasks)
        results.append(data[0])
    assert results[0] != results[1]


def test_a_region_sees_only_what_it_captures():
    def body(a, task, count):
        return BufferStore(a, (_int(0),), a.shape[0])

    with pytest.raises(InterpretError, match="variable n is used where it is not bound"):
        interpret(_region(lambda a: (a,), body), [_zeros(1, dtype=np.int64)])


# Values.


def test_vectors_work_lane_by_lane():
    x = Var("x", I64.with_lanes(3))
    bindings = {x: (1, 2, 3)}
    assert evaluate_expr(x * Ramp(_int(10), _int(-5), 3), bindings) == (10, 10, 0)
    assert evaluate_expr(ir.LT(x, Broadcast(_int(2), 3)), bindings) == (True, False, False)
    assert evaluate_expr(cast(F32, x), bindings) == (1.0, 2.0, 3.0)
    assert evaluate_expr(ir.Not(ir.EQ(x, x)), bindings) == (False,) * 3
    chosen = ir.Select(ir.GT(x, Broadcast(_int(1), 3)), x, Broadcast(_int(0), 3))
    assert evaluate_expr(chosen, bindings) == (0, 2, 3)
    negative = ir.Call("abs", (Ramp(_int(-1), _int(1), 3),), I64.with_lanes(3))
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
    a, n = Buffer("A", I64, (_int(2),)), Var("n", I64)
    lazy = ir.IfThenElseExpr(ir.LT(n, _int(2)), BufferLoad(a, (n,)), _int(-1))
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


# Memory at the flat level.


def _flat(body_of, length=4):
    a, b = Buffer("A", F32, (_int(length),)), Buffer("B", F32, (_int(4),))
    return PrimFunc("f", (a, b), body_of(a, b), ("B",))


MASK = ir.LT(Ramp(_int(0), _int(1), 4), Broadcast(_int(2), 4))


def test_a_masked_lane_reads_and_writes_nothing():
    lanes = Ramp(_int(0), _int(1), 4)
    func = _flat(lambda a, b: Store(b, lanes, Load(a, lanes, MASK) + 1.0, MASK), length=2)
    a, b = np.array([1, 2], np.float32), np.full(4, 9, np.float32)
    interpret(func, [a, b])
    assert b.tolist() == [2, 3, 9, 9]


def test_a_masked_lane_loads_zero():
    lanes = Ramp(_int(0), _int(1), 4)
    func = _flat(lambda a, b: Store(b, lanes, Load(a, lanes, MASK)), length=2)
    b = np.full(4, 9, np.float32)
    interpret(func, [np.array([1, 2], np.float32), b])
    assert b.tolist() == [1, 2, 0, 0]


def test_an_unmasked_lane_is_checked():
    lanes = Ramp(_int(0), _int(1), 4)
    func = _flat(lambda a, b: Store(b, lanes, Load(a, lanes)), length=2)
    with pytest.raises(InterpretError, match="element 2 of A is out of range") as caught:
        interpret(func, [_zeros(2), _zeros(4)])
    assert caught.value.why == "it has 2 elements"


def test_lanes_are_written_in_ascending_order():
    func = _flat(lambda a, b: Store(b, Broadcast(_int(1), 4), Load(a, Ramp(_int(0), _int(1), 4))))
    b = _zeros(4)
    interpret(func, [np.array([1, 2, 3, 4], np.float32), b])
    assert b.tolist() == [0, 4, 0, 0]


def test_the_flat_level_checks_the_whole_buffer_only():
    a, b = Buffer("A", F32, (_int(2), _int(2))), Buffer("B", F32, ())
    func = PrimFunc("f", (a, b), Store(b, _int(0), Load(a, _int(3))), ("B",))
    out = np.zeros((), np.float32)
    interpret(func, [np.array([[1, 2], [3, 4]], np.float32), out])
    assert out == 4


def test_bool_elements_are_bool_values():
    a, b = Buffer("A", BOOL, (_int(2),)), Buffer("B", BOOL, (_int(2),))
    func = PrimFunc("f", (a, b), BufferStore(b, (_int(1),), ~BufferLoad(a, (_int(0),))), ("B",))
    out = np.zeros(2, np.bool_)
    interpret(func, [np.zeros(2, np.bool_), out])
    assert out.tolist() == [False, True]


def test_a_u16_parameter_takes_the_bits_of_bfloat16():
    a, x = Buffer("A", U16, (_int(2),)), Var("x", U16)
    func = PrimFunc("f", (a, x), BufferStore(a, (_int(1),), x), ("A",))
    data = np.zeros(2, ml_dtypes.bfloat16)
    interpret(func, [data, ml_dtypes.bfloat16(1.5)])
    assert data.tolist() == [0.0, 1.5]


# What is refused.


def test_out_of_range_tells_statement_origin_and_variables():
    a, i = Buffer("A", F32, (Var("n", I64),)), Var("i", I64)
    store = BufferStore(a, (i + 1,), const(0.0), Origin("A", "i"))
    func = PrimFunc("f", (a,), For(i, _int(0), a.shape[0], "serial", store), ("A",))
    with pytest.raises(InterpretError) as caught:
        interpret(func, [_zeros(3)])
    assert str(caught.value).splitlines() == [
        "index 3 in dimension 0 of A is out of range",
        "  where: A[i + 1] = 0.0f32 (stage A, axis i) with n = 3, i = 2",
        "  why: the dimension has 3 elements",
    ]


def test_each_dimension_is_checked_at_the_nested_level():
    text = "func f(A: f32[2, 3] out) { A[0, 3] = 0.0f32 }"
    with pytest.raises(InterpretError, match="index 3 in dimension 1 of A is out of range"):
        _run(text, _zeros(2, 3))
    with pytest.raises(InterpretError, match="index -1 in dimension 0 of A is out of range"):
        _run(text.replace("0, 3", "0 - 1, 0"), _zeros(2, 3))


def test_reading_memory_never_written():
    text = """
    func f(B: f32[4] out) {
      for i in range(2) {
        alloc T: f32[4] {
          if (i == 0) { T[2] = 1.0f32 }
          B[i] = T[2]
        }
      }
    }
    """
    with pytest.raises(InterpretError, match="element 2 of T is read, never written") as caught:
        _run(text, _zeros(4))
    assert caught.value.where == "B[i] = T[2] with i = 1"


def test_allocations_of_negative_size_are_empty():
    text = "func f(A: f32[n] out) { alloc T: f32[n - 5, n - 5] { T[0, 0] = 1.0f32 } }"
    with pytest.raises(InterpretError, match="in dimension 0 of T is out of range"):
        _run(text, _zeros(2))


def test_names_that_are_not_bound():
    a = Buffer("A", F32, (_int(1),))
    with pytest.raises(InterpretError, match="variable i is used where it is not bound"):
        interpret(PrimFunc("f", (a,), BufferStore(a, (Var("i", I64),), const(0.0))), [_zeros(1)])
    store = BufferStore(a, (_int(0),), const(0.0))
    with pytest.raises(InterpretError, match="buffer A is used where it is not bound"):
        interpret(PrimFunc("f", (), Block((Allocate(a, Block(())), store))), [])


def test_binding_a_variable_within_its_own_scope():
    i = Var("i", I64)
    inner = LetStmt(i, _int(1), Block(()))
    with pytest.raises(InterpretError, match="variable i is bound a second time"):
        interpret(PrimFunc("f", (), For(i, _int(0), _int(1), "serial", inner)), [])


def test_wrong_number_of_indices():
    a = Buffer("A", F32, (_int(1), _int(1)))
    with pytest.raises(InterpretError, match="A of rank 2 is given 1 indices"):
        interpret(PrimFunc("f", (a,), BufferStore(a, (_int(0),), const(0.0))), [_zeros(1, 1)])


def test_unknown_intrinsics():
    with pytest.raises(InterpretError, match="unknown intrinsic 'launch'"):
        evaluate_expr(ir.Call("launch", (_int(1),), I64))


FUNC = "func f(A: f32[n], B: f32[n, 4], s: f32) { if (n < 0) { A[0] = s } }"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((_zeros(2), _zeros(2, 4)), "f takes 3 arguments, 2 given"),
        ((1.0, _zeros(2, 4), 1.0), "A is a buffer, float given"),
        ((_zeros(2, dtype=np.int32), _zeros(2, 4), 1.0), "A has dtype f32, int32 given"),
        ((_zeros(2), _zeros(2), 1.0), "B has rank 2, 1 given"),
        ((_zeros(2), _zeros(3, 4), 1.0), r"B has shape \(2, 4\), \(3, 4\) given"),
        ((_zeros(2), _zeros(2, 5), 1.0), r"B has shape \(2, 4\), \(2, 5\) given"),
    ],
)
def test_arguments_that_do_not_fit(args, message):
    with pytest.raises(InterpretError, match=message):
        _run(FUNC, *args)


def test_scalars_are_rounded_to_their_dtype():
    a, s = Buffer("A", F32, (_int(1),)), Var("s", F32)
    data = _zeros(1)
    interpret(PrimFunc("f", (a, s), BufferStore(a, (_int(0),), s), ("A",)), [data, math.pi])
    assert data[0] == np.float32(math.pi)


def test_else_branches_and_empty_else():
    a, n = Buffer("A", I64, (_int(1),)), Var("n", I64)
    one, two = (BufferStore(a, (_int(0),), _int(v)) for v in (1, 2))
    for otherwise, expected in ((two, 2), (None, 0)):
        data = _zeros(1, dtype=np.int64)
        interpret(PrimFunc("f", (a, n), IfThenElse(ir.GT(n, _int(0)), one, otherwise)), [data, 0])
        assert data[0] == expected


def test_every_node_class_has_its_case():
    abstract = {ir.Expr, ir.Derived, ir.Binary, ir.Comparison, stmt.Stmt}
    for table, base, homes in (
        (module._EXPRESSIONS, ir.Expr, (ir, buffer)),
        (module._STATEMENTS, stmt.Stmt, (stmt,)),
    ):
        classes = {c for home in homes for c in vars(home).values() if isinstance(c, type)}
        assert {c for c in classes if issubclass(c, base)} - abstract == set(table)
