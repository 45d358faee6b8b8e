"""Print the instructions of NVIDIA GPUs that kernels name (`refcomp.ir.gpu_intrinsics`).

LLVM has an intrinsic for each, except dot products, which are inline assembly. The operands are
registers of 32 bits: f32, i32, or two f16 or i32 with the bits of several elements. The result is a
vector, of which a call may want one element only.

Refuses, with Unsupported, an instruction that the GPU does not have. Likewise, it refuses a matrix
load whose rows are not in shared memory at multiples of 16 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from refcomp.codegen.llvm.function import ExpressionPrinters, LlvmFunction, TypedValue
from refcomp.codegen.llvm.memory import place_of
from refcomp.codegen.matrix_rows import check_row_alignment, shared_row
from refcomp.foundation.compute_capability import check_capability
from refcomp.foundation.dtype import F32, DType
from refcomp.ir import expr as ir
from refcomp.ir.expr import Expr, IntImm
from refcomp.ir.gpu_instructions.records import (
    REGISTER_BITS,
    ROW_BITS,
    DotProduct,
    MatrixLoad,
    MatrixProduct,
)
from refcomp.ir.gpu_intrinsics import GPU_INTRINSICS

# For sm_75, LLVM writes PTX 6.3, which has neither mma.m16n8k8 nor ldmatrix.
_MIN_WITH_MATRICES = 80
_F16 = DType("float", 16)
_U16 = DType("uint", 16)
_U32 = DType("uint", REGISTER_BITS)


@dataclass(frozen=True, slots=True)
class _Results:
    """The registers that an instruction returns, and the vector that they are."""

    registers: list[str]  # their types
    element: str  # the type of a lane that holds a register
    whole: str  # the type of the vector of all elements


def _print_call(out: LlvmFunction, call: ir.PureExtern) -> str:
    instruction = GPU_INTRINSICS[call.name]
    least = instruction.capability
    if not isinstance(instruction, DotProduct):
        least = max(least, _MIN_WITH_MATRICES)
    check_capability(out.module.gpu, f"sm_{least}", f"calls of {call.name}")
    match instruction:
        case DotProduct():
            return _dot_product(out, instruction, call)
        case MatrixProduct():
            return _matrix_product(out, instruction, call)
        case MatrixLoad():
            return _matrix_load(out, call)


def _dot_product(out: LlvmFunction, product: DotProduct, call: ir.PureExtern) -> str:
    *factors, total = call.args
    count, _ = product.counts
    a = _registers(out, factors[:count], product.element)
    b = _registers(out, factors[count:], product.element)
    return out.instruction(
        out.say.dot_product,
        instruction=out.tables["dot_product"][call.name],
        a=a[0].value,
        b=b[0].value,
        sum=out.value(total),
    )


def _matrix_product(
    out: LlvmFunction, product: MatrixProduct, call: ir.PureExtern
) -> str:
    first, second = product.counts
    sums = first + second + product.c.count
    registers = [
        *_registers(out, call.args[:first], product.element),
        *_registers(out, call.args[first : first + second], product.element),
        *_registers(out, call.args[first + second : sums], product.sum, is_sum=True),
    ]
    is_packed = product.sum.bits < REGISTER_BITS
    kind = _U32 if is_packed else product.sum
    count = product.c.count * product.sum.bits // REGISTER_BITS
    type_ = out.type_of(_F16.with_lanes(2) if is_packed else product.sum)
    results = _Results(
        registers=[type_] * count,
        element=out.type_of(kind),
        whole=out.type_of(product.sum.with_lanes(product.c.count)),
    )
    return _called(out, call.name, registers, results, call)


def _matrix_load(out: LlvmFunction, call: ir.PureExtern) -> str:
    row = shared_row(call)
    assert isinstance(row.index, ir.Ramp)
    place = place_of(out, row.buffer, row.index.base, row.dtype.lanes)
    check_row_alignment(call, row, place.alignment)
    address = TypedValue(place.pointer, out.instruction(out.say.row_place, place=place))
    register = out.type_of(_U32)
    results = _Results(
        registers=[register] * (ROW_BITS // REGISTER_BITS),
        element=register,
        whole=out.type_of(call.dtype),
    )
    # The intrinsic is overloaded by the address space of the pointer.
    return _called(out, f"{call.name}.p{place.space}", [address], results, call)


def _called(
    out: LlvmFunction,
    function: str,
    operands: list[TypedValue],
    results: _Results,
    call: ir.PureExtern,
) -> str:
    """Print the call of an intrinsic; return all elements of the result, or the wanted one."""
    out.declare(
        function,
        out.say.declare_warp_instruction,
        function=function,
        operands=operands,
        results=results,
    )
    whole = out.instruction(
        out.say.warp_instruction,
        function=function,
        operands=operands,
        results=results,
    )
    if call.dtype.lanes > 1:
        return whole
    number = call.args[-1]
    assert isinstance(number, IntImm)
    return out.instruction(
        out.say.element_of_result, type=results.whole, value=whole, number=number.value
    )


def _registers(
    out: LlvmFunction,
    elements: Sequence[Expr],
    dtype: DType,
    *,
    is_sum: bool = False,
) -> list[TypedValue]:
    """Return the registers that hold elements of a matrix."""
    values = [out.value(element) for element in elements]
    count = REGISTER_BITS // dtype.bits
    stored = _U16 if dtype.kind == "bfloat" else dtype  # a bf16 arrives as its bits
    if count == 1 and (is_sum or dtype != F32):
        return [TypedValue(out.type_of(dtype), value) for value in values]
    # Of the factors, only those of f16 are not passed as integers.
    wanted = out.type_of(dtype.with_lanes(2) if dtype == _F16 else _U32)
    packed: list[TypedValue] = []
    for first in range(0, len(values), count):
        register = out.instruction(
            out.say.register_of,
            element=out.type_of(stored),
            elements=values[first : first + count],
            type=wanted,
        )
        packed.append(TypedValue(wanted, register))
    return packed


NAMED_INSTRUCTIONS: ExpressionPrinters = {ir.PureExtern: _print_call}
