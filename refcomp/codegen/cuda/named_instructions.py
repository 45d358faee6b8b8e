"""Print the instructions of NVIDIA GPUs that kernels name (`refcomp.ir.gpu_intrinsics`).

Each instruction is a function before the kernels, which takes registers of 32 bits. A call packs
its operands into them. A matrix load takes the place of its row in shared memory instead.

Refuses, with Unsupported, an instruction that the GPU does not have. Likewise, it refuses a matrix
load whose rows are not in shared memory at multiples of 16 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from refcomp.codegen.c_family.conversions import from_memory, to_memory
from refcomp.codegen.c_family.function import CExpr, CFunction, ExpressionPrinters
from refcomp.codegen.c_family.memory import alignment_of, element
from refcomp.codegen.matrix_rows import check_row_alignment, shared_row
from refcomp.foundation.compute_capability import check_capability
from refcomp.foundation.dtype import DType
from refcomp.ir import expr as ir
from refcomp.ir.expr import Expr, IntImm
from refcomp.ir.gpu_instructions.nvidia import PREFIX
from refcomp.ir.gpu_instructions.records import (
    REGISTER_BITS,
    DotProduct,
    MatrixLoad,
    MatrixProduct,
)
from refcomp.ir.gpu_intrinsics import GPU_INTRINSICS

_U32 = DType("uint", REGISTER_BITS)


def instruction_printers(arch: str) -> ExpressionPrinters:
    """Return the printers of calls for an architecture, such as `sm_90`."""
    return {ir.PureExtern: partial(_print_call, arch=arch)}


def _print_call(out: CFunction, call: ir.PureExtern, *, arch: str) -> CExpr:
    instruction = GPU_INTRINSICS[call.name]
    check_capability(arch, f"sm_{instruction.capability}", f"calls of {call.name}")
    match instruction:
        case DotProduct():
            return _dot_product(out, instruction, call)
        case MatrixProduct():
            return _matrix_product(out, instruction, call)
        case MatrixLoad():
            return _matrix_load(out, call)


def _dot_product(out: CFunction, product: DotProduct, call: ir.PureExtern) -> CExpr:
    a, b, total = _registers(out, product, call.args)
    factors = [out.cast(register, product.sum) for register in (*a, *b)]
    function = out.tables["instruction"][call.name]
    return out.call(function, *factors, out.narrowed(total[0], product.sum))


def _matrix_product(
    out: CFunction, product: MatrixProduct, call: ir.PureExtern
) -> CExpr:
    """Print a product. The result is a vector, of which a call may want one element only."""
    a, b, c = _registers(out, product, call.args)
    whole = product.sum.with_lanes(product.c.count)
    memory = out.module.memory_dtype(product.sum)
    is_packed = product.sum.bits < REGISTER_BITS
    name = _function_name(call.name)
    function = out.module.define(
        name,
        out.say.matrix_product,
        instruction=out.tables["instruction"][call.name],
        counts=[len(c), len(a), len(b)],
        # Types of the registers of the sum, and the letter of such registers in assembly.
        sum_type=out.module.type_of(_U32 if is_packed else product.sum),
        letter="f" if product.sum.is_float and not is_packed else "r",
        result=out.module.memory_type_of(memory.with_lanes(product.c.count)),
    )
    result = out.call(function, *a, *b, *c)
    return _wanted(out, result, call, whole)


def _registers(
    out: CFunction, product: DotProduct | MatrixProduct, args: Sequence[Expr]
) -> tuple[list[CExpr], list[CExpr], list[CExpr]]:
    """Return the registers of A, of B and of C."""
    first, second = product.counts
    sums = product.c.count if isinstance(product, MatrixProduct) else 1
    ends = (first, first + second, first + second + sums)
    a, b = (
        [_as_register(out, value, product.element) for value in _packed(out, part)]
        for part in (args[:first], args[first : ends[1]])
    )
    return a, b, _packed(out, args[ends[1] : ends[2]])


def _as_register(out: CFunction, value: CExpr, dtype: DType) -> CExpr:
    """Return a factor of 32 bits as the register that holds it."""
    if dtype.bits < REGISTER_BITS:
        return value
    type_ = out.type_of(_U32)
    return out.compound(out.say.reinterpret, type=type_, value=value)


def _packed(out: CFunction, elements: Sequence[Expr]) -> list[CExpr]:
    """Return operands of 32 bits. A float or an integer of 32 bits stays as it is."""
    dtype = elements[0].dtype
    values = [to_memory(out, out.value(item), dtype) for item in elements]
    count = REGISTER_BITS // dtype.bits
    if count == 1:
        return values
    return [
        out.call("packed", *values[k : k + count]) for k in range(0, len(values), count)
    ]


def _matrix_load(out: CFunction, call: ir.PureExtern) -> CExpr:
    row = shared_row(call)
    assert isinstance(row.index, ir.Ramp)
    check_row_alignment(call, row, alignment_of(out, row.buffer, row.index))
    place = element(out, row.buffer, row.index.base)
    name = _function_name(call.name)
    function = out.module.define(
        name,
        out.say.matrix_load,
        instruction=out.tables["instruction"][call.name],
    )
    address = out.compound(out.say.address, place=place)
    return from_memory(out, out.call(function, address), call.dtype)


def _wanted(out: CFunction, result: CExpr, call: ir.PureExtern, whole: DType) -> CExpr:
    """Return all elements of a result, or the one that `call` asks for, under a name."""
    if call.dtype.lanes > 1:
        return from_memory(out, result, call.dtype)
    number = call.args[-1]
    assert isinstance(number, IntImm)
    # Inside a condition of C, some threads might not evaluate it.
    named = out.bind(result, out.module.memory_dtype(whole))
    return from_memory(out, out.lane(named, number.value), call.dtype)


def _function_name(name: str) -> str:
    return name.removeprefix(PREFIX).replace(".", "_")
