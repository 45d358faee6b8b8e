"""The texts of rules as formulas of Z3, read here again, so that a wrong reading shows.

`refuted(rule)` gives a counter-example, or None when the rule is proved. Names by which the rule
divides or multiplies, and constants, take each value of a small range in turn, as Z3 decides
linear arithmetic only; all other names are unbounded integers, or bit-vectors of 8 bits.
"""

import ast
import itertools
from collections.abc import Mapping
from types import MappingProxyType

import z3

from refcomp.arith.simplify.rules import FLOAT, INTEGER, LOGIC, ORDER, VECTOR, WRAPPING, Rule

_WIDTH = 8
_SMALL = range(-4, 8)
_BOOLS = ("p", "q")


def refuted(rule: Rule) -> str | None:
    """A counter-example of `rule` in its theory, None when there is none."""
    if rule.theory == INTEGER:
        return _refuted_over_integers(rule)
    worlds = {
        ORDER: [_Integers({})],
        LOGIC: [_Integers({}), _Floats(5, 11)],
        WRAPPING: [_Bits(True), _Bits(False)],
        VECTOR: [_Bits(True)],
        FLOAT: [_Floats(5, 11), _Floats(8, 8)],
    }[rule.theory]
    found = (_counter_example(rule, world) for world in worlds)
    return next((text for text in found if text), None)


def _refuted_over_integers(rule: Rule) -> str | None:
    names = {
        n.id
        for n in ast.walk(ast.parse(f"({rule.before}, {rule.where or 0})"))
        if isinstance(n, ast.Name)
    } - {"truncdiv", "truncmod"}
    divides = "truncdiv" in rule.before or "truncmod" in rule.before
    chosen = sorted(n for n in names if n[0] in "cm" or (n == "y" and divides))
    for values in itertools.product(_SMALL, repeat=len(chosen)):
        found = _counter_example(rule, _Integers(dict(zip(chosen, values, strict=True))))
        if found:
            return found
    return None


def _counter_example(rule: Rule, world: "_World") -> str | None:
    where = world.read(rule.where) if rule.where else z3.BoolVal(True)
    if z3.is_false(z3.simplify(where)):
        return None
    solver = z3.Solver()
    solver.add(where, z3.Not(world.read(rule.before) == world.read(rule.after)))
    answer = solver.check()
    if answer == z3.unsat:
        return None
    return f"{rule}: {answer} {solver.model() if answer == z3.sat else ''} {world.known}"


class _World:
    """How the operators of a rule's text are read; `known` gives some names a value."""

    known: Mapping[str, int] = MappingProxyType({})

    def read(self, text):
        return self.expr(ast.parse(text, mode="eval").body)

    def expr(self, item):
        match item:
            case ast.Name(id=name):
                return z3.Bool(name) if name in _BOOLS else self.variable(name)
            case ast.Constant(value=bool() as value):
                return z3.BoolVal(value)
            case ast.Constant(value=value):
                return self.number(value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)):
                return self.number(-value)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return z3.Not(self.expr(operand))
            case ast.BoolOp(op=operator, values=values):
                join = z3.And if isinstance(operator, ast.And) else z3.Or
                return join(*map(self.expr, values))
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                return self.compare(type(operator), self.expr(left), self.expr(right))
            case ast.BinOp(left=left, op=operator, right=right):
                return self.binary(type(operator), self.expr(left), self.expr(right))
            case ast.Call(func=ast.Name(id=name), args=args):
                return self.call(name, args)
        raise AssertionError(ast.dump(item))

    def call(self, name, args):
        if name in ("select", "if_then_else"):
            return z3.If(*map(self.expr, args))
        if name == "broadcast":
            return self.expr(args[0])
        if name == "ramp":  # the value in any one lane
            return self.expr(args[0]) + self.variable("lane") * self.expr(args[1])
        a, b = map(self.expr, args)
        if name in ("min", "max"):
            return self.extreme(name, a, b)
        quotient = self.truncated(a, b)
        return quotient if name == "truncdiv" else z3.If(b == 0, self.number(0), a - b * quotient)

    def extreme(self, name, a, b):
        return z3.If(self.compare(ast.Lt, *((b, a) if name == "min" else (a, b))), b, a)

    def compare(self, operator, a, b):
        return _COMPARED[operator](a, b)

    def binary(self, operator, a, b):
        if operator is ast.FloorDiv:
            return self.floored(a, b)
        if operator is ast.Mod:
            return z3.If(b == 0, self.number(0), a - b * self.floored(a, b))
        return _COMPUTED[operator](a, b)


