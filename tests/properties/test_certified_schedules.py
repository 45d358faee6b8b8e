"""No false alarm: legal schedules of random computations are certified, in both algebras.

`refcomp.certify` compares the first and the last program of each: on field elements they agree with
the tensor expressions to the bit, on random floats they keep within the bound of each element.
Scans and extern operations are drawn on the host; what these call has stand-ins.
"""

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from refcomp.certificates import certify
from refcomp.foundation.errors import Unsupported
from tests.properties.histogram import Histogram
from tests.properties.targets import cases_for, is_refused
from tests.strategies.computes import DEPENDENT_REDUCTIONS, EXTERNS, FEW_STAGES, SCANS

# How many are drawn for each target, and at night: 10,000 in all.
_COUNTS = {"llvm": (60, 4_000), "opencl": (20, 1_000)}
# Each group is drawn as often as another of its target.
_GROUPS = {
    "llvm": (FEW_STAGES, SCANS, EXTERNS, DEPENDENT_REDUCTIONS),
    "opencl": (FEW_STAGES, DEPENDENT_REDUCTIONS),
}


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
    @given(st.one_of(*[cases_for(target, kinds) for kinds in _GROUPS[target]]))
    def run(case):
        computation, schedule = case
        try:
            certificate = certify(schedule, computation.args, kind=target)
        except Unsupported as error:
            if is_refused(computation, error):
                return
            raise
        assert certificate.holds, f"{computation.kind}: {certificate}"
        histogram.add(computation.kind, schedule)

    run()
    if target == "llvm":
        assert not set(histogram.kinds).isdisjoint(SCANS)
        assert not set(histogram.kinds).isdisjoint(EXTERNS)
    assert not set(histogram.kinds).isdisjoint(DEPENDENT_REDUCTIONS)
    told = f"{len(histogram.depths)} legal schedules for {target} certified, no alarm"
    record_property("summary", f"shard {shard}: {told}; {histogram}")
