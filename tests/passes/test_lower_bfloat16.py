import ml_dtypes
import numpy as np
import pytest

from refcomp.foundation.dtype import SCALAR_DTYPES, as_dtype, to_numpy
from refcomp.ir.buffer import Buffer
from refcomp.ir.func import Program
from refcomp.ir.intrinsics import INTRINSICS
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Prefetch
from refcomp.ir.verify import verify
from refcomp.oracle.lockstep.interpret import interpret, interpret_program
from refcomp.passes import lower_bfloat16 as module
from refcomp.passes.lower_bfloat16 import lower_bfloat16
from refcomp.passes.lower_intrinsics import lower_intrinsics
from tests.passes.docstring_examples import assert_docstring_holds

BF16 = ml_dtypes.bfloat16
_NUMBERS = [0.0, -0.0, 1.0, -1.0, 1.0078125, 0.33203125, -3.390625, 255.0, 1e30, 3.3e38, -3.3e38]
_SPECIAL = [np.inf, -np.inf, np.nan, 9.2e-41, -9.2e-41, 1.2e-38]
EDGES = np.array([*_NUMBERS, *_SPECIAL], BF16)


def _lowered(text):
    func = lower_bfloat16(lower_intrinsics(parse_func(text)))
    verify(func, "host")
    assert "bf16" not in print_func(func)
    return func


def _pairs():
    a, b = np.meshgrid(EDGES, EDGES)
    return a.ravel().copy(), b.ravel().copy()


def _assert_same(actual, expected):
    nan = np.isnan(actual.astype(np.float32)) & np.isnan(expected.astype(np.float32))
    assert np.all(nan | (actual.view(np.uint16) == expected.view(np.uint16)))


def _assert_lowering_keeps(text, arrays, result):
    """The function before and after lowering gives one result, element by element."""
    plain, lowered = result.copy(), result.copy()
    interpret(parse_func(text), [*arrays, plain])
    interpret(_lowered(text), [*arrays, lowered])
    if result.dtype == BF16:
        _assert_same(lowered, plain)
    else:
        np.testing.assert_array_equal(lowered, plain)


def test_docstring():
    assert_docstring_holds(module, lower_bfloat16)


@pytest.mark.parametrize("operation", ["+", "-", "*", "/"])
def test_arithmetic_rounds_as_bfloat16_does(operation):
    text = (
        "func f(A: bf16[n], B: bf16[n], C: bf16[n] out) "
        f"{{ for i in range(n) {{ C@[i] = A@[i] {operation} B@[i] }} }}"
    )
    a, b = _pairs()
    _assert_lowering_keeps(text, [a, b], np.zeros(len(a), BF16))


@pytest.mark.parametrize("expression", ["min(x, y)", "max(x, y)", "truncmod(x, y)"])
def test_exact_operations(expression):
    expression = expression.replace("x", "A@[i]").replace("y", "B@[i]").replace("maA@[i]", "max")
    text = (
        "func f(A: bf16[n], B: bf16[n], C: bf16[n] out) "
        f"{{ for i in range(n) {{ C@[i] = {expression} }} }}"
    )
    a, b = _pairs()
    _assert_lowering_keeps(text, [a, b], np.zeros(len(a), BF16))


@pytest.mark.parametrize("operator", ["==", "!=", "<", "<=", ">", ">="])
def test_comparisons(operator):
    text = (
        "func f(A: bf16[n], B: bf16[n], C: bool[n] out) "
        f"{{ for i in range(n) {{ C@[i] = A@[i] {operator} B@[i] }} }}"
    )
    a, b = _pairs()
    _assert_lowering_keeps(text, [a, b], np.zeros(len(a), np.bool_))


