"""The transpose of a convolution: against sums that are scattered, one by one."""

import numpy as np
import pytest

from refcomp.topi.convolution.transposed import convolve_transposed, convolve_transposed_numpy
from refcomp.topi.convolution.windows import to_plain
from tests.strategies.operands import assert_same, integers, run_te

LAYOUTS = [("NCHW", "IOHW"), ("NHWC", "HWIO")]


def _scattered(x, w, strides, padding, output_padding, dilation, groups):
    """Return the sums by their definition, for axes in the order of NCHW and IOHW."""
    n, channels, *size = x.shape
    _, out, *kernel = w.shape
    reach = [
        (s - 1) * t + g * (k - 1) + 1 + further
        for s, t, g, k, further in zip(size, strides, dilation, kernel, output_padding, strict=True)
    ]
    full = np.zeros((n, out * groups, *reach), x.dtype)
    for c, o in np.ndindex(channels, out):
        place = c // (channels // groups) * out + o
        for i, j, y, z in np.ndindex(*size, *kernel):
            row = i * strides[0] + y * dilation[0]
            column = j * strides[1] + z * dilation[1]
            full[:, place, row, column] += x[:, c, i, j] * w[c, o, y, z]
    top, left, bottom, right = padding
    return full[:, :, top : full.shape[2] - bottom, left : full.shape[3] - right]


@pytest.mark.parametrize(("layout", "weight_layout"), LAYOUTS)
@pytest.mark.parametrize(
    ("strides", "padding", "output_padding", "dilation", "groups"),
    [
        ((1, 1), (0, 0, 0, 0), (0, 0), (1, 1), 1),
        ((2, 3), (1, 0, 0, 1), (1, 0), (1, 2), 2),
        ((3, 1), (2, 2, 1, 3), (2, 1), (1, 2), 1),
    ],
)
def test_products_are_scattered(
    layout, weight_layout, strides, padding, output_padding, dilation, groups
):
    x, w = integers(1, 2, 4, 3, 2), integers(2, 4, 2, 2, 3)
    expected = _scattered(x, w, strides, padding, output_padding, dilation, groups)
    how = {
        "layout": layout,
        "weight_layout": weight_layout,
        "strides": strides,
        "padding": padding,
        "output_padding": output_padding,
        "dilation": dilation,
        "groups": groups,
    }
    operands = (to_plain(x, "NCHW", layout).copy(), to_plain(w, "IOHW", weight_layout).copy())
    plain = to_plain(expected, "NCHW", layout)
    found = convolve_transposed_numpy(*operands, None, dtype=x.dtype, **how)
    assert_same(found, plain)
    made = run_te(lambda a, b: convolve_transposed(a, b, None, operator="t", **how), *operands)
    assert_same(made, plain)
