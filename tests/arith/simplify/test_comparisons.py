import pytest

from tests.arith.facts_text import Scope


@pytest.mark.parametrize(
    ("scope", "text", "expected"),
    [
        ("n; i in n", "n + 1 > i + m", "i + m <= n"),
        ("n; i in n", "i + 1 <= m", "i < m"),
        ("n; i in n", "i - m < 1", "i <= m"),
        ("n; i in n", "i >= 3", "3 <= i"),
        ("n; i in n", "i > 3", "4 <= i"),
        ("n; i in n", "i <= 3", "i < 4"),
        ("n; i in n", "5 - i > 0", "i < 5"),
        ("n; i in n", "i + 2 < m - 3", "i + 5 < m"),
        ("n; i in n", "i - 2 < m + 3", "i < m + 5"),
        ("n; i in n", "i * 6 < m * 4 + 9", "i * 3 < m * 2 + 5"),
        ("n; i in n", "i * 4 < 9", "i < 3"),
        ("n; i in n", "9 < i * 4", "3 <= i"),
        ("n; i in n; j in 4", "i * 4 + j < m * 4", "i < m"),
        ("n; i in n; j in 4", "m * 4 <= i * 4 + j", "m <= i"),
        ("n; i in n; j in 5", "i * 4 + j < m * 4", "i * 4 + j < m * 4"),
        ("n; i in n", "i * 4 == m * 4 + 8", "i == m + 2"),
        ("n; i in n", "3 - i == 1", "i == 2"),
        ("n; i in n", "i - m != 0 - 2", "i + 2 != m"),
        ("n; i in n", "i // 4 < 3", "i < 12"),
        ("n; i in n", "3 <= i // 4", "12 <= i"),
        ("n; i in n", "2 < i // 4", "12 <= i"),
    ],
)
def test_readable_forms(scope, text, expected):
    assert Scope(f"m; {scope}").simplified(text) == expected


@pytest.mark.parametrize(
    ("scope", "text", "expected"),
    [
        ("n; i in n", "i * 2 == n * 4 + 1", "false"),
        ("n; i in n", "i * 6 + 3 != n * 9 + 1", "true"),
        ("i in 4", "i == 4", "false"),
        ("n, m; n < m", "n == m", "false"),
        ("n, m; n < m", "m <= n", "false"),
        ("x: i32", "x * 2i32 == 1i32", "false"),
        ("x: i32", "x * 2i32 != x + x", "false"),
        ("x: u8", "x * 4u8 + 1u8 == x * 8u8 + 4u8", "false"),
        ("x: u8", "256 <= i64(x)", "false"),
        ("x: i8; y: i8", "x + 1i8 == y + 1i8", "x == y"),
        ("x: i8; y: i8", "x + 1i8 == y - 1i8", "x + 2i8 == y"),
        ("x: i8; y: i8", "x + 1i8 < y + 1i8", "x + 1i8 < y + 1i8"),
        ("x: i8", "x * 2i8 == 2i8", "x * 2i8 == 2i8"),  # also where x is -127
        ("x: f32", "x == x", "x == x"),
        ("x: f32; y: f32", "not (x < y)", "not x < y"),  # both fail for NaN
    ],
)
def test_decided_and_undecided(scope, text, expected):
    assert Scope(scope).simplified(text) == expected


@pytest.mark.parametrize(
    ("scope", "text", "expected"),
    [
        ("n; i in n // 4", "ramp(i * 4, 1, 4) < broadcast(n, 4)", "broadcast(true, 4)"),
        ("n; i in n // 4", "broadcast(n, 4) <= ramp(i * 4, 1, 4)", "broadcast(false, 4)"),
        ("n; i in n", "broadcast(n, 4) > ramp(i, -1, 4)", "broadcast(true, 4)"),
        ("n; i in n", "ramp(i, 1, 4) < ramp(n, 1, 4)", "broadcast(true, 4)"),
        ("i in 8", "ramp(i, 1, 4) < broadcast(8, 4)", "ramp(i, 1, 4) < broadcast(8, 4)"),
        ("x: i32", "ramp(x, 1i32, 4) < broadcast(x + 4i32, 4)", None),  # lanes may wrap
        ("x: i64x4", "x < broadcast(3, 4)", "x < broadcast(3, 4)"),
    ],
)
def test_vectors_are_decided_at_their_ends(scope, text, expected):
    assert Scope(scope).simplified(text) == (expected or text)
