"""The computations use most of what is spelled, on numbers where it shows."""

import numpy as np
import pytest

from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.mutate.operations import operations, special


@pytest.mark.parametrize("target", ["llvm", "opencl"])
def test_each_has_its_numbers_and_a_name_of_its_own(target):
    made = operations(target)
    assert len({one.name for one in made}) == len(made) > 12
    for one in made:
        given = [arg for arg in one.args if not arg.op.inputs]
        shapes = [tuple(dim.value for dim in arg.shape) for arg in given]
        assert [x.shape for x in one.inputs] == shapes
        assert [x.dtype for x in one.inputs] == [to_numpy(arg.dtype) for arg in given]
        assert one.inexact <= {arg.name for arg in one.args}


def test_special_numbers():
    floats = special(as_dtype("float16"))
    assert np.isnan(floats).any() and np.isinf(floats).sum() == 2
    assert np.nanmax(floats) == np.inf and np.signbit(floats[floats == 0]).any()
    assert {-(2**31), 2**31 - 1, -1, 0} <= set(special(as_dtype("int32")).tolist())
    assert {0, 255} <= set(special(as_dtype("uint8")).tolist())
    assert special(as_dtype("bool")).tolist() == [False, True] * 5


def test_pairs_are_all_pairs():
    (i32,) = [one for one in operations("llvm") if one.name == "i32"]
    assert len(set(zip(*(x.tolist() for x in i32.inputs), strict=True))) == 100
