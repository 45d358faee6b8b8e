"""Running something in some lanes."""

import numpy as np

from refcomp.emulator.instructions.lanes import in_lanes
from tests.emulator.snippets import LANE, get, make_waves, run, set_mask


def test_only_those_lanes_run_and_exec_comes_back():
    waves = make_waves(2, v0=np.uint32(0))
    set_mask(waves, LANE < 8)
    wanted = np.array([LANE % 2 == 0, LANE == 3])
    in_lanes(waves, waves.mask & wanted, lambda some: run(some, "v_mov_b32_e32 v0, 7"))
    assert np.flatnonzero(get(waves, 0)).tolist() == [0, 2, 4, 6]
    assert np.flatnonzero(get(waves, 0, wave=1)).tolist() == [3]
    assert waves.mask.sum(axis=1).tolist() == [8, 8]
