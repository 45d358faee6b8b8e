"""Prints the instructions of AMD GPUs that kernels name (`refcomp.ir.gpu_intrinsics`).

Refuses, with Unsupported, an instruction that the GPU does not have.
"""

from __future__ import annotations

from refcomp.codegen.llvm_function import ExpressionPrinters, LlvmFunction
from refcomp.errors import Unsupported
from refcomp.ir import expr as ir
from refcomp.ir.gpu_intrinsics import GPU_INTRINSICS, LANES

_HAVE_MIXED = ("gfx11", "gfx12")


def _pure_extern(out: LlvmFunction, call: ir.PureExtern) -> str:
    _check_gpu(out, call.name)
    operands = [out.value(arg) for arg in call.args]
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


def _check_gpu(out: LlvmFunction, name: str) -> None:
    gpu, having = out.module.gpu, GPU_INTRINSICS[name].gpus
    if not gpu.startswith(having):
        raise Unsupported(
            f"{gpu} has no instruction {name}",
            why=f"the names of GPUs that have it begin with {', '.join(having)}",
            remedy="build for one of them by -mcpu=, or schedule without it",
        )


INSTRUCTIONS: ExpressionPrinters = {ir.PureExtern: _pure_extern}
