import re

import numpy as np
import pytest

import refcomp
from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import (
    And,
    Call,
    Div,
    FloorDiv,
    FloorMod,
    IfThenElseExpr,
    Max,
    Min,
    Mod,
    Or,
    Select,
)
from refcomp.oracle.tensors.evaluate import evaluate


def test_named_intrinsics_become_calls():
    x = refcomp.var("x", "float64")
    call = refcomp.exp(x)
    assert isinstance(call, Call) and (call.name, str(call.dtype)) == ("exp", "f64")
    assert str(refcomp.isnan(x).dtype) == "bool"
    assert refcomp.fma(x, x, 1.0).args[2].dtype == x.dtype


def test_integers_become_f32_for_maths_but_not_for_abs():
    n = refcomp.var("n", "int32")
    assert str(refcomp.exp(n).dtype) == "f32"
    assert str(refcomp.abs(n).dtype) == "i32"
    u = refcomp.var("u", "uint8")
    assert refcomp.abs(u) is u


def test_popcount_is_not_for_floats():
    with pytest.raises(UserError, match="popcount is not defined on dtype f32(.|\n)*astype"):
        refcomp.popcount(refcomp.var("x", "float32"))


@pytest.mark.parametrize("name", ["abs", "power", "atan2", "hypot", "copysign"])
def test_maths_of_bools_is_refused(name):
    operands = [refcomp.var("b", "bool")] * (1 if name == "abs" else 2)
    with pytest.raises(UserError, match="is not defined on dtype bool(.|\n)*astype"):
        getattr(refcomp, name)(*operands)


@pytest.mark.parametrize("name", ["nextafter", "fma"])
def test_maths_that_bfloat16_does_not_have_is_refused(name):
    operands = [refcomp.var("x", "bfloat16")] * (2 if name == "nextafter" else 3)
    with pytest.raises(UserError, match=f"{name} is not defined on dtype bf16(.|\n)*astype"):
        getattr(refcomp, name)(*operands)


@pytest.mark.parametrize("name", ["floordiv", "floormod"])
def test_floor_division_of_floats_is_refused(name):
    with pytest.raises(UserError, match="is not defined on dtype f32"):
        getattr(refcomp, name)(refcomp.var("x", "float32"), 2)


def test_choices_and_conditions():
    n, x = refcomp.var("n"), refcomp.var("x", "float32")
    assert isinstance(refcomp.select(n > 0, x, 0), Select)
    assert isinstance(refcomp.if_then_else(n > 0, x, 0), IfThenElseExpr)
    assert isinstance(refcomp.all(n > 0, n < 5, n > 2), And)
    assert isinstance(refcomp.any(n > 0, n < 5), Or)
    with pytest.raises(UserError, match=r"any\(\) needs at least one condition"):
        refcomp.any()


