"""Points at which a condition does not hold, compared with plain loops."""

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.arith import everywhere
from refcomp.arith.everywhere import first_violation, operands_of_or, value_at
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_expr
from refcomp.oracle.interpreter.interpret import is_fulfilled


def _func(requirement: str) -> PrimFunc:
    return parse_func(f"func f(n: i64, m: i64, k: i32) requires ({requirement}) {{ }}")


def _violation(requirement: str, n: int, m: int, k: int = 0) -> dict[str, int] | None:
    func = _func(requirement)
    sizes = dict(zip(func.params, (n, m, k), strict=True))
    found = first_violation(func.requires[0], sizes)
    assert (found is None) == is_fulfilled(func.requires[0], sizes)
    return None if found is None else {var.name: value for var, value in found.items()}


def test_the_first_point_is_found() -> None:
    halves = "for i in range(m) i >> 1 < n"
    assert _violation(halves, 5, 10) is None
    assert _violation(halves, 5, 11) == {"i": 10}
    assert _violation(halves, 0, 0) is None
    assert _violation("for i in range(3, extent=m) i != n", 5, 2) is None
    assert _violation("for i in range(3, extent=m) i != n", 5, 3) == {"i": 5}


def test_ranges_that_depend_on_axes() -> None:
    below = "for i in range(m) for j in range(i) for l in range(j, extent=2) i + l < n"
    assert _violation(below, 9, 5) is None
    assert _violation(below, 8, 5) == {"i": 4, "j": 3, "l": 4}
    assert _violation(below, 2, 2) == {"i": 1, "j": 0, "l": 1}
    assert _violation(below, 0, 1) is None


def test_axes_of_i32_and_sizes_of_i32() -> None:
    assert _violation("for i: i32 in range(k) i64(i) * 2 < n", 7, 0, 4) is None
    assert _violation("for i: i32 in range(k) i64(i) * 2 < n", 6, 0, 4) == {"i": 3}


def test_operands_that_share_no_axis() -> None:
    apart = "for i in range(m) for j in range(n) i < 3 or j < 4 or n < m"
    assert _violation(apart, 5, 3) is None  # i < 3 always
    assert _violation(apart, 4, 4) is None  # j < 4 always
    assert _violation(apart, 5, 4) == {"i": 3, "j": 4}
    assert _violation(apart, 5, 9) is None
    # An axis that no operand names may still have no values.
    assert _violation("for i in range(m) for j in range(n) i < 3", 0, 9) is None
    assert _violation("for i in range(m) for j in range(n) i < 3", 4, 9) == {"i": 3, "j": 0}
    assert _violation("for i in range(m) for j in range(n) i < 3", 4, 0) is None
    # Both ranges are walked, but not their product.
    assert _violation_of_many("for i in range(m) for j in range(n) i < m - 1 or j < n - 1") == {
        "i": 299_999,
        "j": 299_998,
    }


def _violation_of_many(requirement: str) -> dict[str, int]:
    func = _func(requirement)
    sizes = dict(zip(func.params, (299_999, 300_000, 0), strict=True))
    found = first_violation(func.requires[0], sizes)
    return {var.name: value for var, value in found.items()}


@given(
    st.sampled_from(
        [
            "for i in range(m) for j in range(i, extent=n) (i ^ j) + 1 < n + m",
            "for i in range(m) for j in range(n - i) i * j != 6",
            "for i in range(m) for j in range(i * n) i % 2 == 0 or j // 2 < n",
            "for i in range(m) for j in range(n) i < 4 or j < n - 1 or select(i < 2, i, j) == 3",
            "for i in range(-1, extent=m) i64(f32(i) * 0.5f32) < n and -1 <= i",
        ]
    ),
    st.integers(0, 7),
    st.integers(0, 7),
    st.sampled_from([1, 2, 5, 1 << 18]),
)
def test_steps_of_any_size_agree_with_loops(requirement: str, n: int, m: int, points: int) -> None:
    with patch.object(everywhere, "MAX_POINTS", points):
        found = _violation(requirement, n, m)
    assert found == _violation(requirement, n, m)


def test_values_and_operands() -> None:
    func = _func("for i in range(m) n < 1 or (m < 2 or n // 0 == 0) or (n & i) < m")
    operands = operands_of_or(func.requires[0].condition)
    assert list(map(print_expr, operands)) == ["n < 1", "m < 2", "n // 0 == 0", "n & i < m"]
    sizes = dict(zip(func.params, (7, 12, 0), strict=True))
    assert value_at(operands[-1].a, {**sizes, func.requires[0].axes[0]: 6}) == 6


def test_a_size_wraps_in_its_type() -> None:
    assert _violation("for i in range(m) i64(k) == -1", 0, 1, 2**32 - 1) is None


@pytest.mark.parametrize("count", [0, -3])
def test_an_axis_without_values(count: int) -> None:
    assert _violation(f"for i in range({count}) 1 < 0", 0, 0) is None
