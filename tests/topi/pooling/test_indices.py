"""Places of maxima, and the way back: values by hand, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.pooling.indices import (
    max_pool_with_indices,
    max_pool_with_indices_numpy,
    max_unpool,
    max_unpool_numpy,
)
from tests.strategies.operands import assert_same, run_te, tensors

PLAIN = {"kernel": (2,), "strides": (2,), "padding": (0, 0), "dilation": (1,)}
UNPOOL = {"kernel": (2,), "strides": (2,), "padding": (0, 0)}


def line(*values: float, dtype: str = "float32") -> np.ndarray:
    return np.array([[values]], dtype)


@pytest.mark.parametrize(
    ("values", "changed", "maxima", "places"),
    [
        ([5, 1, 2, 7], {}, [5, 7], [0, 3]),
        ([3, 3, np.nan, np.nan], {}, [3, np.nan], [0, 2]),
        ([-np.inf, -np.inf], {"padding": (1, 0)}, [-np.inf], [0]),
        # Elements -1 and 1 are both padding.
        ([4], {"padding": (1, 1), "dilation": (2,)}, [-np.inf], [-1]),
        ([1, 2, 3], {"ceil_mode": True}, [2, 3], [1, 2]),
    ],
)
def test_places_of_maxima(values, changed, maxima, places):
    how = {**PLAIN, **changed}
    data = line(*values)
    for found in (
        run_te(max_pool_with_indices, data, **how, is_symbolic=False),
        max_pool_with_indices_numpy(data, **how),
    ):
        assert_same(found[0], line(*maxima))
        assert_same(found[1], line(*places, dtype="int64"))


def test_places_are_of_all_elements() -> None:
    data = np.arange(8, dtype=np.float32).reshape(2, 1, 2, 2)
    how = {"kernel": (2, 2), "strides": (1, 1), "padding": (0,) * 4, "dilation": (1, 1)}
    _, places = run_te(max_pool_with_indices, data, **how)
    assert places.ravel().tolist() == [3, 7]


@pytest.mark.parametrize(
    ("places", "changed", "expected"),
    [
        ([0, 3], {}, [5, 0, 0, 7]),
        ([1, 2], {"output_size": (5,)}, [0, 5, 7, 0, 0]),
        # Places outside of their own window, and of all elements.
        ([2, 3], {}, [0, 0, 0, 7]),
        ([-1, 99], {}, [0, 0, 0, 0]),
        # Both windows name the element that they share.
        ([1, 1], {"strides": (1,)}, [0, 7, 0]),
    ],
)
def test_maxima_return_to_their_places(places, changed, expected):
    how = {**UNPOOL, **changed}
    operands = (line(5, 7), line(*places, dtype="int64"))
    assert_same(run_te(max_unpool, *operands, **how, is_symbolic=False), line(*expected))
    assert_same(max_unpool_numpy(*operands, **how), line(*expected))


def test_nan_is_greater_than_a_number() -> None:
    operands = (line(np.nan, 7), line(1, 1, dtype="int64"))
    result = run_te(max_unpool, *operands, **{**UNPOOL, "strides": (1,)}, is_symbolic=False)
    assert_same(result, line(0, np.nan, 0))


def test_ill_formed_calls_are_refused() -> None:
    (data,) = tensors((1, 1, 2))
    places, floats = tensors((1, 1, 2), dtype="int64")[0], tensors((1, 1, 2))[0]
    with pytest.raises(UserError, match=r"max_pool_with_indices cannot have the kernel \(\)"):
        max_pool_with_indices(data, **{**PLAIN, "kernel": ()})
    with pytest.raises(UserError, match=r"max_unpool cannot have the kernel \(1, 1, 1, 1\)"):
        max_unpool(data, places, **{**UNPOOL, "kernel": (1,) * 4})
    with pytest.raises(UserError, match=r"max_unpool cannot use the padding \(0,\)"):
        max_unpool(data, places, **{**UNPOOL, "padding": (0,)})
    with pytest.raises(UserError, match=r"max_unpool cannot remove the padding \(9, 0\)"):
        max_unpool(data, places, **{**UNPOOL, "padding": (9, 0)})
    with pytest.raises(UserError, match=r"max_unpool cannot have the output size \(0,\)"):
        max_unpool(data, places, **UNPOOL, output_size=(0,))
    with pytest.raises(UserError, match="max_unpool takes integers as indices, not f32"):
        max_unpool(data, floats, **UNPOOL)
    (long,) = tensors((1, 1, 3), dtype="int64")
    with pytest.raises(UserError, match="max_unpool: indices is 3 instead of 2"):
        max_unpool(data, long, **UNPOOL)
    (symbolic,) = tensors((1, 1, var("w")))
    with pytest.raises(UserError, match="max_unpool: a spatial extent must be a constant"):
        max_unpool(symbolic, places, **UNPOOL)
