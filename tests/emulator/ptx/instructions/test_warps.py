"""Exchanges between threads, against definitions that go thread by thread."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from refcomp.emulator.ptx.instructions.form import Form
from refcomp.emulator.ptx.instructions.warps import (
    absent_sources,
    ballot,
    match_all,
    match_any,
    reduction_of,
    shuffle,
    taken_from,
    vote,
)
from refcomp.foundation.errors import UserError
from tests.emulator.ptx.instructions.worded import instruction

LANES = np.arange(32)
DRAW = np.random.default_rng(5)
VALUES = DRAW.integers(0, 4, (6, 32)).astype(np.uint32)
TAKES = DRAW.integers(0, 2, (6, 32)).astype(bool)
TAKES[0] = True
TAKES[1] = LANES == 7


def _shuffled(mode: str, lane: int, amount: int, limits: int) -> tuple[int, bool]:
    """The lane that is read, and the predicate, as the ISA defines them."""
    distance, clamp, mask = amount & 31, limits & 31, limits >> 8 & 31
    bound = (lane & mask) | (clamp & ~mask)
    least = lane & mask
    if mode == "up":
        source = lane - distance
        holds = source >= bound
    elif mode == "down":
        source = lane + distance
        holds = source <= bound
    elif mode == "bfly":
        source = lane ^ distance
        holds = source <= bound
    else:
        source = least | (distance & ~mask)
        holds = source <= bound
    return (source if holds else lane), holds


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shuffle_reads_the_lane_that_the_isa_defines(mode: str) -> None:
    widths = [((32 - width) << 8) | (0 if mode == "up" else 31) for width in (32, 16, 8, 2)]
    amounts = [0, 1, 3, 16, 31, 33]
    for limits, amount in itertools.product([*widths, 0x0A0B], amounts):
        shape = (1, 32)
        found = shuffle(mode, np.full(shape, amount, np.uint32), np.full(shape, limits, np.uint32))
        expected = [_shuffled(mode, lane, amount, limits) for lane in range(32)]
        pairs = zip(found.source[0].tolist(), found.in_range[0].tolist(), strict=True)
        assert list(pairs) == expected
    value = (LANES * 10)[None, :].astype(np.uint32)
    source = np.array([[31 - lane for lane in range(32)]])
    assert taken_from(value, source)[0].tolist() == [10 * (31 - lane) for lane in range(32)]


def test_amounts_differ_between_threads() -> None:
    found = shuffle("idx", LANES[None, ::-1].astype(np.uint32), np.array(31, np.uint32))
    assert found.source[0].tolist() == LANES[::-1].tolist()


def test_threads_that_do_not_take_part_are_missed_as_sources() -> None:
    found = shuffle("down", np.ones((1, 32), np.uint32), np.array(31, np.uint32))
    takes = (LANES < 4)[None, :]
    assert absent_sources(found, takes)[0].nonzero()[0].tolist() == [3]


def test_votes() -> None:
    predicate = VALUES > 0
    for warp in range(6):
        lanes = [lane for lane in range(32) if TAKES[warp, lane]]
        held = [bool(predicate[warp, lane]) for lane in lanes]
        for mode, expected in (
            ("all", all(held)),
            ("any", any(held)),
            ("uni", len(set(held)) < 2),
        ):
            assert (vote(mode, predicate, TAKES)[warp] == expected).all()
        mask = sum(1 << lane for lane, holds in zip(lanes, held, strict=True) if holds)
        assert (ballot(predicate, TAKES)[warp] == mask).all()
    assert ballot(np.array(True), TAKES).shape == (6, 32)


def test_match_finds_equal_values() -> None:
    wide = VALUES.astype(np.uint64) << np.uint64(40)
    for values in (VALUES, wide):
        any_masks = match_any(values, TAKES)
        all_masks, is_equal = match_all(values, TAKES)
        for warp in range(6):
            lanes = [lane for lane in range(32) if TAKES[warp, lane]]
            for lane in lanes:
                same = [other for other in lanes if values[warp, other] == values[warp, lane]]
                assert any_masks[warp, lane] == sum(1 << other for other in same)
            equal = len({int(values[warp, lane]) for lane in lanes}) == 1
            assert (is_equal[warp] == equal).all()
            assert (all_masks[warp] == (sum(1 << lane for lane in lanes) if equal else 0)).all()
    assert is_equal[1].all()


@pytest.mark.parametrize("name", ["add", "min", "max", "and", "or", "xor"])
@pytest.mark.parametrize("kind", ["u32", "s32", "b32"])
def test_reductions_of_integers(name: str, kind: str) -> None:
    form = Form(instruction(f"redux.sync.{name}.{kind} d, a, m"))
    if (kind == "b32") != (name in ("and", "or", "xor")):
        with pytest.raises(UserError, match=f"redux.{name} does not have the type .{kind}"):
            reduction_of(form)
        return
    dtype = np.int32 if kind == "s32" else np.uint32
    values = DRAW.integers(0, 1 << 32, (6, 32)).astype(np.uint32).view(dtype)
    found = reduction_of(form).compute(values, TAKES)
    assert found.dtype == dtype
    functions = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and}
    function = functions.get(name, np.bitwise_or if name == "or" else np.bitwise_xor)
    for warp in range(6):
        assert (found[warp] == function.reduce(values[warp][TAKES[warp]], dtype=dtype)).all()


def test_reductions_of_floats() -> None:
    values = np.where(LANES == 3, np.nan, LANES - 20)[None, :].astype(np.float32)
    takes = (LANES < 30)[None, :]

    def reduced(name: str) -> float:
        form = Form(instruction(f"redux.sync.{name}.f32 d, a, m"))
        return float(reduction_of(form).compute(values, takes)[0, 0])

    assert reduced("min") == -20
    assert reduced("max") == 9
    assert reduced("max.abs") == 20
    assert math.isnan(reduced("max.NaN"))
    assert reduced("min.abs") == 0


def test_reduction_that_ptx_lacks_is_refused() -> None:
    with pytest.raises(UserError, match="redux needs one of .add, .min, .max"):
        reduction_of(Form(instruction("redux.sync.mul.u32 d, a, m")))
