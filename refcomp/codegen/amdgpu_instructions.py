"""Prints the instructions of AMD GPUs that kernels name (`refcomp.ir.gpu_intrinsics`).

Refuses, with Unsupported, an instruction that the GPU does not have.
"""

from __future__ import annotations

from refcomp.codegen.llvm_function import ExpressionPrinters, LlvmFunction
from refcomp.dtype import DType
from refcomp.errors import Unsupported
from refcomp.ir import expr as ir
from refcomp.ir.gpu_intrinsics import GPU_INTRINSICS, LANES, DotProduct, MatrixProduct

_HAVE_MIXED = ("gfx11", "gfx12")


def _pure_extern(out: LlvmFunction, call: ir.PureExtern) -> str:
    intrinsic = GPU_INTRINSICS[call.name]
    _check_gpu(out, intrinsic)
    operands = [out.value(arg) for arg in call.args]
    if isinstance(intrinsic, MatrixProduct):
        return _matrix_product(out, intrinsic, operands)
    return _dot_product(out, call, operands)


def _dot_product(out: LlvmFunction, call: ir.PureExtern, operands: list[str]) -> str:
    factors = [_pack(out, operands[:LANES]), _pack(out, operands[LANES:-1])]
    say, tables, result = out.say, out.module.tables, out.fresh()
    mixed = tables["instruction_mixed"].get(call.name) if _has_mixed(out) else None
    function = mixed or tables["instruction"][call.name]
    macro, declare = say.dot_product, say.declare_dot_product
    if mixed:
        macro, declare = say.dot_product_mixed, say.declare_dot_product_mixed
    out.module.declarations.add(function, lambda: declare(function))
    out.emit(macro(result, function, *factors, operands[-1]))
    return result


def _has_mixed(out: LlvmFunction) -> bool:
    return out.module.gpu.startswith(_HAVE_MIXED)


def _pack(out: LlvmFunction, operands: list[str]) -> str:
    result = out.fresh()
    out.emit(out.say.pack_bytes(result, operands))
    return result


def _matrix_product(out: LlvmFunction, intrinsic: MatrixProduct, operands: list[str]) -> str:
    count = intrinsic.factors
    parts = operands[:count], operands[count : 2 * count], operands[2 * count : -1]
    a, b = (_vector(out, part, intrinsic.element) for part in parts[:2])
    c = _vector(out, parts[2], intrinsic.sum)
    types = out.module.type_of
    factor = types(intrinsic.element.with_lanes(count))
    total = types(intrinsic.sum.with_lanes(intrinsic.sums))
    function, result = out.module.tables["instruction"][intrinsic.name], out.fresh()
    declare = out.say.declare_matrix_product
    out.module.declarations.add(function, lambda: declare(function, factor, total))
    text = out.say.matrix_product(result, function, factor, a, b, total, c, operands[-1])
    out.emit(text)
    return result


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
