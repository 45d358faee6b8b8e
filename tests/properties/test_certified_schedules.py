"""No false alarm: legal schedules of random computations are certified, in both algebras.

`refcomp.certify` compares the first and the last program of each: on field elements they agree with
the tensor expressions to the bit, on random floats they keep within the bound of each element.
"""

import pytest
from hypothesis import HealthCheck, given, seed, settings

from refcomp.certify import certify
from tests.properties.histogram import Histogram
from tests.properties.targets import cases_for
from tests.strategies.computes import FEW_STAGES

# How many are drawn for each target, and at night: 10,000 in all.
_COUNTS = {"llvm": (60, 4_000), "opencl": (20, 1_000)}


@pytest.mark.parametrize("shard", range(2))
@pytest.mark.parametrize("target", _COUNTS)
def test_legal_schedules_raise_no_alarm(target, shard, request, record_property):
    histogram = Histogram()

    @seed(shard)
    @settings(
        max_examples=_COUNTS[target][request.config.getoption("--nightly")],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases_for(target, FEW_STAGES))
    def run(case):
        computation, schedule = case
        certificate = certify(schedule, computation.args, kind=target)
        assert certificate.holds, f"{computation.kind}: {certificate}"
        histogram.add(computation.kind, schedule)

    run()
    told = f"{len(histogram.depths)} legal schedules for {target} certified, no alarm"
    record_property("summary", f"shard {shard}: {told}; {histogram}")