_COMPARED = {
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
}
_COMPUTED = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.BitAnd: lambda a, b: a & b,
    ast.BitOr: lambda a, b: a | b,
    ast.BitXor: lambda a, b: a ^ b,
    ast.LShift: lambda a, b: a << b,
    ast.RShift: lambda a, b: a >> b,
}


class _Integers(_World):
    """Unbounded integers."""

    def __init__(self, known):
        self.known = known

    def variable(self, name):
        return z3.IntVal(self.known[name]) if name in self.known else z3.Int(name)

    def number(self, value):
        return z3.IntVal(value)

    def floored(self, a, b):
        # Z3's integer division rounds down for positive divisors.
        return z3.If(b == 0, 0, z3.If(b > 0, a / b, (-a) / (-b)))

    def truncated(self, a, b):
        size = z3.If(a < 0, -a, a) / z3.If(b < 0, -b, b)
        return z3.If(b == 0, 0, z3.If((a < 0) == (b < 0), size, -size))


class _Bits(_World):
    """Integers of 8 bits."""

    def __init__(self, is_signed):
        self.is_signed = is_signed

    def variable(self, name):
        return z3.BitVec(name, _WIDTH)

    def number(self, value):
        return z3.BitVecVal(value, _WIDTH)

    def compare(self, operator, a, b):
        if self.is_signed or operator in (ast.Eq, ast.NotEq):
            return _COMPARED[operator](a, b)
        return {ast.Lt: z3.ULT, ast.LtE: z3.ULE}[operator](a, b)

    def binary(self, operator, a, b):
        if operator is ast.RShift and not self.is_signed:
            return z3.LShR(a, b)
        return super().binary(operator, a, b)

    def truncated(self, a, b):
        return z3.If(b == 0, self.number(0), a / b if self.is_signed else z3.UDiv(a, b))

    def floored(self, a, b):
        if not self.is_signed:
            return self.truncated(a, b)
        rest = z3.SRem(a, b)
        is_below = z3.And(rest != 0, (rest < 0) != (b < 0))
        return z3.If(b == 0, self.number(0), z3.If(is_below, a / b - 1, a / b))


class _Floats(_World):
    """IEEE floats; equality of results is that of bits, but for NaN."""

    def __init__(self, exponent, significand):
        self.sort = z3.FPSort(exponent, significand)

    def variable(self, name):
        return z3.FP(name, self.sort)

    def number(self, value):
        return (
            z3.FPVal(value, self.sort)
            if value or str(value)[0] != "-"
            else z3.fpMinusZero(self.sort)
        )

    def compare(self, operator, a, b):
        if z3.is_bool(a):
            return _COMPARED[operator](a, b)
        equal = z3.fpEQ(a, b)
        if operator in (ast.Eq, ast.NotEq):
            return equal if operator is ast.Eq else z3.Not(equal)
        return {ast.Lt: z3.fpLT, ast.LtE: z3.fpLEQ}[operator](a, b)

    def extreme(self, name, a, b):
        is_second = self.compare(ast.Lt, *((b, a) if name == "min" else (a, b)))
        return z3.If(z3.Or(is_second, z3.fpIsNaN(b)), b, a)

    def binary(self, operator, a, b):
        compute = {ast.Add: z3.fpAdd, ast.Sub: z3.fpSub, ast.Mult: z3.fpMul, ast.Div: z3.fpDiv}
        return compute[operator](z3.RNE(), a, b)
