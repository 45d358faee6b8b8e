"""Kernels of random GPU schedules compute what numpy does as PTX on an emulated NVIDIA GPU.

They go through the whole compiler, the runtime and its driver: as PTX of LLVM (`nvptx`) and of nvcc
(`cuda`), all of them in one file. Bits that nothing wrote, accesses out of bounds, barriers that
diverge and data races are failures, too. By day 200 run as either, 800 with --nightly.
"""

import pytest

from tests.properties.device_differential import check_ptx_together, fits_nvidia
from tests.properties.emulated_schedules import draw_cases, draw_more_cases
from tests.properties.histogram import Histogram
from tests.samples import sample_count

_EACH = sample_count(by_day=100, nightly=400)
_DRAWN = 4 * _EACH // 3  # some have too many threads for NVIDIA GPUs


@pytest.mark.llvm
@pytest.mark.nvcc
@pytest.mark.filterwarnings("ignore::refcomp.driver.kernel_resources.SlowKernelWarning")
@pytest.mark.parametrize("draw", [draw_cases, draw_more_cases])
def test_random_schedules_compute_as_ptx(draw, record_property):
    drawn = [one for one in draw(_DRAWN, 7001) if fits_nvidia(one.func)][:_EACH]
    assert len(drawn) == _EACH
    for target in ("nvptx", "cuda"):
        check_ptx_together([(one.func, one.case.computation) for one in drawn], target)
    histogram = Histogram()
    for one in drawn:
        histogram.add(one.case.computation.kind, one.case.schedule, set())
    record_property("summary", f"{len(drawn)} as PTX of nvptx and of cuda: {histogram}")
