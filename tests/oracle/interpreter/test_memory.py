import numpy as np
import pytest

from refcomp.foundation.dtype import BOOL, F32, I64
from refcomp.ir.buffer import Buffer, BufferLoad, Load
from refcomp.ir.expr import Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.promotion import const
from refcomp.ir.stmt import (
    BufferStore,
    For,
    Origin,
    Store,
)
from refcomp.oracle.interpreter.interpret import InterpretError, interpret
from tests.oracle.programs import integer, run_text, zeros


def test_views_are_written_in_place():
    whole = zeros(4, 6)
    func = "func f(A: f32[n, m] out) { for i in range(n) { A[i, 1] = 5.0f32 } }"
    run_text(func, whole[::2, ::3])
    assert whole[::2, 3].tolist() == [5, 5]
    assert whole.sum() == 10


def test_out_of_range_tells_statement_origin_and_variables():
    a, i = Buffer("A", F32, (Var("n", I64),)), Var("i", I64)
    store = BufferStore(a, (i + 1,), const(0.0), Origin("A", "i"))
    func = PrimFunc("f", (a,), For(i, integer(0), a.shape[0], "serial", store), ("A",))
    with pytest.raises(InterpretError) as caught:
        interpret(func, [zeros(3)])
    assert str(caught.value).splitlines() == [
        "index 3 in dimension 0 of A is out of range",
        "  where: A[i + 1] = 0.0f32 (stage A, axis i) with n = 3, i = 2",
        "  why: the dimension has 3 elements",
    ]


def test_each_dimension_is_checked_at_the_nested_level():
    text = "func f(A: f32[2, 3] out) { A[0, 3] = 0.0f32 }"
    with pytest.raises(InterpretError, match="index 3 in dimension 1 of A is out of range"):
        run_text(text, zeros(2, 3))
    with pytest.raises(InterpretError, match="index -1 in dimension 0 of A is out of range"):
        run_text(text.replace("0, 3", "0 - 1, 0"), zeros(2, 3))


def test_the_flat_level_checks_the_whole_buffer_only():
    a, b = Buffer("A", F32, (integer(2), integer(2))), Buffer("B", F32, ())
    func = PrimFunc("f", (a, b), Store(b, integer(0), Load(a, integer(3))), ("B",))
    out = np.zeros((), np.float32)
    interpret(func, [np.array([[1, 2], [3, 4]], np.float32), out])
    assert out == 4


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
        run_text(text, zeros(4))
    assert caught.value.where == "B[i] = T[2] with i = 1"


def test_allocations_of_negative_size_are_empty():
    text = "func f(A: f32[n] out) { alloc T: f32[n - 5, n - 5] { T[0, 0] = 1.0f32 } }"
    with pytest.raises(InterpretError, match="in dimension 0 of T is out of range"):
        run_text(text, zeros(2))


def test_wrong_number_of_indices():
    a = Buffer("A", F32, (integer(1), integer(1)))
    with pytest.raises(InterpretError, match="A of rank 2 is given 1 indices"):
        interpret(PrimFunc("f", (a,), BufferStore(a, (integer(0),), const(0.0))), [zeros(1, 1)])


def test_bool_elements_are_bool_values():
    a, b = Buffer("A", BOOL, (integer(2),)), Buffer("B", BOOL, (integer(2),))
    func = PrimFunc(
        "f", (a, b), BufferStore(b, (integer(1),), ~BufferLoad(a, (integer(0),))), ("B",)
    )
    out = np.zeros(2, np.bool_)
    interpret(func, [np.zeros(2, np.bool_), out])
    assert out.tolist() == [False, True]


def test_rank_zero_and_empty_arrays():
    text = "func f(A: f32[n], S: f32[] out) { S[] = 7.0f32 for i in range(n) { S[] = A[i] } }"
    s = np.zeros((), np.float32)
    run_text(text, zeros(0), s)
    assert s == 7
