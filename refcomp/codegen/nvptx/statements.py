"""Print the statements of kernels that NVIDIA GPUs need spelled in their own way.

The shared buffers without a constant size lie in the launch's dynamic shared memory. For each of
them the kernel has one more parameter: the byte at which the buffer begins.
"""

from __future__ import annotations

from refcomp.codegen.llvm.function import LlvmFunction, StatementPrinters
from refcomp.codegen.llvm.kernel_statements import (
    KERNEL_STATEMENTS,
    declare_dynamic_shared,
    dynamic_shared,
)
from refcomp.codegen.llvm.memory import place_of
from refcomp.codegen.llvm.statements import print_for
from refcomp.ir import stmt as st


def print_dynamic_shared(out: LlvmFunction, body: st.Stmt) -> list[str]:
    """Print where each shared buffer without a constant size begins. Return the parameters."""
    params: list[str] = []
    for allocate in dynamic_shared(body):
        out.source = allocate
        buffer = allocate.buffer
        name = out.name(buffer)
        begin = f"{name}.begin"
        params.append(out.say.begin_param(name=begin))
        text = out.say.place_dynamic(
            result=name,
            name=declare_dynamic_shared(out, buffer),
            offset=begin,
            space=out.module.space_of(buffer),
        )
        out.emit(text)
    return params


def _for(out: LlvmFunction, loop: st.For) -> None:
    note = ""
    if loop.kind == st.UNROLLABLE:
        number = len(out.module.metadata)
        out.module.metadata.append(out.say.loop_to_unroll(number=number))
        note = out.say.loop_note(number=number)
    print_for(out, loop, note)


def _prefetch(out: LlvmFunction, hint: st.Prefetch) -> None:
    # Shared and local memory are in the cache, or replaced by registers.
    if hint.buffer.scope == "global":
        place = place_of(out, hint.buffer, hint.indices[0], 1)
        out.instruction(out.say.prefetch, place=place)


def _barrier(out: LlvmFunction, _barrier: st.Barrier) -> None:
    out.declare("barrier", out.say.declare_barrier)
    out.emit(out.say.barrier())


DEVICE_STATEMENTS: StatementPrinters = {
    **KERNEL_STATEMENTS,
    st.For: _for,
    st.Prefetch: _prefetch,
    st.Barrier: _barrier,
}
