"""Windows: how many, where, and how many of their elements exist."""

import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.extents import extents
from refcomp.te.tensor import var
from refcomp.topi.pooling.pool1d import max_pool1d
from refcomp.topi.pooling.windows import first_spatial_axis, make_windows
from tests.strategies.operands import tensors

PLAIN = {"rank": 1, "padding": (0, 0), "dilation": (1,), "layout": "NCW"}


@pytest.mark.parametrize(
    ("size", "stride", "ceil_mode", "count"),
    [(5, 2, False, 2), (5, 2, True, 2), (6, 2, False, 2), (6, 2, True, 3), (4, 3, True, 2)],
)
def test_number_of_windows(size, stride, ceil_mode, count):
    (data,) = tensors((1, 1, size))
    how = {**PLAIN, "kernel": (3,), "strides": (stride,), "ceil_mode": ceil_mode}
    windows = make_windows("pool", data, **how)
    assert windows.output_shape(extents(data))[2] == count
    assert windows.has_padding == (windows.beyond != (0,))


def test_ceil_mode_takes_constant_extents() -> None:
    (data,) = tensors((1, 1, var("w")))
    with pytest.raises(UserError, match="max_pool1d with ceil_mode: a spatial extent must be"):
        max_pool1d(data, kernel=(2,), ceil_mode=True)


def test_layouts_belong_to_a_number_of_axes() -> None:
    assert first_spatial_axis("NDHWC", 3, "pool") == 1
    with pytest.raises(UserError, match="pool does not know the layout 'NCW'"):
        first_spatial_axis("NCW", 2, "pool")
