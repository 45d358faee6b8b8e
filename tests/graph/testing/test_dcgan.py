"""The generator of images: shapes, and a compiled run."""

import pytest

from refcomp.graph.testing import dcgan
from tests.graph.testing.built import assert_build_keeps_meaning, count_parameters


def test_number_of_parameters_is_that_of_its_filters() -> None:
    # Codes to 1024 channels of 4 x 4, then filters of 4 x 4 and batch norms.
    expected = 100 * 1024 * 16
    expected += 16 * (1024 * 512 + 512 * 256 + 256 * 128 + 128 * 3)
    expected += 2 * (512 + 256 + 128)
    assert count_parameters(dcgan.get_symbol(), 1, 100) == expected


@pytest.mark.llvm
def test_images_are_made_as_by_numpy() -> None:
    net, params = dcgan.get_workload(1, ngf=8, code_size=10)
    assert net.infer_shape(data=(1, 10))[1] == [(1, 3, 64, 64)]
    assert_build_keeps_meaning(net, params, (1, 10), "llvm")
