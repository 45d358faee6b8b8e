"""Print the expressions that AMD GPUs need spelled differently from processors.

LLVM up to 19 rounds its own division of f16 wrongly. So it is done in f32 and rounded, which gives
the same number as rounding once. LLVM's optimizer would turn that into the wrong division again, so
the quotient passes through a function that the optimizer does not look into.
"""

from __future__ import annotations

from refcomp.codegen.amdgpu.instructions import INSTRUCTIONS
from refcomp.codegen.amdgpu.subgroups import SUBGROUP_CALLS
from refcomp.codegen.llvm.expressions import EXPRESSIONS
from refcomp.codegen.llvm.function import ExpressionPrinters, LlvmFunction, TypedValue
from refcomp.codegen.llvm.kernels import KERNEL_EXPRESSIONS, is_half
from refcomp.foundation.dtype import F32
from refcomp.ir import expr as ir


def _div(out: LlvmFunction, expr: ir.Div) -> str:
    if not is_half(expr.dtype):
        return EXPRESSIONS[ir.Div](out, expr)
    wide = F32.with_lanes(expr.dtype.lanes)
    quotient = out.value(ir.Div(ir.Cast(wide, expr.a), ir.Cast(wide, expr.b)))
    # The identity, to the optimizer a function of unknown value.
    type_ = out.type_of(wide)
    function = f"{out.tables['keep']['function']}.{out.module.suffix_of(wide)}"
    kept = out.call_intrinsic(function, type_, TypedValue(type_, quotient))
    return out.convert(out.tables["cast"]["float_narrow"], kept, wide, expr.dtype)


DEVICE_EXPRESSIONS: ExpressionPrinters = {
    **KERNEL_EXPRESSIONS,
    **SUBGROUP_CALLS,
    **INSTRUCTIONS,
    ir.Div: _div,
}
