"""Kernels on an emulated GPU that translates hot code, against one that interprets all of it."""

from collections import defaultdict
from functools import partial

import numpy as np
import pytest

import refcomp
from benchmarks.emulator.kernels import build_product, code_of
from refcomp.emulator import EmulatedGpu
from refcomp.emulator.generations.generation import ARCHITECTURES, GFX942
from refcomp.emulator.machine.registers import FIRST_VECTOR
from refcomp.emulator.translation.compilation import HostTools
from refcomp.emulator.translation.costs import STARTUP_NS, compile_ns, interpret_ns
from refcomp.emulator.translation.engine import Translator, UnitRun
from refcomp.emulator.translation.printer import Variant
from refcomp.foundation.errors import ToolchainError
from tests.emulator.kernels import SMALL, disassembled
from tests.emulator.snippets import LANE, make_waves, put, run, undefined
from tests.emulator.translation.translated import (
    Units,
    assert_same,
    bound,
    compile_for,
    run_both,
    tools,
)


@pytest.fixture
def made(monkeypatch):
    """The translators of all programs that the test runs."""
    found = []

    def make(*arguments):
        found.append(Translator(*arguments))
        return found[-1]

    monkeypatch.setattr("refcomp.emulator.execution.program.Translator", make)
    return found


def _run(code, arrays, grid, block, *, watched=True, hot=None):
    gpu = EmulatedGpu(
        disassembled, size=SMALL, is_watched=watched, tools=None if hot is None else tools(hot)
    )
    loaded = gpu.load(code)
    (name,) = loaded.code.kernels
    # Code that is not in a loop is compiled by the first run, and called by the second.
    for _ in range(2):
        given = [np.array(one) for one in arrays]
        report = gpu.run(loaded, name, grid, block, given)
    return given, report


def _assert_agreement(made, code, arrays, grid, block):
    for watched in (True, False):
        expected, report = _run(code, arrays, grid, block, watched=watched)
        found, other = _run(code, arrays, grid, block, watched=watched, hot=0)
        assert list(map(str, report.findings)) == list(map(str, other.findings))
        assert report.steps == other.steps
        for one, two in zip(expected, found, strict=True):
            np.testing.assert_array_equal(one.view(np.uint32), two.view(np.uint32))
    assert len(made) == 2
    for translator in made:
        assert not translator.is_broken
        assert any(unit.calls for unit in translator._units if isinstance(unit, UnitRun))
    return report


@pytest.mark.llvm
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_tiled_products_agree_to_the_bit(made, arch):
    rng = np.random.default_rng(2)
    code = code_of(build_product(64, 2, arch, is_fused=True))
    arrays = [*rng.uniform(-1, 1, (2, 64, 64)).astype(np.float32), np.zeros((64, 64), np.float32)]
    arrays = [arrays[n] for n in (1, 0, 2)]
    report = _assert_agreement(made, code, arrays, (2, 2, 1), (16, 16, 1))
    assert not report.findings


def _sum_code(n, arch):
    a = refcomp.placeholder((n, 9), name="a")
    k = refcomp.reduce_axis((0, 9), name="k")
    c = refcomp.compute(
        (n,), lambda i: refcomp.sum(refcomp.select(a[i, k] > 0, a[i, k], 0.5), axis=k), name="c"
    )
    s = refcomp.create_schedule(c)
    block, thread = s[c].split(c.op.axis[0], factor=48)
    s[c].bind(block, refcomp.thread_axis("blockIdx.x"))
    s[c].bind(thread, refcomp.thread_axis("threadIdx.x"))
    return code_of(refcomp.build(s, [a, c], f"rocm -mcpu={arch}", name="sums"))


@pytest.mark.llvm
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_lanes_without_work_agree(made, arch):
    a = np.random.default_rng(5).normal(size=(1000, 9)).astype(np.float32)
    arrays = [a, np.zeros(1000, np.float32)]
    _assert_agreement(made, _sum_code(1000, arch), arrays[::-1], (21, 1, 1), (48, 1, 1))


@pytest.mark.llvm
def test_findings_are_the_interpreters(made):
    a = np.random.default_rng(5).normal(size=(900, 9)).astype(np.float32)  # too short
    arrays = [np.zeros(1000, np.float32), a]
    report = _assert_agreement(made, _sum_code(1000, "gfx942"), arrays, (21, 1, 1), (48, 1, 1))
    assert report.findings


def _missing_tool(text):
    raise ToolchainError("no compiler", remedy="install one")


