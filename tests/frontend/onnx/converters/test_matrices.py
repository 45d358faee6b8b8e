import ml_dtypes
import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from tests.frontend.onnx.converters.cases import EVALUATOR, NodeCase, check, graph_of, is_deferred

A = np.array([[1, -2, 0.5], [3, 0, -1]], np.float32)
BATCH = np.stack([A, A + 1, A - 2])
B = np.arange(12, dtype=np.float32).reshape(3, 4) / 4

PRODUCTS = [
    NodeCase("MatMul", 1, [A, B]),
    NodeCase("MatMul", 9, [A.astype("i4"), B.astype("i4")]),
    NodeCase("MatMul", 13, [BATCH, B[:, 0]], label="vector"),
    NodeCase("MatMul", 13, [A[0], B[:, 1]], label="vectors"),
    NodeCase("MatMul", 13, [BATCH, B], shapes={0: ["N", 2, 3]}, label="symbols"),
]
BIAS = np.array([1, -1, 2, 0], np.float32)
GEMMS = [
    NodeCase("Gemm", 1, [A, B, np.ones((2, 4), "f4")], {"alpha": 0.5},
             expected=[A @ B / 2 + 1]),
    NodeCase("Gemm", 6, [A, B, BIAS], {"broadcast": 1, "beta": 2.0}, expected=[A @ B + 2 * BIAS],
             label="broadcast"),
    NodeCase("Gemm", 7, [A.T, B.T, BIAS], {"transA": 1, "transB": 1}),
    NodeCase("Gemm", 9, [A, B, BIAS[:1]], {"alpha": 2.0}),
    NodeCase("Gemm", 11, [A, B], {"beta": 0.5}),
    NodeCase("Gemm", 13, [A, B, BIAS], shapes={0: ["N", 3]}),
    NodeCase("Gemm", 13, [np.array([[3, 1]], "i4"), np.array([[2], [1]], "i4")], {"alpha": 0.5},
             expected=[np.array([[3]], "i4")], label="integers"),
]  # fmt: skip
CHAIN = [A, B, np.ones((4, 2), np.float32)]
EINSUMS = [
    NodeCase("Einsum", 12, [A, B], {"equation": "ij,jk->ki"}),
    NodeCase("Einsum", 12, CHAIN, {"equation": "ij, jk, kl"}, label="chain"),
    NodeCase("Einsum", 28, [BATCH, B, A], {"equation": "...ij,jk,il->...kl"}),
    NodeCase("Einsum", 12, [A[:, :2], A, B], {"equation": "ii,ij,jk->k"}, label="diagonal"),
    NodeCase("Einsum", 12, [BATCH], {"equation": "b...j->...b"}, label="one"),
    NodeCase("Einsum", 12, [A, A, A], {"equation": "ij,ij,ij->"}, label="scalar"),
    NodeCase(
        "Einsum", 12, [BATCH, B], {"equation": "bij,jk"}, shapes={0: ["N", 2, 3]}, label="symbols"
    ),
]
BYTES = np.array([[250, 3, 7], [0, 255, 128]], np.uint8)
SIGNED = np.array([[-128, 3], [5, 127], [0, -7]], np.int8)
ZERO = np.uint8(9)
DEEP = np.stack([BYTES, BYTES // 2])
INTEGERS = [
    NodeCase("MatMulInteger", 10, [BYTES, SIGNED]),
    NodeCase("MatMulInteger", 10, [BYTES, SIGNED, ZERO, np.int8(-3)], label="zero"),
    NodeCase("MatMulInteger", 10, [BYTES, SIGNED, np.array([1, 200], "u1"),
                                   np.array([5, -5], "i1")], label="rows",
             expected=[(BYTES.astype("i4") - [[1], [200]]).astype("i4")
                       @ (SIGNED.astype("i4") - [5, -5]).astype("i4")]),
    NodeCase("MatMulInteger", 10, [DEEP, SIGNED, np.array([[[1], [200]], [[3], [4]]], "u1")],
             label="deep"),
]  # fmt: skip
SCALES = [np.float32(0.1), np.float32(0.02), np.float32(0.5)]


def quantized(a_scale, b_scale, y_scale, a_zero, b_zero, y_zero, a=BYTES, b=SIGNED):
    """Return the inputs of QLinearMatMul."""
    return [a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero]


def product(a_scale, b_scale, y_scale, a_zero, b_zero, y_zero, a=BYTES, b=SIGNED):
    """Return the result by the operator's text, in f64."""
    rows = (a.astype(float) - a_zero) * a_scale
    columns = (b.astype(float) - b_zero) * b_scale
    limits = np.iinfo(y_zero.dtype)
    scaled = np.rint(rows @ columns / y_scale) + y_zero
    return np.clip(scaled, limits.min, limits.max).astype(y_zero.dtype)


BY_ROW = (np.array([0.1, 0.3], "f4"), SCALES[1], np.float32(0.7),
          np.array([9, 3], "u1"), np.int8(1), np.int8(-2))  # fmt: skip
AS_COLUMNS = [BY_ROW[0][:, None], SCALES[1], BY_ROW[2], BY_ROW[3][:, None], *BY_ROW[4:]]
DEEP_SCALES = [np.array([[[0.1], [0.2]], [[0.3], [0.4]]], "f4"), SCALES[1], SCALES[2],
               np.array([[[1], [2]], [[3], [4]]], "u1"), np.int8(1), np.uint8(7)]  # fmt: skip
QUANTIZED = [
    NodeCase("QLinearMatMul", 10, quantized(*SCALES, ZERO, np.int8(1), np.uint8(100))),
    NodeCase("QLinearMatMul", 10, quantized(*BY_ROW),
             expected=[product(*AS_COLUMNS)], label="rows"),
    NodeCase("QLinearMatMul", 10, quantized(*DEEP_SCALES, a=DEEP),
             expected=[product(*DEEP_SCALES, a=DEEP)], label="deep"),
    NodeCase("QLinearMatMul", 21,
             quantized(*[one.astype("f2") for one in SCALES], ZERO, np.int8(1), np.uint8(100)),
             expected=[product(*[one.astype("f2").astype(float) for one in SCALES],
                               ZERO, np.int8(1), np.uint8(100))]),
]  # fmt: skip
SQUARES = np.stack([A[:, :2], A[:, 1:], A[::-1, :2]])
DETERMINANTS = [
    NodeCase("Det", 11, [SQUARES]),
    NodeCase("Det", 11, [SQUARES[0].astype("f8")], label="one"),
    NodeCase("Det", 22, [SQUARES], shapes={0: ["N", 2, 2]}),
]
HALF = A.astype(ml_dtypes.bfloat16)
OF_16_BITS = [
    NodeCase("MatMul", 13, [HALF, HALF.T], expected=[(A @ A.T).astype(HALF.dtype)], label="bf16"),
    NodeCase("Gemm", 13, [HALF, HALF], {"transB": 1}, [(A @ A.T).astype(HALF.dtype)],
             label="bf16"),
    NodeCase("Einsum", 28, [HALF, HALF], {"equation": "ij,kj"},
             [(A @ A.T).astype(HALF.dtype)], label="bf16"),
    NodeCase("MatMul", 13, [np.ones((1, 4000), "f2"), np.ones(4000, "f2")],
             expected=[np.array([4000], "f2")], label="long-sum"),
    NodeCase("Gemm", 13, [np.ones((1, 4000), "f2"), np.ones((4000, 1), "f2")],
             expected=[np.array([[4000]], "f2")], label="long-sum"),
    NodeCase("Einsum", 28, [np.ones((1, 4000), "f2"), np.ones((4000, 1), "f2")],
             {"equation": "ij,jk"}, [np.array([[4000]], "f2")], label="long-sum"),
    NodeCase("Det", 22, [HALF[:, :2]], expected=[np.array(6, HALF.dtype)], label="bf16",
             wrong={EVALUATOR: "returns f64; the output has the type of X"}),
]  # fmt: skip
FLOATS8 = [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fnuz]


def of_floats8(dtype):
    """Return a product of floats of 8 bits, whose zero points are 0."""
    a = np.array([[1, -2, 0.5], [3, 0, -1]]).astype(dtype)
    b = np.array([[2, 1], [0.25, -1], [4, 8]]).astype(dtype)
    none = np.zeros((), dtype)
    right = (a.astype(float) @ b.astype(float) * 2 * 0.5 / 4).astype(dtype)
    inputs = quantized(np.float32(2), np.float32(0.5), np.float32(4), none, none, none, a, b)
    return NodeCase("QLinearMatMul", 21, inputs, expected=[right], label=np.dtype(dtype).name)


CASES = [
    *OF_16_BITS,
    *map(of_floats8, FLOATS8),
    *DETERMINANTS,
    *PRODUCTS,
    *GEMMS,
    *EINSUMS,
    *INTEGERS,
    *QUANTIZED,
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


def test_two_symbols_of_a_product_are_compared_in_the_run():
    case = NodeCase("MatMul", 13, [A, B], shapes={0: [2, "K"], 1: ["L", 4]})
    assert is_deferred(case)
    check(case)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (NodeCase("MatMul", 13, [A, A]), "matmul: .* 2 instead of 3"),
        (NodeCase("Gemm", 13, [A, A]), "gemm"),
        (NodeCase("Gemm", 13, [A.astype("f2"), B]), "takes one type for both"),
        (NodeCase("MatMul", 13, [A.astype("f2"), B]), "takes one type for both"),
        (NodeCase("Det", 22, [A]), "det: the number of columns is 3 instead of 2"),
        (NodeCase("Einsum", 12, [A]), "its attribute equation is missing"),
        (NodeCase("Einsum", 12, [A], {"equation": "ij,jk"}), "names 2 operands of 1"),
        (NodeCase("Einsum", 12, [A], {"equation": "ijk"}), "names 3 axes of an operand of 2"),
        (
            NodeCase("MatMulInteger", 10, [A, A]),
            "MatMulInteger-10 takes tensor.int8., tensor.uint8.",
        ),
    ],
    ids=str,
)
def test_mistakes_are_explained(case, message):
    with pytest.raises(UserError, match=message):
        graph_of(case)
