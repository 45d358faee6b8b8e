"""Prints the expressions that AMD GPUs need spelled otherwise than processors do.

Division of f16: LLVM up to 19 rounds its own one wrongly, so it is done in f32 and rounded, which
gives the same number as rounding once. Its optimizer would make the wrong division of that again,
so the quotient passes through a function that it does not look into. The remainder of floats is
the device library's, as LLVM's own one is not exact.
"""

from __future__ import annotations

from refcomp.codegen.amdgpu.instructions import INSTRUCTIONS
from refcomp.codegen.amdgpu.subgroups import SUBGROUP_CALLS
from refcomp.codegen.llvm.expressions import EXPRESSIONS, convert_between
from refcomp.codegen.llvm.function import ExpressionPrinters, LlvmFunction
from refcomp.codegen.llvm.maths import call_function
from refcomp.codegen.llvm.memory import READS
from refcomp.foundation.dtype import F32, DType
from refcomp.ir import expr as ir
from refcomp.ir.expr import Expr

_SHARED_WITH_HOST: ExpressionPrinters = {
    **EXPRESSIONS,
    **READS,
    **SUBGROUP_CALLS,
    **INSTRUCTIONS,
}


def _div(out: LlvmFunction, expr: ir.Div) -> str:
    if not _is_half(expr.dtype):
        return _SHARED_WITH_HOST[ir.Div](out, expr)
    quotient = out.value(ir.Div(*_in_f32(expr)))
    return _round_to_half(out, _keep(out, quotient, expr.dtype.lanes), expr.dtype)


def _mod(out: LlvmFunction, expr: ir.Mod) -> str:
    if _is_half(expr.dtype):
        # Exact: the remainder has no more digits than the operands.
        return out.value(ir.Cast(expr.dtype, ir.Mod(*_in_f32(expr))))
    if expr.dtype.is_float:
        operands = [out.value(expr.a), out.value(expr.b)]
        return call_function(out, "fmod", expr.dtype, operands)
    return _SHARED_WITH_HOST[ir.Mod](out, expr)


def _is_half(dtype: DType) -> bool:
    return dtype.is_float and dtype.bits == 16


def _in_f32(expr: ir.BinaryExpr) -> tuple[Expr, Expr]:
    wide = F32.with_lanes(expr.dtype.lanes)
    return ir.Cast(wide, expr.a), ir.Cast(wide, expr.b)


def _keep(out: LlvmFunction, operand: str, lanes: int) -> str:
    """The same number, of which the optimizer does not know where it comes from."""
    dtype = F32.with_lanes(lanes)
    type_, result = out.module.type_of(dtype), out.fresh()
    function = f"{out.module.tables['keep']['function']}.{out.module.suffix_of(dtype)}"
    declare = out.say.declare_intrinsic
    out.module.declarations.add(function, lambda: declare(type_, function, [type_]))
    out.emit(out.say.call(result, type_, function, [out.say.argument(type_, operand)]))
    return result


def _round_to_half(out: LlvmFunction, operand: str, half: DType) -> str:
    opcode = out.module.tables["cast"]["float_narrow"]
    return convert_between(out, opcode, operand, F32.with_lanes(half.lanes), half)


DEVICE_EXPRESSIONS: ExpressionPrinters = {
    **_SHARED_WITH_HOST,
    ir.Div: _div,
    ir.Mod: _mod,
}