def test_without_a_tool_all_is_interpreted(caplog):
    translator = Translator(HostTools(_missing_tool, lambda: 8, 0), GFX942, 64)
    block = translator.block(bound("v_mov_b32 v1, v0", "v_add_u32 v2, v1, v1"))
    for _ in range(3):
        waves = make_waves(v0=np.uint32(4))
        block(waves)
        assert (waves.values.v[2] == 8).all()
    (record,) = caplog.records
    assert record.levelname == "WARNING" and record.name == "refcomp.emulator"
    assert "all emulated code is interpreted" in record.getMessage()
    assert "no compiler" in record.getMessage()


def test_a_unit_needs_its_registers():
    translator = Translator(HostTools(_missing_tool, lambda: 8, 0), GFX942, 64)
    (unit,) = translator.parts(bound("v_mov_b32 v1, v90", "v_mov_b32 v2, v1"))
    assert isinstance(unit, UnitRun)
    unit.functions[Variant(False, True, False)] = _must_not_run
    with pytest.raises(IndexError):  # of the interpreter
        unit(_without_undefined())
    # With enough registers the function would run.
    with pytest.raises(AssertionError, match="ran"):
        unit(_without_undefined(vectors=91))


def _must_not_run(state):
    raise AssertionError("the function ran")


def _without_undefined(vectors=16):
    waves = make_waves(vectors=vectors)
    for number in range(vectors):
        put(waves, number, np.uint32(0))
    return waves


def _partial_wave(undefined=()):
    """A wave of 48 work items. v0 was written, but not in the lanes `undefined`."""
    waves = make_waves(existing=LANE[None] < 48)
    put(waves, 0, LANE.astype(np.uint32))
    for lane in undefined:
        waves.shadow.v[0, 0, lane] = 1
        waves.dirty.add(FIRST_VECTOR)
    return waves


@pytest.mark.llvm
def test_lanes_without_work_count_as_written():
    units = Units()
    unit = units.add("v_mov_b32 v4, v0", "v_add_u32 v5, v4, v4")
    compile_for(units, [unit], _partial_wave)
    both = run_both(unit, _partial_wave)
    assert_same(*both)
    assert both[0].dirty == both[1].dirty
    for waves in both:
        assert not waves.shadow.v[4:6].any()
        run(waves, "v_readlane_b32 s6, v5, 60", "s_cmp_eq_u32 s6, 0")
        assert not waves.shadow.scc.any()


@pytest.mark.llvm
def test_undefined_lanes_without_work_are_the_interpreters():
    units = Units()
    unit = units.add("v_mov_b32 v4, v0", "v_add_u32 v5, v4, v4")
    make = partial(_partial_wave, (60,))
    compile_for(units, [unit], _partial_wave, make)
    interpreted, translated = make(), make()
    for step in unit.unit.runs:
        step(interpreted)
    unit(translated)
    assert not unit.calls
    assert_same(interpreted, translated)
    assert undefined(translated, 5)[60]


class _Function:
    def __call__(self, *given):
        return 1  # the number of waves that it ran for


def _recorder(texts):
    """Return a compiler that only records the texts."""

    def compile_text(text):
        texts.append(text)
        return defaultdict(_Function)

    return compile_text


def test_a_unit_is_compiled_once_that_pays():
    texts = []
    translator = Translator(HostTools(_recorder(texts), lambda: 8), GFX942, 64)
    lines = ("v_mov_b32 v1, v0", "v_mov_b32 v2, v1")
    (often,), (once,) = (translator.parts(bound(*lines)) for _ in range(2))
    waves = make_waves(v0=np.uint32(4))
    once(waves)
    step_ns = interpret_ns(2, 64)
    runs = compile_ns(2) // step_ns + STARTUP_NS // step_ns + 1
    for _ in range(runs):
        assert not texts
        often(waves)
    assert len(texts) == 1
    assert texts[0].count("define i64 @unit") == 1
    often(waves)
    once(waves)
    assert often.calls == 1
    assert not once.functions


def test_hot_units_share_the_start_of_the_tools():
    texts = []
    translator = Translator(HostTools(_recorder(texts), lambda: 8), GFX942, 64)
    lines = ("v_mov_b32 v1, v0", "v_mov_b32 v2, v1")
    units = [unit for _ in range(4) for unit in translator.parts(bound(*lines))]
    waves = make_waves(v0=np.uint32(4))
    while not texts:
        for unit in units:
            unit(waves)
    assert texts[0].count("define i64 @unit") == 4
