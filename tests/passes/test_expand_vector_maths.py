from pathlib import Path

import mpmath
import numpy as np
import pytest

from refcomp.foundation.options import build_options
from refcomp.ir.expr import Call
from refcomp.ir.parser import parse_func
from refcomp.ir.rewrite import walk, with_fields
from refcomp.ir.verify import verify
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes import expand_vector_maths as module
from refcomp.passes.expand_vector_maths import expand_vector_maths
from refcomp.passes.introduce_lets import introduce_lets
from refcomp.passes.lower_bfloat16 import lower_bfloat16
from refcomp.passes.lower_intrinsics import lower_intrinsics
from tests.codegen.host_kernels import Kernels
from tests.passes.docstring_examples import assert_docstring_holds

_LANES = 64
_SPECIAL = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-40, -1e-40, 3e38, -3e38]
# Around the ends of the range of exp, of its normal results, and of tanh.
_ENDS = [88.72, 88.7228, 88.73, 89.5, -87.3, -87.4, -103.9, -103.98, -104.5, 9.0, 9.5, 10.5]


def _on_vectors(name, dtype="f32", lanes=_LANES):
    at = f"ramp(i * {lanes}, 1, {lanes})"
    return parse_func(
        f"func f(X: {dtype}[n * {lanes}], Y: {dtype}[n * {lanes}] out, n: i64) "
        f"{{ for i in range(n) {{ Y@[{at}] = {name}(X@[{at}]) }} }}"
    )


def _names(func):
    return {node.name for node in walk(func.body) if isinstance(node, Call)}