def test_division_of_integers_by_its_names():
    n = refcomp.var("n")
    kinds = [refcomp.truncdiv, refcomp.truncmod, refcomp.floordiv, refcomp.floormod]
    assert [type(f(n, 3)) for f in kinds] == [Div, Mod, FloorDiv, FloorMod]
    assert isinstance(n / 3, Div) and isinstance(n % 3, Mod) and isinstance(n // 3, FloorDiv)


def test_limits_of_types():
    assert refcomp.min_value("int8").value == -128 and refcomp.max_value("uint16").value == 65535
    assert refcomp.min_value("float16").value == float("-inf")
    assert refcomp.min_value("bool").value == 0


def test_minimum_and_maximum_promote():
    n = refcomp.var("n", "int32")
    assert isinstance(refcomp.minimum(n, 3), Min) and isinstance(refcomp.maximum(n, 2.5), Max)
    assert str(refcomp.maximum(n, 2.5).dtype) == "f32"


def test_a_name_is_a_text():
    for make, what in (
        (refcomp.var, "a variable"),
        (lambda name: refcomp.placeholder((4,), name=name), "a tensor"),
        (lambda name: refcomp.compute((4,), lambda i: i, name=name), "a tensor"),
    ):
        for name in (3, None, ["n"]):
            refusal = rf"{re.escape(repr(name))} is not a name for {what}"
            with pytest.raises(UserError, match=refusal):
                make(name)


def test_a_variable_is_a_scalar():
    with pytest.raises(
        UserError, match=r"variable x has the vector dtype f32x4\n(.|\n)*placeholder"
    ):
        refcomp.var("x", "float32x4")


def test_choices_of_vectors():
    scalar, vector = refcomp.var("x", "float32"), refcomp.const(2, "float32x4")
    for condition in (scalar > 0, vector > scalar):
        chosen = refcomp.select(condition, vector, scalar)
        assert chosen.dtype == vector.dtype and chosen.condition.dtype.lanes == 4
    assert refcomp.select(vector > 0, scalar, 1.0).dtype.lanes == 4
    with pytest.raises(UserError, match="select chooses among f32x4 by a condition of 2 lanes"):
        refcomp.select(refcomp.const(True, "boolx2"), vector, vector)
    assert refcomp.if_then_else(scalar > 0, vector, scalar).dtype == vector.dtype
    with pytest.raises(UserError, match=r"a condition of 4 lanes\n(.|\n)*use select"):
        refcomp.if_then_else(vector > 0, vector, scalar)


def test_limits_of_vectors():
    assert str(refcomp.min_value("int8x4")) == str(refcomp.const(-128, "int8x4"))
    assert refcomp.max_value("float32x2").dtype.lanes == 2


def test_a_likely_condition_is_the_condition():
    n = refcomp.var("n")
    assert str(refcomp.likely(n < 3)) == "n < 3" and refcomp.likely(n).dtype.is_bool


def _evaluated(function, *arrays):
    tensors = [refcomp.placeholder(a.shape, a.dtype.name, f"A{k}") for k, a in enumerate(arrays)]
    result = refcomp.compute(arrays[0].shape, lambda i: function(*(t[i] for t in tensors)), "R")
    got = np.zeros(arrays[0].shape, to_numpy(result.dtype))
    refcomp.build(refcomp.create_schedule(result), [*tensors, result])(*arrays, got)
    (wanted,) = evaluate([result], dict(zip(tensors, arrays, strict=True)))
    assert np.array_equal(got, wanted, equal_nan=True)
    return got


SPECIAL = [0.0, -0.0, 1.0, -1.5, 3.75, 1e-30, -1e30, np.inf, -np.inf, np.nan]


def _pairs(dtype):
    with np.errstate(all="ignore"):
        info = np.finfo(dtype)
        values = [*SPECIAL, info.max, info.tiny, info.smallest_subnormal, -info.tiny]
        return [a.astype(dtype).ravel() for a in np.meshgrid(values, values)]


@pytest.mark.llvm
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_next_numbers_are_numpys(dtype):
    x, y = _pairs(dtype)
    with np.errstate(all="ignore"):
        got, wanted = _evaluated(refcomp.nextafter, x, y), np.nextafter(x, y)
    assert np.array_equal(got, wanted, equal_nan=True)
    moved = (x != y) & ~np.isnan(got)  # of 0.0 and -0.0, numpy's f16 gives the first
    assert np.array_equal(np.signbit(got[moved]), np.signbit(wanted[moved]))


@pytest.mark.llvm
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_scaling_rounds_once(dtype):
    exponents = np.array([0, 1, -1, 30, -40, 127, -126, -149, 200, -1074, 2100, -2200, 5000])
    values = np.array([1.0, -1.5, 3.14159, 1e-3, np.inf, np.nan, 0.0, 1.9999999], dtype)
    x, n = (a.ravel() for a in np.meshgrid(values, exponents.astype(np.int32)))
    with np.errstate(all="ignore"):
        got = _evaluated(refcomp.ldexp, x.astype(dtype), n.astype(np.int32))
        wanted = np.ldexp(x, n).astype(dtype)
    assert np.array_equal(got, wanted, equal_nan=True)


@pytest.mark.llvm
def test_the_remainder_of_floats_has_the_sign_of_the_first():
    x, y = _pairs(np.float64)
    with np.errstate(all="ignore"):
        assert np.array_equal(_evaluated(refcomp.fmod, x, y), np.fmod(x, y), equal_nan=True)
    assert str(refcomp.fmod(refcomp.var("n", "int32"), 2)) == "truncmod(f32(n), 2.0f32)"


def test_other_names_of_the_same():
    x, n = refcomp.var("x", "float32"), refcomp.var("n", "int32")
    assert str(refcomp.nearbyint(x)) == "round(x)"
    assert (str(refcomp.fabs(x)), str(refcomp.fabs(n))) == ("abs(x)", "abs(f32(n))")
