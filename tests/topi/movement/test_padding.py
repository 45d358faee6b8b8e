"""pad in every mode and mirror_pad: known answers, special values, refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.extents import extents
from refcomp.te.tensor import var
from refcomp.topi.movement.padding import mirror_pad, pad
from tests.strategies.operands import run_te, tensors

THREE = np.array([1, 2, 3], np.int32)


@pytest.mark.parametrize(
    ("mode", "result"),
    [
        ("constant", [0, 0, 0, 0, 1, 2, 3, 0, 0]),
        ("edge", [1, 1, 1, 1, 1, 2, 3, 3, 3]),
        ("reflect", [1, 2, 3, 2, 1, 2, 3, 2, 1]),
        ("symmetric", [3, 3, 2, 1, 1, 2, 3, 3, 2]),
        ("wrap", [3, 1, 2, 3, 1, 2, 3, 1, 2]),
    ],
)
def test_borders_longer_than_the_axis_go_on(mode, result):
    given = {"pad_before": [4], "pad_after": [2], "mode": mode}
    assert run_te(pad, THREE, is_symbolic=False, **given).tolist() == result
    one = run_te(pad, THREE[:1], is_symbolic=False, pad_before=[2], mode=mode)
    assert one.tolist() == [1 - (mode == "constant")] * 2 + [1] + one[:2].tolist()


def test_negative_numbers_crop_before_the_rest_is_mirrored():
    given = {"pad_before": [-1], "pad_after": [2], "mode": "symmetric"}
    assert run_te(pad, THREE, is_symbolic=False, **given).tolist() == [2, 3, 3, 2]
    cropped = run_te(pad, THREE, is_symbolic=False, pad_before=[-2], pad_after=[-1])
    assert cropped.shape == (0,)


def test_values_of_every_kind_are_padded():
    data = np.array([True, False])
    assert run_te(pad, data, pad_before=[1], pad_value=1).tolist() == [True, True, False, True]
    floats = np.array([np.nan], np.float32)
    found = run_te(pad, floats, pad_before=[1], pad_after=[0], pad_value=-np.inf)
    assert found[0] == -np.inf and np.isnan(found[1])
    (symbolic,) = tensors((var("n"), 2))
    assert extents(pad(symbolic, pad_before=[0, 1], mode="edge"))[1] == 4


def test_mirrors_end_at_the_last_element():
    whole = {"pad_before": [3], "pad_after": [1]}
    assert run_te(mirror_pad, THREE, is_symbolic=False, **whole).tolist() == [3, 2, 1, 1, 2, 3, 3]
    reflected = {"pad_before": [2], "mode": "reflect"}
    found = run_te(mirror_pad, THREE, is_symbolic=False, **reflected)
    assert found.tolist() == [3, 2, 1, 2, 3, 2, 1]
    with pytest.raises(UserError, match="cannot add 3 and 3 elements to axis 0"):
        mirror_pad(*tensors((3,)), pad_before=[3], mode="reflect")
    with pytest.raises(UserError, match="cannot add -1 and 0 elements to axis 0"):
        mirror_pad(*tensors((3,)), pad_before=[-1], pad_after=[0])


def test_ill_formed_calls_are_refused():
    data, empty, symbolic = tensors((3,), (0,), (var("n"),))
    for operator in (pad, mirror_pad):
        name = operator.__name__
        with pytest.raises(UserError, match=f"{name} has 2 numbers before and 1 after"):
            operator(data, pad_before=[1, 1], pad_after=[1])
        with pytest.raises(UserError, match=f"{name} is applied to a int"):
            operator(3, pad_before=[])
        with pytest.raises(UserError, match=f"{name} does not know the mode 'reflec'"):
            operator(data, pad_before=[1], mode="reflec")
        with pytest.raises(UserError, match=f"{name}: the extent of axis 0 must be a const"):
            operator(symbolic, pad_before=[1], mode="reflect")
    with pytest.raises(UserError, match="pad cannot remove 4 of the 3 elements of axis 0"):
        pad(data, pad_before=[-3], pad_after=[-1])
    with pytest.raises(UserError, match="pad: the extent of axis 0 must be a constant"):
        pad(symbolic, pad_before=[-1])
    with pytest.raises(UserError, match="cannot extend axis 0, which has no elements, by the mode"):
        pad(empty, pad_before=[1], mode="wrap")
    with pytest.raises(UserError, match="constant 300 does not fit"):
        pad(*tensors((3,), dtype="uint8"), pad_before=[1], pad_value=300)
    with pytest.raises(UserError, match="1.5 is not a constant of dtype"):
        pad(*tensors((3,), dtype="int32"), pad_before=[1], pad_value=1.5)
