"""full, arange, linspace, eye and their kin: known answers, dtypes, refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.te.extents import extents
from refcomp.te.tensor import var
from refcomp.topi.movement import constants
from tests.strategies.operands import tensors


def _evaluated(tensor):
    return rc.oracle.evaluate([tensor], {})[0]


def test_values_are_of_the_dtype():
    assert _evaluated(constants.full(shape=(2,), fill_value=3)).dtype == np.float32
    nan = _evaluated(constants.full(shape=(), fill_value=float("nan"), dtype="float16"))
    assert np.isnan(nan) and nan.shape == ()
    assert _evaluated(constants.ones(shape=(2,), dtype="bool")).tolist() == [True, True]
    assert _evaluated(constants.zeros(shape=(0, 2), dtype="int8")).shape == (0, 2)
    (data,) = tensors((var("n"), 2), dtype="int8")
    for made in (
        constants.zeros_like(data),
        constants.ones_like(data),
        constants.full_like(data, fill_value=7),
    ):
        assert made.dtype == data.dtype and extents(made) == extents(data)


@pytest.mark.parametrize(
    ("start", "stop", "step", "dtype"),
    [
        (0, 5, 1, "int32"),
        (-128, 127, 1, "int8"),
        (2**62, 2**63 - 1, 2**60, "int64"),
        (5, 0, -2, "uint8"),
        (3, 3, 1, "int32"),
        (3, 1, 1, "int32"),
        (0, 1, 0.25, "float32"),
    ],
)
def test_ranges_are_those_of_numpy(start, stop, step, dtype):
    found = _evaluated(constants.arange(start=start, stop=stop, step=step, dtype=dtype))
    meant = np.arange(start, stop, step, dtype)
    assert found.dtype == meant.dtype and found.tolist() == meant.tolist()


def test_bounds_of_linspace_are_exact():
    found = _evaluated(constants.linspace(start=0.1, stop=0.7, num=11))
    assert found[0] == np.float32(0.1) and found[-1] == np.float32(0.7)
    assert _evaluated(constants.linspace(start=2, stop=5, num=1)).tolist() == [2]
    assert _evaluated(constants.linspace(start=2, stop=5, num=0)).tolist() == []
    open_end = constants.linspace(start=0, stop=1, num=2, endpoint=False, dtype="float16")
    assert _evaluated(open_end).tolist() == [0, 0.5]


def test_an_eye_may_have_its_diagonal_outside():
    assert _evaluated(constants.eye(n=2, k=5, dtype="int32")).tolist() == [[0, 0], [0, 0]]
    assert _evaluated(constants.eye(n=2, k=-1, dtype="bool")).tolist() == [[0, 0], [1, 0]]


def test_ill_formed_calls_are_refused():
    for name in ("full", "zeros", "ones"):
        attributes = {"fill_value": 0} if name == "full" else {}
        with pytest.raises(UserError, match=rf"{name} cannot make the shape \(2, -1\)"):
            getattr(constants, name)(shape=(2, -1), **attributes)
        with pytest.raises(UserError, match=f"{name}_like is applied to a tuple"):
            getattr(constants, f"{name}_like")((2,), **attributes)
    with pytest.raises(UserError, match="eye cannot make the shape"):
        constants.eye(n=-1)
    with pytest.raises(UserError, match="constant 300 does not fit"):
        constants.full(shape=(), fill_value=300, dtype="uint8")
    with pytest.raises(UserError, match="arange cannot go from 0 to 1 by 0 in i32"):
        constants.arange(stop=1, step=0)
    with pytest.raises(UserError, match="arange cannot go from 0 to inf"):
        constants.arange(stop=float("inf"))
    with pytest.raises(UserError, match="arange cannot go from 0 to 1 by 1 in bool"):
        constants.arange(stop=1, dtype="bool")
    with pytest.raises(UserError, match="constant 299 does not fit"):
        constants.arange(stop=300, dtype="uint8")
    with pytest.raises(UserError, match="2.5 is not a constant of dtype"):
        constants.arange(stop=3, step=0.5)
    with pytest.raises(UserError, match="linspace cannot make -1 elements from 0 to 1 in f32"):
        constants.linspace(start=0, stop=1, num=-1)
    with pytest.raises(UserError, match="linspace cannot make 2 elements from 0 to 1 in i32"):
        constants.linspace(start=0, stop=1, num=2, dtype="int32")
