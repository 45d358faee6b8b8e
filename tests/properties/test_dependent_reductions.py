"""Reductions whose ranges depend on axes or elements agree with numpy, however they are scheduled.

By day 14 random schedules run on each target, with --nightly 2,000. `scripts/fuzz_schedules` runs
them on the other targets.
"""

from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from refcomp.foundation.errors import Unsupported
from tests.properties.targets import cases_for, check_on
from tests.samples import sample_count
from tests.strategies.computes import DEPENDENT_REDUCTIONS

_EXAMPLES = sample_count(by_day=14, nightly=2000)
# A kernel whose loops, which threads run differently often, would need a barrier.
_UNEVEN = "threads run it a different number of times"


def _hold(target, number, record_property):
    kinds, refused = Counter(), 0

    @seed(number)
    @settings(
        max_examples=_EXAMPLES,
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
            if _UNEVEN not in str(error):
                raise
            refused += 1

    run()
    record_property("summary", f"{target}: {dict(kinds)}, {refused} refused")
    assert len(kinds) >= 3, str(kinds)
    assert refused <= sum(kinds.values()) / 3


_TARGETS = [
    "interp",
    "kernels",
    pytest.param("llvm", marks=pytest.mark.llvm),
]


@pytest.mark.parametrize("target", _TARGETS)
def test_random_schedules_agree_with_numpy(target, record_property):
    _hold(target, len(target), record_property)
