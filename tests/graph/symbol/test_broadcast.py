"""Classic operators of several tensors, compared with numpy."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from tests.graph.symbol.applied import numbers, one, positive

X, Y = rc.sym.Variable("x"), rc.sym.Variable("y")
ARITHMETIC = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "mod": np.fmod,
}
COMPARISONS = ("greater", "less", "greater_equal", "less_equal", "equal", "not_equal")


@pytest.mark.parametrize("name", ARITHMETIC)
def test_elementwise_arithmetic_agrees_with_numpy(name: str) -> None:
    x, y = numbers(3, 4), positive(3, 4)
    made = one(getattr(rc.sym, f"elemwise_{name}")(X, Y), x, y)
    np.testing.assert_array_equal(made, ARITHMETIC[name](x, y))


@pytest.mark.parametrize("name", ARITHMETIC)
def test_broadcast_arithmetic_agrees_with_numpy(name: str) -> None:
    x, y = numbers(2, 3, 4), positive(3, 1)
    made = one(getattr(rc.sym, f"broadcast_{name}")(X, Y), x, y)
    np.testing.assert_array_equal(made, ARITHMETIC[name](x, y))


@pytest.mark.parametrize("name", ["elemwise_pow", "broadcast_pow"])
def test_power_is_numpys_f64_rounded_once(name: str) -> None:
    x, y = positive(3, 4), numbers(3, 4)
    expected = (x.astype("float64") ** y).astype("float32")
    np.testing.assert_array_max_ulp(one(getattr(rc.sym, name)(X, Y), x, y), expected, 1)


def test_extrema_and_shifts_agree_with_numpy() -> None:
    x, y = numbers(2, 3, 4), numbers(4, seed=1)
    np.testing.assert_array_equal(one(rc.sym.broadcast_max(X, Y), x, y), np.maximum(x, y))
    np.testing.assert_array_equal(one(rc.sym.broadcast_min(X, Y), x, y), np.minimum(x, y))
    a, b = numbers(3, 4, dtype="int32"), np.abs(numbers(4, dtype="int32", seed=1))
    np.testing.assert_array_equal(one(rc.sym.broadcast_left_shift(X, Y), a, b), a << b)
    np.testing.assert_array_equal(one(rc.sym.broadcast_right_shift(X, Y), a, b), a >> b)


@pytest.mark.parametrize("prefix", ["", "broadcast_"])
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparison_has_the_dtype_of_its_operands(name: str, prefix: str) -> None:
    x, y = numbers(50, 8), numbers(8, seed=1)
    made = one(getattr(rc.sym, prefix + name)(X, Y), x, y)
    np.testing.assert_array_equal(made, getattr(np, name)(x, y).astype("float32"))
    assert 0 < made.sum() < made.size


@pytest.mark.parametrize("name", ["logical_and", "logical_or"])
def test_logical_operators_count_other_numbers_than_0(name: str) -> None:
    x, y = np.array([0, 0, 2, 3], "float32"), np.array([0, 5, 0, 7], "float32")
    made = one(getattr(rc.sym, name)(X, Y), x, y)
    np.testing.assert_array_equal(made, getattr(np, name)(x, y).astype("float32"))
    made = one(getattr(rc.sym, name)(X, Y), x != 0, y != 0)
    np.testing.assert_array_equal(made, getattr(np, name)(x, y))


def test_sums_of_several_tensors() -> None:
    arrays = [numbers(2, 3, seed=seed) for seed in range(3)]
    variables = [rc.sym.Variable(name) for name in "abc"]
    expected = arrays[0] + arrays[1] + arrays[2]
    np.testing.assert_array_equal(one(rc.sym.elemwise_sum(*variables), *arrays), expected)
    np.testing.assert_array_equal(one(rc.sym.elemwise_sum(variables), *arrays), expected)


def test_where_chooses_rows_by_a_vector() -> None:
    a = np.arange(9, dtype="float32").reshape(3, 3)
    condition = np.array([1, 0, 1], "float32")
    net = rc.sym.where(rc.sym.Variable("condition"), X, Y)
    expected = np.where(condition[:, None], a, -a)
    np.testing.assert_array_equal(one(net, condition, a, -a), expected)
    np.testing.assert_array_equal(one(net, condition, a[0], -a[0]), [0, -1, 2])


def test_where_takes_conditions_of_any_dtype() -> None:
    condition, x, y = numbers(3, 4), numbers(3, 4, seed=1), numbers(3, 4, seed=2)
    net = rc.sym.where(rc.sym.Variable("condition"), X, Y)
    np.testing.assert_array_equal(one(net, condition, x, y), np.where(condition, x, y))
    np.testing.assert_array_equal(one(net, condition > 0, x, y), np.where(condition > 0, x, y))


def test_broadcasts_repeat_elements() -> None:
    x = numbers(3, 1)
    made = one(rc.sym.broadcast_to(X, shape=(2, 3, 4)), x)
    np.testing.assert_array_equal(made, np.broadcast_to(x, (2, 3, 4)))
    made = one(rc.sym.broadcast_like(X, Y), x, numbers(2, 3, 4))
    np.testing.assert_array_equal(made, np.broadcast_to(x, (2, 3, 4)))


def test_unknown_operand_has_the_shape_of_the_other() -> None:
    net = rc.sym.elemwise_add(X, Y)
    assert net.infer_shape(y=(2, 3)) == ([(2, 3), (2, 3)], [(2, 3)])


def test_elementwise_operators_refuse_different_shapes() -> None:
    net = rc.sym.elemwise_mul(X, Y, name="product")
    with pytest.raises(
        UserError,
        match=r"elemwise_mul is applied to different shapes(.|\n)*node 'product'; inputs: x: "
        r"f32\[2\], y: f32\[1\](.|\n)*or use broadcast_mul",
    ):
        net.infer_shape(x=(2,), y=(1,))
