"""No false alarm: legal schedules of random computations pass both algebras.

On field elements they agree with the tensor expressions to the bit; on random floats, which round,
they keep within the bound of each element.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings

from refcomp.dtype import to_numpy
from refcomp.errors import Unsupported
from refcomp.oracle.compare import UNDECIDABLE, judge_bounded
from refcomp.oracle.error_bounds import bound_errors
from refcomp.oracle.evaluate import evaluate
from refcomp.oracle.field import P, tensors_to_field, to_field
from refcomp.oracle.interpret import interpret
from refcomp.pipeline import run_passes
from tests.properties.differential import lowered
from tests.properties.test_schedules import cases

_RELAXED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
_SEED = 11


def _floats(computation):
    """The computation's arrays, the float ones with numbers that round."""
    rng = np.random.default_rng(_SEED)
    return [
        (rng.standard_normal(array.shape) * 3).astype(array.dtype)
        if tensor.dtype.is_float and tensor in computation.inputs
        else array
        for tensor, array in zip(computation.args, computation.arrays(_SEED), strict=True)
    ]


def _residues(computation):
    rng = np.random.default_rng(_SEED)
    return [
        rng.integers(0, P, array.shape) if tensor.dtype.is_float else array
        for tensor, array in zip(computation.args, computation.arrays(_SEED), strict=True)
    ]


def _feeds(computation, arrays, places=None):
    pairs = zip(computation.args, arrays, strict=True)
    return {(places or {}).get(t, t): a for t, a in pairs if t in computation.inputs}


def _check_bounds(computation, func):
    """How many elements are judged, and how many of them are undecidable."""
    arrays = _floats(computation)
    bounds = bound_errors(
        computation.outputs, _feeds(computation, [a.copy() for a in arrays]), computation.sizes
    )
    interpret(func, arrays)
    results = dict(zip(computation.args, arrays, strict=True))
    counts = np.zeros(2, int)
    for tensor, bounded in zip(computation.outputs, bounds, strict=True):
        report = judge_bounded(results[tensor], bounded)
        assert report.agrees, f"{computation.kind}: {report}"
        counts += (report.verdicts.size, report.count(UNDECIDABLE))
    return counts


def _check_field(computation, func):
    arrays = _residues(computation)
    try:
        fielded, places = tensors_to_field(computation.outputs)
    except Unsupported:
        return
    feeds = _feeds(computation, [a.copy() for a in arrays], places)
    wanted = evaluate(fielded, feeds, computation.sizes)
    interpret(to_field(func), arrays)
    results = dict(zip(computation.args, arrays, strict=True))
    for tensor, expected in zip(computation.outputs, wanted, strict=True):
        assert expected.dtype in (np.int64, to_numpy(tensor.dtype))
        np.testing.assert_array_equal(results[tensor], expected, err_msg=computation.kind)


@pytest.mark.parametrize("shard", range(2))
def test_legal_schedules_raise_no_alarm(shard, request, record_property):
    examples = 5_000 if request.config.getoption("--nightly") else 100
    judged, tried = np.zeros(2, int), 0

    @seed(shard)
    @settings(max_examples=examples, deadline=None, suppress_health_check=_RELAXED)
    @given(cases())
    def run(case):
        nonlocal tried
        computation, schedule = case
        func = run_passes(lowered(computation, schedule), "interp")
        judged[:] += _check_bounds(computation, func)
        _check_field(computation, func)
        tried += 1

    run()
    record_property(
        "summary",
        f"shard {shard}: {tried} legal schedules, {judged[0]} elements, none wrong; "
        f"{judged[1]} undecidable",
    )
