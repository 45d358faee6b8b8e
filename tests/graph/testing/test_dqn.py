"""The deep Q-network: published count of parameters, and a compiled run."""

import pytest

from refcomp.graph.testing import dqn
from tests.graph.testing.built import assert_build_keeps_meaning, count_parameters


def test_number_of_parameters_is_that_of_the_paper() -> None:
    # Mnih et al., 2015: 32 filters of 8 x 8, 64 of 4 x 4, 64 of 3 x 3, then 512 units.
    expected = 8 * 8 * 4 * 32 + 32 + 4 * 4 * 32 * 64 + 64 + 3 * 3 * 64 * 64 + 64
    expected += 7 * 7 * 64 * 512 + 512 + 512 * 18 + 18
    assert count_parameters(dqn.get_symbol(), 1, 4, 84, 84) == expected == 1_693_362


@pytest.mark.llvm
def test_actions_are_valued_as_by_numpy() -> None:
    net, params = dqn.get_workload(2, num_actions=4)
    assert net.infer_shape(data=(2, 4, 84, 84))[1] == [(2, 4)]
    assert_build_keeps_meaning(net, params, (2, 4, 84, 84), "llvm")
