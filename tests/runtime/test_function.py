"""Functions behind checks: a Python callable gets plain numpy values, after they were checked."""

from typing import Any

import numpy as np
import pytest

from refcomp.foundation.artifacts import ScalarParam, Signature, TensorParam
from refcomp.foundation.dtype import BOOL, F32, I32, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.runtime.arrays.ndarray import array
from refcomp.runtime.device import cpu
from refcomp.runtime.function import PythonFunction

SIGNATURE = Signature(
    "scale",
    (
        TensorParam("X", F32, ("n",)),
        ScalarParam("factor", as_dtype("f16")),
        ScalarParam("flag", BOOL),
        ScalarParam("k", I32),
        TensorParam("Y", F32, ("n",), is_output=True),
    ),
    ("n",),
)


def _scale(args: list[Any]) -> None:
    x, factor, flag, k, y = args
    y[:] = x * factor + k if flag else 0
    args.clear()


def test_runs_in_place_on_arrays_of_both_kinds() -> None:
    function = PythonFunction(SIGNATURE, _scale)
    x, y = np.arange(3, dtype=np.float32), array(np.zeros(3, np.float32))
    assert function(x, 2.0, True, 1, y) is None
    assert y.asnumpy().tolist() == [1, 3, 5]
    function(x, 2.0, False, 1, y)
    assert y.asnumpy().tolist() == [0, 0, 0]


def test_scalars_come_in_their_own_dtype() -> None:
    seen: list[Any] = []
    y = np.zeros(1, np.float32)
    PythonFunction(SIGNATURE, seen.extend)(y.copy(), 0.1, True, 2, y)
    assert [type(value) for value in seen] == [
        np.ndarray,
        np.float16,
        np.bool_,
        np.int32,
        np.ndarray,
    ]
    assert np.shares_memory(seen[4], y)


def test_bound_functions_run_again_and_again() -> None:
    x, y = np.arange(3, dtype=np.float32), np.zeros(3, np.float32)
    bound = PythonFunction(SIGNATURE, _scale).bind(x, 1.0, True, 0, y)
    assert y.sum() == 0, "binding does not run"
    for k in range(3):
        x[:] = k
        bound()
        assert y.tolist() == [k] * 3


def test_arguments_are_checked_before() -> None:
    def never(args: list[Any]) -> None:
        raise AssertionError("run on arguments that should have been refused")

    function = PythonFunction(SIGNATURE, never)
    y = np.zeros(1, np.float32)
    for call in (function, function.bind):
        with pytest.raises(UserError, match="scale takes 5 arguments, not 2"):
            call(y, 1.0)
        with pytest.raises(UserError, match="argument Y .5 of 5. is an output and shares memory"):
            call(y, 1.0, True, 0, y)


def test_what_a_function_tells() -> None:
    function = PythonFunction(SIGNATURE, _scale)
    assert function.name == "scale"
    assert function.signature is SIGNATURE
    assert function.device == cpu(0)
    assert repr(function) == f"<refcomp function {SIGNATURE} on cpu:0>"


def test_it_runs_where_it_was_made_for() -> None:
    function = PythonFunction(SIGNATURE, _scale)
    assert function.on(cpu(0)) is function
    with pytest.raises(UserError, match=r"scale runs on cpu:0, not on cpu:1\n.*pass cpu:0"):
        function.on(cpu(1))
