"""Residual networks: published counts of parameters, shapes, and compiled runs."""

import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.testing import resnet
from tests.graph.testing.built import assert_build_keeps_meaning, count_parameters

# torchvision.models: resnet18 to resnet152.
PUBLISHED = {18: 11_689_512, 34: 21_797_672, 50: 25_557_032, 101: 44_549_160, 152: 60_192_808}


@pytest.mark.parametrize("num_layers", PUBLISHED)
def test_number_of_parameters_is_the_published_one(num_layers: int) -> None:
    net = resnet.get_symbol(num_layers=num_layers)
    assert count_parameters(net, 1, 3, 224, 224) == PUBLISHED[num_layers]
    assert net.infer_shape(data=(2, 3, 224, 224))[1] == [(2, 1000)]


@pytest.mark.llvm
@pytest.mark.parametrize("num_layers", [18, 50])
def test_small_images_are_classified_as_by_numpy(num_layers: int) -> None:
    net, params = resnet.get_workload(2, 10, num_layers, (3, 32, 32))
    assert_build_keeps_meaning(net, params, (2, 3, 32, 32), "llvm")


def test_other_depths_are_refused() -> None:
    with pytest.raises(UserError, match=r"no residual network has 20 layers\n(.|\n)*18, 34, 50"):
        resnet.get_symbol(num_layers=20)
