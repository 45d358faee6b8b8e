"""Grids of coordinates: their order of axes, and what is refused."""

import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.movement.grids import meshgrid
from tests.strategies.operands import tensors


def _shapes(grids):
    return [[extent.value for extent in grid.shape] for grid in grids]


def test_each_vector_has_an_axis() -> None:
    vectors = tensors((2,), (3,), (4,))
    assert _shapes(meshgrid(*vectors)) == [[2, 3, 4]] * 3
    assert _shapes(meshgrid(*vectors, indexing="xy")) == [[3, 2, 4]] * 3
    assert _shapes(meshgrid(vectors[0], indexing="xy")) == [[2]]


def test_wrong_operands_are_refused() -> None:
    with pytest.raises(UserError, match="meshgrid has no vectors"):
        meshgrid()
    with pytest.raises(UserError, match="a vector has 2 dimensions instead of 1"):
        meshgrid(*tensors((2, 2)))
    with pytest.raises(UserError, match="meshgrid has no indexing 'yx'"):
        meshgrid(*tensors((2,)), indexing="yx")
