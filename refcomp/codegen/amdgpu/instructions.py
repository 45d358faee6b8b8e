"""Prints the instructions of AMD GPUs that kernels name (`refcomp.ir.gpu_intrinsics`).

Refuses, with Unsupported, an instruction that the GPU does not have.
"""

from __future__ import annotations

from refcomp.codegen.llvm.function import ExpressionPrinters, LlvmFunction
from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import Unsupported
from refcomp.ir import expr as ir
from refcomp.ir.gpu_intrinsics import GPU_INTRINSICS, DotProduct, MatrixProduct

_HAVE_MIXED = ("gfx11", "gfx12")
_FIRST_LLVM_WITH_BF16 = 19


def _pure_extern(out: LlvmFunction, call: ir.PureExtern) -> str:
    intrinsic = GPU_INTRINSICS[call.name]
    _check_gpu(out, intrinsic)
    operands, count = [out.value(arg) for arg in call.args], intrinsic.factors
    a = _factor(out, intrinsic, operands[:count])
    b = _factor(out, intrinsic, operands[count : 2 * count])
    if isinstance(intrinsic, MatrixProduct):
        return _matrix_product(out, intrinsic, [a, b], operands[2 * count :])
    return _dot_product(out, intrinsic, [a, b, operands[-1]])


def _dot_product(out: LlvmFunction, intrinsic: DotProduct, operands: list[str]) -> str:
    say, tables, result = out.say, out.module.tables, out.fresh()
    is_mixed = out.module.gpu.startswith(_HAVE_MIXED) and (
        intrinsic.name in tables["instruction_mixed"]
    )
    function = tables["instruction_mixed" if is_mixed else "instruction"][
        intrinsic.name
    ]
    macro, declare = say.dot_product, say.declare_dot_product
    if is_mixed:
        macro, declare = say.dot_product_mixed, say.declare_dot_product_mixed
    types = _factor_type(out, intrinsic), out.module.type_of(intrinsic.sum)
    out.module.declarations.add(function, lambda: declare(function, *types))
    out.emit(macro(result, function, *types, *operands))
    return result


def _matrix_product(
    out: LlvmFunction, intrinsic: MatrixProduct, factors: list[str], operands: list[str]
) -> str:
    *sums, which = operands
    c = _vector(out, sums, intrinsic.sum)
    factor = _factor_type(out, intrinsic)
    total = out.module.type_of(intrinsic.sum.with_lanes(intrinsic.sums))
    function, result = out.module.tables["instruction"][intrinsic.name], out.fresh()
    declare = out.say.declare_matrix_product
    out.module.declarations.add(function, lambda: declare(function, factor, total))
    out.emit(
        out.say.matrix_product(result, function, factor, *factors, total, c, which)
    )
    return result


def _factor(
    out: LlvmFunction, intrinsic: DotProduct | MatrixProduct, elements: list[str]
) -> str:
    vector, wanted = _vector_type(out, intrinsic), _factor_type(out, intrinsic)
    value = _vector(out, elements, _in_memory(intrinsic.element))
    if wanted == vector:
        return value
    result = out.fresh()
    out.emit(out.say.retype(result, vector, value, wanted))
    return result


def _vector_type(out: LlvmFunction, intrinsic: DotProduct | MatrixProduct) -> str:
    return out.module.type_of(
        _in_memory(intrinsic.element).with_lanes(intrinsic.factors)
    )


def _factor_type(out: LlvmFunction, intrinsic: DotProduct | MatrixProduct) -> str:
    """The type of a factor: most often a vector of its elements."""
    types: dict[str, str] = out.module.tables["instruction_factor"]
    if out.module.llvm < _FIRST_LLVM_WITH_BF16:
        types = types | out.module.tables["instruction_factor_before_bf16"]
    return types.get(intrinsic.name) or _vector_type(out, intrinsic)


def _in_memory(dtype: DType) -> DType:
    """bf16 comes as its bits."""
    return DType("uint", dtype.bits) if dtype.kind == "bfloat" else dtype


def _vector(out: LlvmFunction, elements: list[str], dtype: DType) -> str:
    if len(elements) == 1:
        return elements[0]
    result = out.fresh()
    out.emit(out.say.pack(result, len(elements), out.module.type_of(dtype), elements))
    return result


def _check_gpu(out: LlvmFunction, intrinsic: DotProduct | MatrixProduct) -> None:
    gpu, size = out.module.gpu, out.module.wavefront_size
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


INSTRUCTIONS: ExpressionPrinters = {ir.PureExtern: _pure_extern}
