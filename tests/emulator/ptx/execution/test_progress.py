"""Where threads begin, and which of them there are."""

import numpy as np

from refcomp.emulator.ptx.execution.progress import ENDED, RUNS, ThreadProgress


def test_threads_that_do_not_exist_have_ended():
    progress = ThreadProgress(np.array([True, True, False]), begin=7)
    assert progress.state.tolist() == [RUNS, RUNS, ENDED]
    assert progress.pc.tolist() == [7, 7, 7]


def test_threads_that_are_equally_deep_have_one_depth():
    progress = ThreadProgress(np.array([True, True, True]), begin=0)
    progress.depth[1:] = 2
    assert progress.depth_of(np.array([1, 2])) == 2
