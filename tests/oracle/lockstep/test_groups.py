import numpy as np
import pytest

from refcomp.oracle.lockstep.groups import BailOut, Groups


def test_whole_groups_pass_a_barrier():
    groups = Groups(np.repeat(np.arange(3), 2), 2)
    groups.pass_barrier(np.array([2, 3]))
    groups.pass_barrier(np.arange(6))
    assert groups.interval.tolist() == [2, 2, 3, 3, 2, 2]
    with pytest.raises(BailOut):
        groups.pass_barrier(np.array([0, 1, 2]))
