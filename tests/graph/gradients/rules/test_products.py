"""Rules of matrix products: differences, PyTorch, vectors, wider sums."""

import numpy as np
import pytest

from refcomp.graph.gradients.rules.products import RULES
from tests.graph.gradients.family_checks import (
    check_differences,
    check_torch_cases,
    check_types,
    operators_behind,
    slopes_of,
)


@pytest.mark.parametrize("name", sorted(RULES))
def test_gradients_agree_with_differences(name):
    check_differences(name)


@pytest.mark.parametrize("name", sorted(RULES))
def test_gradients_have_the_types_of_inputs(name):
    check_types(name)


def test_gradients_agree_with_torch() -> None:
    check_torch_cases(RULES, least=6)


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
def test_matmul_needs_no_transpose(trans_a, trans_b):
    random = np.random.default_rng(0)
    a = random.integers(-3, 4, (3, 2) if trans_a else (2, 3)).astype("float32")
    b = random.integers(-3, 4, (4, 3) if trans_b else (3, 4)).astype("float32")
    head = random.integers(-3, 4, (2, 4)).astype("float32")
    attributes = {"trans_a": trans_a, "trans_b": trans_b}
    slopes, (by_a, by_b) = slopes_of("matmul", {"a": a, "b": b}, attributes, head)
    left = a.T if trans_a else a
    right = b.T if trans_b else b
    expected_a = head @ right.T
    expected_b = left.T @ head
    np.testing.assert_array_equal(by_a, expected_a.T if trans_a else expected_a)
    np.testing.assert_array_equal(by_b, expected_b.T if trans_b else expected_b)
    assert operators_behind(slopes) == ["matmul"] * 3


def test_vectors_are_left_to_vjp() -> None:
    feeds = {"a": np.array([1, 2], "float32"), "b": np.array([3, 5], "float32")}
    slopes, (a, b) = slopes_of("matmul", feeds)
    assert "vjp" in operators_behind(slopes)
    assert (a.tolist(), b.tolist()) == ([3, 5], [1, 2])


def test_wider_sums_are_left_to_vjp() -> None:
    feeds = {"a": np.ones((2, 2), "float16"), "b": np.ones((2, 2), "float16")}
    slopes, (a, _) = slopes_of("matmul", feeds, {"out_dtype": "float32"})
    assert "vjp" in operators_behind(slopes)
    assert a.dtype == np.float16
    assert a.tolist() == [[2, 2], [2, 2]]
