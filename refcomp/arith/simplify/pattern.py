"""The texts of rules as patterns: small trees over node classes, names and numbers.

`compile_rule` reads a rule; a text outside of the small language of rules.py raises CompilerBug.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from refcomp.arith.simplify import rules
from refcomp.arith.simplify.rules import Rule
from refcomp.foundation.errors import CompilerBug
from refcomp.ir import expr as ir


@dataclass(frozen=True, slots=True)
class Name:
    """Any expression; an integer constant where `is_const`, a number of lanes for `lanes`."""

    name: str
    is_const: bool


@dataclass(frozen=True, slots=True)
class Number:
    """This integer, float or bool; a bool only matches bools."""

    value: int | float | bool


@dataclass(frozen=True, slots=True)
class Op:
    """A node of a class with these operands."""

    cls: type[Any]
    args: tuple[Pattern, ...]


Pattern = Name | Number | Op


@dataclass(frozen=True, slots=True)
class Compiled:
    """A rule, read: the pattern it applies to, the result, and the conditions, all of them."""

    rule: Rule
    before: Op
    after: Pattern
    where: tuple[Op, ...]
    heads: tuple[tuple[int, tuple[type[Any], ...]], ...]

    def may_match(self, args: tuple[Any, ...]) -> bool:
        """Whether the operands' classes are among the ones that their patterns match (`heads`):
        most rules are about others, and are told apart by this alone."""
        return all(type(args[k]) in classes for k, classes in self.heads)


_BINARY: dict[type[ast.AST], type[Any]] = {
    ast.Add: ir.Add,
    ast.Sub: ir.Sub,
    ast.Mult: ir.Mul,
    ast.Div: ir.Div,
    ast.FloorDiv: ir.FloorDiv,
    ast.Mod: ir.FloorMod,
    ast.BitAnd: ir.BitAnd,
    ast.BitOr: ir.BitOr,
    ast.BitXor: ir.BitXor,
    ast.LShift: ir.ShiftLeft,
    ast.RShift: ir.ShiftRight,
    ast.Lt: ir.LT,
    ast.LtE: ir.LE,
    ast.Eq: ir.EQ,
    ast.NotEq: ir.NE,
    ast.And: ir.And,
    ast.Or: ir.Or,
}
_CALLS: dict[str, type[Any]] = {
    "min": ir.Min,
    "max": ir.Max,
    "truncdiv": ir.Div,
    "truncmod": ir.Mod,
    "select": ir.Select,
    "if_then_else": ir.IfThenElseExpr,
    "broadcast": ir.Broadcast,
    "ramp": ir.Ramp,
}


@cache
def compile_rule(rule: Rule) -> Compiled:
    """`rule` as patterns."""
    before = parse(rule.before)
    if not isinstance(before, Op):
        raise CompilerBug(f"the rule {rule} applies to everything")
    where = _conjuncts(parse(rule.where)) if rule.where else ()
    heads = [(k, _classes_of(arg)) for k, arg in enumerate(before.args)]
    told_apart = tuple((k, classes) for k, classes in heads if classes)
    return Compiled(rule, before, parse(rule.after), tuple(where), told_apart)


def _classes_of(pattern: Pattern) -> tuple[type[Any], ...]:
    """The classes of the nodes that match; none where any may, as a sum may be any node."""
    if isinstance(pattern, Name):
        return (ir.IntImm, ir.Broadcast) if pattern.is_const else ()
    if isinstance(pattern, Number):
        return (ir.IntImm, ir.FloatImm, ir.Broadcast)
    return () if pattern.cls in (ir.Add, ir.Mul) else (pattern.cls,)


@cache
def rules_by_class() -> dict[type[Any], tuple[Compiled, ...]]:
    """All rules by the class of the node that they apply to, in their order."""
    return _by_class(rules.RULES)


def _by_class(texts: Iterable[Rule]) -> dict[type[Any], tuple[Compiled, ...]]:
    found: dict[type[Any], list[Compiled]] = defaultdict(list)
    for rule in texts:
        compiled = compile_rule(rule)
        found[compiled.before.cls].append(compiled)
    return {cls: tuple(items) for cls, items in found.items()}


def parse(text: str) -> Pattern:
    """The pattern that an expression of rules.py stands for."""
    return _read(ast.parse(text.strip(), mode="eval").body)


def _read(item: ast.AST) -> Pattern:
    match item:
        case ast.Name(id=name):
            return Name(name, name.startswith("c"))
        case ast.Constant(value=bool() | int() | float() as value):
            return Number(value)
        case ast.UnaryOp(
            op=ast.USub(), operand=ast.Constant(value=int() | float() as value)
        ):
            return Number(-value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return Op(ir.Not, (_read(operand),))
        case ast.BinOp(left=left, op=operator, right=right):
            return Op(_BINARY[type(operator)], (_read(left), _read(right)))
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            return Op(_BINARY[type(operator)], (_read(left), _read(right)))
        case ast.BoolOp(op=operator, values=values):
            return _chain(_BINARY[type(operator)], [_read(value) for value in values])
        case ast.Call(func=ast.Name(id=name), args=args) if name in _CALLS:
            return Op(_CALLS[name], tuple(_read(arg) for arg in args))
    raise CompilerBug(f"no rule can hold {ast.unparse(item)}")


def _chain(cls: type[Any], parts: list[Pattern]) -> Pattern:
    result = parts[0]
    for part in parts[1:]:
        result = Op(cls, (result, part))
    return result


def _conjuncts(pattern: Pattern) -> list[Op]:
    if not isinstance(pattern, Op):
        raise CompilerBug(f"the condition {pattern} is no comparison")
    if pattern.cls is not ir.And:
        return [pattern]
    return [part for arg in pattern.args for part in _conjuncts(arg)]
