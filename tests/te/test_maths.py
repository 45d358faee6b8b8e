import re

import pytest

import refcomp
from refcomp.errors import UserError
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
            with pytest.raises(UserError, match=rf"{re.escape(repr(name))} is no name for {what}"):
                make(name)


def test_a_variable_is_a_scalar():
    with pytest.raises(UserError, match="variable x has the vector dtype f32x4"):
        refcomp.var("x", "float32x4")
