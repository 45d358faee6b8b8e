"""MobileNets: published counts of parameters, shapes, and compiled runs."""

import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.testing import mobilenet
from tests.graph.testing.built import assert_build_keeps_meaning, count_parameters

# Howard et al., 2017, in detail as in Keras: trainable parameters of MobileNet 1.0 and 0.5.
# torchvision.models: mobilenet_v2, and its width_mult=0.5.
PUBLISHED = {(1, 1.0): 4_231_976, (1, 0.5): 1_331_592, (2, 1.0): 3_504_872, (2, 0.5): 1_968_680}


@pytest.mark.parametrize(("version", "alpha"), PUBLISHED)
def test_number_of_parameters_is_the_published_one(version: int, alpha: float) -> None:
    net = mobilenet.get_symbol(version=version, alpha=alpha)
    assert count_parameters(net, 1, 3, 224, 224) == PUBLISHED[version, alpha]
    assert net.infer_shape(data=(2, 3, 224, 224))[1] == [(2, 1000)]


@pytest.mark.llvm
@pytest.mark.parametrize("version", [1, 2])
def test_small_images_are_classified_as_by_numpy(version: int) -> None:
    net, params = mobilenet.get_workload(1, 10, (3, 32, 32), alpha=0.25, version=version)
    assert_build_keeps_meaning(net, params, (1, 3, 32, 32), "llvm")


def test_other_versions_and_widths_are_refused() -> None:
    with pytest.raises(UserError, match=r"no MobileNet has version 3\n(.|\n)*give 1 or 2"):
        mobilenet.get_symbol(version=3)
    with pytest.raises(UserError, match=r"a MobileNet cannot have alpha 0\n(.|\n)*1 / 32 to 16"):
        mobilenet.get_symbol(alpha=0)
