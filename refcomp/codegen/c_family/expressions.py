"""Prints expressions that read no memory as C: one function per node class.

Each takes the kernel being printed and a node, and returns the operand that has its value. Lets and
what is nested too deeply become constants before the statement. Sums and products of integers are
taken in the unsigned type, where they wrap: Note [Ring].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from refcomp.codegen.accumulator import BODY
from refcomp.codegen.c_family.conversions import convert, mask_as_wide_as
from refcomp.codegen.c_family.function import CExpr, CFunction, ring_of
from refcomp.codegen.c_family.half import rounded_to_half
from refcomp.codegen.c_family.prelude import integer_function, pick_function
from refcomp.foundation.dtype import DType
from refcomp.ir import expr as ir
from refcomp.ir.constants import as_constant
from refcomp.ir.expr import Expr, IntImm, Var

_RING = (ir.Add, ir.Sub, ir.Mul)
_BITWISE = (ir.BitAnd, ir.BitOr, ir.BitXor)


def _var(out: CFunction, var: Var) -> CExpr:
    return out.name_of(var)


def _constant(out: CFunction, constant: ir.IntImm | ir.FloatImm) -> CExpr:
    return out.module.literal(constant.value, constant.dtype)


# Arithmetic that wraps.


def print_ring(out: CFunction, expr: Expr) -> CExpr:
    """The value of an integer expression, in its own type or in the unsigned one: modulo 2^bits
    it is the same. Names, loads and constants stay in their own."""
    if isinstance(expr, (*_RING, *_BITWISE)):
        operand = _ring_binary(out, expr)
    elif isinstance(expr, ir.ShiftLeft) and _is_within(expr):
        operand = _ring_shift(out, expr)
    elif isinstance(expr, ir.Ramp):
        operand = _ring_ramp(out, expr)
    else:
        return out.value(expr)
    return out.shallow(operand, expr.dtype)


def _ring_binary(out: CFunction, expr: ir.BinaryExpr) -> CExpr:
    operator, b = type(expr).__name__, expr.b
    if isinstance(expr, ir.Add) and isinstance(b, IntImm) and b.value < 0:
        operator, b = (
            ir.Sub.__name__,
            IntImm(-b.value, b.dtype),
        )  # the least stays itself
    left, right = print_ring(out, expr.a), _ring_constant(out, b) or print_ring(out, b)
    return _ring_infix(out, operator, left, right, expr.dtype)


def _ring_infix(
    out: CFunction, operator: str, a: CExpr, b: CExpr, dtype: DType
) -> CExpr:
    # C converts the other operand by itself, but not between vectors.
    if not (a.is_ring or b.is_ring) or (dtype.lanes > 1 and not a.is_ring):
        a = _to_ring(out, a, dtype)
    if dtype.lanes > 1:
        b = _to_ring(out, b, dtype)
    return out.infix(operator, a, b, is_ring=True)


def _ring_constant(out: CFunction, expr: Expr) -> CExpr | None:
    """A constant of the unsigned type, which spares its neighbour the conversion."""
    value = as_constant(expr)
    if value is None or value < 0:
        return None
    ring = ring_of(expr.dtype)
    operand = (
        out.module.literal(value, ring) if ring.lanes == 1 else out.splat(value, ring)
    )
    return replace(operand, is_ring=True)


def _ring_shift(out: CFunction, expr: ir.ShiftLeft) -> CExpr:
    a = _to_ring(out, print_ring(out, expr.a), expr.dtype)
    b = out.value(expr.b)
    if expr.dtype.lanes > 1:
        b = _to_ring(out, b, expr.dtype)
    return out.infix(ir.ShiftLeft.__name__, a, b, is_ring=True)


def _ring_ramp(out: CFunction, ramp: ir.Ramp) -> CExpr:
    ring, stride = ring_of(ramp.dtype), as_constant(ramp.stride)
    base = out.vector(
        ring, [_to_ring(out, print_ring(out, ramp.base), ramp.base.dtype)]
    )
    known = 1 if stride is None else int(stride)
    numbers = [
        out.module.literal(k * known & ring.max_value, ring.element)
        for k in range(ramp.lanes)
    ]
    steps = out.vector(ring, numbers)
    if stride is None:
        step = _to_ring(out, print_ring(out, ramp.stride), ramp.stride.dtype)
        steps = out.infix(ir.Mul.__name__, out.vector(ring, [step]), steps)
    return out.infix(ir.Add.__name__, base, steps, is_ring=True)


def _to_ring(out: CFunction, operand: CExpr, dtype: DType) -> CExpr:
    ring = ring_of(dtype)
    if operand.is_ring or ring == dtype:
        return operand
    if dtype.lanes > 1:
        text = out.say.reinterpret(out.module.type_of(ring), operand.text)
        return out.compound(text, operand, is_ring=True)
    return out.cast(operand, ring, is_ring=True)


def from_ring(out: CFunction, operand: CExpr, dtype: DType) -> CExpr:
    """`operand` in the type of `dtype`."""
    if not operand.is_ring or ring_of(dtype) == dtype:
        return replace(operand, is_ring=False)
    if dtype.lanes > 1:
        text = out.say.reinterpret(out.module.type_of(dtype), operand.text)
        return out.compound(text, operand)
    return out.cast(operand, dtype)


def _wrapping(out: CFunction, expr: Expr) -> CExpr:
    return from_ring(out, print_ring(out, expr), expr.dtype)


def _arithmetic(out: CFunction, expr: ir.BinaryExpr) -> CExpr:
    if expr.dtype.is_float:
        result = out.infix(type(expr).__name__, out.value(expr.a), out.value(expr.b))
        return rounded_to_half(out, result, expr.dtype)
    return _wrapping(out, expr)


def add(out: CFunction, a: CExpr, b: CExpr, dtype: DType) -> CExpr:
    """The sum of two floats of `dtype`."""
    return rounded_to_half(out, out.infix("Add", a, b), dtype)


def _bitwise(out: CFunction, expr: ir.BinaryExpr) -> CExpr:
    return _plain(out, type(expr).__name__, expr.a, expr.b)


def _plain(out: CFunction, operator: str, a: Expr, b: Expr) -> CExpr:
    """An operator whose result is never out of range."""
    return out.narrowed(out.infix(operator, out.value(a), out.value(b)), a.dtype)


# Division.


def _is_safe_divisor(expr: Expr) -> bool:
    return as_constant(expr) not in (None, 0, -1)


def _div(out: CFunction, expr: ir.Div) -> CExpr:
    if expr.dtype.is_float:
        return _arithmetic(out, expr)
    return _divide(out, expr, "div")


def _mod(out: CFunction, expr: ir.Mod) -> CExpr:
    if not expr.dtype.is_float:
        return _divide(out, expr, "mod")
    # The remainder of two f16 is one, too: nothing is to be rounded.
    a, b = out.value(expr.a), out.value(expr.b)

    def remainder(x: CExpr, y: CExpr) -> CExpr:
        return out.compound(out.say.remainder(x.text, y.text), x, y)

    if expr.dtype.lanes == 1:
        return remainder(a, b)
    # PoCL 3.1 gives some lanes of a vector the remainder of others.
    atoms = [out.atom(a, expr.dtype), out.atom(b, expr.dtype)]
    return out.lane_by_lane(expr.dtype, atoms, remainder)


def _divide(out: CFunction, expr: ir.BinaryExpr, kind: str) -> CExpr:
    if _is_safe_divisor(expr.b):
        return _plain(out, {"div": "Div", "mod": "Mod"}[kind], expr.a, expr.b)
    return _by_function(out, f"{kind}_{expr.dtype.kind}", expr)


def _floor_divide(out: CFunction, expr: ir.FloorDiv | ir.FloorMod) -> CExpr:
    name, constant = type(expr).__name__, as_constant(expr.b)
    if (
        constant is not None
        and constant > 0
        and int(constant) & (int(constant) - 1) == 0
    ):
        power = int(constant)
        amount = power.bit_length() - 1 if isinstance(expr, ir.FloorDiv) else power - 1
        by = _splat(IntImm(amount, expr.dtype.element), expr.dtype.lanes)
        return _plain(out, out.module.tables["floor_by_power"][name], expr.a, by)
    kind = "div" if isinstance(expr, ir.FloorDiv) else "mod"
    if expr.dtype.kind == "uint":
        return _divide(out, expr, kind)
    return _by_function(out, f"floor{kind}_int", expr)


def _splat(scalar: Expr, lanes: int) -> Expr:
    return scalar if lanes == 1 else ir.Broadcast(scalar, lanes)


def _by_function(out: CFunction, macro: str, expr: ir.BinaryExpr) -> CExpr:
    """A function of the prelude on two operands, lane by lane."""
    function = integer_function(out.module, macro, expr.dtype.element)
    a, b = out.value(expr.a), out.value(expr.b)
    if expr.dtype.lanes == 1:
        return out.call(function, a, b)
    atoms = [out.atom(a, expr.dtype), out.atom(b, expr.dtype)]
    return out.lane_by_lane(expr.dtype, atoms, lambda x, y: out.call(function, x, y))


def _is_within(expr: ir.BinaryExpr) -> bool:
    amount = as_constant(expr.b)
    return amount is not None and 0 <= amount < expr.dtype.bits


def _shift_left(out: CFunction, expr: ir.ShiftLeft) -> CExpr:
    return (
        _wrapping(out, expr)
        if _is_within(expr)
        else _by_function(out, "shift_left", expr)
    )


def _shift_right(out: CFunction, expr: ir.ShiftRight) -> CExpr:
    if _is_within(expr):
        return _plain(out, "ShiftRight", expr.a, expr.b)
    return _by_function(out, f"shift_right_{expr.dtype.kind}", expr)


# Comparisons and choices.

_FLIPPED = {ir.LT: "GT", ir.GT: "LT", ir.LE: "GE", ir.GE: "LE"}


def _compare(out: CFunction, expr: ir.Comparison) -> CExpr:
    operator, source = type(expr).__name__, expr.a.dtype
    if source.is_bool and source.lanes > 1:  # true is -1
        operator = _FLIPPED.get(type(expr), operator)
    operand = out.infix(operator, out.value(expr.a), out.value(expr.b))
    if source.lanes == 1 or out.module.value_dtype(source).bits == 8:
        return operand
    # Lanes are as wide as what was compared, 0 or -1.
    text = out.say.convert(out.module.type_of(expr.dtype), operand.text)
    return out.compound(text, operand)


def _logical(out: CFunction, expr: ir.BinaryExpr) -> CExpr:
    single, lanes = type(expr).__name__, {ir.And: "BitAnd", ir.Or: "BitOr"}[type(expr)]
    operator = single if expr.dtype.lanes == 1 else lanes
    return out.infix(operator, out.value(expr.a), out.value(expr.b))


def _not(out: CFunction, expr: ir.Not) -> CExpr:
    rank = out.module.tables["rank"]["unary"]
    a = out.value(expr.a)
    macro = out.say.not_scalar if expr.dtype.lanes == 1 else out.say.not_lanes
    return CExpr(macro(out.fit(a, rank)), rank, a.depth + 1)


def _min_max(out: CFunction, expr: ir.Min | ir.Max) -> CExpr:
    is_min, dtype = isinstance(expr, ir.Min), expr.dtype
    if dtype.is_bool:
        return _logical(out, (ir.And if is_min else ir.Or)(expr.a, expr.b))
    a, b = out.value(expr.a), out.value(expr.b)
    if dtype.is_float:
        return out.call(pick_function(out.module, type(expr).__name__, dtype), a, b)
    macro = out.say.least if is_min else out.say.greatest
    return out.compound(macro(a.text, b.text), a, b)


def _select(out: CFunction, expr: ir.Select) -> CExpr:
    condition = out.value(expr.condition)
    yes, no = out.value(expr.true_value), out.value(expr.false_value)
    if expr.condition.dtype.lanes == 1:
        return out.narrowed(out.choice(condition, yes, no), expr.dtype)
    mask = mask_as_wide_as(out, condition, expr.dtype)
    return out.compound(
        out.say.choose_lanes(mask.text, yes.text, no.text), mask, yes, no
    )


def _if_then_else(out: CFunction, expr: ir.IfThenElseExpr) -> CExpr:
    condition, result = out.value(expr.condition), out.take_name("t")
    values: list[CExpr] = []
    is_plain: list[bool] = []

    def print_case(value: Expr) -> None:
        values.append(out.value(value))
        is_plain.append(not out.chunks)
        out.emit(out.say.assign(result, values[-1].text))

    bodies = [
        out.capture_block(partial(print_case, value))
        for value in (expr.true_value, expr.false_value)
    ]
    if all(is_plain):
        out.drop_name(result)
        return out.narrowed(out.choice(condition, *values), expr.dtype)
    out.emit(out.say.declare(out.module.type_of(expr.dtype), result))
    out.emit_around(out.say.if_then_else(condition.text, BODY, BODY), *bodies)
    return out.named(result)


# Vectors and names.


def _broadcast(out: CFunction, expr: ir.Broadcast) -> CExpr:
    constant = as_constant(expr)
    if constant is not None and not expr.dtype.is_bool:
        return out.splat(constant, expr.dtype)
    value = out.value(expr.value)
    if not expr.dtype.is_bool:
        return out.vector(expr.dtype, [value])
    condition = out.fit(value, out.module.tables["rank"]["choice"] + 1)
    return out.compound(
        out.say.mask_of(out.module.type_of(expr.dtype), condition), value
    )


def _let(out: CFunction, let: ir.Let) -> CExpr:
    define(out, let.var, let.value)
    return out.value(let.body)


def define(out: CFunction, var: Var, value: Expr, is_kept: bool = False) -> None:
    """Prints the definition of a variable, which is kept in memory if `is_kept`."""
    text = out.value(value).text
    macro = out.say.define_kept if is_kept else out.say.define
    out.emit(macro(out.module.type_of(var.dtype), out.name(var), text))


EXPRESSIONS: dict[type[Any], Callable[[CFunction, Any], CExpr]] = {
    Var: _var,
    ir.IntImm: _constant,
    ir.FloatImm: _constant,
    ir.Cast: convert,
    **dict.fromkeys(_RING, _arithmetic),
    **dict.fromkeys(_BITWISE, _bitwise),
    **dict.fromkeys((ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE), _compare),
    ir.And: _logical,
    ir.Or: _logical,
    ir.Not: _not,
    ir.Div: _div,
    ir.Mod: _mod,
    ir.FloorDiv: _floor_divide,
    ir.FloorMod: _floor_divide,
    ir.ShiftLeft: _shift_left,
    ir.ShiftRight: _shift_right,
    ir.Min: _min_max,
    ir.Max: _min_max,
    ir.Select: _select,
    ir.IfThenElseExpr: _if_then_else,
    ir.Ramp: _wrapping,
    ir.Broadcast: _broadcast,
    ir.Let: _let,
}

# Note [Ring]
#
# Signed overflow is undefined in C, and clang uses that; in the loop IR it wraps. Sums, differences
# and products are the same modulo 2^bits in the unsigned type, so a whole tree of them is printed
# there and converted back once, at its root. C converts an operand to unsigned by itself when the
# other one is: `i * 64ul + j` is one conversion less than it looks. A subscript that is 64 bits
# wide is not converted back: it is never negative.
