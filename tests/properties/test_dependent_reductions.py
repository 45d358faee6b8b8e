"""Reductions whose ranges depend on axes or elements agree with numpy, however they are scheduled.

By day 14 random schedules run on each target, with --nightly 2,000; on emulated GPUs and as the
text for NVIDIA GPUs, 6 by day and 300 with --nightly.
"""

from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from refcomp.foundation.errors import Unsupported
from tests.properties.targets import cases_for, check_on, is_refused
from tests.samples import sample_count
from tests.strategies.computes import DEPENDENT_REDUCTIONS

_EXAMPLES = sample_count(by_day=14, nightly=2000)
_FEW = sample_count(by_day=6, nightly=300)


def _hold(target, number, examples, record_property):
    kinds, refused = Counter(), 0

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(cases_for(target, DEPENDENT_REDUCTIONS))
    def run(case):
        nonlocal refused
        computation, schedule = case
        kinds[computation.kind] += 1
        try:
            check_on(target, computation, schedule)
        except Unsupported as error:
            if not is_refused(computation, error):
                raise
            refused += 1

    run()
    record_property("summary", f"{target}: {dict(kinds)}, {refused} refused")
    assert len(kinds) >= 3, str(kinds)
    assert refused <= sum(kinds.values()) / 3


_TARGETS = [
    ("interp", _EXAMPLES),
    ("kernels", _EXAMPLES),
    pytest.param("llvm", _EXAMPLES, marks=pytest.mark.llvm),
    pytest.param("opencl", _EXAMPLES, marks=pytest.mark.pocl),
    pytest.param("emulated", _FEW, marks=pytest.mark.rocm),
    pytest.param("emulated-gfx1100", _FEW, marks=pytest.mark.rocm),
    pytest.param("cuda", _FEW, marks=pytest.mark.gcc),
]


@pytest.mark.filterwarnings("ignore::refcomp.driver.kernel_resources.SlowKernelWarning")
@pytest.mark.parametrize(("target", "examples"), _TARGETS)
def test_random_schedules_agree_with_numpy(target, examples, record_property):
    _hold(target, len(target), examples, record_property)