@pytest.mark.parametrize(
    "name",
    [
        n
        for n, i in INTRINSICS.items()
        if "bfloat" in i.kinds and i.arity == 1 and not i.result_bool
    ],
)
def test_functions(name):
    text = f"func f(A: bf16[n], C: bf16[n] out) {{ for i in range(n) {{ C@[i] = {name}(A@[i]) }} }}"
    plain, lowered = np.zeros(len(EDGES), BF16), np.zeros(len(EDGES), BF16)
    interpret(parse_func(text), [EDGES, plain])
    interpret(_lowered(text), [EDGES, lowered])
    if INTRINSICS[name].ulp:
        np.testing.assert_allclose(
            lowered.astype(np.float32), plain.astype(np.float32), rtol=2**-7, atol=1e-40
        )
    else:
        _assert_same(lowered, plain)


def _values_of(dtype):
    if dtype.is_bool:
        return np.array([False, True])
    if dtype.is_int:
        near = [1 << k for k in range(dtype.bits - 1)]
        values = [v + d for v in near for d in (-1, 0, 1)] + [dtype.max_value, dtype.min_value]
        # One more than a tie of bf16, in the last place: only one rounding gives the upper.
        values += [(257 << k) + 1 for k in range(1, dtype.bits - 10)]
        values += [-v for v in values] if dtype.kind == "int" else []
        kept = [v for v in values if dtype.min_value <= v <= dtype.max_value]
        return np.array(kept, to_numpy(dtype))
    if dtype.kind == "bfloat":
        return EDGES
    ties = [257.0 + 2.0**-k for k in range(1, 45)] + [257.0 - 2.0**-k for k in range(1, 45)]
    with np.errstate(over="ignore"):
        values = np.array([*EDGES.astype(np.float64), *ties, 3.4e38, 1e300, 1e-300, 1e-45])
        return np.concatenate([values, -values]).astype(to_numpy(dtype))


@pytest.mark.parametrize("dtype", [str(dtype) for dtype in SCALAR_DTYPES])
def test_conversions_to_bfloat16_round_once(dtype):
    text = (
        f"func f(A: {dtype}[n], C: bf16[n] out) {{ for i in range(n) {{ C@[i] = bf16(A@[i]) }} }}"
    )
    if dtype == "bf16":
        text = text.replace("bf16(A@[i])", "A@[i]")
    values = _values_of(as_dtype(dtype))
    _assert_lowering_keeps(text, [values], np.zeros(len(values), BF16))


@pytest.mark.parametrize("dtype", [str(dtype) for dtype in SCALAR_DTYPES if str(dtype) != "bf16"])
def test_conversions_from_bfloat16(dtype):
    text = (
        f"func f(A: bf16[n], C: {dtype}[n] out) "
        f"{{ for i in range(n) {{ C@[i] = {dtype}(A@[i]) }} }}"
    )
    _assert_lowering_keeps(text, [EDGES], np.zeros(len(EDGES), to_numpy(as_dtype(dtype))))


def test_scalars_buffers_and_captures():
    text = """
    func f(A: bf16[n], x: bf16, B: bf16[n] out) {
      alloc T: bf16[n] {
        let y: bf16 = x * 2.0bf16 {
          region f.parallel0 (n, A, T, B, y, x) task t of p {
            if (t == 0) {
              for i in range(n) {
                T@[i] = (let z: bf16 = A@[i] + y in z * z)
                B@[i] = if_then_else(T@[i] > x, T@[i], select(i > 1, -1.0bf16, x))
              }
            }
          }
        }
      }
    }
    """
    a = np.array([0.5, -3.0, 1e-3, 7.0], BF16)
    plain, lowered = np.zeros(4, BF16), np.zeros(4, BF16)
    interpret(parse_func(text), [a, BF16(1.5), plain])
    func = _lowered(text)
    interpret(func, [a, BF16(1.5), lowered])
    _assert_same(lowered, plain)
    assert [str(param.dtype) for param in func.params] == ["u16"] * 3
    assert func.outputs == ("B",)


