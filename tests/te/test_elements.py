import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.elements import broadcast_elements
from tests.strategies.operands import run_te, tensors


def test_any_number_of_operands_broadcast():
    def mixed(*given):
        return broadcast_elements(given, lambda x, y, z: x * 100.0 + y * 10.0 + z, "mix")

    column, row, one = np.float32([[1], [2]]), np.float32([3, 4]), np.float32(5)
    found = run_te(mixed, column, row, one, is_symbolic=False)
    np.testing.assert_array_equal(found, np.float32([[135, 145], [235, 245]]))
    with pytest.raises(UserError, match="mix is applied to a float, not to a tensor"):
        mixed(*tensors((2,), (2,)), 0.5)
