"""The divisor of an index divides all of its values, and vectors say how they are aligned."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refcomp.arith.alignment import MAX_DIVISOR, divisor_of
from refcomp.foundation.dtype import I32, I64
from refcomp.ir import expr as ir
from refcomp.ir.expr import IntImm, Var
from refcomp.ir.parser import parse_func
from refcomp.oracle.interpreter.interpret import evaluate_expr
from tests.codegen.amdgpu.kernels import print_kernels

X, Y = Var("x", I64), Var("y", I64)
KNOWN = {X: 8, Y: 1}
_CONSTANTS = st.integers(-70, 70).map(lambda value: IntImm(value, I64))
_BINARY = (ir.Add, ir.Sub, ir.Mul, ir.FloorMod, ir.FloorDiv, ir.BitOr, ir.BitXor, ir.ShiftLeft)


def _grown(parts):
    binary = st.builds(lambda node, a, b: node(a, b), st.sampled_from(_BINARY), parts, parts)
    narrow = parts.map(lambda part: ir.Cast(I64, ir.Cast(I32, part)))
    return binary | narrow | parts.map(lambda part: ir.Ramp(part, IntImm(1, I64), 4))


_INDICES = st.recursive(st.sampled_from((X, Y)) | _CONSTANTS, _grown, max_leaves=8)


def _scalar(index):
    """Of a vector, its first lane."""
    if isinstance(index, ir.Ramp):
        return _scalar(index.base)
    if isinstance(index, ir.BinaryExpr):
        return type(index)(_scalar(index.a), _scalar(index.b))
    return ir.Cast(index.dtype, _scalar(index.value)) if isinstance(index, ir.Cast) else index


def test_each_node():
    four, x = IntImm(4, I64), X
    cases = {
        divisor_of(x * 2 + 4, KNOWN): 4,
        divisor_of(x % 6, KNOWN): 2,
        divisor_of(x // 4, KNOWN): 2,
        divisor_of(x // 3, KNOWN): 1,
        divisor_of(ir.ShiftLeft(Y, IntImm(5, I64)), KNOWN): 32,
        divisor_of(ir.Ramp(ir.Mul(x, four), IntImm(1, I64), 4), KNOWN): 32,
        divisor_of(IntImm(0, I64), KNOWN): MAX_DIVISOR,
        divisor_of(ir.Max(x, x), KNOWN): 1,
    }
    assert all(found == wanted for found, wanted in cases.items())


@pytest.mark.search
@settings(max_examples=300)
@given(_INDICES, st.integers(-50, 50), st.integers(-(2**31), 2**31))
def test_it_divides_every_value(index, x, y):
    try:
        index = _scalar(index)
    except TypeError:
        return  # vectors within operations of scalars
    value = evaluate_expr(index, {X: 8 * x, Y: y})
    assert value % divisor_of(index, KNOWN) == 0


_KERNEL = """
func copy(A: f32[4096], B: f32[4096] out, n: i64) {
  for t in range(64) threadIdx.x {
    alloc S: f32[2048] shared {
      let row: i64 = t * 20 {
        S@[ramp(row + 4, 1, 4)] = A@[ramp(row, 1, 4)]
        barrier
        B@[ramp(row, 1, 4)] = S@[ramp(INDEX, 1, 4)]
      }
    }
  }
}
"""


@pytest.mark.parametrize(
    ("index", "bytes_"),
    [("row + 4", 16), ("row + n * 2", 8), ("row + n", 4), ("t * 2 % 8", 8), ("row * 64", 16)],
)
def test_vectors_in_shared_memory_say_it(index, bytes_):
    text = print_kernels([parse_func(_KERNEL.replace("INDEX", index))]).text
    (found,) = re.findall(r"load <4 x float>, ptr addrspace\(3\) \S+, align (\d+)", text)
    assert int(found) == bytes_
    # Of arguments no more is known than of an element.
    assert re.findall(r"load <4 x float>, ptr addrspace\(1\) \S+, align (\d+)", text) == ["4"]