def test_vectors():
    text = """
    func f(A: bf16[8], B: bf16[8] out) {
      B@[ramp(0, 1, 8)] = A@[ramp(0, 1, 8)] * broadcast(3.0bf16, 8) + A@[ramp(0, 1, 8)]
    }
    """
    _assert_lowering_keeps(text, [EDGES[:8].copy()], np.zeros(8, BF16))


def test_a_copy_moves_bits_only():
    func = _lowered("func f(A: bf16[8], B: bf16[8] out) { B@[0] = A@[1] }")
    assert "B@[0] = A@[1]" in print_func(func)


def test_functions_without_bfloat16_stay():
    func = parse_func("func f(A: f32[8], B: f32[8] out) { B@[0] = A@[1] }")
    assert lower_bfloat16(func) is func
    assert all(isinstance(param, Buffer) for param in func.params)


def test_the_kernels_of_a_program():
    host = parse_func("""
    func f(A: bf16[n], x: bf16, B: bf16[n] out) {
      alloc T: bf16[n] { launch g (A, T, B, n, x) grid (n, 1, 1) block (1, 1, 1) }
    }
    """)
    kernel = parse_func("""
    func g(A: bf16[n], T: bf16[n] out, B: bf16[n] out, n: i64, x: bf16) {
      for b in range(n) blockIdx.x {
        for t in range(1) threadIdx.x { T@[b] = A@[b] B@[b] = T@[b] * x }
      }
    }
    """)
    program = Program(lower_bfloat16(host), (lower_bfloat16(kernel),))
    verify(program.host, "launch")
    verify(program.kernels[0], "device")
    assert "let" not in print_func(program.host)  # the host has no floats
    assert {p.dtype for p in program.kernels[0].params} == {as_dtype("uint16"), as_dtype("int64")}
    a, b = np.arange(4).astype(ml_dtypes.bfloat16), np.zeros(4, ml_dtypes.bfloat16)
    interpret_program(program, [a, ml_dtypes.bfloat16(1.5), b])
    assert b.tolist() == [0, 1.5, 3, 4.5]


def test_a_prefetch_is_of_the_memory_as_it_is_now():
    func = _lowered("func f(A: bf16[n], B: bf16[n] out) { prefetch A[3] B@[0] = A@[0] }")
    (hint,) = (node for node in walk(func.body) if isinstance(node, Prefetch))
    assert hint.buffer is func.buffers[0]


def test_instructions_of_gpus_take_the_bits():
    call = "C@[0] = extern f32 llvm.amdgcn.fdot2.f32.bf16(%s, A@[1], A@[0], A@[1], C@[0])"
    func = parse_func(
        "func f(A: bf16[2], C: f32[1] out) { for t in range(1) threadIdx.x {"
        + call % "A@[0]"
        + "} }"
    )
    lowered = print_func(lower_bfloat16(func))
    assert call % "A@[0]" in lowered and "A: u16[2]" in lowered
    halves = parse_func(print_func(func).replace("A@[0], A@[1], A@[0]", "abs(A@[0]), A@[1], A@[0]"))
    assert ">> 16u32), A@[1], A@[0], A@[1], C@[0])" in print_func(lower_bfloat16(halves))
    floats = parse_func(
        "func f(A: f16[2], C: f32[1] out) { for t in range(1) threadIdx.x { C@[0] = extern f32 "
        "llvm.amdgcn.fdot2(A@[0], A@[1], A@[0], A@[1], C@[0]) } }"
    )
    assert lower_bfloat16(floats) is floats


def test_an_instruction_that_moves_elements_returns_their_bits():
    row = ", ".join(f"S@[t * 8 + {k}]" for k in range(8))
    name = "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16"
    func = parse_func(
        "func f(S: bf16[256], D: bf16[32] out) { for t in range(32) threadIdx.x { "
        f"D@[t] = extern bf16 {name}({row}, 3i32) }} }}"
    )
    lowered = lower_bfloat16(func)
    verify(lowered, "device")
    assert f"D@[t] = extern u16 {name}(" in str(lowered)
