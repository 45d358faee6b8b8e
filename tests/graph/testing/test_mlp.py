"""The perceptron: count of parameters, and runs on two targets."""

import pytest

from refcomp.graph.testing import mlp
from tests.graph.testing.built import assert_build_keeps_meaning, count_parameters


def test_number_of_parameters_is_that_of_its_layers() -> None:
    expected = 784 * 128 + 128 + 128 * 64 + 64 + 64 * 10 + 10
    assert count_parameters(mlp.get_symbol(), 1, 1, 28, 28) == expected == 109_386


@pytest.mark.parametrize("target", ["interp", pytest.param("llvm", marks=pytest.mark.llvm)])
def test_digits_are_classified_as_by_numpy(target: str) -> None:
    net, params = mlp.get_workload(2, 5)
    assert net.infer_shape(data=(2, 1, 28, 28))[1] == [(2, 5)]
    assert_build_keeps_meaning(net, params, (2, 1, 28, 28), target)
