"""Print the parts of kernels that all GPUs share, in LLVM IR: parameters, indices, sums.

A kernel takes its parameters packed naturally: pointers of 8 bytes, scalars of their size, a bool
as one byte, an f16 as two. The remainder of floats is a function of the device library, as LLVM's
own is not exact. Needs the macros of templates/llvm_kernels/.
"""

from __future__ import annotations

from collections.abc import Callable

from refcomp.codegen.llvm.expressions import EXPRESSIONS
from refcomp.codegen.llvm.function import ExpressionPrinters, LlvmFunction
from refcomp.codegen.llvm.maths import call_function
from refcomp.codegen.llvm.memory import READS
from refcomp.codegen.llvm.module import print_scalar_param
from refcomp.foundation.dtype import F32, DType
from refcomp.foundation.errors import Unsupported
from refcomp.ir import expr as ir
from refcomp.ir.buffer import Buffer, Load
from refcomp.ir.constants import as_constant, element_count
from refcomp.ir.expr import Call, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import KernelNest, is_bound, kernel_nest
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import AtomicUpdate, For

_ID = DType("uint", 32)


def nest_of(kernel: PrimFunc) -> KernelNest:
    """Return the loops of `kernel` that are bound to threads, which may be none."""
    body = kernel.body
    if isinstance(body, For) and is_bound(body):
        return kernel_nest(body)
    return KernelNest((), body)


def constant_block(nest: KernelNest) -> list[int] | None:
    """Return the extents of a group, or None if one is not constant."""
    if not nest.loops:
        return [1, 1, 1]
    extents = [as_constant(extent) for extent in nest.block]
    known = [max(1, int(extent)) for extent in extents if extent is not None]
    return known if len(known) == len(extents) else None


def print_param(out: LlvmFunction, kernel: PrimFunc, param: Var | Buffer) -> str:
    """Return the declaration of a parameter. Print its conversion to a value if it needs one."""
    if isinstance(param, Var):
        return print_scalar_param(out, param)
    access = "read"
    if param.name in kernel.outputs:
        is_read = any(
            isinstance(node, Load | AtomicUpdate) and node.buffer is param
            for node in walk(kernel.body)
        )
        access = "update" if is_read else "write"
    return out.say.buffer_param(
        name=out.name(param),
        space=out.module.space_of(param),
        access=out.tables["access"][access],
        alignment=max(param.alignment, param.dtype.bytes),
        known=(element_count(param.shape) or 0) * param.dtype.bytes,
    )


def print_thread_index(out: LlvmFunction, loop: For, limit: int) -> None:
    """Print the index of this thread, or of its group, as the variable of `loop`.

    On this GPU the index is always less than `limit`.
    """
    function = out.tables["thread_index"][loop.kind]
    dtype = loop.var.dtype
    out.declare(function, out.say.declare_thread_index, function=function)
    name = out.name(loop.var)
    result = name if dtype.bits == _ID.bits else f"{name}.id"
    extent = as_constant(loop.extent)
    if extent is not None:
        limit = max(1, min(limit, int(extent)))
    out.emit(out.say.thread_index(result=result, function=function, limit=limit))
    if dtype.bits != _ID.bits:
        key = "uint_widen" if dtype.bits > _ID.bits else "int_narrow"
        text = out.say.convert(
            result=name,
            opcode=out.tables["cast"][key],
            source=out.type_of(_ID),
            value=result,
            target=out.type_of(dtype),
        )
        out.emit(text)


# Subgroups.


def subgroup_width(out: LlvmFunction, call: Call) -> int:
    """Return the threads of a subgroup of a collective call.

    Raise Unsupported if they do not fit into a wave of the GPU.
    """
    width = int(as_constant(call.args[-1]) or 0)
    if width > out.module.wavefront_size:
        raise Unsupported(
            f"a subgroup of {width} threads does not fit into a wave",
            why=f"a wave of this GPU has {out.module.wavefront_size} lanes",
            remedy="schedule for narrower subgroups",
        )
    return width


def print_subgroup_sum(
    out: LlvmFunction,
    value: str,
    width: int,
    dtype: DType,
    read: Callable[[str, int], str],
) -> str:
    """Return the sum, which is the same in all threads.

    Each thread adds the same pairs, perhaps with the two operands exchanged. `read(value, mask)`
    prints the read of the value of the lane whose number differs by `mask`.
    """
    mask = 1
    while mask < width:
        mine = Var("mine", dtype)
        others = Var("others", dtype)
        out.names[mine] = value
        out.names[others] = read(value, mask)
        value = out.value(ir.Add(mine, others))
        mask *= 2
    return value


# Expressions.


def _mod(out: LlvmFunction, expr: ir.Mod) -> str:
    if is_half(expr.dtype):
        # Exact: the remainder has no more digits than the operands.
        wide = F32.with_lanes(expr.dtype.lanes)
        remainder = ir.Mod(ir.Cast(wide, expr.a), ir.Cast(wide, expr.b))
        return out.value(ir.Cast(expr.dtype, remainder))
    if expr.dtype.is_float:
        operands = [out.value(expr.a), out.value(expr.b)]
        return call_function(out, "fmod", expr.dtype, operands)
    return EXPRESSIONS[ir.Mod](out, expr)


def is_half(dtype: DType) -> bool:
    """Return True for a float of 16 bits."""
    return dtype.is_float and dtype.bits == 16


# Of every GPU.
KERNEL_EXPRESSIONS: ExpressionPrinters = {**EXPRESSIONS, **READS, ir.Mod: _mod}
