"""Patterns of rules: small trees over node classes, names and numbers, read from text.

`compile_rule` reads a rule. A text outside of the small language of rules.py raises CompilerBug.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Sequence
from functools import cache, reduce

from refcomp.arith.simplify import rules
from refcomp.arith.simplify.rules import Rule
from refcomp.foundation.errors import CompilerBug
from refcomp.foundation.records import record
from refcomp.ir import expr as ir


@record
class Name:
    """A name, which stands for any expression, for a constant, or for a number of lanes."""

    name: str
    is_const: bool  # True: an integer constant only


@record
class Number:
    """An integer, float or bool, which stands for itself; a bool matches bools only."""

    value: int | float | bool


@record
class Op:
    """A node of a class with these operands."""

    cls: type[ir.Expr]
    args: tuple[Pattern, ...]


Pattern = Name | Number | Op
Classes = tuple[type[ir.Expr], ...]


@record
class Compiled:
    """A rule whose texts are read."""

    rule: Rule
    before: Op
    after: Pattern
    where: tuple[Op, ...]  # conditions, all of which must hold
    # Position of an operand of `before`, and the classes of the nodes that may match it. Operands
    # that nodes of any class match are left out.
    heads: tuple[tuple[int, Classes], ...]

    def may_match(self, operands: Sequence[type]) -> bool:
        """Return False if the classes of the operands exclude a match, as for most rules."""
        return all(operands[k] in classes for k, classes in self.heads)


_BINARY: dict[type[ast.AST], type[ir.Expr]] = {
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
_CALLS: dict[str, type[ir.Expr]] = {
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
    """Return `rule` as patterns."""
    before = parse(rule.before)
    if not isinstance(before, Op):
        raise CompilerBug(f"the rule {rule} applies to everything")
    where = _conjuncts(parse(rule.where)) if rule.where else []
    heads: list[tuple[int, Classes]] = []
    for k, arg in enumerate(before.args):
        classes = _classes_of(arg)
        if classes:
            heads.append((k, classes))
    return Compiled(
        rule=rule,
        before=before,
        after=parse(rule.after),
        where=tuple(where),
        heads=tuple(heads),
    )


def _classes_of(pattern: Pattern) -> Classes:
    """Return the classes of the nodes that may match; none if any node may."""
    if isinstance(pattern, Name):
        return (ir.IntImm, ir.Broadcast) if pattern.is_const else ()
    if isinstance(pattern, Number):
        is_float = isinstance(pattern.value, float)
        return (ir.FloatImm if is_float else ir.IntImm, ir.Broadcast)
    # Patterns of sums match any node: x is x * 1 + 0.
    return () if pattern.cls in (ir.Add, ir.Mul) else (pattern.cls,)


@cache
def rules_by_class() -> dict[type[ir.Expr], tuple[Compiled, ...]]:
    """Return all rules by the class of the node to which they apply, in their order."""
    found: dict[type[ir.Expr], list[Compiled]] = defaultdict(list)
    for rule in rules.RULES:
        compiled = compile_rule(rule)
        found[compiled.before.cls].append(compiled)
    return {cls: tuple(items) for cls, items in found.items()}


@cache
def rules_for(classes: tuple[type, ...]) -> tuple[Compiled, ...]:
    """Return the rules that may match a node, by its class and the classes of its operands."""
    cls, *operands = classes
    of_class = rules_by_class().get(cls, ())
    return tuple(compiled for compiled in of_class if compiled.may_match(operands))


def parse(text: str) -> Pattern:
    """Return the pattern for an expression of rules.py."""
    return _read(ast.parse(text.strip(), mode="eval").body)


def _read(item: ast.AST) -> Pattern:
    match item:
        case ast.Name(id=name):
            return Name(name, is_const=name.startswith("c"))
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
            cls = _BINARY[type(operator)]
            return reduce(lambda a, b: Op(cls, (a, b)), map(_read, values))
        case ast.Call(func=ast.Name(id=name), args=args) if name in _CALLS:
            return Op(_CALLS[name], tuple(_read(arg) for arg in args))
    raise CompilerBug(f"no rule can hold {ast.unparse(item)}")


def _conjuncts(pattern: Pattern) -> list[Op]:
    if not isinstance(pattern, Op):
        raise CompilerBug(f"the condition {pattern} is not a comparison")
    if pattern.cls is not ir.And:
        return [pattern]
    return [part for arg in pattern.args for part in _conjuncts(arg)]
