"""Products of matrices."""

from __future__ import annotations

from collections.abc import Sequence, Set

from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.element_types import (
    FLOAT8E4M3FN,
    FLOAT8E4M3FNUZ,
    FLOAT8E5M2,
    FLOAT8E5M2FNUZ,
)
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value


@converter("MatMul")
def matmul(node: OnnxNode) -> Value:
    """Convert MatMul of any version; sums of floats of 16 bits are rounded once."""
    factors = [node.required(0), node.required(1)]
    dtype = factors[0].dtype
    if not _is_half(dtype):
        return node.make_fitting("matmul", factors)
    product = node.make_fitting("matmul", factors, out_dtype="float32")
    return node.cast(product, dtype)


def _is_half(dtype: DType) -> bool:
    return dtype.is_float and dtype.bits == 16


@converter("Gemm")
def gemm(node: OnnxNode) -> Value:
    """Convert Gemm of any version.

    Floats of 16 bits are computed as f32. Integers with fractional factors are computed as f64, and
    rounded towards zero.
    """
    dtype = node.required(0).dtype
    inputs = [node.required(0), node.required(1), node.input(2)]
    alpha = node.attributes["alpha"]
    beta = node.attributes["beta"]
    wide: DType | str = dtype
    if _is_half(dtype):
        wide = "float32"
    elif dtype.is_int and not (alpha.is_integer() and beta.is_integer()):
        wide = "float64"
    if all(value is None or value.dtype == dtype for value in inputs):
        inputs = [None if value is None else node.cast(value, wide) for value in inputs]
    product = node.make_fitting(
        "gemm",
        inputs,
        alpha=alpha,
        beta=beta,
        trans_a=bool(node.attributes["transA"]),
        trans_b=bool(node.attributes["transB"]),
    )
    return node.cast(product, dtype)


@converter("Einsum")
def einsum(node: OnnxNode) -> Value:
    """Convert Einsum of any version. More than two operands are multiplied in pairs."""
    if "equation" not in node.attributes:
        raise UserError("its attribute equation is missing")
    operands = node.all_inputs()
    equation = node.attributes["equation"].replace(" ", "")
    given, arrow, wanted = equation.partition("->")
    terms = given.split(",")
    if len(terms) != len(operands):
        raise UserError(
            f"its equation {equation!r} names {len(terms)} operands of {len(operands)}"
        )
    if not arrow:
        wanted = _implied_result(terms)
    while len(operands) > 2:
        left, right, *rest = terms
        pair = _joined(left + right, {*"".join([*rest, wanted])})
        product = _einsum(node, operands[:2], f"{left},{right}->{pair}")
        operands = [product, *operands[2:]]
        terms = [pair, *rest]
    return _einsum(node, operands, f"{','.join(terms)}->{wanted}")


def _einsum(node: OnnxNode, operands: Sequence[Value], equation: str) -> Value:
    return node.make_fitting("einsum", operands, equation=equation)


def _implied_result(terms: Sequence[str]) -> str:
    """Return the axes of a result that the equation leaves out."""
    letters = "".join(terms)
    once = sorted(one for one in letters if one != "." and letters.count(one) == 1)
    return "..." * ("..." in letters) + "".join(once)


def _joined(axes: str, needed: Set[str]) -> str:
    """Return those axes of a product of two operands that later steps need, each once."""
    letters = [one for one in dict.fromkeys(axes) if one != "." and one in needed]
    return "..." * ("..." in axes) + "".join(letters)


@converter("Det")
def det(node: OnnxNode) -> Value:
    """Convert Det of any version."""
    data = node.required(0)
    node.extents(data)
    return node.make("det", [data])


@converter("MatMulInteger")
def matmul_integer(node: OnnxNode) -> Value:
    """Convert MatMulInteger, with zero points for all elements, or for rows and columns."""
    a = node.required(0)
    b = node.required(1)
    a_zero = node.input(2)
    b_zero = node.input(3)
    if all(zero is None or len(zero.shape) < 2 for zero in (a_zero, b_zero)):
        return node.make_fitting("matmul_integer", [a, b, a_zero, b_zero])
    return _integer_product(node, (a, b), (a_zero, b_zero))


