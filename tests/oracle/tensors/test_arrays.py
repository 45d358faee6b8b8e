"""Whole arrays mean what single values mean: arrays.py is held against scalars.py."""

import numpy as np
import pytest

from refcomp.foundation.dtype import BOOL, SCALAR_DTYPES, DType, as_dtype, to_numpy
from refcomp.ir import expr as ir
from refcomp.ir.intrinsics import INTRINSICS
from refcomp.oracle.interpreter import scalars
from refcomp.oracle.interpreter.intrinsics import FLOAT_FUNCTIONS, apply_intrinsic
from refcomp.oracle.tensors import arrays

INTEGERS = [d for d in SCALAR_DTYPES if d.is_int]
FLOATS = [d for d in SCALAR_DTYPES if d.is_float]


def interesting(dtype: DType) -> list[object]:
    if dtype.is_bool:
        return [False, True]
    if dtype.is_int:
        numbers = {0, 1, 2, 3, 7, 8, 31, 63, 100, dtype.max_value, dtype.max_value - 1}
        numbers |= {dtype.min_value, dtype.min_value + 1, -1, -3, -7, -100}
        return sorted(n for n in numbers if dtype.min_value <= n <= dtype.max_value)
    return [0.0, -0.0, 1.0, -1.5, 0.1, 3.0, -7.25, 300.0, 6e4, np.inf, -np.inf, np.nan]


def pairs(dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    with np.errstate(over="ignore"):
        scalar = [scalars.make_scalar(v, dtype) for v in interesting(dtype)]
    values = np.array(scalar, to_numpy(dtype))
    a, b = np.meshgrid(values, values)
    return a.ravel(), b.ravel()


def as_scalar(value: object, dtype: DType) -> object:
    return value if dtype.is_float else value.item()


def defined_on(cls: type, dtype: DType) -> bool:
    if cls in (ir.And, ir.Or):
        return dtype.is_bool
    if cls in (ir.FloorDiv, ir.FloorMod, ir.BitAnd, ir.BitOr, ir.BitXor):
        return dtype.is_int
    if cls in (ir.ShiftLeft, ir.ShiftRight):
        return dtype.is_int
    return not dtype.is_bool or cls in (ir.EQ, ir.NE)


CASES = [(c, d) for c in arrays.OPERATORS for d in SCALAR_DTYPES if defined_on(c, d)]


@pytest.mark.parametrize(("cls", "dtype"), CASES, ids=lambda v: getattr(v, "__name__", str(v)))
def test_operator_agrees_with_single_values(cls: type, dtype: DType) -> None:
    a, b = pairs(dtype)
    with np.errstate(all="ignore"):
        actual = np.asarray(arrays.OPERATORS[cls](a, b))
        expected = [
            scalars.OPERATORS[cls](as_scalar(x, dtype), as_scalar(y, dtype), dtype)
            for x, y in zip(a, b, strict=True)
        ]
    result = to_numpy(BOOL if issubclass(cls, ir.Comparison) else dtype)
    assert actual.dtype == result
    assert_same(actual, np.array(expected, result))


def assert_same(actual: np.ndarray, expected: np.ndarray) -> None:
    """Equal, NaN to NaN, and the sign of zero too; bfloat16 has no NaN that numpy knows."""
    if actual.dtype.name == "bfloat16":
        actual, expected = actual.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_array_equal(actual, expected)
    if actual.dtype.kind == "f":
        zero = expected == 0
        np.testing.assert_array_equal(np.signbit(actual[zero]), np.signbit(expected[zero]))


def test_every_operator_has_a_meaning() -> None:
    assert set(arrays.OPERATORS) == set(scalars.OPERATORS)


@pytest.mark.parametrize("target", SCALAR_DTYPES, ids=str)
@pytest.mark.parametrize("source", SCALAR_DTYPES, ids=str)
def test_conversion_agrees_with_single_values(source: DType, target: DType) -> None:
    extra = [2.0**31, 2.0**63, -(2.0**63), 1e30, 1.00390625, 254.5] if source.is_float else []
    if source.is_int and source.bits == 64:
        extra = [
            (257 << 46) + 1,
            (257 << 46) - 1,
        ]  # beside a tie of bfloat16, which f64 cannot tell
    with np.errstate(all="ignore"):
        given = [scalars.make_scalar(v, source) for v in [*interesting(source), *extra]]
        value = np.array(given, to_numpy(source))
        actual = arrays.convert(value, target)
        expected = [scalars.make_scalar(as_scalar(v, source), target) for v in value]
    assert actual.dtype == to_numpy(target)
    assert_same(actual, np.array(expected, to_numpy(target)))


def test_conversion_to_bfloat16_rounds_once() -> None:
    # Just above a tie of bfloat16, by less than f32 can tell: rounding twice gives the even one.
    value = np.array([1 + 2.0**-8 + 2.0**-30])
    result = arrays.convert(value, as_dtype("bf16"))
    assert float(result[0]) == 1 + 2.0**-7


def test_call_spreads_operands_and_gives_the_results_dtype() -> None:
    f32, u32 = as_dtype("f32"), as_dtype("u32")
    one = np.float32(1)
    power = arrays.call("pow", [np.array([2, 3], np.float32), np.asarray(one + one)], f32, f32)
    np.testing.assert_array_equal(power, np.array([4, 9], np.float32))
    bits = arrays.call("float_to_bits", [np.asarray(one)], f32, u32)
    assert bits.dtype == np.uint32
    assert bits == 0x3F800000
    assert arrays.call("isnan", [np.array([np.nan, 1])], as_dtype("f64"), BOOL).tolist() == [1, 0]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", FLOAT_FUNCTIONS)
def test_functions_agree_with_single_values(name: str, dtype: DType) -> None:
    """Numpy's own functions could give an array other bits than each of its elements."""
    rng = np.random.default_rng(0)
    count = 500 if dtype.bits > 16 else 100
    drawn = rng.standard_normal((3, count)) * 10.0 ** rng.integers(-8, 4, (3, count))
    with np.errstate(all="ignore"):
        operands = list(arrays.convert(drawn, dtype))[: INTRINSICS[name].arity]
        actual = arrays.call(name, operands, dtype, dtype)
        expected = [apply_intrinsic(name, given, dtype) for given in zip(*operands, strict=True)]
    assert_same(actual, np.array(expected, to_numpy(dtype)))
