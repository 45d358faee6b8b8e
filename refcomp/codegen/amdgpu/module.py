"""Prints kernels, at the device level, as one file of LLVM IR for AMD GPUs.

Needs that the passes of the target ran: canonical kernels, no bfloat16, intrinsics that LLVM or
AMD's device library has. Ensures text that LLVM 15 to 22 read, whose kernels take their parameters
packed naturally and nothing else: pointers of 8 bytes, scalars of their size, a bool as one byte.
Shared buffers without a constant size lie one after the other in the dynamic shared memory, each
at a multiple of `SHARED_ALIGNMENT` bytes. Refuses two kernels of one name, and names of GPUs that
are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from refcomp.codegen.accumulator import BODY, Chunk, join_chunks
from refcomp.codegen.amdgpu.expressions import DEVICE_EXPRESSIONS
from refcomp.codegen.amdgpu.names import IsaVersion, isa_version, wavefront_size
from refcomp.codegen.amdgpu.statements import (
    DEVICE_STATEMENTS,
    print_dynamic_shared,
)
from refcomp.codegen.line_map import LineMap
from refcomp.codegen.llvm.function import LlvmFunction, LlvmModule
from refcomp.codegen.llvm.module import print_scalar_param, reserve_symbol
from refcomp.codegen.signature import machine_symbol
from refcomp.codegen.spelling import load_spelling
from refcomp.foundation.artifacts import Source
from refcomp.foundation.dtype import DType
from refcomp.foundation.python_limits import deep_recursion
from refcomp.ir.buffer import Buffer, Load
from refcomp.ir.constants import as_constant, element_count
from refcomp.ir.expr import PureExtern, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import KernelNest, is_bound, kernel_nest, varying_variables
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import BLOCK_TAGS, AtomicUpdate, For

MOST_THREADS = 1024  # of a group, on every AMD GPU
SIMDS = 4  # that share out the waves of a group, on every AMD GPU
_MOST_GROUPS = 2**31 - 1
_ID = DType("uint", 32)
_NEWEST_TESTED = 22
_TAKE_WRONG_BYTES = range(
    17, 20
)  # versions of LLVM: Note [Dot products of wrong bytes]


@deep_recursion()
def print_amdgpu(
    kernels: Sequence[PrimFunc],
    *,
    layout: str,
    mcpu: str,
    code_object: int,
    wavefront: int = 0,
    waves: int = 0,
    llvm: int = _NEWEST_TESTED,
) -> Source:
    """One module with `kernels`, for the GPU `mcpu` (gfx90a) with the data layout `layout`.

    `code_object` is the version of the format that the module will be compiled to (4, 5).
    `wavefront` is 32 or 64, how many lanes a wave shall have where the GPU leaves the choice, and
    `waves` how many waves a SIMD shall be able to hold at least, at the cost of registers.
    `llvm` is the major version that will read the text: types of a few intrinsics changed.
    """
    module = LlvmModule(load_spelling("llvm", "amdgpu"), triple="", vector_bits=0)
    module.wavefront_size = wavefront_size(mcpu, wavefront)
    module.least_waves, module.gpu, module.llvm = waves, mcpu, llvm
    answers = _control_answers(module, isa_version(mcpu), code_object)
    symbols = [reserve_symbol(module, kernel) for kernel in kernels]
    for kernel in kernels:
        _print_kernel(module, kernel)
    say, declarations = module.say, module.declarations.text
    if module.requires:
        module.globals.add("control", lambda: _control_constants(module, answers))
    variables = module.globals.text
    text, came_from = join_chunks(
        [
            Chunk(say.header(layout)),
            Chunk(variables + say.gap() if variables else ""),
            *module.functions,
            Chunk(declarations + say.gap() if declarations else ""),
            Chunk(say.attributes(gpu_features(kernels, mcpu, wavefront, llvm))),
        ]
    )
    line_map, requires = LineMap(kernels, came_from), frozenset(module.requires)
    return Source(text, "llvm", line_map, requires, tuple(symbols))


# What the device library asks.


def gpu_features(
    kernels: Sequence[PrimFunc],
    mcpu: str,
    wavefront: int = 0,
    llvm: int = _NEWEST_TESTED,
) -> str:
    """What the GPU is told to do otherwise than it likes best, if anything. LLVM must be told of it
    for functions of the device library, too: what calls them has waves of that many lanes."""
    tables = load_spelling("llvm", "amdgpu").tables
    size, features = wavefront_size(mcpu, wavefront), list[str]()
    if size != wavefront_size(mcpu):
        features.append(tables["wavefront_feature"][str(size)])
    if llvm in _TAKE_WRONG_BYTES:
        features += _less_for_dot_products(kernels, tables["dot_feature"])
    return ",".join(features)


def _less_for_dot_products(
    kernels: Sequence[PrimFunc], needed_by: dict[str, str]
) -> list[str]:
    """What keeps LLVM from making dot products by itself: Note [Dot products of wrong bytes]."""
    nodes = (node for kernel in kernels for node in walk(kernel.body))
    asked = {node.name for node in nodes if isinstance(node, PureExtern)}
    idle = [features for name, features in needed_by.items() if name not in asked]
    return idle[:1]


def _control_answers(
    module: LlvmModule, isa: IsaVersion, code_object: int
) -> dict[str, int]:
    return {
        **module.tables["control_answer"],
        "ISA_version": isa.major * 1000 + isa.minor * 100 + isa.stepping,
        "ABI_version": code_object * 100,
        "wavefrontsize64": int(module.wavefront_size == 64),
    }


def _control_constants(module: LlvmModule, answers: dict[str, int]) -> str:
    prefix: str = module.tables["control_name"]["prefix"]
    constant = module.say.control_constant
    types = module.tables["control"].items()
    return "".join(
        constant(prefix + name, type_, answers[name]) for name, type_ in types
    )


# Kernels.


def _print_kernel(module: LlvmModule, kernel: PrimFunc) -> None:
    out = LlvmFunction(module, DEVICE_EXPRESSIONS, DEVICE_STATEMENTS)
    out.symbol = machine_symbol(kernel.name)
    body = kernel.body
    nest = (
        kernel_nest(body)
        if isinstance(body, For) and is_bound(body)
        else KernelNest((), body)
    )
    out.varying = varying_variables(nest)
    params: list[str] = []

    def print_body() -> None:
        params.extend(_print_param(out, kernel, param) for param in kernel.params)
        for loop in nest.loops:
            out.source = loop
            _print_thread_index(out, loop)
        print_dynamic_shared(out, nest.body)
        out.statement(nest.body)

    printed = out.capture(print_body)
    out.source = f"func {kernel.name}"
    threads, exact = _threads(out, nest)
    waves = _waves(out, nest)
    text = out.say.kernel(out.symbol, params, threads, waves, exact, BODY, BODY)
    out.emit_around(text, out.entry_block(), printed)
    module.functions.extend(out.chunks)


def _print_param(out: LlvmFunction, kernel: PrimFunc, param: Var | Buffer) -> str:
    if isinstance(param, Var):
        return print_scalar_param(out, param)
    module = out.module
    access = module.tables["access"][_access(kernel, param)]
    alignment = max(param.alignment, param.dtype.bytes)
    known = (element_count(param.shape) or 0) * param.dtype.bytes
    place = out.name(param), module.space_of(param)
    text: str = out.say.buffer_param(*place, access, alignment, known)
    return text


def _access(kernel: PrimFunc, buffer: Buffer) -> str:
    """What the kernel does to an argument: read, write or update."""
    if buffer.name not in kernel.outputs:
        return "read"
    is_read = any(
        isinstance(node, Load | AtomicUpdate) and node.buffer is buffer
        for node in walk(kernel.body)
    )
    return "update" if is_read else "write"


def _print_thread_index(out: LlvmFunction, loop: For) -> None:
    function, dtype = out.module.tables["thread_index"][loop.kind], loop.var.dtype
    declare = out.say.declare_thread_index
    out.module.declarations.add(function, lambda: declare(function))
    name = out.name(loop.var)
    result = name if dtype.bits == _ID.bits else f"{name}.id"
    out.emit(out.say.thread_index(result, function, _most(loop)))
    if dtype.bits != _ID.bits:
        key = "uint_widen" if dtype.bits > _ID.bits else "int_narrow"
        opcode, types = out.module.tables["cast"][key], out.module.type_of
        out.emit(out.say.convert(name, opcode, types(_ID), result, types(dtype)))


def _most(loop: For) -> int:
    """What the index of a thread or group is certainly less than."""
    most, extent = (
        _MOST_GROUPS if loop.kind in BLOCK_TAGS else MOST_THREADS,
        loop.extent,
    )
    known = as_constant(extent)
    return most if known is None else max(1, min(most, int(known)))


def _waves(out: LlvmFunction, nest: KernelNest) -> str:
    """How many waves of a group each SIMD holds at least: what registers must be left for; ''
    where the group's size is not known. The module's wish may be for more."""
    known = [as_constant(extent) for extent in nest.block] if nest.loops else [1]
    if None in known:
        return str(out.module.least_waves or "")
    waves = -(
        -prod(max(1, int(extent or 0)) for extent in known) // out.module.wavefront_size
    )
    return str(max(out.module.least_waves, -(-waves // SIMDS)))


def _threads(out: LlvmFunction, nest: KernelNest) -> tuple[str, str]:
    """How many threads a group has, as LLVM is told: least and most, and how they lie."""
    if not nest.loops:
        return "1,1", out.say.exact_block(1, 1, 1)
    block = [as_constant(extent) for extent in nest.block]
    known = [max(1, int(extent)) for extent in block if extent is not None]
    if len(known) < len(block):
        return f"1,{MOST_THREADS}", ""
    return f"{prod(known)},{prod(known)}", out.say.exact_block(*known)


# Note [Dot products of wrong bytes]
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# LLVM 17 to 19 make dot products out of sums of products of bytes, wherever the GPU has both those
# of signed and those of unsigned bytes, and may take a byte of another register than the one that
# it lies in (llvm/llvm-project#112941, mended in 20). Without one of the two they leave it; so the
# feature goes whose products no kernel names. Where kernels of a module name both, both stay.
