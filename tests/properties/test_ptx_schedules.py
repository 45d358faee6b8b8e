"""Kernels of random GPU schedules compute what numpy does as PTX on an emulated NVIDIA GPU.

They go through the whole compiler, the runtime and its driver. Bits that nothing wrote, accesses
out of bounds, barriers that diverge and data races are failures, too. By day 68 run, 800 with
--nightly.
"""

import pytest

import refcomp
from refcomp.codegen.signature import signature_of
from refcomp.driver.compile import compile_functions
from refcomp.foundation.artifacts import Binary
from refcomp.ir.constants import as_int
from refcomp.ir.kernels import kernel_nest, kernels_in
from refcomp.runtime.programs.program import DeviceCode, ProgramFunction
from tests.codegen.amdgpu.kernels import signatures
from tests.properties.differential import agree, expected
from tests.properties.emulated_schedules import draw_cases, draw_more_cases
from tests.properties.histogram import Histogram
from tests.samples import sample_count

_EACH = sample_count(by_day=34, nightly=400)
_TARGET = "nvptx -code=ptx -arch=sm_80"


@pytest.mark.llvm
@pytest.mark.filterwarnings("ignore::refcomp.driver.kernel_resources.SlowKernelWarning")
@pytest.mark.parametrize("draw", [draw_cases, draw_more_cases])
def test_random_schedules_compute_as_ptx(draw, record_property):
    drawn = [one for one in draw(_EACH, 7001) if _fits(one)]
    device = refcomp.cuda_emulator("sm_80", hazards=True)
    compiled = compile_functions([one.func for one in drawn], _TARGET)
    assert isinstance(compiled.code.code, Binary)
    kernels = [kernel for program in compiled.made for kernel in program.kernels]
    code = DeviceCode(compiled.code.code, signatures(kernels), device)
    histogram = Histogram()
    for one, program in zip(drawn, compiled.made, strict=True):
        arrays = [refcomp.array(values, device) for values in one.case.arrays()]
        ProgramFunction(signature_of(one.func), program.host, code)(*arrays)
        results = [array.asnumpy() for array in arrays]
        agree(results, expected(one.case.computation), f"{one.func}\n{one.func.name}")
        histogram.add(one.case.computation.kind, one.case.schedule, set())
    record_property("summary", f"as PTX: {histogram}")
    assert len(drawn) >= 0.8 * _EACH


def _fits(one):
    """Return True unless a kernel has more threads along z than NVIDIA GPUs take."""
    nests = map(kernel_nest, kernels_in(one.func.body))
    return all(as_int(nest.block[2]) is None or as_int(nest.block[2]) <= 64 for nest in nests)
