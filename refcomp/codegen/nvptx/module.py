"""Print kernels, at the device level, as one file of LLVM IR for NVIDIA GPUs.

Needs that the passes of the target ran: canonical kernels, no bfloat16, and intrinsics that LLVM or
libdevice has. Ensures text that LLVM 15 to 19 read. Refuses two kernels of one name, names
that mean something in PTX or libdevice, and unknown names of architectures.

A kernel takes its parameters in order: pointers of 8 bytes, scalars of their size, a bool as one
byte, an f16 as two. Shared buffers without a constant size lie in the dynamic shared memory. For
each of them, in order of allocation, the kernel has one more parameter after its own. It is the
byte offset of the buffer, an unsigned integer of 64 bits.

Results are right if the code is made without contraction, and with IEEE divisions and square roots:
`toolchains/nvptx.toml` has the options of llc.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.codegen.accumulator import BODY, Chunk, join_chunks
from refcomp.codegen.line_map import LineMap
from refcomp.codegen.llvm.function import (
    ExpressionPrinters,
    LlvmFunction,
    LlvmModule,
)
from refcomp.codegen.llvm.kernels import (
    KERNEL_EXPRESSIONS,
    constant_block,
    nest_of,
    print_param,
    print_thread_index,
)
from refcomp.codegen.llvm.module import reserve_symbol
from refcomp.codegen.nvptx.named_instructions import NAMED_INSTRUCTIONS
from refcomp.codegen.nvptx.names import check_arch
from refcomp.codegen.nvptx.statements import DEVICE_STATEMENTS, print_dynamic_shared
from refcomp.codegen.nvptx.subgroups import SUBGROUP_CALLS, WARP
from refcomp.codegen.signature import machine_symbol
from refcomp.codegen.spelling import load_spelling
from refcomp.foundation.artifacts import Source
from refcomp.foundation.errors import UserError
from refcomp.foundation.python_limits import deep_recursion, paused_collector
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import varying_variables

# One more than the greatest index, on every GPU. Source: CUDA C++ Programming Guide, table of
# technical specifications per compute capability.
_LIMITS = {
    "blockIdx.x": 2**31 - 1,
    "blockIdx.y": 65535,
    "blockIdx.z": 65535,
    "threadIdx.x": 1024,
    "threadIdx.y": 1024,
    "threadIdx.z": 64,
}
_EXPRESSIONS: ExpressionPrinters = {
    **KERNEL_EXPRESSIONS,
    **SUBGROUP_CALLS,
    **NAMED_INSTRUCTIONS,
}


@deep_recursion()
@paused_collector()
def print_nvptx(kernels: Sequence[PrimFunc], *, layout: str, arch: str) -> Source:
    """Return one module with `kernels`.

    Args:
        kernels: at the device level.
        layout: the GPU's data layout, as LLVM spells it.
        arch: name of the architecture: sm_75, ...
    """
    check_arch(arch)
    spelling = load_spelling("llvm", "llvm_kernels", "nvptx")
    module = LlvmModule(spelling, triple="", vector_bits=0)
    module.wavefront_size = WARP
    module.gpu = arch
    symbols = [_symbol(module, kernel) for kernel in kernels]
    for kernel in kernels:
        _print_kernel(module, kernel)
    say = module.say
    declarations = module.declarations.text
    variables = module.globals.text
    text, came_from = join_chunks(
        [
            Chunk(say.header(layout=layout)),
            Chunk(variables + say.gap() if variables else ""),
            *module.functions,
            Chunk(declarations + say.gap() if declarations else ""),
            Chunk(say.attributes()),
            Chunk(_metadata(module, kernels)),
        ]
    )
    line_map = LineMap(kernels, came_from)
    requires = frozenset(module.requires)
    return Source(text, "llvm", line_map, requires, tuple(symbols))


def _symbol(module: LlvmModule, kernel: PrimFunc) -> str:
    """Return the name of `kernel` in the module. Raise UserError if something else has it."""
    symbol = reserve_symbol(module, kernel)
    taken = module.tables["taken"]
    if symbol in taken["names"] or symbol.startswith(taken["beginning"]):
        raise UserError(
            f"no kernel can be named {kernel.name!r}",
            why="the name means something in PTX, or may mean something in libdevice",
            remedy="give the function another name",
        )
    return symbol


def _metadata(module: LlvmModule, kernels: Sequence[PrimFunc]) -> str:
    """Return all metadata, to which the launch bounds are added."""
    nodes = module.metadata
    annotations: list[int] = []
    for kernel in kernels:
        block = constant_block(nest_of(kernel))
        if block is None:
            continue
        number = len(nodes)
        annotations.append(number)
        symbol = machine_symbol(kernel.name)
        x, y, z = block
        bound = module.say.launch_bound(number=number, name=symbol, x=x, y=y, z=z)
        nodes.append(bound)
    return module.say.metadata(nodes=nodes, annotations=annotations) if nodes else ""


def _print_kernel(module: LlvmModule, kernel: PrimFunc) -> None:
    out = LlvmFunction(module, _EXPRESSIONS, DEVICE_STATEMENTS)
    out.symbol = machine_symbol(kernel.name)
    nest = nest_of(kernel)
    out.varying = varying_variables(nest)
    params: list[str] = []

    def print_body() -> None:
        params.extend(print_param(out, kernel, param) for param in kernel.params)
        for loop in nest.loops:
            out.source = loop
            print_thread_index(out, loop, _LIMITS[loop.kind])
        params.extend(print_dynamic_shared(out, nest.body))
        out.statement(nest.body)

    printed = out.capture(print_body)
    out.source = f"func {kernel.name}"
    text = out.say.kernel(name=out.symbol, params=params, allocas=BODY, body=BODY)
    out.emit_around(text, out.entry_block(), printed)
    module.functions.extend(out.chunks)
