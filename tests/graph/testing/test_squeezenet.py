"""SqueezeNets: published counts of parameters, shapes, and compiled runs."""

import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.testing import squeezenet
from tests.graph.testing.built import assert_build_keeps_meaning, count_parameters

# torchvision.models: squeezenet1_0 and squeezenet1_1.
PUBLISHED = {"1.0": 1_248_424, "1.1": 1_235_496}


@pytest.mark.parametrize("version", PUBLISHED)
def test_number_of_parameters_is_the_published_one(version: str) -> None:
    net = squeezenet.get_symbol(version=version)
    assert count_parameters(net, 1, 3, 224, 224) == PUBLISHED[version]
    assert net.infer_shape(data=(2, 3, 224, 224))[1] == [(2, 1000)]


@pytest.mark.llvm
@pytest.mark.parametrize("version", PUBLISHED)
def test_small_images_are_classified_as_by_numpy(version: str) -> None:
    net, params = squeezenet.get_workload(1, 10, version, (3, 48, 48))
    assert_build_keeps_meaning(net, params, (1, 3, 48, 48), "llvm")


def test_other_versions_are_refused() -> None:
    with pytest.raises(UserError, match=r"no SqueezeNet has version 1.0\n(.|\n)*\"1.0\" or"):
        squeezenet.get_symbol(version=1.0)
