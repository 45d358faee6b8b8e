"""Launches that a driver refuses, and what lies in memory at their begin."""

import numpy as np
import pytest

from refcomp.emulator.machine.memory import Arena
from refcomp.emulator.ptx.execution.launch import PtxLaunch, launch, load_ptx
from refcomp.foundation.errors import UserError
from tests.emulator.ptx.texts import HEADER, kernel

_TEXT = kernel("ret;")


def _launch(text=_TEXT, size=1 << 20, **changes):
    request = {"kernel": "k", "grid": (1, 1, 1), "block": (32, 1, 1), "parameters": bytes(16)}
    return launch(load_ptx(Arena(size, is_watched=True), text), PtxLaunch(**request | changes))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"grid": (1, 70000, 1)}, r"a grid of \(1, 70000, 1\) cannot be launched"),
        ({"block": (0, 1, 1)}, r"a block of \(0, 1, 1\) cannot be launched"),
        ({"block": (64, 32, 1)}, "a block of 2048 threads cannot be launched"),
        ({"parameters": bytes(11)}, "k takes 12 bytes of parameters, not 11"),
        ({"dynamic_bytes": 300_000}, "a block of k needs 300000 bytes of shared memory"),
        ({"kernel": "missing"}, "the PTX has no kernel 'missing'"),
    ],
)
def test_what_a_driver_refuses(changes, what):
    with pytest.raises(UserError, match=what):
        _launch(**changes)


def test_kernels_say_how_large_their_blocks_are():
    exact = _TEXT.replace("\n{", "\n.reqntid 64, 2, 1\n{", 1)
    assert _launch(exact, block=(64, 2, 1)).findings == ()
    with pytest.raises(UserError, match=r"compiled for blocks of \(64, 2, 1\) threads"):
        _launch(exact)
    most = _TEXT.replace("\n{", "\n.maxntid 16, 1, 1\n{", 1)
    assert _launch(most, block=(16, 1, 1)).findings == ()
    with pytest.raises(UserError, match="it was compiled for at most 16"):
        _launch(most)


def test_memory_that_cannot_be_had():
    text = f"{HEADER}.global .b8 large[5000000];\n.visible .entry k() {{ ret; }}"
    with pytest.raises(MemoryError, match="no room for the variable large"):
        load_ptx(Arena(1 << 20, is_watched=False), text)


def test_memory_of_the_launch_is_given_back():
    arena = Arena(1 << 20, is_watched=True)
    loaded = load_ptx(arena, _TEXT)
    free = arena.free_bytes()
    launch(loaded, PtxLaunch("k", (1, 1, 1), (1, 1, 1), bytes(16)))
    assert arena.free_bytes() == free


def test_steps_count_each_instruction_once_for_each_warp():
    report = _launch(block=(70, 1, 1), grid=(2, 1, 1))
    assert report.steps == 3 * 2 * 3
    assert np.int64(report.steps) == 18
