import pytest

from tests.arith.facts_text import Scope


@pytest.mark.parametrize(
    ("scope", "text", "expected"),
    [
        ("n", "n // 4 * 4 + n % 4", "n"),
        ("n", "n - n // 4 * 4", "n % 4"),
        ("n", "n * 3 - n // 4 * 12 + 7", "n % 4 * 3 + 7"),
        ("n, m", "(n + m) // 4 * 4 + (n + m) % 4", "n + m"),
        ("n, m", "n // 4 * (m * 4) + n % 4 * m", "n * m"),
        ("n", "n // 12 * 12 + n // 4 % 3 * 4 + n % 4", "n"),
        ("n; n % 4 == 3", "n // 4 * 4", "n - 3"),
        ("n, m; 1 <= m", "n // m * m + n % m", "n"),
        ("n, m; 1 <= m", "n // (m + 1) * (m + 1) + n % (m + 1)", "n"),
        ("n, m, k; 1 <= m; 1 <= k", "n // (m * k) * m * k + n % (m * k)", "n"),
        ("n, m", "n // m * m + n % m", "n // m * m + n % m"),  # m may be 0
        ("n", "n // 4 * 3 + n % 4", "n // 4 * 3 + n % 4"),
        ("x: i32", "x // 4i32 * 4i32 + x % 4i32", "x"),
        ("x: i32", "truncdiv(x, 4i32) * 4i32 + truncmod(x, 4i32)", "x"),
        ("x: i32; y: i32", "(x + y) // 4i32 * 4i32 + (x + y) % 4i32", "x + y"),
        ("x: u8", "x // 0u8 * 0u8 + x", "x"),
    ],
)
def test_quotients_and_remainders_are_put_together(scope, text, expected):
    assert Scope(scope).simplified(text) == expected


@pytest.mark.parametrize(
    ("scope", "text", "expected"),
    [
        ("n; i in n", "(i + 1) * n - i * n", "n"),
        ("n; i in n", "i * (n + 1)", "i * (n + 1)"),
        ("n; i in n", "(i * 4 + 3) * (n + 1)", "i * (n + 1) * 4 + n * 3 + 3"),
        ("n, m", "(n + 1) * m", "n * m + m"),
        ("n, m", "(n + 1) * (m + 1)", "(n + 1) * (m + 1)"),
        ("n; i in n; j in n", "(i + 1) * (j + 1)", "(i + 1) * (j + 1)"),
        ("n; i in n; j in n", "i * j - j * i", "0"),
        ("x: i32; y: i32", "x * (y + 1i32)", "x * (y + 1i32)"),
        ("x: i32; y: i32", "(y + 1i32) * 4i32 * x", "(y + 1i32) * x * 4i32"),
        ("x: i32; y: i32", "(x + y) * 3i32 - x * 3i32", "y * 3i32"),
    ],
)
def test_what_is_multiplied_out(scope, text, expected):
    scope = Scope(scope)
    assert scope.simplified(text) == expected
    assert scope.simplified(expected) == expected


def test_long_sums_are_left_alone():
    terms = " + ".join(f"x{k}" for k in range(70))
    scope = Scope("; ".join(f"x{k}: i64" for k in range(70)) + "; n")
    text = f"{terms} + n % 4 + n // 4 * 4"
    assert scope.simplified(text).endswith("+ n % 4 + n // 4 * 4")
    assert scope.simplified("x1 + n % 4 + n // 4 * 4") == "x1 + n"
