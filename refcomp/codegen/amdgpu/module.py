"""Print kernels, at the device level, as one file of LLVM IR for AMD GPUs.

Needs that the passes of the target ran: canonical kernels, no bfloat16, and intrinsics that LLVM or
AMD's device library has. Ensures text that LLVM 15 to 22 read. Refuses two kernels of one name, and
unknown names of GPUs.

A kernel takes its parameters packed naturally, and nothing else: pointers of 8 bytes, scalars of
their size, a bool as one byte. Shared buffers without a constant size lie one after the other in
the dynamic shared memory, each at a multiple of `SHARED_ALIGNMENT` bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from refcomp.codegen.accumulator import BODY, Chunk, join_chunks
from refcomp.codegen.amdgpu.expressions import DEVICE_EXPRESSIONS
from refcomp.codegen.amdgpu.names import IsaVersion, isa_version, wavefront_size
from refcomp.codegen.amdgpu.statements import DEVICE_STATEMENTS, print_dynamic_shared
from refcomp.codegen.line_map import LineMap
from refcomp.codegen.llvm.function import LlvmFunction, LlvmModule
from refcomp.codegen.llvm.kernels import (
    constant_block,
    nest_of,
    print_param,
    print_thread_index,
)
from refcomp.codegen.llvm.module import reserve_symbol
from refcomp.codegen.signature import machine_symbol
from refcomp.codegen.spelling import load_spelling
from refcomp.foundation.artifacts import Source
from refcomp.foundation.dtype import F32
from refcomp.foundation.python_limits import deep_recursion, paused_collector
from refcomp.ir.expr import PureExtern
from refcomp.ir.func import PrimFunc
from refcomp.ir.gpu_instructions.records import MatrixProduct
from refcomp.ir.gpu_intrinsics import GPU_INTRINSICS
from refcomp.ir.kernels import varying_variables
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import BLOCK_TAGS

MAX_THREADS = 1024  # of a group, on every AMD GPU
# SIMDs of a compute unit on every AMD GPU. The waves of a group are distributed over them.
SIMDS = 4
_MAX_GROUPS = 2**31 - 1
_NEWEST_TESTED = 22
# LLVM 15 selects instructions for updates of fewer bits, and then has none to encode.
_NARROW_BITS = 32
_MIN_LLVM_WITH_NARROW = 16
# Versions of LLVM: Note [Dot products of wrong bytes].
_TAKE_WRONG_BYTES = range(17, 20)


@deep_recursion()
@paused_collector()
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
    """Return one module with `kernels`.

    Args:
        kernels: at the device level.
        layout: the GPU's data layout, as LLVM spells it.
        mcpu: name of the GPU: gfx90a, ...
        code_object: version of the format that the module will be compiled to: 4 or 5.
        wavefront: lanes of a wave, 32 or 64; 0: as the GPU prefers.
        waves: the minimum number of waves for which a SIMD must have registers; 0: no minimum.
        llvm: major version that will read the text. Types of a few intrinsics changed.
    """
    module = LlvmModule(
        load_spelling("llvm", "llvm_kernels", "amdgpu"), triple="", vector_bits=0
    )
    module.wavefront_size = wavefront_size(mcpu, wavefront)
    module.min_waves = waves
    module.gpu = mcpu
    module.llvm = llvm
    module.min_atomic_bits = _NARROW_BITS if llvm < _MIN_LLVM_WITH_NARROW else 0
    answers = _control_answers(module, isa_version(mcpu), code_object)
    symbols = [reserve_symbol(module, kernel) for kernel in kernels]
    for kernel in kernels:
        _print_kernel(module, kernel)
    say = module.say
    declarations = module.declarations.text
    if module.requires:
        module.globals.add(
            "control", _control_constants, module=module, answers=answers
        )
    variables = module.globals.text
    features = gpu_features(kernels, mcpu, wavefront, llvm)
    text, came_from = join_chunks(
        [
            Chunk(say.header(layout=layout)),
            Chunk(variables + say.gap() if variables else ""),
            *module.functions,
            Chunk(declarations + say.gap() if declarations else ""),
            Chunk(say.attributes(feature=features)),
        ]
    )
    line_map = LineMap(kernels, came_from)
    requires = frozenset(module.requires)
    return Source(text, "llvm", line_map, requires, tuple(symbols))


def gpu_features(
    kernels: Sequence[PrimFunc],
    mcpu: str,
    wavefront: int = 0,
    llvm: int = _NEWEST_TESTED,
) -> str:
    """Return the features of the GPU that differ from its defaults, separated by commas.

    LLVM also needs them for the functions of the device library: a function and its callers must
    agree on the number of lanes. The arguments are those of `print_amdgpu`.
    """
    tables = load_spelling("llvm", "llvm_kernels", "amdgpu").tables
    size = wavefront_size(mcpu, wavefront)
    features: list[str] = []
    if size != wavefront_size(mcpu):
        features.append(tables["wavefront_feature"][str(size)])
    if llvm in _TAKE_WRONG_BYTES:
        nodes = (node for kernel in kernels for node in walk(kernel.body))
        named = {node.name for node in nodes if isinstance(node, PureExtern)}
        # One suffices: Note [Dot products of wrong bytes].
        idle = [off for name, off in tables["dot_feature"].items() if name not in named]
        features += idle[:1]
    return ",".join(features)


# Answers to the device library.


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
    prefix = module.tables["control_name"]["prefix"]
    constant = module.say.control_constant
    return "".join(
        constant(name=prefix + name, type=type_, value=answers[name])
        for name, type_ in module.tables["control"].items()
    )


# Kernels.


def _print_kernel(module: LlvmModule, kernel: PrimFunc) -> None:
    out = LlvmFunction(module, DEVICE_EXPRESSIONS, DEVICE_STATEMENTS)
    out.symbol = machine_symbol(kernel.name)
    nest = nest_of(kernel)
    out.varying = varying_variables(nest)
    params: list[str] = []

    def print_body() -> None:
        params.extend(print_param(out, kernel, param) for param in kernel.params)
        for loop in nest.loops:
            out.source = loop
            limit = _MAX_GROUPS if loop.kind in BLOCK_TAGS else MAX_THREADS
            print_thread_index(out, loop, limit)
        print_dynamic_shared(out, nest.body)
        out.statement(nest.body)

    printed = out.capture(print_body)
    out.source = f"func {kernel.name}"
    block = constant_block(nest)
    threads = f"1,{MAX_THREADS}"  # least and most of a group
    exact = ""
    if block is not None:
        x, y, z = block
        threads = f"{prod(block)},{prod(block)}"
        exact = out.say.exact_block(x=x, y=y, z=z)
    text = out.say.kernel(
        name=out.symbol,
        params=params,
        threads=threads,
        waves=_waves(module, kernel, block),
        block=exact,
        allocas=BODY,
        body=BODY,
    )
    out.emit_around(text, out.entry_block(), printed)
    module.functions.extend(out.chunks)


def _waves(module: LlvmModule, kernel: PrimFunc, block: list[int] | None) -> str:
    """Return the minimum number of waves for which each SIMD must have registers; '' if unknown.

    A whole group must fit on the SIMDs. The module may demand more waves. With two waves, LLVM
    keeps the sums of f32 products of matrices in vector registers. With one, it moves them between
    accumulators and vector registers in each iteration of a loop.
    """
    if block is None:
        return str(module.min_waves or "")
    waves = -(-prod(block) // module.wavefront_size)
    least = 2 if _multiplies_f32_matrices(kernel) else 1
    return str(max(module.min_waves, least, -(-waves // SIMDS)))


def _multiplies_f32_matrices(kernel: PrimFunc) -> bool:
    calls = {node.name for node in walk(kernel.body) if isinstance(node, PureExtern)}
    found = [GPU_INTRINSICS.get(name) for name in calls]
    return any(isinstance(one, MatrixProduct) and one.element == F32 for one in found)


# Note [Dot products of wrong bytes]
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# LLVM 17 to 19 turn sums of products of bytes into dot products. They do so if the GPU has both
# features: dot products of signed bytes, and of unsigned bytes. Such a dot product may take a byte
# from a wrong register (llvm/llvm-project#112941, fixed in LLVM 20). LLVM needs both features for
# this. So one feature is switched off whose dot products no kernel calls. If the kernels of a
# module call both kinds, both features stay on.
