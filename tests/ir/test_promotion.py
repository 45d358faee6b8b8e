"""How Python values become expressions, and how dtypes meet."""

import numpy as np
import pytest
from hypothesis import given

from refcomp.foundation.dtype import BOOL, F32, F64, I32, I64, SCALAR_DTYPES, DType, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.ir import expr as ir
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import FloatImm, IntImm, Var
from refcomp.ir.promotion import as_expr, binary, cast, const, match_types, promote
from tests.strategies.exprs import scalar_dtypes

I8, U8, U32, U64, F16, BF16 = map(as_dtype, ("i8", "u8", "u32", "u64", "f16", "bf16"))


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (True, BOOL),
        (7, I32),
        (1 << 31, I64),
        (-(1 << 31), I32),
        (1.5, F32),
        (np.float64(1.5), F64),
        (np.int8(3), I8),
    ],
)
def test_a_constant_takes_its_natural_dtype(value, dtype):
    assert const(value).dtype == dtype


def test_a_constant_must_fit_its_dtype():
    assert const(255, U8).value == 255
    with pytest.raises(UserError, match="constant 256 does not fit dtype u8") as caught:
        const(256, U8)
    assert "0 .. 255" in caught.value.remedy
    with pytest.raises(UserError, match=r"1\.5 is not a constant of dtype i32"):
        const(1.5, I32)


def test_a_vector_constant_is_broadcast():
    vector = const(1, "f32x4")
    assert isinstance(vector, ir.Broadcast) and vector.dtype == F32.with_lanes(4)


def test_other_values_are_refused():
    with pytest.raises(UserError, match="str 'a' cannot be used as an expression"):
        as_expr("a")
    with pytest.raises(UserError, match="Buffer .* cannot be used as an expression"):
        Var("x", I64) + Buffer("A", F32, ())
    with pytest.raises(UserError, match="ndarray .* cannot be used as an expression"):
        as_expr(np.ones(3))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (I32, F16, F16),
        (U64, F32, F32),
        (I8, I64, I64),
        (U32, I32, U32),
        (U8, I32, I32),
        (BOOL, I8, I8),
        (F16, BF16, F32),
        (BF16, F32, F32),
        (F32, F64, F64),
    ],
)
def test_promotion_is_as_in_c_and_symmetric(a, b, expected):
    assert promote(a, b) == promote(b, a) == expected


@given(scalar_dtypes(), scalar_dtypes())
def test_promotion_is_symmetric_and_idempotent(a: DType, b: DType):
    expected = promote(a, b)
    assert expected == promote(b, a)
    assert promote(expected, expected) == expected
    assert promote(a, a) == a


def test_a_python_number_takes_the_dtype_it_meets_where_it_fits():
    x, h, u = Var("x", I64), Var("h", F16), Var("u", U8)
    assert (x + 1).b.dtype == I64
    assert (h * 2).dtype == F16 and (1.5 * h).dtype == F16
    assert (u + 255).dtype == U8
    assert (u + 256).dtype == I32
    assert (x + 1.5).dtype == F32


def test_narrow_integers_are_not_widened():
    a = Var("a", I8)
    assert (a + a).dtype == I8


def test_bools_become_integers_in_arithmetic_and_logic_stays_logic():
    p, q = Var("p", BOOL), Var("q", BOOL)
    assert (p + q).dtype == I32
    assert isinstance(p & q, ir.And) and isinstance(p | q, ir.Or) and isinstance(p ^ q, ir.NE)


def test_floats_have_no_bits_and_no_floor_division():
    x = Var("x", F32)
    for build in (lambda: x // 2.0, lambda: x & x, lambda: x << x):
        with pytest.raises(UserError, match="not defined on dtype f32") as caught:
            build()
        assert ".astype" in caught.value.remedy


def test_a_scalar_meets_a_vector_by_broadcast_but_vectors_must_match():
    v, w = Var("v", F32.with_lanes(4)), Var("w", F32.with_lanes(8))
    a, b = match_types(v, Var("x", F32))
    assert a is v and isinstance(b, ir.Broadcast)
    with pytest.raises(UserError, match="operands of 4 and 8 lanes do not match"):
        binary(ir.Add, v, w)


def test_casts_fold_constants_only_where_that_is_exact():
    assert isinstance(cast(U8, IntImm(3, I32)), IntImm)
    assert isinstance(cast(U8, IntImm(300, I32)), ir.Cast)
    assert cast(F16, FloatImm(0.5, F32)).dtype == F16
    x = Var("x", F32)
    assert cast(F32, x) is x
    assert cast("f32x4", Var("i", I32)).dtype == F32.with_lanes(4)


@pytest.mark.parametrize("dtype", SCALAR_DTYPES, ids=str)
def test_a_cast_gives_its_dtype(dtype):
    assert cast(dtype, Var("x", F32)).dtype == dtype


@pytest.mark.parametrize("value", [None, "1.5", 1j, [1]])
def test_what_is_no_number_is_no_constant(value):
    for dtype in (None, "f32", "i32"):
        with pytest.raises(UserError, match="cannot be used as an expression"):
            const(value, dtype)


def test_an_integer_beyond_all_floats_is_refused():
    with pytest.raises(UserError, match="is beyond all floats"):
        const(1 << 2000, "f32")


def test_shifts_take_a_number_on_the_left():
    amount = Var("s", I64)
    for shifted, cls in ((1 << amount, ir.ShiftLeft), (1 >> amount, ir.ShiftRight)):
        assert isinstance(shifted, cls)
        assert shifted.a.value == 1 and shifted.b is amount


def test_a_conversion_keeps_the_lanes():
    vector = Var("v", F32.with_lanes(4))
    assert vector.astype("int8x4").dtype == vector.astype("int8").dtype
    with pytest.raises(
        UserError, match=r"a vector of f32x4 cannot be converted to i8x2\n(.|\n)*i8x4"
    ):
        vector.astype("int8x2")
