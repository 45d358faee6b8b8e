"""Rules are applied where they hold, and only there."""

import re

import pytest

from refcomp.arith.linear import Sum
from refcomp.arith.simplify.matching import Application, split_by_product
from refcomp.arith.simplify.pattern import compile_rule
from refcomp.arith.simplify.rules import (
    BITS,
    CHOICES,
    COMPARISONS,
    EXTREMES,
    FLOATS,
    INTEGER,
    LANES,
    ORDER,
    VECTORS,
    WRAPPING,
    Rule,
)
from refcomp.foundation.dtype import I32, I64
from tests.arith.facts_text import Scope

_TYPES = {"integer": "i32", "wrapping": "i32", "order": "i32", "float": "f32"}


def _instance(text, dtype, constants):
    """The text of a rule as loop IR: constants and literals get values and types."""
    for name, value in constants.items():
        text = re.sub(rf"\b{name}\b", str(value), text)
    text = re.sub(r"\bTrue\b", "true", re.sub(r"\bFalse\b", "false", text))
    text = re.sub(r"\blanes\b", "4", text)
    if dtype == "f32":
        return re.sub(r"(\d+\.\d)", r"\1f32", text)
    return text if dtype == "i64" else re.sub(r"(?<![\w.])(\d+)(?![\w.])", rf"\1{dtype}", text)


def _typed(rule):
    compares = rule in COMPARISONS and rule.theory == "logic"
    dtype = "bool" if compares else _TYPES.get(rule.theory, "i64")
    names = set(re.findall(r"\b[a-z]\b", rule.before)) - {"c"}
    return dtype, "; ".join(f"{n}: {'bool' if n in 'pq' else dtype}" for n in sorted(names))


ORDERLY = [r for r in (*EXTREMES, *COMPARISONS, *CHOICES, *BITS, *FLOATS) if r.theory != INTEGER]


@pytest.mark.parametrize("rule", [*ORDERLY, *VECTORS], ids=str)
def test_both_sides_of_a_rule_become_one(rule):
    dtype, scope = _typed(rule)
    low = 5 if "c2 <= c1" in rule.where else 3
    constants = {"c": 4, "c1": low, "c2": 8 - low}
    before, after = (_instance(text, dtype, constants) for text in (rule.before, rule.after))
    scope = Scope(scope)
    assert scope.simplified(before) == scope.simplified(after)


@pytest.mark.parametrize("rule", LANES, ids=str)
def test_lanes(rule):
    scope = Scope("x: i32x4")
    texts = (re.sub(r"(\d)", r"broadcast(\1i32, 4)", t) for t in (rule.before, rule.after))
    before, after = map(scope.simplified, texts)
    assert before == after and len(before) < 20


def _applied(rule, scope, text):
    """What `rule` alone makes of the root of a text; None where it does not apply."""
    simplifier = scope.facts.simplifier
    node = scope.expr(text)
    args = tuple(simplifier.representative(getattr(node, f)) for f in ("a", "b"))
    result = Application(simplifier, compile_rule(rule), node.a.dtype).rewrite(args)
    return None if result is None else scope.facts.table.intern(result)


SPLIT = Rule("(x * m + y) // m", "x + y // m", "m != 0", INTEGER)


@pytest.mark.parametrize(
    ("scope", "text", "expected"),
    [
        ("i in 16; n", "(i * 8 + n + 5) // 4", "i * 2 + (n + 1) // 4 + 1"),
        ("i in 16; n", "(i * 8 + n) // -4", "(0 - n) // 4 - i * 2"),
        ("n, m; i in n; j in m", "(i * m + j) // m", "i"),
        ("n, m; i in n; 1 <= m", "(i * m * 4 + n) // (m * 4)", "i + n // (m * 4)"),
        ("n, m; i in n", "(i * m + i) // m", None),  # m may be 0
        ("n; i in n", "(n * 3 + i + 3) // (n + 1)", "3 + i // (n + 1)"),
        ("x: i64; y: i64", "(x * 4 + y) // 4", None),  # may wrap
        ("x: i32 in 99i32; y: i32", "(x * 4i32 + (y & 3i32)) // 4i32", "x"),
        ("i in 16", "i // 4", None),
    ],
)
def test_sums_are_split_by_divisors(scope, text, expected):
    scope = Scope(scope)
    found = _applied(SPLIT, scope, text)
    assert (
        found is scope.facts.simplifier.representative(scope.expr(expected))
        if expected
        else (found is None)
    )


def test_side_conditions_are_proved_or_computed():
    rule = Rule("x // m", "0", "0 <= x and x < m", INTEGER)
    assert _applied(rule, Scope("n; i in n"), "i // n") is not None
    assert _applied(rule, Scope("n; i in n"), "i // (n - 1)") is None
    rule = Rule("x // c1", "x", "c1 % 4 == 3", INTEGER)
    assert _applied(rule, Scope("n"), "n // 7") is not None
    assert _applied(rule, Scope("n"), "n // 8") is None


def test_results_that_would_wrap_are_refused():
    rule = Rule("(x // c1) // c2", "x // (c1 * c2)", "0 < c1 and 0 < c2", INTEGER)
    scope = Scope("x: i32")
    assert _applied(rule, scope, "x // 65536i32 // 256i32") is not None
    assert _applied(rule, scope, "x // 65536i32 // 65536i32") is None


def test_a_name_that_occurs_twice_stands_for_one_value():
    rule = Rule("min(min(x, y), x)", "min(x, y)", "", ORDER)
    scope = Scope("x: i32; y: i32; z: i32")
    assert _applied(rule, scope, "min(min(x, y), x)") is not None
    assert _applied(rule, scope, "min(min(x, y), z)") is None


def test_literals_match_modulo_the_width():
    rule = Rule("x & -1", "x", "", WRAPPING)
    assert _applied(rule, Scope("x: u8"), "x & 255u8") is not None
    assert _applied(rule, Scope("x: i32"), "x & 255i32") is None


def test_sums_of_signs():
    rule = compile_rule(Rule("x * c + y < 0", "x < 0", "1 < c and 0 <= y and y < c", INTEGER))
    scope = Scope("i in 16; j in 4")
    simplifier = scope.facts.simplifier
    total = simplifier.table.sum_of(simplifier.representative(scope.expr("i * 4 + j - 24")))
    found = Application(simplifier, rule, I64).rewrite_sum(total)
    assert found is not None and found.const == -6 and list(found.terms.values()) == [1]
    assert Application(simplifier, rule, I32).rewrite_sum(total.shift(1)) is None


def test_split_by_product():
    total = Sum({(0, 1, 2): 6, (0, 1): 4, (1, 2): 3, (0, 1, 1): 2}, 5)
    quotient, rest = split_by_product(total, (0, 1), 2)
    assert quotient.terms == {(2,): 3, (1,): 1} and quotient.const == 2
    assert rest.terms == {(1, 2): 3} and rest.const == 5
