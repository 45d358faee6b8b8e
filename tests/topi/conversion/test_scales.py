"""Scales per tensor, per axis and per block: which element reads which, and refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.conversion.scales import (
    layout_of,
    require_quantized,
    require_same_integers,
    result_dtype,
    sample_scale,
    spread_numpy,
)
from refcomp.topi.draws import Draws
from tests.strategies.operands import tensors


@pytest.mark.parametrize(
    ("sizes", "block_size", "expected"),
    [
        ((), 0, [[2, 2, 2]] * 2),
        ((1,), 0, [[2, 2, 2]] * 2),
        ((3,), 0, [[2, 3, 4]] * 2),
        ((2, 2), 2, [[2, 2, 3], [4, 4, 5]]),
    ],
)
def test_each_element_reads_its_scale(sizes, block_size, expected) -> None:
    scale = np.arange(2, 2 + max(1, int(np.prod(sizes))), dtype=np.float32).reshape(sizes)
    data, parameter = tensors((2, 3), sizes)
    layout = layout_of(data, parameter, None, axis=1, block_size=block_size, operator="it")
    made = rc.compute((2, 3), lambda *index: layout.read(parameter, index), name="made")
    (found,) = rc.oracle.evaluate([made], {parameter: scale})
    np.testing.assert_array_equal(found, expected)
    seen = np.broadcast_to(spread_numpy(scale, (2, 3), 1, block_size), (2, 3))
    np.testing.assert_array_equal(seen, expected)


@pytest.mark.parametrize("seed", range(20))
def test_drawn_scales_fit(seed) -> None:
    draws = Draws(seed)
    shape = draws.shape()
    drawn = sample_scale(draws, shape, "float32", "int8")
    spread_shape = spread_numpy(drawn.scale, shape, drawn.axis, drawn.block_size).shape
    assert np.broadcast_shapes(spread_shape, shape) == shape


def _layout(data, scale, zero=None, axis=1, block_size=0):
    return layout_of(data, scale, zero, axis=axis, block_size=block_size, operator="it")


def test_ill_formed_parameters_are_refused() -> None:
    data, single, row, matrix = tensors((2, 3), (), (3,), (2, 3))
    integers, zeros = tensors((), (2,), dtype="int8")
    symbolic = rc.placeholder((2, rc.var("n")), name="symbolic")
    with pytest.raises(UserError, match="it: the scale has 0 dimensions, the zero point 1"):
        _layout(data, single, zeros)
    with pytest.raises(UserError, match="an extent of the zero point is 2 instead of 3"):
        _layout(data, row, zeros)
    with pytest.raises(UserError, match="it takes float tensors, not i8"):
        _layout(data, integers)
    with pytest.raises(UserError, match="it cannot have blocks of -1 elements"):
        _layout(data, single, block_size=-1)
    with pytest.raises(UserError, match="it: the scale has 2 dimensions\n"):
        _layout(data, matrix)
    with pytest.raises(UserError, match="the extent of the scale is 3 instead of 2"):
        _layout(data, row, axis=0)
    with pytest.raises(UserError, match="it: axis 2 is out of range"):
        _layout(data, row, axis=2)
    with pytest.raises(UserError, match="the scale has 1 dimensions instead of 2"):
        _layout(data, row, block_size=2)
    with pytest.raises(UserError, match="an extent of the scale is 3 instead of 2"):
        _layout(data, matrix, block_size=2)
    with pytest.raises(UserError, match="extent 1 must be a constant"):
        _layout(symbolic, matrix, block_size=2)


def test_dtypes_that_are_not_quantized_are_refused() -> None:
    (data,) = tensors((2,))
    bytes_, zero = tensors((2,), (), dtype="int8")
    (wide,) = tensors((2,), dtype="int64")
    with pytest.raises(UserError, match="it takes integers of at most 32 bits, not f32"):
        require_quantized(data, "it")
    with pytest.raises(UserError, match="not i64"):
        require_quantized(wide, "it")
    with pytest.raises(UserError, match="it cannot combine i8 with f32"):
        require_same_integers(bytes_, data, "it")
    with pytest.raises(UserError, match="it cannot return f32"):
        result_dtype(rc.as_dtype("float32"), None, "it")
    with pytest.raises(UserError, match="it cannot return u8 with a zero point of i8"):
        result_dtype(rc.as_dtype("uint8"), zero, "it")
