import math

import ml_dtypes
import numpy as np
import pytest

from refcomp.foundation.dtype import F32, as_dtype
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func
from refcomp.ir.stmt import (
    BufferStore,
)
from refcomp.oracle.interpreter.interpret import InterpretError, interpret, is_fulfilled
from tests.oracle.programs import integer, run_text, zeros

U16 = as_dtype("u16")


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
    c = zeros(2, 4)
    run_text(text, a, b, c)
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
    a = zeros(5, dtype=np.int32)
    run_text(text, a, 1, 3)
    assert a.tolist() == [0, 49, 6, 49, 6]


def test_a_u16_parameter_takes_the_bits_of_bfloat16():
    a, x = Buffer("A", U16, (integer(2),)), Var("x", U16)
    func = PrimFunc("f", (a, x), BufferStore(a, (integer(1),), x), ("A",))
    data = np.zeros(2, ml_dtypes.bfloat16)
    interpret(func, [data, ml_dtypes.bfloat16(1.5)])
    assert data.tolist() == [0.0, 1.5]


FUNC = "func f(A: f32[n], B: f32[n, 4], s: f32) { if (n < 0) { A[0] = s } }"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((zeros(2), zeros(2, 4)), "f takes 3 arguments, 2 given"),
        ((1.0, zeros(2, 4), 1.0), "A is a buffer, float given"),
        ((zeros(2, dtype=np.int32), zeros(2, 4), 1.0), "A has dtype f32, int32 given"),
        ((zeros(2), zeros(2), 1.0), "B has rank 2, 1 given"),
        ((zeros(2), zeros(3, 4), 1.0), r"B has shape \(2, 4\), \(3, 4\) given"),
        ((zeros(2), zeros(2, 5), 1.0), r"B has shape \(2, 4\), \(2, 5\) given"),
    ],
)
def test_arguments_that_do_not_fit(args, message):
    with pytest.raises(InterpretError, match=message):
        run_text(FUNC, *args)


def test_scalars_are_rounded_to_their_dtype():
    a, s = Buffer("A", F32, (integer(1),)), Var("s", F32)
    data = zeros(1)
    interpret(PrimFunc("f", (a, s), BufferStore(a, (integer(0),), s), ("A",)), [data, math.pi])
    assert data[0] == np.float32(math.pi)


def test_a_requirement_with_axes_holds_at_all_their_values():
    text = "for i in range(k) for j in range(i) i ^ j < n"
    func = parse_func(f"func f(A: f32[n] out, k: i64) requires ({text}) {{ A[0] = 1.0f32 }}")
    interpret(func, [zeros(4), 4])
    interpret(func, [zeros(1), 1])
    with pytest.raises(InterpretError) as caught:
        interpret(func, [zeros(3), 4])
    assert caught.value.what == f"f requires {text}"
    requirement = func.requires[0]
    sizes = {func.symbols[0]: 3, func.params[1]: 3}
    assert not is_fulfilled(requirement, sizes)
    assert is_fulfilled(requirement, {**sizes, func.params[1]: 2})


def test_what_a_function_requires_is_asked_before_it_runs():
    func = parse_func("func f(A: f32[n] out, k: i64) requires (k < n) { A[0] = 1.0f32 }")
    array = np.zeros(3, np.float32)
    interpret(func, [array, 2])
    assert array[0] == 1
    array[0] = 0
    with pytest.raises(InterpretError, match="f requires k < n") as caught:
        interpret(func, [array, 3])
    assert caught.value.where == "with k = 3, n = 3"
    assert array[0] == 0
