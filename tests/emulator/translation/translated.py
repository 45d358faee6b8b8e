"""Units of instructions on waves, run by translated code and by the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from refcomp.driver.host_tools import host_tools
from refcomp.emulator.execution.program import bind
from refcomp.emulator.generations.generation import GFX942, Generation
from refcomp.emulator.machine.waves import Waves
from refcomp.emulator.translation.compilation import HostTools
from refcomp.emulator.translation.engine import Translator, UnitRun
from refcomp.emulator.translation.units import BoundRun, CodeUnit, units_of
from tests.emulator.snippets import instruction

NEVER_HOT = 1 << 60


@cache
def tools(hot: int = NEVER_HOT) -> HostTools:
    found = host_tools()
    return HostTools(found.compile, found.width, hot)


def bound(*lines: str, of: Generation = GFX942, lanes: int = 64) -> list[BoundRun]:
    """The instructions as a block has them, without those that do nothing."""
    read = [instruction(line, of, lanes) for line in lines]
    pairs = [(one, bind(one, of)) for one in read]
    return [BoundRun(one, run) for one, run in pairs if run is not None]


def only_unit(*lines: str, of: Generation = GFX942, lanes: int = 64) -> CodeUnit:
    """The unit that the instructions make."""
    (unit,) = units_of(bound(*lines, of=of, lanes=lanes), of, lanes)
    assert isinstance(unit, CodeUnit), f"{lines} make no unit"
    return unit


class Units:
    """Units that are compiled together."""

    def __init__(self, of: Generation = GFX942, lanes: int = 64) -> None:
        self.of = of
        self.lanes = lanes
        self.translator = Translator(tools(), of, lanes)

    def add(self, *lines: str) -> UnitRun:
        """The unit that the instructions make."""
        (run,) = self.translator.parts(bound(*lines, of=self.of, lanes=self.lanes))
        assert isinstance(run, UnitRun), f"{lines} make no unit"
        return run


def run_both(unit: UnitRun, make: Callable[[], Waves]) -> list[Waves]:
    """Waves that the interpreter ran, and waves that translated code ran."""
    interpreted, translated = make(), make()
    with np.errstate(all="ignore"):
        for run in unit.unit.runs:
            run(interpreted)
        unit(translated)
    assert unit.calls, "no function ran"
    return [interpreted, translated]


def compile_for(units: Units, runs: Sequence[UnitRun], *makers: Callable[[], Waves]) -> None:
    """Compile units in the variants that some waves need."""
    with np.errstate(all="ignore"):
        for run in runs:
            for make in makers:
                run(make())
    units.translator.compile()


def assert_same(interpreted: Waves, translated: Waves, *, result: str = "") -> None:
    """Assert that registers, memory and undefined bits are the same.

    v0 holds a `result` of a type, f16, f32 or f64. There any NaN is as good as another.
    """
    if result:
        both = [waves.values.vector(0, result, slice(None)) for waves in (interpreted, translated)]
        is_nan = np.isnan(both[0])
        np.testing.assert_array_equal(is_nan & translated.existing, np.isnan(both[1]))
        for waves in (interpreted, translated):
            for number in range(2 if result == "f64" else 1):
                kept = np.uint32(0xFFFF0000 if result == "f16" else 0)
                waves.values.v[number][is_nan] &= kept
    for file in ("values", "shadow"):
        one, other = getattr(interpreted, file), getattr(translated, file)
        if one is None:
            continue
        for number in range(len(one.v)):
            expected, found = one.v[number], other.v[number]
            differ = expected != found
            if file == "values":  # those of lanes without a work item may differ
                differ &= interpreted.existing
            assert not differ.any(), f"v{number}, {file}: {expected[differ]}, {found[differ]}"
        np.testing.assert_array_equal(one.s, other.s, file)
        np.testing.assert_array_equal(one.scc, other.scc, file)
    for mine, theirs in (
        (interpreted.around.arena.bytes, translated.around.arena.bytes),
        (interpreted.shared, translated.shared),
    ):
        np.testing.assert_array_equal(mine.data, theirs.data)
        if mine.known is not None:
            np.testing.assert_array_equal(mine.known, theirs.known)
