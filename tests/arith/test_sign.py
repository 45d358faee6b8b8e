import pytest

from refcomp.arith.sign import SignSearch
from tests.arith.facts_text import Scope

PROVED = [
    ("n; i in n // 4; j in 4", "n - 1 - i * 4 - j"),
    ("n, m; f in n * m", "n * m - 1 - f"),
    ("n, m; f in n * m", "n - 1 - f // m"),
    ("n, m; f in n * m", "m - 1 - f % m"),
    ("n", "n - n // 4"),
    ("n", "n // 2 * 3 - n - n // 4 + 3"),
    ("n, m; n < m; m < 8", "6 - n"),
    ("n, m, k; n < m; m < k", "k - n - 2"),
    ("n, m", "n - min(n, m)"),
    ("n, m", "min(n, m)"),
    ("n, m", "max(n, m) - m"),
    ("n, m; 3 <= n; 3 <= m", "min(n, m) - 3"),
    ("n, m; n <= m", "m - select(n < 4, n, n - 4)"),
    ("n; i in n; j in i..n", "j - i"),
    ("n; i in n; j in i..n", "n - j + i - 1"),
    ("n, m; i in n; j in m", "n * m - 1 - i * m - j"),
]
NOT_PROVED = [
    ("n; i in (n + 3) // 4; j in 4", "n - 1 - i * 4 - j"),
    ("n, m", "n - m"),
    ("n, m; n <= m", "n - m"),
    ("n, m; n < m", "m - n - 2"),
    ("n", "n // 4 * 4 - n"),
    ("n, m; f in n * m", "f // m - 1"),
    ("n, m", "min(n, m) - 1"),
    ("n, m; 3 <= n", "min(n, m) - 3"),
    ("n, m; 3 <= n", "select(m < 4, n, 0) - 3"),
    ("n; i in n", "i - 1"),
    ("x: i64", "x % 5 - 1"),
]


def _search(scope, text, budget=24):
    simplifier = scope.facts.simplifier
    total = scope.facts.table.sum_of(simplifier.representative(scope.expr(text)))
    return SignSearch(scope.facts, simplifier.make, budget).is_nonnegative(total)


@pytest.mark.parametrize(("scope", "text"), PROVED)
def test_proved(scope, text):
    assert _search(Scope(scope), text)


@pytest.mark.parametrize(("scope", "text"), NOT_PROVED)
def test_not_proved(scope, text):
    assert not _search(Scope(scope), text)


def test_effort_is_bounded():
    scope = Scope("n, m; f in n * m")
    assert not _search(scope, "n * m - 1 - f", budget=0)
    loops = "; ".join(f"i{k} in n // {k + 2}" for k in range(23))
    text = "n * 30 - " + " - ".join(f"i{k}" for k in range(23))
    assert not _search(Scope(f"n; {loops}"), text, budget=3)
    assert _search(Scope(f"n; {loops}"), text, budget=100)
