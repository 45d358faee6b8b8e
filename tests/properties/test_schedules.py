"""A schedule changes speed and nothing else: numpy, interpreter and machine code agree exactly.

By day, the interpreter runs 480 schedules and machine code 360. With --nightly, each runs 8,000.
"""

from statistics import median

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import refcomp
from refcomp.foundation.errors import RefcompError
from refcomp.ir.printer import print_func
from refcomp.schedule.primitives.table import PRIMITIVES
from refcomp.schedule.schedule import replay
from tests.properties.differential import (
    check_compiled,
    check_compiled_together,
    check_interpreted,
    lowered,
)
from tests.properties.forms import FORMS, forms_of
from tests.properties.histogram import Histogram, whole_of
from tests.samples import sample_count
from tests.strategies.computation import DTYPES, Computation
from tests.strategies.computes import COMPUTES, EXTERNS, MORE, SCANS, WEIGHTS, computations
from tests.strategies.lowered_once import lowered_once
from tests.strategies.schedules import schedules

_RELAXED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@st.composite
def cases(draw, kinds=(), dtypes=DTYPES, by_blocks=None):
    computation = draw(computations(kinds, dtypes))
    # Who names kinds looks for something in their loops, which an intrinsic would take away.
    by_blocks = not kinds if by_blocks is None else by_blocks
    return computation, draw(schedules(computation, by_blocks=by_blocks))


def _run(check, examples, number, strategy, histogram=None):
    histogram = histogram or Histogram()

    @seed(number)
    @settings(max_examples=examples, deadline=None, suppress_health_check=_RELAXED)
    @given(strategy)
    def run(case):
        computation, schedule = case
        histogram.add(computation.kind, schedule, forms_of(computation, schedule))
        check(computation, schedule)

    run()
    return histogram


def _run_interpreted(examples, number, strategy, histogram=None):
    return _run(check_interpreted, examples, number, strategy, histogram)


def _run_compiled(examples, number, strategy, histogram=None):
    """All functions are built as one module, which takes a fraction of the time."""
    drawn = []

    def keep(computation, schedule):
        func = lowered_once(schedule, computation.args, f"case{len(drawn)}")
        drawn.append((func, computation))

    histogram = _run(keep, examples, number, strategy, histogram)
    try:
        check_compiled_together(drawn)
    except (AssertionError, RefcompError):
        _run(check_compiled, examples, number, strategy)  # one by one, to make what fails smaller
        raise
    return histogram


def _run_shard(run, examples, shard, number):
    """Run each kind of the shard for itself, so that none depends on luck to be drawn."""
    histogram = Histogram()
    kinds = (*COMPUTES, *SCANS, *EXTERNS)[shard::_SHARDS]
    total = sum(WEIGHTS[kind] for kind in kinds)
    for place, kind in enumerate(kinds):
        share = round(examples * WEIGHTS[kind] / total)
        drawn = cases((kind,), by_blocks=True)
        run(share, 100 * number + place, drawn, histogram)
    return histogram


_SHARDS = 4
# Schedules of a shard.
_INTERPRETED = sample_count(by_day=120, nightly=2000)
_COMPILED = sample_count(by_day=90, nightly=2000)
# Schedules of the computations that are drawn only where they are named.
_MORE_INTERPRETED = sample_count(by_day=70, nightly=2000)
_MORE_COMPILED = sample_count(by_day=40, nightly=2000)
_NOT_HERE = {"set_store_predicate", "env_threads"}  # for GPUs


def _hold(histogram):
    for primitive in set(PRIMITIVES) - _NOT_HERE:
        # A shard is a small sample: half of what all of them together are held to, and of products,
        # which alone can be tensorized, it may hold few.
        least = 0.01 if primitive != "tensorize" else 0
        assert histogram.share(primitive) >= least, f"{primitive} is hardly ever drawn\n{histogram}"
    assert histogram.deep_share() >= 0.5, str(histogram)


def _hold_together(histogram, shard, folder):
    """What all shards of one way to run drew; nothing where only some of them run."""
    whole = whole_of(histogram, shard, _SHARDS, folder)
    if whole is None:
        return
    for primitive in set(PRIMITIVES) - _NOT_HERE:
        assert whole.share(primitive) >= 0.02, f"{primitive} is hardly ever drawn\n{whole}"
    assert median(whole.depths) >= 5 and whole.near >= 0.3 * len(whole.depths), str(whole)
    for form in FORMS:
        least = 0.003 if form == "factored edge reads" else 0.01
        assert whole.features[form] >= least * len(whole.depths), f"too few with {form}\n{whole}"
    assert set(whole.kinds) == {*COMPUTES, *SCANS, *EXTERNS}, str(whole)


@pytest.mark.parametrize("shard", range(_SHARDS))
def test_interpreter_agrees_with_numpy_after_every_pass(shard, record_property, run_folder):
    histogram = _run_shard(_run_interpreted, _INTERPRETED, shard, shard)
    record_property("summary", f"interpreted, shard {shard}: {histogram}")
    _hold(histogram)
    _hold_together(histogram, shard, run_folder / "interpreted")


@pytest.mark.llvm
@pytest.mark.parametrize("shard", range(_SHARDS))
def test_machine_code_agrees_with_numpy(shard, record_property, run_folder):
    histogram = _run_shard(_run_compiled, _COMPILED, shard, 100 + shard)
    record_property("summary", f"compiled, shard {shard}: {histogram}")
    _hold(histogram)
    _hold_together(histogram, shard, run_folder / "compiled")


@pytest.mark.llvm
@pytest.mark.parametrize(
    ("run", "count"), [(_run_interpreted, _MORE_INTERPRETED), (_run_compiled, _MORE_COMPILED)]
)
def test_what_is_drawn_where_it_is_named_agrees_too(run, count, record_property):
    """The interpreter runs 70 schedules by day, machine code 40; with --nightly, each 2,000."""
    histogram = run(count, 200, cases(MORE))
    record_property("summary", f"more computations by {run.__name__}: {histogram}")
    assert len(histogram.kinds) >= len(MORE) / 2, str(histogram)


@settings(max_examples=40, suppress_health_check=_RELAXED, phases=[Phase.generate])
@given(cases())
def test_recorded_steps_replay_to_the_same_program(case):
    computation, schedule = case
    again = replay(schedule.outputs, schedule.steps)
    first, second = (print_func(lowered(computation, s)) for s in (schedule, again))
    assert first == second


def test_what_fails_among_many_is_run_alone_again(monkeypatch):
    a = refcomp.placeholder((4,), name="A")
    c = refcomp.compute((4,), lambda i: a[i] + 1, name="C")
    one = Computation("elementwise", (a, c), (c,), {}), refcomp.create_schedule(c)
    ran = []

    def together(drawn):
        ran.extend(print_func(func) for func, _ in drawn)
        raise AssertionError("one of them")

    def alone(computation, schedule):
        ran.append(computation.kind)
        assert failing != "this one", failing

    monkeypatch.setitem(globals(), "check_compiled_together", together)
    monkeypatch.setitem(globals(), "check_compiled", alone)
    for failing in ("this one", "one of them"):
        ran.clear()
        with pytest.raises(AssertionError, match=failing):
            _run_compiled(1, 0, st.just(one))
        assert ran[0] == print_func(lowered_once(one[1], (a, c), "case0"))
        assert set(ran[1:]) == {"elementwise"}
