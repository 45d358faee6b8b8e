"""Vectors in user's programs: loops over lanes, the order of reads and writes, and refusals."""

import numpy as np
import pytest

import refcomp
from refcomp.foundation.dtype import F32, I64
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import (
    BinaryExpr,
    Broadcast,
    Call,
    Cast,
    IntImm,
    Let,
    PureExtern,
    Ramp,
    Select,
    Var,
)
from refcomp.ir.lanes import expand_lanes, expand_statement, lane_of, scalar_buffer, with_lane_axis
from refcomp.ir.printer import print_func
from refcomp.ir.stmt import BufferStore
from refcomp.ir.verify import verify
from refcomp.oracle.interpreter.interpret import interpret

i, lane = Var("i", I64), Var("lane", I64)
V = Var("v", refcomp.DType("float", 32, 4))


def _known(expr):
    return Var("v.lane", F32) if expr is V else None


@pytest.mark.parametrize(
    ("vector", "expected"),
    [
        (Ramp(i, IntImm(1, I64), 4), "i + lane"),
        (Ramp(i, IntImm(3, I64), 4), "i + lane * 3"),
        (Broadcast(i, 4), "i"),
        (V + 1.0, "v.lane + 1.0f32"),
        (Cast(refcomp.DType("int", 8, 4), V), "i8(v.lane)"),
        (Call("exp", (V,), V.dtype), "exp(v.lane)"),
        (Select(V > 0.0, V, V * 2.0), "select(v.lane > 0.0f32, v.lane, v.lane * 2.0f32)"),
        (i + 1, "i + 1"),
    ],
)
def test_a_lane_of_each_expression(vector, expected):
    found = lane_of(vector, lane, _known)
    assert str(found) == expected and found.dtype.lanes == 1


def test_a_variable_that_is_bound_inside():
    inner = Var("w", V.dtype)
    found = lane_of(Let(inner, V * 2.0, inner + inner), lane, _known)
    assert isinstance(found, Let) and found.var.dtype == F32
    assert isinstance(found.body, BinaryExpr) and found.body.a is found.var


def test_buffers_of_vectors_have_one_more_dimension():
    wide = Buffer("A", V.dtype, (i,))
    narrow = scalar_buffer(wide)
    assert (narrow.dtype, str(narrow.shape)) == (F32, "(i, 4)")
    assert scalar_buffer(narrow) is narrow and with_lane_axis((i,), 1) == (i,)


def _built(build, shapes):
    """A function on views A, B, ... of float32, and what it makes of numbers 0, 1, 2, ..."""
    ib = refcomp.ir_builder.create()
    views = [refcomp.decl_buffer(s, "float32", name) for name, s in zip("AB", shapes, strict=False)]
    build(ib, *views)
    func = ib.func("f", views)
    verify(func, "nested")
    arrays = [np.arange(np.prod(s), dtype="float32").reshape(s) for s in shapes]
    interpret(func, arrays)
    return func, arrays


def test_what_overlaps_is_read_before_it_is_written():
    func, (a,) = _built(lambda ib, A: ib.emit(A.vstore(1, A.vload(0, "float32x4"))), [(5,)])
    assert a.tolist() == [0, 0, 1, 2, 3]
    assert "alloc A.next: f32[4] local" in print_func(func)


def test_in_place_needs_no_copy():
    func, (a,) = _built(lambda ib, A: ib.emit(A.vstore(1, A.vload(1, "float32x4") * 2.0)), [(5,)])
    assert a.tolist() == [0, 2, 4, 6, 8] and "alloc" not in print_func(func)


def test_a_vector_may_end_in_the_next_row():
    _, (_, b) = _built(
        lambda ib, A, B: ib.emit(B.vstore((0, 1), A.vload((1, 2), "float32x4"))), [(3, 4), (2, 3)]
    )
    assert b.tolist() == [[0, 6, 7], [8, 9, 5]]


def test_a_row_of_symbolic_length_holds_the_whole_vector():
    n = refcomp.var("n")
    A = refcomp.decl_buffer((2, n), "float32", "A")
    assert str(A.vload((0, 1), "float32x2").indices[0]) == "0"


def test_a_variable_of_a_vector_is_evaluated_once():
    def build(ib, A, B):
        held = ib.let("held", A.vload(0, "float32x2") + 1.0)
        ib.emit(A.vstore(0, refcomp.const(0, "float32x2")))
        ib.emit(B.vstore(0, held * 2.0))

    _, (a, b) = _built(build, [(2,), (2,)])
    assert a.tolist() == [0, 0] and b.tolist() == [2, 4]


def test_memory_for_vectors_can_be_allocated():
    def build(ib, A, B):
        t = ib.allocate("float32x2", 2, "t", scope="local")
        t[0] = A.vload(0, "float32x2")
        t[1] = t[0] * 2.0
        ib.emit(B.vstore(0, t[1]))

    func, (_, b) = _built(build, [(2,), (2,)])
    assert b.tolist() == [0, 2] and "alloc t: f32[2, 2] local" in print_func(func)


def test_addresses_of_vectors_are_those_of_their_first_lane():
    A = refcomp.decl_buffer((3,), "float32x4", "A")
    ib = refcomp.ir_builder.create()
    ib.emit(refcomp.call_extern("int32", "f", A.access_ptr("r", 2), A.access_ptr("w")))
    text = print_func(ib.func("f", [A]))
    assert "extern i32 f(read(A[2, 0]), write(A))" in text


def test_a_value_of_other_lanes_than_its_place():
    A = refcomp.decl_buffer((8,), "float32", "A")
    ib = refcomp.ir_builder.create()
    ib.emit(BufferStore(A.buffer, (IntImm(0, I64),), V))
    with pytest.raises(UserError, match=r"f32x4 is stored to f32 of A\n(.|\n)*A.vstore"):
        ib.func("f", [A])


def test_an_intrinsic_that_may_exchange_lanes():
    A = refcomp.decl_buffer((8,), "float32", "A")
    call = PureExtern("llvm.x86.sse.max.ps", (A.vload(0, "float32x4"),), V.dtype)
    with pytest.raises(Unsupported, match="llvm.x86.sse.max.ps is called with vectors"):
        expand_statement(A.vstore(0, call), {})


def test_scalars_stay_as_they_are():
    func = refcomp.parse_func("func f(A: f32[4] out) { for i in range(4) { A[i] = 1.0f32 } }")
    assert expand_lanes(func) is func
    assert expand_statement(func.body, {}) is func.body