def _computed(func, x):
    verify(func, "host")
    y = np.zeros_like(x)
    interpret(func, [x, y, len(x) // _LANES])
    return y


def _arguments():
    rng = np.random.default_rng(3)
    wide = rng.uniform(-104, 89, 20 * _LANES)
    narrow = rng.uniform(-1, 1, 20 * _LANES)
    small = rng.choice([-1, 1], 10 * _LANES) * 10.0 ** rng.uniform(-44, 1, 10 * _LANES)
    # The borders between whole numbers of ln(2), where the series errs most.
    borders = (np.arange(-150, 128) + 0.5) * np.log(2)
    drawn = np.concatenate([_ENDS, borders, borders / 2, small, narrow, wide])
    return np.resize(drawn.astype(np.float32), -(-len(drawn) // _LANES) * _LANES)


def _errors(name, x, y):
    """Errors in units in the last place of the exact values."""
    exact = np.array([float(getattr(mpmath, name)(float(v))) for v in x])
    limit = float(np.finfo(np.float32).max)
    is_finite = np.abs(exact) <= limit
    place = np.spacing(np.abs(exact[is_finite]).astype(np.float32)).astype(float)
    assert np.isinf(y[~is_finite]).all()
    return np.abs(y[is_finite].astype(float) - exact[is_finite]) / place


def test_docstring():
    assert_docstring_holds(module, expand_vector_maths)


@pytest.mark.parametrize("contract", [False, True])
@pytest.mark.parametrize(("name", "places"), [("exp", 1.1), ("tanh", 2.5)])
def test_errors_keep_the_documented_bounds(name, places, contract):
    with build_options(contract=contract):
        func = expand_vector_maths(_on_vectors(name))
    assert name not in _names(func)
    assert ("fma" in _names(func)) == contract
    # The interpreter computes a fused multiply-add by fractions, which takes time.
    x = _arguments()[: 10 * _LANES] if contract else _arguments()
    assert _errors(name, x, _computed(func, x)).max() <= places


@pytest.mark.parametrize("name", ["exp", "tanh"])
def test_special_values_are_those_of_the_call(name):
    x = np.resize(np.array([*_SPECIAL, 1e3, -1e3], np.float32), _LANES)
    func = _on_vectors(name)
    plain = _computed(func, x)
    expanded = _computed(expand_vector_maths(func), x)
    np.testing.assert_array_equal(np.isnan(plain), np.isnan(expanded))
    is_number = ~np.isnan(plain)
    np.testing.assert_array_equal(plain[is_number], expanded[is_number])
    np.testing.assert_array_equal(np.signbit(plain)[is_number], np.signbit(expanded)[is_number])


def test_exp_of_a_sigmoid_is_expanded():
    func = expand_vector_maths(lower_intrinsics(_on_vectors("sigmoid")))
    assert "exp" not in _names(func)
    # Below -87.3 the results are subnormal, and below -104 they are 0.
    x = np.resize(np.linspace(-108, 30, 10 * _LANES, dtype=np.float32), 10 * _LANES)
    exact = 1 / (1 + np.exp(-x.astype(float)))
    places = np.abs(_computed(func, x) - exact) / np.spacing(exact.astype(np.float32))
    assert places.max() <= 2.5


def test_sigmoid_of_special_values():
    func = expand_vector_maths(lower_intrinsics(_on_vectors("sigmoid")))
    x = np.resize(np.array([np.inf, -np.inf, 0.0, -0.0, 3e38, -3e38, np.nan], np.float32), _LANES)
    expected = np.resize(np.array([1.0, 0.0, 0.5, 0.5, 1.0, 0.0, np.nan], np.float32), _LANES)
    np.testing.assert_array_equal(_computed(func, x), expected)


def test_exp_has_one_power_of_two_where_its_argument_is_never_positive():
    """A constant undoes what makes the power normal; otherwise it has two factors."""

    def powers(argument):
        func = parse_func(
            f"func f(X: f32[8], Y: f32[8] out) {{ Y@[ramp(0, 1, 8)] = exp({argument}) }}"
        )
        calls = [node for node in walk(expand_vector_maths(func).body) if isinstance(node, Call)]
        return [call.name for call in calls].count("bits_to_float")

    x = "X@[ramp(0, 1, 8)]"
    assert powers(x) == powers(f"copysign({x}, broadcast(1.0f32, 8))") == 2
    assert powers(f"copysign({x}, {x})") == powers(f"abs({x})") == 2
    assert powers(f"copysign({x}, broadcast(-1.0f32, 8))") == 1


@pytest.mark.llvm
@pytest.mark.parametrize("contract", [False, True])
def test_machine_code_agrees_with_the_interpreter_to_the_bit(contract, tmp_path: Path):
    with build_options(contract=contract):
        funcs = [expand_vector_maths(_on_vectors(name)) for name in ("exp", "tanh")]
    named = [with_fields(func, name=name) for func, name in zip(funcs, "et", strict=True)]
    kernels = Kernels([introduce_lets(func) for func in named], tmp_path)
    special = np.resize(np.array([*_SPECIAL, *_ENDS], np.float32), _LANES)
    x = np.concatenate([special, _arguments()[: 5 * _LANES]])
    for func in named:
        actual = np.zeros_like(x)
        assert kernels.call(func, [x, actual, len(x) // _LANES]) == 0
        np.testing.assert_array_equal(actual, _computed(func, x))


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_narrow_floats_are_computed_in_f32(dtype):
    func = lower_bfloat16(lower_intrinsics(_on_vectors("tanh", dtype)))
    expanded = expand_vector_maths(func)
    verify(expanded, "host")
    assert "tanh" not in _names(expanded)


@pytest.mark.parametrize(
    ("name", "dtype", "lanes"), [("exp", "f64", 8), ("log", "f32", 8), ("abs", "f32", 8)]
)
def test_other_functions_stay(name, dtype, lanes):
    func = _on_vectors(name, dtype, lanes)
    assert expand_vector_maths(func) is func


def test_scalars_stay():
    func = parse_func("func f(X: f32[4], Y: f32[4] out) { Y@[0] = exp(X@[1]) }")
    assert expand_vector_maths(func) is func
