"""Cumulative sums and products: special values and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.operation import reachable_operations
from refcomp.topi.reduction import cumulative
from tests.strategies.operands import assert_same, run_te, tensors


def both(name, data, **attributes):
    """Return the result of the compute, which must be its meaning."""
    found = run_te(getattr(cumulative, name), data, **attributes)
    with np.errstate(all="ignore"):
        assert_same(found, getattr(cumulative, f"{name}_numpy")(data, **attributes))
    return found


@pytest.mark.parametrize(
    ("exclusive", "reverse", "sums", "products"),
    [
        (False, False, [1, 3, 6], [1, 2, 6]),
        (True, False, [0, 1, 3], [1, 1, 2]),
        (False, True, [6, 5, 3], [6, 6, 3]),
        (True, True, [5, 3, 0], [6, 3, 1]),
    ],
)
def test_order_and_own_element(exclusive, reverse, sums, products):
    data = np.int32([1, 2, 3])
    attributes = {"axis": 0, "exclusive": exclusive, "reverse": reverse}
    assert both("cumsum", data, **attributes).tolist() == sums
    assert both("cumprod", data, **attributes).tolist() == products


def test_nan_propagates_to_later_results_only():
    data = np.float32([[1, np.nan, 2]])
    np.testing.assert_array_equal(both("cumsum", data, axis=1), [[1, np.nan, np.nan]])
    np.testing.assert_array_equal(
        both("cumprod", data, axis=-1, reverse=True), [[np.nan, np.nan, 2]]
    )


def test_integers_wrap_and_half_floats_do_not_overflow_between():
    assert both("cumsum", np.int8([100, 100]), axis=0).tolist() == [100, -56]
    assert both("cumsum", np.float16([60000, 60000, -60000]), axis=0)[2] == np.float16(60000)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_nothing_to_accumulate(name):
    for exclusive in (True, False):
        assert both(name, np.zeros((2, 0), np.float32), axis=1, exclusive=exclusive).size == 0


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_ill_formed_calls_are_refused(name):
    operator = getattr(cumulative, name)
    with pytest.raises(UserError, match=f"{name}: axis 1 is out of range for 1 dimensions"):
        operator(*tensors((2,)), axis=1)
    with pytest.raises(UserError, match=f"{name}: axis 0 is out of range for 0 dimensions"):
        operator(*tensors(()), axis=0)
    with pytest.raises(UserError, match=f"{name} takes numbers, not bool"):
        operator(*tensors((2,), dtype="bool"), axis=0)


@pytest.mark.parametrize("length", [33, 64, 90, 1100])
@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("reverse", [True, False])
def test_long_sums_are_computed_in_blocks(length, exclusive, reverse):
    data = np.arange(2 * length, dtype=np.int32).reshape(length, 2)
    attributes = {"axis": 0, "exclusive": exclusive, "reverse": reverse}
    found = run_te(cumulative.cumsum, data, is_symbolic=False, **attributes)
    assert_same(found, cumulative.cumsum_numpy(data, **attributes))
    (tensor,) = tensors((length, 2))
    names = {op.name for op in reachable_operations([cumulative.cumsum(tensor, axis=0).op])}
    assert {"inside", "totals", "before"} <= names


def test_sums_along_a_symbolic_axis_are_not_divided():
    data = np.arange(100, dtype=np.int32)
    assert_same(run_te(cumulative.cumsum, data, axis=0), np.cumsum(data, dtype=np.int32))
