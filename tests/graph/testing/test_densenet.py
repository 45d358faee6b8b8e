"""Densely connected networks: published counts of parameters, shapes, and compiled runs."""

import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.testing import densenet
from refcomp.graph.testing.workload import create_workload
from tests.graph.testing.built import assert_build_keeps_meaning, count_parameters

# torchvision.models: densenet121 to densenet201.
PUBLISHED = {121: 7_978_856, 161: 28_681_000, 169: 14_149_480, 201: 20_013_928}


@pytest.mark.parametrize("num_layers", PUBLISHED)
def test_number_of_parameters_is_the_published_one(num_layers: int) -> None:
    net = densenet.get_symbol(num_layers=num_layers)
    assert count_parameters(net, 1, 3, 224, 224) == PUBLISHED[num_layers]
    assert net.infer_shape(data=(2, 3, 224, 224))[1] == [(2, 1000)]


@pytest.mark.llvm
def test_first_layers_are_compiled() -> None:
    # The first block, a transition, and a layer of the second block.
    internals = densenet.get_symbol(10).get_internals()
    net, params = create_workload(internals["block2_layer1_concat_output"], 1, (3, 32, 32))
    assert_build_keeps_meaning(net, params, (1, 3, 32, 32), "llvm")


def test_workload_has_parameters_for_its_images() -> None:
    _, params = densenet.get_workload(1, 2, 121, (1, 32, 32))
    assert params["stem_conv_weight"].shape == (64, 1, 7, 7)
    assert params["fc_weight"].shape == (2, 1024)


def test_other_depths_are_refused() -> None:
    with pytest.raises(UserError, match=r"has 100 layers\n(.|\n)*121, 161, 169, 201"):
        densenet.get_symbol(num_layers=100)
