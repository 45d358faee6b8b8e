"""Inception: published count of parameters, shapes, and a compiled run."""

import pytest

from refcomp.graph.testing import inception_v3
from tests.graph.testing.built import assert_build_keeps_meaning, count_parameters


def test_number_of_parameters_is_the_published_one() -> None:
    # torchvision.models.inception_v3 without its auxiliary classifier.
    net = inception_v3.get_symbol()
    assert count_parameters(net, 1, 3, 299, 299) == 23_834_568
    assert net.infer_shape(data=(2, 3, 299, 299))[1] == [(2, 1000)]


def test_extents_are_those_of_the_paper() -> None:
    internals = inception_v3.get_symbol().get_internals()
    for name, extents in (("small3_concat", (288, 35, 35)), ("long4_concat", (768, 17, 17))):
        net = internals[f"{name}_output"]
        assert net.infer_shape(data=(1, 3, 299, 299))[1] == [(1, *extents)]
    last = internals["split2_concat_output"]
    assert last.infer_shape(data=(1, 3, 299, 299))[1] == [(1, 2048, 8, 8)]


@pytest.mark.llvm
def test_small_images_are_classified_as_by_numpy() -> None:
    net, params = inception_v3.get_workload(1, 10, (3, 75, 75))
    assert_build_keeps_meaning(net, params, (1, 3, 75, 75), "llvm")
