"""The matrices of Winograd's algorithm filter rows."""

import numpy as np
import pytest

from refcomp.topi.convolution.winograd import MATRICES


@pytest.mark.parametrize("tile_size", [2, 4])
def test_matrices_filter_a_row(tile_size: int) -> None:
    matrices = MATRICES[tile_size]
    image, kernel, result = map(np.array, (matrices.image, matrices.kernel, matrices.result))
    for place in range(tile_size + 2):
        for tap in range(3):
            row, taps = np.eye(tile_size + 2)[place], np.eye(3)[tap]
            found = result @ ((kernel @ taps) * (image @ row)) / matrices.scale
            np.testing.assert_allclose(found, np.correlate(row, taps, "valid"), atol=1e-15)
