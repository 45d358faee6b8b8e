"""Convolutions of sequences and at moved positions: classic calls are calls with keywords."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.classic import topi
from refcomp.foundation.errors import UserError
from refcomp.oracle import evaluate

rng = np.random.default_rng(6)
SHAPES = {
    "X": (1, 4, 7),
    "Y": (1, 7, 4),
    "W": (2, 4, 3),
    "V": (3, 4, 2),
    "T": (4, 2, 3),
    "D": (1, 2, 4, 4),
    "O": (1, 18, 4, 4),
    "K": (2, 2, 3, 3),
}
T = {name: rc.placeholder(shape, name=name) for name, shape in SHAPES.items()}
VALUES = {T[n]: rng.standard_normal(shape).astype("float32") for n, shape in SHAPES.items()}
X, Y, W = T["X"], T["Y"], T["W"]

CASES = {
    "conv1d": (topi.nn.conv1d(X, W), rc.topi.conv1d(X, W)),
    "conv1d, numbers": (
        topi.nn.conv1d(X, W, 2, 1, 2),
        rc.topi.conv1d(X, W, strides=(2,), padding=(1, 1), dilation=(2,)),
    ),
    "conv1d, lists": (
        topi.nn.conv1d(X, W, (2,), (1, 0), (1,)),
        rc.topi.conv1d(X, W, strides=(2,), padding=(1, 0)),
    ),
    "conv1d, SAME": (
        topi.nn.conv1d(X, W, padding="SAME", dilation=2),
        rc.topi.conv1d(X, W, padding=(2, 2), dilation=(2,)),
    ),
    "conv1d, NWC": (
        topi.nn.conv1d(Y, T["V"], 1, "SAME", layout="NWC"),
        rc.topi.conv1d(Y, T["V"], padding=(1, 1), layout="NWC"),
    ),
    "conv1d_transpose": (
        topi.nn.conv1d_transpose_ncw(X, T["T"], 2, (1, 0), "float32"),
        rc.topi.conv1d_transpose(X, T["T"], strides=(2,), padding=(1, 0)),
    ),
    "deformable": (
        topi.nn.deformable_conv2d_nchw(T["D"], T["O"], T["K"], 1, 1, 1, 1, 1, "float32"),
        rc.topi.deformable_conv2d(T["D"], T["O"], T["K"], padding=(1, 1, 1, 1)),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_classic_call_is_a_call_with_keywords(case: str) -> None:
    classic, keywords = (evaluate([tensor], VALUES)[0] for tensor in CASES[case])
    assert (classic.shape, classic.dtype) == (keywords.shape, keywords.dtype)
    np.testing.assert_array_equal(classic, keywords)


def test_arguments_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UserError, match=r"the stride is \(1, 2\)") as info:
        topi.nn.conv1d(X, W, (1, 2))
    assert info.value.remedy == "give one number"
    with pytest.raises(UserError, match="the layout of conv1d is 'NCHW'"):
        topi.nn.conv1d(X, W, layout="NCHW")
    with pytest.raises(UserError, match="deformable_conv2d_nchw cannot return float16") as info:
        topi.nn.deformable_conv2d_nchw(T["D"], T["O"], T["K"], 1, 1, 1, 1, 1, "float16")
    assert info.value.remedy.startswith("leave out_dtype out, or write")
