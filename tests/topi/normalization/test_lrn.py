"""Local response normalization: special values, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Call
from refcomp.ir.rewrite import walk
from refcomp.topi.normalization.lrn import lrn, lrn_numpy
from tests.strategies.operands import assert_same, run_te, tensors

PLAIN = {"alpha": 1.0, "beta": 1.0, "bias": 0.0}


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (1, [1, 1 / 2, 1 / 4]),
        # Of two neighbours, the second is the next channel.
        (2, [2 / 5, 4 / 20, 8 / 16]),
        (3, [3 / 5, 6 / 21, 12 / 20]),
    ],
)
def test_neighbours_of_a_channel(size, expected):
    data = np.array([[1, 2, 4]], np.float32)
    wanted = np.array([expected], np.float32)
    assert_same(run_te(lrn, data, size=size, **PLAIN), wanted, 1e-6)
    assert_same(lrn_numpy(data, size=size, **PLAIN), wanted, 1e-6)


def test_nan_reaches_its_neighbours_only() -> None:
    data = np.array([[np.nan, 1, 1]], np.float32)
    result = run_te(lrn, data, size=3)
    assert np.isnan(result).tolist() == [[True, True, False]]


def test_ill_formed_calls_are_refused() -> None:
    data = tensors((2, 3))[0]
    with pytest.raises(UserError, match="lrn cannot have 0 neighbours"):
        lrn(data, size=0)
    with pytest.raises(UserError, match="lrn: axis 2 is out of range for 2 dimensions"):
        lrn(data, size=3, axis=2)
    whole = tensors((2, 3), dtype="int32")[0]
    with pytest.raises(UserError, match="lrn takes float tensors"):
        lrn(whole, size=3)


@pytest.mark.parametrize(
    ("beta", "functions"), [(0.5, {"sqrt"}), (0.75, {"sqrt"}), (1.0, set()), (0.6, {"pow"})]
)
def test_powers_that_are_roots_call_no_function(beta, functions) -> None:
    (data,) = tensors((2, 6, 8))
    result = lrn(data, size=3, beta=beta)
    calls = {node.name for node in walk(result.op.body[0]) if isinstance(node, Call)}
    assert calls == functions


@pytest.mark.parametrize("beta", [0.5, 0.75, 1.0, 0.6])
@pytest.mark.parametrize("bias", [0.0, 1e-30, 1.0, 1e30, np.inf, -1.0])
def test_roots_are_the_power(beta, bias) -> None:
    data = np.linspace(-2, 2, 96, dtype=np.float32).reshape(2, 6, 8)
    attributes = {"size": 3, "beta": beta, "bias": bias}
    with np.errstate(invalid="ignore"):  # a negative base
        result = run_te(lrn, data, **attributes)
        expected = lrn_numpy(data, **attributes)
    np.testing.assert_allclose(result, expected, rtol=1e-6)