def _integer_product(
    node: OnnxNode,
    factors: tuple[Value, Value],
    zeros: tuple[Value | None, Value | None],
) -> Value:
    """Return a product of matrices of bytes, less their zero points of any shape, as int32."""
    a, b = factors
    rows = _shifted(node, a, _beside(node, zeros[0], a), "int32")
    columns = _shifted(node, b, zeros[1], "int32")
    return node.make_fitting("matmul", [rows, columns])


def _shifted(node: OnnxNode, value: Value, zero: Value | None, dtype: str) -> Value:
    wide = node.cast(value, dtype)
    if zero is None:
        return wide
    return node.make("subtract", [wide, node.cast(zero, dtype)])


def _beside(node: OnnxNode, parameter: Value | None, matrix: Value) -> Value | None:
    """Return a parameter for each row of a matrix, so that it stands beside the rows."""
    if parameter is None or len(parameter.shape) != 1 or len(matrix.shape) < 2:
        return parameter
    return node.make("expand_dims", [parameter], axis=1)


# The element types of 8 bits that QLinearMatMul takes, besides integers, by topi's names.
_FLOATS8 = {
    FLOAT8E4M3FN: "e4m3fn",
    FLOAT8E4M3FNUZ: "e4m3fnuz",
    FLOAT8E5M2: "e5m2",
    FLOAT8E5M2FNUZ: "e5m2fnuz",
}


@converter("QLinearMatMul")
def qlinear_matmul(node: OnnxNode) -> Value:
    """Convert QLinearMatMul of any version."""
    inputs = [node.required(place) for place in range(8)]
    for place in (1, 4, 6):
        if not inputs[place].dtype.is_float or inputs[place].dtype.bits < 32:
            inputs[place] = node.cast(inputs[place], "float32")
    values = [inputs[place] for place in (0, 2, 3, 5, 7)]
    has_floats = any(node.element_type(value) in _FLOATS8 for value in values)
    is_simple = all(len(value.shape) < 2 for value in (*inputs[1:3], *inputs[4:6]))
    is_simple = is_simple and all(_is_single(value) for value in inputs[6:])
    if is_simple and not has_floats:
        return node.make_fitting("qlinear_matmul", inputs)
    return _scaled_product(node, inputs, has_floats=has_floats)


def _is_single(value: Value) -> bool:
    return value.shape in ((), (1,))


def _scaled_product(
    node: OnnxNode, inputs: Sequence[Value], *, has_floats: bool
) -> Value:
    """Return what `qlinear_matmul` does, for scales of any shape and for floats of 8 bits."""
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = inputs
    zeros = (_beside(node, a_zero, a), b_zero)
    if has_floats:
        rows = node.make(
            "subtract", [_number(node, a), _number(node, a_zero, zeros[0])]
        )
        columns = node.make("subtract", [_number(node, b), _number(node, b_zero)])
        sums = node.make_fitting("matmul", [rows, columns])
    else:
        sums = node.cast(_integer_product(node, (a, b), (a_zero, b_zero)), "float32")
    row_scale = _beside(node, a_scale, a)
    scales = node.make("multiply", [row_scale, b_scale])
    scales = node.make("divide", [scales, _beside(node, y_scale, a)])
    scaled = node.make_fitting("multiply", [sums, scales])
    offset = _beside(node, y_zero, a)
    assert offset is not None
    code = node.element_type(y_zero)
    if code in _FLOATS8:
        shifted = node.make("add", [scaled, _number(node, y_zero, offset)])
        return node.make("to_float8", [shifted], format=_FLOATS8[code])
    rounded = node.make("round", [scaled])
    shifted = node.make("add", [rounded, node.cast(offset, "float32")])
    least, most = y_zero.dtype.min_value, y_zero.dtype.max_value
    clipped = node.make("clip", [shifted], minimum=float(least), maximum=float(most))
    return node.cast(clipped, y_zero.dtype)


def _number(node: OnnxNode, value: Value, shown: Value | None = None) -> Value:
    """Return the f32 that a value of 8 bits stands for; `shown` is the value in another shape."""
    form = _FLOATS8.get(node.element_type(value))
    data = value if shown is None else shown
    if form is None:
        return node.cast(data, "float32")
    return node.make("from_float8", [data], format=form, dtype="float32")
