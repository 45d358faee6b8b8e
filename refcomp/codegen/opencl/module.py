"""Print kernels of the loop IR, at the device level, as one file of OpenCL C 1.2.

Requires functions after the passes of an OpenCL target: vectors have 2, 4, 8 or 16 lanes, bfloat16
is lowered, and the table `maths` has each intrinsic. Refuses dtypes and operations that need an
extension which the device does not offer.

Kernels are as `c_family/kernels.py` says. After a kernel's parameters, a pointer follows for each
shared buffer of a size that is not constant, in order of allocation.

f32 divisions and square roots round correctly if the program is built so.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from refcomp.codegen.accumulator import Chunk, join_chunks
from refcomp.codegen.c_family.function import CModule
from refcomp.codegen.c_family.kernels import print_kernels
from refcomp.codegen.line_map import LineMap
from refcomp.codegen.spelling import load_spelling
from refcomp.foundation.artifacts import Source
from refcomp.foundation.python_limits import deep_recursion, paused_collector
from refcomp.ir.func import PrimFunc


@deep_recursion()
@paused_collector()
def print_opencl(kernels: Sequence[PrimFunc], *, extensions: Collection[str]) -> Source:
    """Return one file with `kernels`.

    Args:
        kernels: at the device level.
        extensions: names of the extensions that the device offers: `cl_khr_fp64`, ...
    """
    module = CModule(load_spelling("c_family", "opencl"), extensions)
    print_kernels(module, kernels, "OpenCL C")
    header = module.say.header(extensions=list(module.enabled_extensions))
    text, came_from = join_chunks(
        [Chunk(header), Chunk(module.prelude.text), *module.functions]
    )
    return Source(text, "opencl", LineMap(kernels, came_from))
