"""Print kernels of the loop IR, at the device level, as one file of CUDA C++17.

Requires functions after the passes of a CUDA target: vectors have 2, 4, 8 or 16 lanes, bfloat16 is
lowered, and the table `maths` has each intrinsic. An operation on f16 is an instruction that rounds
once and is
never contracted, where the GPU has one. Quotients and roots are computed in f32: Note [f16 in f32]
of `c_family/half.py`.

Kernels are as `c_family/kernels.py` says. Shared buffers whose size is not constant lie in the
launch's dynamic shared memory. For each of them, in order of allocation, the kernel has one more
parameter after its own. It is the byte offset of the buffer, an unsigned integer of 64 bits.

Results are right if the file is compiled without contraction (`-fmad=false`), and with IEEE
divisions and square roots (nvcc's default).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from refcomp.codegen.accumulator import Chunk, join_chunks
from refcomp.codegen.c_family.function import CModule
from refcomp.codegen.c_family.kernels import print_kernels
from refcomp.codegen.cuda.async_copies import copy_printers
from refcomp.codegen.cuda.named_instructions import instruction_printers
from refcomp.codegen.line_map import LineMap
from refcomp.codegen.spelling import load_spelling
from refcomp.foundation.artifacts import Source
from refcomp.foundation.python_limits import deep_recursion, paused_collector
from refcomp.ir.func import PrimFunc

# Features of all GPUs, values of the table `extension`.
_FEATURES = frozenset({"all"})
# The oldest architecture that nvcc 13 compiles for.
OLDEST_ARCH = "sm_75"
_WORD = re.compile(r"\w+")


@deep_recursion()
@paused_collector()
def print_cuda(kernels: Sequence[PrimFunc], arch: str = OLDEST_ARCH) -> Source:
    """Return one file with `kernels`, which are at the device level, for GPUs from `arch` on."""
    module = CModule(load_spelling("c_family", "cuda"), _FEATURES)
    print_kernels(
        module,
        kernels,
        "CUDA C++",
        instruction_printers(arch),
        copy_printers(kernels, arch),
    )
    body, _ = join_chunks(module.functions)
    definitions = _definitions(module, module.prelude.text + body)
    header = module.say.header(definitions=definitions)
    text, came_from = join_chunks(
        [Chunk(header), Chunk(module.prelude.text), *module.functions]
    )
    return Source(text, "cuda", LineMap(kernels, came_from))


def _definitions(module: CModule, text: str) -> list[str]:
    """Return the definitions that `text` needs, each after those that it needs itself."""
    words = set(_WORD.findall(text))
    definitions: list[str] = []
    # A definition uses only those before it.
    for name, triggers in reversed(module.tables["definition"].items()):
        if words.isdisjoint(triggers):
            continue
        definition = getattr(module.say, f"define_{name}")(vectors="vec" in words)
        words.update(_WORD.findall(definition))
        definitions.append(definition)
    return definitions[::-1]
