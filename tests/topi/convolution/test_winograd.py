"""The matrices of Winograd's algorithm filter rows."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.topi.convolution.winograd import MATRICES, transform_kernels


@pytest.mark.parametrize("tile_size", [2, 4])
def test_matrices_filter_a_row(tile_size: int) -> None:
    matrices = MATRICES[tile_size]
    image, kernel, result = map(np.array, (matrices.image, matrices.kernel, matrices.result))
    for place in range(tile_size + 2):
        for tap in range(3):
            row, taps = np.eye(tile_size + 2)[place], np.eye(3)[tap]
            found = result @ ((kernel @ taps) * (image @ row)) / matrices.scale
            np.testing.assert_allclose(found, np.correlate(row, taps, "valid"), atol=1e-15)


def test_intermediate_results_of_halves_do_not_overflow() -> None:
    weight = rc.placeholder((1, 1, 3, 3), "float16", name="weight")
    kernels = transform_kernels(weight, 4, weight.dtype)
    ones = np.full((1, 1, 3, 3), 600, np.float16)
    (found,) = rc.oracle.evaluate([kernels], {weight: ones})
    assert found.dtype == np.float16
    assert found[5, 5, 0, 0] == 600  # 600 * 24 * 24 before the division
