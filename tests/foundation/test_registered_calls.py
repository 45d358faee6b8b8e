import numpy as np
import pytest

from refcomp.foundation.dtype import as_dtype
from refcomp.foundation.errors import UserError
from refcomp.foundation.registered_calls import DEFAULT_ACTION, call_registered
from refcomp.foundation.registry import register_func, remove_global_func


@pytest.fixture
def returns():
    def register(value):
        register_func("tests.returns", lambda *_args: value, override=True)
        return "tests.returns"

    yield register
    remove_global_func("tests.returns")


@pytest.mark.parametrize(
    ("value", "dtype", "result"),
    [
        (3, "int8", 3),
        (-128, "int8", -128),
        (2**64 - 1, "uint64", 2**64 - 1),
        (True, "int32", 1),
        (3, "float32", 3.0),
        (np.float32(0.5), "float16", 0.5),
        (np.array(7, "int16"), "int64", 7),
        (1, "bool", True),
        (np.bool_(False), "bool", False),
    ],
)
def test_a_result_becomes_a_number_of_the_dtype(returns, value, dtype, result):
    found = call_registered(returns(value), [], as_dtype(dtype))
    assert found == result and type(found) is type(result)


@pytest.mark.parametrize(
    ("value", "dtype", "remedy"),
    [
        (None, "float32", "return a number"),
        ("3", "int32", "return an int in -2147483648 .. 2147483647"),
        (128, "int8", r"return an int in -128 \.\. 127"),
        (-1, "uint8", r"return an int in 0 \.\. 255"),
        (1.0, "int32", r'round it, or ask for a float: call_packed\(\.\.\., dtype="float32"\)'),
        (2, "bool", "return a number"),
        (10**400, "float64", "return a number"),
        (np.zeros(2), "float32", "return a number"),
        (1j, "float64", "return a number"),
    ],
)
def test_a_result_that_does_not_fit_is_refused(returns, value, dtype, remedy):
    message = rf"tests\.returns returned (.|\n)*uses its value as {as_dtype(dtype)}(.|\n)*{remedy}"
    with pytest.raises(UserError, match=message):
        call_registered(returns(value), [1], as_dtype(dtype))


def test_an_action_that_returns_none_keeps_the_traced_value(returns):
    assert call_registered(returns(None), ["x", 2.5], as_dtype("float32"), traces=True) == 2.5
    assert call_registered(returns(4), ["x", 2.5], as_dtype("float32"), traces=True) == 4.0


def test_the_default_action_prints_a_list(capsys):
    assert call_registered(DEFAULT_ACTION, ["i", 3], as_dtype("int32"), traces=True) == 3
    assert capsys.readouterr().out == "['i', 3]\n"
