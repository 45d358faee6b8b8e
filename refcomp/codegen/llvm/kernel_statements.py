"""Print the statements of kernels that all GPUs share, in LLVM IR: local arrays, atomic updates.

A local buffer is a stack array. A shared buffer of constant size is a variable of the file in
shared memory; a GPU's own printer places the others. An atomic update without an instruction is
tried until no other thread writes in between.
"""

from __future__ import annotations

from collections.abc import Callable

from refcomp.codegen.accumulator import BODY
from refcomp.codegen.llvm.function import LlvmFunction, StatementPrinters
from refcomp.codegen.llvm.memory import MIN_ALIGNMENT, AccessPlace, place_of
from refcomp.codegen.llvm.statements import STATEMENTS
from refcomp.foundation.dtype import DType
from refcomp.foundation.names import to_identifier
from refcomp.ir import expr as ir
from refcomp.ir import stmt as st
from refcomp.ir.buffer import Buffer
from refcomp.ir.constants import element_count
from refcomp.ir.expr import Expr
from refcomp.ir.rewrite import walk

SHARED_ALIGNMENT = MIN_ALIGNMENT  # bytes, of every shared array
_LOCAL_ALIGNMENT = MIN_ALIGNMENT
_UPDATES: dict[str, Callable[[Expr, Expr], Expr]] = {
    "add": ir.Add,
    "min": ir.Min,
    "max": ir.Max,
    "and": ir.BitAnd,
    "or": ir.BitOr,
    "xor": ir.BitXor,
}


# Memory.


def dynamic_shared(body: st.Stmt) -> list[st.Allocate]:
    """Return the allocations of shared buffers without a constant size, in order."""
    allocates = [item for item in walk(body) if isinstance(item, st.Allocate)]
    return [item for item in allocates if _is_dynamic(item)]


def declare_dynamic_shared(out: LlvmFunction, buffer: Buffer) -> str:
    """Declare the dynamic shared memory once, and return its name."""
    name = str(out.tables["shared"]["dynamic"])
    out.module.globals.add(
        "dynamic",
        out.say.dynamic_shared,
        name=name,
        alignment=SHARED_ALIGNMENT,
        space=out.module.space_of(buffer),
    )
    return name


def _is_dynamic(allocate: st.Allocate) -> bool:
    buffer = allocate.buffer
    return buffer.scope == "shared" and element_count(buffer.shape) is None


def _allocate(out: LlvmFunction, allocate: st.Allocate) -> None:
    buffer = allocate.buffer
    if not _is_dynamic(allocate):
        count = max(1, element_count(buffer.shape) or 0)
        if buffer.scope == "shared":
            _print_shared(out, buffer, count)
        else:
            _print_local(out, buffer, count)
    out.statement(allocate.body)


def _print_shared(out: LlvmFunction, buffer: Buffer, count: int) -> None:
    wish = f"{out.symbol}.{to_identifier(buffer.name)}"
    name = out.say.global_name(name=out.module.take_symbol(wish))
    out.names[buffer] = name
    out.module.globals.add(
        name,
        out.say.shared_array,
        name=name,
        count=count,
        element=out.module.memory_type_of(buffer.dtype),
        alignment=max(SHARED_ALIGNMENT, buffer.alignment),
        space=out.module.space_of(buffer),
    )


def _print_local(out: LlvmFunction, buffer: Buffer, count: int) -> None:
    array = out.say.stack_array(
        element=out.module.memory_type_of(buffer.dtype),
        space=out.module.space_of(buffer),
        name=out.name(buffer),
        count=count,
        alignment=_LOCAL_ALIGNMENT,
    )
    out.stack.append(array)


# Threads together.


def _atomic_update(out: LlvmFunction, update: st.AtomicUpdate) -> None:
    value = out.value(update.value)
    operation = _operation(out, update)
    place = place_of(out, update.buffer, update.indices[0], 1)
    if not operation:
        _print_attempts(out, update, place, value)
        return
    out.instruction(
        out.say.atomic,
        operation=operation,
        place=place,
        value=value,
        scope=out.tables["atomic_scope"][update.buffer.scope],
    )


def _operation(out: LlvmFunction, update: st.AtomicUpdate) -> str:
    """Return the operation of `atomicrmw`, or '' if LLVM has no instruction for the update."""
    dtype = update.buffer.dtype
    if dtype.bits < out.module.min_atomic_bits:
        return ""
    names: dict[str, str] = out.tables["atomic"]
    by_kind = names.get(f"{update.operator}.{dtype.kind}", "")
    return names.get(f"{update.operator}.{dtype}", by_kind)


def _print_attempts(
    out: LlvmFunction,
    update: st.AtomicUpdate,
    place: AccessPlace,
    value: str,
) -> None:
    """Print a loop that compares and exchanges until no other thread came between."""
    dtype = update.buffer.dtype
    number = out.number()
    result = out.fresh()
    old = ir.Var("old", dtype)
    new = ir.Var("value", dtype)
    out.names[old] = out.fresh()
    out.names[new] = value
    updated: list[str] = []
    expr = _UPDATES[update.operator](old, new)
    body = out.capture(lambda: updated.append(out.value(expr)))
    text = out.say.atomic_attempts(
        result=result,
        id=number,
        place=place,
        bits=out.type_of(DType("uint", dtype.bits)),
        old=out.names[old],
        updated=updated[0],
        scope=out.tables["atomic_scope"][update.buffer.scope],
        body=BODY,
    )
    out.emit_around(text, body)


# Of every GPU.
KERNEL_STATEMENTS: StatementPrinters = {
    **STATEMENTS,
    st.Allocate: _allocate,
    st.AtomicUpdate: _atomic_update,
}
