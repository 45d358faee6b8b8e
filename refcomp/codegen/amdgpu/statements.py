"""Print the statements of kernels that AMD GPUs need spelled in their own way.

The shared buffers without a constant size lie behind the variables in shared memory, one after the
other. The launch says how many bytes they have.
"""

from __future__ import annotations

from refcomp.codegen.llvm.function import LlvmFunction, StatementPrinters
from refcomp.codegen.llvm.kernel_statements import (
    KERNEL_STATEMENTS,
    SHARED_ALIGNMENT,
    declare_dynamic_shared,
    dynamic_shared,
)
from refcomp.codegen.llvm.statements import print_dims
from refcomp.foundation.dtype import I64
from refcomp.ir import stmt as st
from refcomp.ir.buffer import Buffer


def print_dynamic_shared(out: LlvmFunction, body: st.Stmt) -> None:
    """Print where each shared buffer without a constant size begins, in order of allocation."""
    shared = dynamic_shared(body)
    offset = "0"
    for number, allocate in enumerate(shared):
        out.source = allocate
        _print_place(out, allocate.buffer, offset)
        if number + 1 < len(shared):
            offset = _print_end(out, allocate.buffer, offset)


def _print_place(out: LlvmFunction, buffer: Buffer, offset: str) -> None:
    name = declare_dynamic_shared(out, buffer)
    text = out.say.place_dynamic(
        result=out.name(buffer),
        name=name,
        offset=offset,
        space=out.module.space_of(buffer),
    )
    out.emit(text)


def _print_end(out: LlvmFunction, buffer: Buffer, offset: str) -> str:
    """Return the first offset behind `buffer`, which begins at `offset`."""
    dims, product = print_dims(out, buffer)
    out.declare("shared bytes", out.say.declare_shared_bytes)
    size = out.instruction(
        out.say.shared_bytes,
        dims=dims,
        product=product,
        alignment=SHARED_ALIGNMENT,
    )
    return out.binary("Add", I64, offset, size)


def _prefetch(_out: LlvmFunction, _hint: st.Prefetch) -> None:
    """Print nothing: most GPUs lack the instruction, and LLVM does not lower it for them."""


def _barrier(out: LlvmFunction, _barrier: st.Barrier) -> None:
    out.declare("barrier", out.say.declare_barrier)
    out.emit(out.say.barrier())


DEVICE_STATEMENTS: StatementPrinters = {
    **KERNEL_STATEMENTS,
    st.Prefetch: _prefetch,
    st.Barrier: _barrier,
}
