"""Schedules of tensors of several symbolic sizes, of rank 0, and of scans with shifted inputs.

By day, each kind runs 40 schedules in the interpreter, 30 as kernels there, 20 as machine code, and
8 or 4 on each other target. With --nightly, each of these numbers is 25 times as large.
"""

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.properties import targets
from tests.samples import sample_count
from tests.strategies.computes import MORE_SCANS, MORE_SIZES

_KINDS = {"sizes": MORE_SIZES, "scans": MORE_SCANS}
_COUNTS = {"interp": 40, "kernels": 30, "llvm": 20, "opencl": 8, "emulated": 8}
_COUNTS |= {"emulated-gfx1100": 4, "cuda": 4}
_TARGETS = [
    "interp",
    "kernels",
    pytest.param("llvm", marks=pytest.mark.llvm),
    pytest.param("opencl", marks=pytest.mark.pocl),
    pytest.param("emulated", marks=pytest.mark.rocm),
    pytest.param("emulated-gfx1100", marks=pytest.mark.rocm),
    pytest.param("cuda", marks=pytest.mark.gcc),
]


@pytest.mark.filterwarnings("ignore::refcomp.driver.kernel_resources.SlowKernelWarning")
@pytest.mark.parametrize("name", _KINDS)
@pytest.mark.parametrize("target", _TARGETS)
def test_they_agree_with_numpy(target, name):
    count = _COUNTS[target]
    kinds = set()

    @seed(_COUNTS[target])
    @settings(
        max_examples=sample_count(by_day=count, nightly=25 * count),
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(targets.cases_for(target, _KINDS[name]))
    def run(case):
        kinds.add(case[0].kind)
        targets.check_on(target, *case)

    run()
    assert len(kinds) >= len(_KINDS[name]) / 2, kinds
