"""PTX of kernels, made of their instructions, and their runs."""

import numpy as np

from refcomp.emulator.limits import Limits
from refcomp.emulator.ptx.run import EmulatedNvidiaGpu

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
_REGISTERS = (
    ".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<20>; .reg .f32 %f<9>; .reg .b64 %rd<20>; "
    ".reg .f64 %fd<9>;"
)


def kernel(body, parameters=".param .u64 data, .param .u32 n", before=""):
    """A file with a kernel `k`, in which %rd1 is the first parameter and %r1 is %tid.x."""
    return f"""{HEADER}{before}
.visible .entry k({parameters})
{{
{_REGISTERS}
ld.param.u64 %rd1, [data];
mov.u32 %r1, %tid.x;
{body}
}}
"""


def run(text, arguments, grid=1, block=32, seconds=60.0, hazards=False, **options):
    """Run the kernel `k` of a file; return the report."""
    gpu = EmulatedNvidiaGpu(size=16 << 20, hazards=hazards)
    limits = Limits(steps=options.pop("steps", 10**7), seconds=seconds)
    extents = [e if isinstance(e, tuple) else (e, 1, 1) for e in (grid, block)]
    return gpu.run(gpu.load(text), "k", *extents, arguments, limits=limits, **options)


def words(count):
    """Zeros as u32."""
    return np.zeros(count, np.uint32)


# %rd2 = the address of element %r1 of the data.
OWN_PLACE = "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd1, %rd2;"


def kinds(report):
    """The kinds of the findings, in order."""
    return [finding.kind for finding in report.findings]
