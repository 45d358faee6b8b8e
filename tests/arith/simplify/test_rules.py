import pytest

from refcomp.arith.simplify.rules import (
    FLOAT,
    INTEGER,
    LANES,
    ORDER,
    RECOMBINATION,
    RULES,
    SIGNS,
    WRAPPING,
    Rule,
)
from tests.arith.simplify.rules_in_z3 import refuted


@pytest.mark.search
@pytest.mark.parametrize("rule", [*RULES, *SIGNS], ids=str)
def test_each_rule_is_proved(rule):
    assert refuted(rule) is None


@pytest.mark.parametrize(("quotient", "remainder"), RECOMBINATION)
def test_quotients_and_remainders_recombine(quotient, remainder):
    whole = f"({quotient}) * m + ({remainder})"
    assert refuted(Rule(whole, "x", "m != 0", WRAPPING)) is None


@pytest.mark.parametrize(
    "rule",
    [
        Rule("(x * m + y) // m", "x + y // m", "", INTEGER),
        Rule("x // m", "0", "0 <= x", INTEGER),
        Rule("(x // c1) // c2", "x // (c1 * c2)", "0 < c1", INTEGER),
        Rule("truncdiv(x, y)", "x // y", "0 < y", INTEGER),
        Rule("x * c + y < 0", "x < 0", "0 <= y and y <= c", INTEGER),
        Rule("(x * c + y) % c", "y % c", "0 < c", WRAPPING),
        Rule("(x * c) // c", "x", "c != 0", WRAPPING),
        Rule("x + 1 < x", "False", "", WRAPPING),
        Rule("min(max(x, c1), c2)", "c2", "", ORDER),
        Rule("x + 0.0", "x", "", FLOAT),
        Rule("x - x", "0.0", "", FLOAT),
        Rule("x * 0.0", "0.0", "", FLOAT),
    ],
    ids=str,
)
def test_what_is_false_is_refuted(rule):
    assert ": sat" in refuted(rule)


def test_no_rule_stands_twice():
    texts = [(rule.before, rule.where) for rule in RULES if rule not in LANES]
    assert len(set(texts)) == len(texts)
