"""Print the instructions of AMD GPUs that kernels name (`refcomp.ir.gpu_intrinsics`).

Refuses, with Unsupported, an instruction that the GPU does not have.
"""

from __future__ import annotations

from refcomp.codegen.llvm.function import ExpressionPrinters, LlvmFunction
from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import Unsupported
from refcomp.ir import expr as ir
from refcomp.ir.gpu_instructions.records import DotProduct, MatrixLoad, MatrixProduct
from refcomp.ir.gpu_intrinsics import GPU_INTRINSICS

_HAVE_MIXED = ("gfx11", "gfx12")
_MIN_LLVM_WITH_BF16 = 19


def _pure_extern(out: LlvmFunction, call: ir.PureExtern) -> str:
    intrinsic = GPU_INTRINSICS[call.name]
    assert not isinstance(intrinsic, MatrixLoad)
    gpu = out.module.gpu
    size = out.module.wavefront_size
    if not gpu.startswith(intrinsic.gpus):
        raise Unsupported(
            f"{gpu} has no instruction {intrinsic.name}",
            why=f"the names of GPUs that have it begin with {', '.join(intrinsic.gpus)}",
            remedy="build for one of them by -mcpu=, or schedule without it",
        )
    if intrinsic.wave not in (1, size):
        raise Unsupported(
            f"{intrinsic.name} is an instruction of waves of {intrinsic.wave} lanes",
            why=f"those of {gpu} have {size} here",
            remedy=f"build with -wavefront={intrinsic.wave}",
        )
    operands = [out.value(arg) for arg in call.args]
    count, _ = intrinsic.counts  # the same for both factors
    a = _factor(out, intrinsic, operands[:count])
    b = _factor(out, intrinsic, operands[count : 2 * count])
    if isinstance(intrinsic, MatrixProduct):
        return _matrix_product(out, intrinsic, a, b, operands[2 * count :])
    return _dot_product(out, intrinsic, a, b, operands[-1])


def _dot_product(
    out: LlvmFunction,
    intrinsic: DotProduct,
    a: str,
    b: str,
    total: str,
) -> str:
    table = out.tables["instruction"]
    macro = out.say.dot_product
    declare = out.say.declare_dot_product
    mixed = out.tables["instruction_mixed"]
    if out.module.gpu.startswith(_HAVE_MIXED) and intrinsic.name in mixed:
        table = mixed
        macro = out.say.dot_product_mixed
        declare = out.say.declare_dot_product_mixed
    function = table[intrinsic.name]
    factor = _factor_type(out, intrinsic)
    type_ = out.type_of(intrinsic.sum)
    out.declare(function, declare, function=function, factor=factor, type=type_)
    return out.instruction(
        macro,
        function=function,
        factor=factor,
        type=type_,
        a=a,
        b=b,
        sum=total,
    )


def _matrix_product(
    out: LlvmFunction,
    intrinsic: MatrixProduct,
    a: str,
    b: str,
    operands: list[str],
) -> str:
    """Print a product; `operands` are the lane's elements of the sum, and an element's number."""
    *elements, number = operands
    c = _vector(out, elements, intrinsic.sum)
    factor = _factor_type(out, intrinsic)
    type_ = out.type_of(intrinsic.sum.with_lanes(intrinsic.c.count))
    function = out.tables["instruction"][intrinsic.name]
    declare = out.say.declare_matrix_product
    out.declare(function, declare, function=function, factor=factor, sum=type_)
    return out.instruction(
        out.say.matrix_product,
        function=function,
        factor=factor,
        a=a,
        b=b,
        sum=type_,
        c=c,
        element=number,
    )


def _factor(
    out: LlvmFunction, intrinsic: DotProduct | MatrixProduct, elements: list[str]
) -> str:
    value = _vector(out, elements, _in_memory(intrinsic.element))
    type_ = _vector_type(out, intrinsic)
    wanted = _factor_type(out, intrinsic)
    if wanted == type_:
        return value
    return out.instruction(out.say.retype, type=type_, value=value, wanted=wanted)


def _vector_type(out: LlvmFunction, intrinsic: DotProduct | MatrixProduct) -> str:
    element = _in_memory(intrinsic.element)
    return out.type_of(element.with_lanes(intrinsic.counts[0]))


def _factor_type(out: LlvmFunction, intrinsic: DotProduct | MatrixProduct) -> str:
    """Return the type of a factor, which is most often a vector of its elements."""
    types: dict[str, str] = out.tables["instruction_factor"]
    if out.module.llvm < _MIN_LLVM_WITH_BF16:
        types = types | out.tables["instruction_factor_before_bf16"]
    return types.get(intrinsic.name) or _vector_type(out, intrinsic)


def _in_memory(dtype: DType) -> DType:
    """Return the dtype in which elements arrive: a bf16 arrives as its bits."""
    return DType("uint", dtype.bits) if dtype.kind == "bfloat" else dtype


def _vector(out: LlvmFunction, elements: list[str], dtype: DType) -> str:
    if len(elements) == 1:
        return elements[0]
    return out.instruction(
        out.say.pack,
        count=len(elements),
        type=out.type_of(dtype),
        elements=elements,
    )


INSTRUCTIONS: ExpressionPrinters = {ir.PureExtern: _pure_extern}
