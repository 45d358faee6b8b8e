"""VGG networks: published counts of parameters, shapes, and compiled runs."""

import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.testing import vgg
from refcomp.graph.testing.workload import create_workload
from tests.graph.testing.built import assert_build_keeps_meaning, count_parameters

# torchvision.models: vgg11 to vgg19.
PUBLISHED = {11: 132_863_336, 13: 133_047_848, 16: 138_357_544, 19: 143_667_240}


@pytest.mark.parametrize("num_layers", PUBLISHED)
def test_number_of_parameters_is_the_published_one(num_layers: int) -> None:
    net = vgg.get_symbol(num_layers=num_layers)
    assert count_parameters(net, 1, 3, 224, 224) == PUBLISHED[num_layers]
    assert net.infer_shape(data=(2, 3, 224, 224))[1] == [(2, 1000)]


def test_batch_norms_add_two_numbers_a_channel() -> None:
    # torchvision.models.vgg16_bn
    net = vgg.get_symbol(num_layers=16, batch_norm=True)
    assert count_parameters(net, 1, 3, 224, 224) == 138_365_992


@pytest.mark.llvm
def test_small_images_are_classified_as_by_numpy() -> None:
    net = vgg.get_symbol(10, 11, batch_norm=True, units=64)
    net, params = create_workload(net, 1, (3, 32, 32))
    assert_build_keeps_meaning(net, params, (1, 3, 32, 32), "llvm")


def test_workload_has_parameters_for_its_images() -> None:
    _, params = vgg.get_workload(1, 2, 11, (1, 32, 32))
    assert params["conv1_1_weight"].shape == (64, 1, 3, 3)
    assert params["fc6_weight"].shape == (4096, 512)


def test_other_depths_are_refused() -> None:
    with pytest.raises(UserError, match=r"no VGG network has 12 layers\n(.|\n)*11, 13, 16, 19"):
        vgg.get_symbol(num_layers=12)
