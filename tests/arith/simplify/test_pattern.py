import pytest

from refcomp.arith.simplify.pattern import (
    Name,
    Number,
    Op,
    compile_rule,
    parse,
    rules_by_class,
    rules_for,
)
from refcomp.arith.simplify.rules import FLOAT, INTEGER, LOGIC, RULES, Rule
from refcomp.foundation.errors import CompilerBug
from refcomp.ir.expr import (
    LE,
    LT,
    Add,
    And,
    Broadcast,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Min,
    Mod,
    Mul,
    Not,
    Select,
    Var,
)

X, Y, C = Name("x", False), Name("y", False), Name("c1", True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x * c1 + y", Op(Add, (Op(Mul, (X, C)), Y))),
        ("x // c1 % 2", Op(FloorMod, (Op(FloorDiv, (X, C)), Number(2)))),
        ("truncmod(x, -1)", Op(Mod, (X, Number(-1)))),
        ("not x < y", Op(Not, (Op(LT, (X, Y)),))),
        ("x and y and c1", Op(And, (Op(And, (X, Y)), C))),
        ("select(x <= y, min(x, y), -0.0)", None),
    ],
)
def test_texts_are_read(text, expected):
    found = parse(text)
    assert expected is None or found == expected


def test_calls():
    found = parse("select(x <= y, min(x, y), 1.5)")
    assert found == Op(Select, (Op(LE, (X, Y)), Op(Min, (X, Y)), Number(1.5)))


@pytest.mark.parametrize("text", ["x ** y", "f(x)", "x < y < c1", "'x'", "-x", "x.y"])
def test_other_texts_are_refused(text):
    with pytest.raises((CompilerBug, KeyError)):
        parse(text)


def test_conditions_are_lists_of_comparisons():
    compiled = compile_rule(Rule("x and y", "x", "0 <= x and x < y and y < 3", LOGIC))
    assert [condition.cls for condition in compiled.where] == [LE, LT, LT]
    with pytest.raises(CompilerBug, match="is not a comparison"):
        compile_rule(Rule("x and y", "x", "x", LOGIC))


def test_a_rule_applies_to_some_class():
    with pytest.raises(CompilerBug, match="applies to everything"):
        compile_rule(Rule("x", "x", "", LOGIC))


def test_rules_are_found_by_class_in_their_order():
    found = [compiled.rule for rules in rules_by_class().values() for compiled in rules]
    assert sorted(map(str, found)) == sorted(map(str, RULES))
    divisions = [c.rule.before for c in rules_by_class()[FloorDiv]]
    assert divisions.index("x // m") < divisions.index("(x * m + y) // m")


def test_operands_of_other_classes_rule_a_rule_out_before_it_is_matched():
    quotient = compile_rule(Rule("(x // c1) // c2", "x // (c1 * c2)", "", INTEGER))
    assert quotient.may_match((FloorDiv, IntImm))
    assert not quotient.may_match((Var, IntImm))
    assert not quotient.may_match((FloorDiv, Var))
    scaled = compile_rule(Rule("x * 0.5", "x", "", FLOAT))
    assert scaled.may_match((Var, FloatImm)) and scaled.may_match((Var, Broadcast))
    assert not scaled.may_match((FloatImm, Var))


def test_rules_for_operands_are_those_that_may_match():
    scaled = compile_rule(next(rule for rule in RULES if rule.before == "x * 1.0"))
    assert scaled in rules_for((Mul, Var, FloatImm))
    assert scaled not in rules_for((Mul, Var, Var))
    assert rules_for((FloorDiv, Var, Var)) == tuple(
        compiled for compiled in rules_by_class()[FloorDiv] if compiled.may_match((Var, Var))
    )


def test_a_sum_may_be_any_node():
    assert compile_rule(Rule("(x * c1 + y) // c1", "x", "", INTEGER)).may_match((Var, IntImm))
