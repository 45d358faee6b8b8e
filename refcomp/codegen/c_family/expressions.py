"""Print expressions that read no memory as C: one function per node class.

Each function takes the kernel that is being printed and a node, and returns the operand with its
value. Lets, and expressions that are nested too deeply, become constants before the statement.
Integers are added and multiplied in the unsigned type, where they wrap: Note [Modular arithmetic].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from refcomp.arith.alignment import divisor_of
from refcomp.codegen.accumulator import BODY
from refcomp.codegen.c_family.conversions import convert, mask_as_wide_as
from refcomp.codegen.c_family.function import (
    CExpr,
    CFunction,
    ExpressionPrinters,
    wrapping_dtype,
)
from refcomp.codegen.c_family.half import rounded_to_half
from refcomp.codegen.c_family.prelude import integer_function, pick_function
from refcomp.foundation.dtype import DType
from refcomp.ir import expr as ir
from refcomp.ir.constants import as_constant
from refcomp.ir.expr import Expr, IntImm, Var


def _var(out: CFunction, var: Var) -> CExpr:
    return out.name_of(var)


def _constant(out: CFunction, constant: ir.IntImm | ir.FloatImm) -> CExpr:
    return out.literal(constant.value, constant.dtype)


# Arithmetic that wraps.

_MODULAR = (ir.Add, ir.Sub, ir.Mul, ir.BitAnd, ir.BitOr, ir.BitXor)


def print_wrapping(out: CFunction, expr: Expr) -> CExpr:
    """Print an integer expression in its own type or in the unsigned type.

    Both values are the same modulo 2^bits. Names, loads and constants stay in their own type.
    """
    if isinstance(expr, _MODULAR):
        operand = _modular_binary(out, expr)
    elif isinstance(expr, ir.ShiftLeft) and _is_within(expr):
        a = _to_wrapping(out, print_wrapping(out, expr.a), expr.dtype)
        b = out.value(expr.b)
        if expr.dtype.lanes > 1:
            b = _to_wrapping(out, b, expr.dtype)
        operand = out.infix("ShiftLeft", a, b, is_wrapping=True)
    elif isinstance(expr, ir.Ramp):
        operand = _modular_ramp(out, expr)
    else:
        return out.value(expr)
    return out.shallow(operand, expr.dtype)


def _modular_binary(out: CFunction, expr: ir.BinaryExpr) -> CExpr:
    operator = type(expr).__name__
    b = expr.b
    if isinstance(expr, ir.Add) and isinstance(b, IntImm) and b.value < 0:
        operator = "Sub"
        b = IntImm(-b.value, b.dtype)  # the least integer is its own negative
    left = print_wrapping(out, expr.a)
    right = _unsigned_constant(out, b) or print_wrapping(out, b)
    if expr.dtype.lanes > 1:
        left = _to_wrapping(out, left, expr.dtype)
        right = _to_wrapping(out, right, expr.dtype)
    elif not (left.is_wrapping or right.is_wrapping):
        # C converts the other operand by itself.
        left = _to_wrapping(out, left, expr.dtype)
    return out.infix(operator, left, right, is_wrapping=True)


def _unsigned_constant(out: CFunction, expr: Expr) -> CExpr | None:
    """Return a constant in the unsigned type, so that C converts the other operand."""
    value = as_constant(expr)
    if value is None or value < 0:
        return None
    dtype = wrapping_dtype(expr.dtype)
    if dtype.lanes == 1:
        return replace(out.literal(value, dtype), is_wrapping=True)
    return replace(out.splat(value, dtype), is_wrapping=True)


def _modular_ramp(out: CFunction, ramp: ir.Ramp) -> CExpr:
    dtype = wrapping_dtype(ramp.dtype)
    stride = as_constant(ramp.stride)
    first = _to_wrapping(out, print_wrapping(out, ramp.base), ramp.base.dtype)
    base = out.vector(dtype, [first])
    known = 1 if stride is None else int(stride)
    numbers = [number * known & dtype.max_value for number in range(ramp.lanes)]
    literals = [out.literal(number, dtype.element) for number in numbers]
    steps = out.vector(dtype, literals)
    if stride is None:
        step = _to_wrapping(out, print_wrapping(out, ramp.stride), ramp.stride.dtype)
        factor = out.vector(dtype, [step])
        steps = out.infix("Mul", factor, steps, is_wrapping=True)
    return out.infix("Add", base, steps, is_wrapping=True)


def _to_wrapping(out: CFunction, operand: CExpr, dtype: DType) -> CExpr:
    """Return `operand` of `dtype` in the unsigned type."""
    wrapping = wrapping_dtype(dtype)
    if operand.is_wrapping or wrapping == dtype:
        return operand
    return _retyped(out, operand, wrapping, is_wrapping=True)


def from_wrapping(out: CFunction, operand: CExpr, dtype: DType) -> CExpr:
    """Return `operand` in the type of `dtype`, from whichever type it has."""
    if not operand.is_wrapping or wrapping_dtype(dtype) == dtype:
        return replace(operand, is_wrapping=False)
    return _retyped(out, operand, dtype, is_wrapping=False)


def _retyped(
    out: CFunction, operand: CExpr, dtype: DType, *, is_wrapping: bool
) -> CExpr:
    """Return integers of the same width as `dtype`."""
    if dtype.lanes == 1:
        return out.cast(operand, dtype, is_wrapping=is_wrapping)
    return out.compound(
        out.say.reinterpret,
        is_wrapping=is_wrapping,
        type=out.type_of(dtype),
        value=operand,
    )


def _modular(out: CFunction, expr: Expr) -> CExpr:
    return from_wrapping(out, print_wrapping(out, expr), expr.dtype)


def _arithmetic(out: CFunction, expr: ir.BinaryExpr) -> CExpr:
    if not expr.dtype.is_float:
        return _modular(out, expr)
    result = out.infix(type(expr).__name__, out.value(expr.a), out.value(expr.b))
    return rounded_to_half(out, result, expr.dtype)


def add(
    out: CFunction,
    a: CExpr,
    b: CExpr,
    dtype: DType,
) -> CExpr:
    """Return the sum of two floats of `dtype`."""
    return rounded_to_half(out, out.infix("Add", a, b), dtype)


def _bitwise(out: CFunction, expr: ir.BinaryExpr) -> CExpr:
    return _in_range(out, type(expr).__name__, expr.a, expr.b)


def _in_range(
    out: CFunction,
    operator: str,
    a: Expr,
    b: Expr,
) -> CExpr:
    """Print an operator whose result is always in the range of its dtype."""
    return out.narrowed(out.infix(operator, out.value(a), out.value(b)), a.dtype)


# Division.


def _div(out: CFunction, expr: ir.Div) -> CExpr:
    if expr.dtype.is_float:
        return _arithmetic(out, expr)
    return _divide(out, expr, "Div")


def _mod(out: CFunction, expr: ir.Mod) -> CExpr:
    if not expr.dtype.is_float:
        return _divide(out, expr, "Mod")
    # The remainder of two f16 is an f16: it needs no rounding.
    a = out.value(expr.a)
    b = out.value(expr.b)

    def remainder(x: CExpr, y: CExpr) -> CExpr:
        return out.compound(out.say.remainder, a=x, b=y)

    if expr.dtype.lanes == 1:
        return remainder(a, b)
    # PoCL 3.1 gives some lanes of a vector the remainder of others.
    atoms = [out.atom(a, expr.dtype), out.atom(b, expr.dtype)]
    return out.lane_by_lane(expr.dtype, atoms, remainder)


def _divide(out: CFunction, expr: ir.BinaryExpr, operator: str) -> CExpr:
    if as_constant(expr.b) not in (None, 0, -1):
        return _in_range(out, operator, expr.a, expr.b)
    return _by_function(out, f"{operator.lower()}_{expr.dtype.kind}", expr)


def _floor_divide(out: CFunction, expr: ir.FloorDiv | ir.FloorMod) -> CExpr:
    is_quotient = isinstance(expr, ir.FloorDiv)
    divisor = as_constant(expr.b)
    if divisor is not None and divisor > 0 and int(divisor).bit_count() == 1:
        shift = int(divisor).bit_length() - 1
        operator = out.tables["floor_by_power"][type(expr).__name__]
        amount = shift if is_quotient else int(divisor) - 1
        b: Expr = IntImm(amount, expr.dtype.element)
        if expr.dtype.lanes > 1:
            b = ir.Broadcast(b, expr.dtype.lanes)
        return _in_range(out, operator, expr.a, b)
    if expr.dtype.kind == "uint":
        return _divide(out, expr, "Div" if is_quotient else "Mod")
    return _by_function(out, "floordiv_int" if is_quotient else "floormod_int", expr)


def _by_function(out: CFunction, macro: str, expr: ir.BinaryExpr) -> CExpr:
    """Call the prelude's function `macro` on both operands, lane by lane."""
    function = integer_function(out.module, macro, expr.dtype.element)
    a = out.value(expr.a)
    b = out.value(expr.b)
    if expr.dtype.lanes == 1:
        return out.call(function, a, b)
    atoms = [out.atom(a, expr.dtype), out.atom(b, expr.dtype)]
    return out.lane_by_lane(expr.dtype, atoms, partial(out.call, function))


def _is_within(expr: ir.BinaryExpr) -> bool:
    """Return True if the amount of a shift is a constant within the width."""
    amount = as_constant(expr.b)
    return amount is not None and 0 <= amount < expr.dtype.bits


def _shift_left(out: CFunction, expr: ir.ShiftLeft) -> CExpr:
    if _is_within(expr):
        return _modular(out, expr)
    return _by_function(out, "shift_left", expr)


def _shift_right(out: CFunction, expr: ir.ShiftRight) -> CExpr:
    if _is_within(expr):
        return _in_range(out, "ShiftRight", expr.a, expr.b)
    return _by_function(out, f"shift_right_{expr.dtype.kind}", expr)


# Comparisons and choices.

_FLIPPED = {ir.LT: "GT", ir.GT: "LT", ir.LE: "GE", ir.GE: "LE"}


def _compare(out: CFunction, expr: ir.Comparison) -> CExpr:
    operator = type(expr).__name__
    source = expr.a.dtype
    if source.is_bool and source.lanes > 1:  # true is -1
        operator = _FLIPPED.get(type(expr), operator)
    operand = out.infix(operator, out.value(expr.a), out.value(expr.b))
    if source.lanes == 1 or out.module.value_dtype(source).bits == 8:
        return operand
    # The lanes are as wide as the lanes that were compared, and 0 or -1.
    type_ = out.type_of(expr.dtype)
    return out.compound(out.say.convert, type=type_, value=operand)


def _logical(out: CFunction, expr: ir.BinaryExpr) -> CExpr:
    operator = type(expr).__name__
    if expr.dtype.lanes > 1:
        operator = f"Bit{operator}"
    return out.infix(operator, out.value(expr.a), out.value(expr.b))


def _not(out: CFunction, expr: ir.Not) -> CExpr:
    unary = out.tables["precedence"]["unary"]
    macro = out.say.not_scalar if expr.dtype.lanes == 1 else out.say.not_lanes
    return out.compound(macro, precedence=unary, a=out.fit(out.value(expr.a), unary))


def _min_max(out: CFunction, expr: ir.Min | ir.Max) -> CExpr:
    is_min = isinstance(expr, ir.Min)
    if expr.dtype.is_bool:
        return _logical(out, (ir.And if is_min else ir.Or)(expr.a, expr.b))
    a = out.value(expr.a)
    b = out.value(expr.b)
    if expr.dtype.is_float:
        return out.call(
            pick_function(out.module, type(expr).__name__, expr.dtype), a, b
        )
    return out.compound(out.say.least if is_min else out.say.greatest, a=a, b=b)


def _select(out: CFunction, expr: ir.Select) -> CExpr:
    condition = out.value(expr.condition)
    yes = out.value(expr.true_value)
    no = out.value(expr.false_value)
    if expr.condition.dtype.lanes == 1:
        return out.narrowed(out.choice(condition, yes, no), expr.dtype)
    mask = mask_as_wide_as(out, condition, expr.dtype)
    return out.compound(
        out.say.choose_lanes,
        condition=mask,
        yes=yes,
        no=no,
    )


def _if_then_else(out: CFunction, expr: ir.IfThenElseExpr) -> CExpr:
    condition = out.value(expr.condition)
    result = out.take_name("t")
    values: list[CExpr] = []
    emits: list[bool] = []

    def print_case(value: Expr) -> None:
        values.append(out.value(value))
        emits.append(bool(out.chunks))
        out.emit(out.say.assign(place=result, value=values[-1]))

    then_body = out.capture_block(lambda: print_case(expr.true_value))
    else_body = out.capture_block(lambda: print_case(expr.false_value))
    if not any(emits):
        out.drop_name(result)
        return out.narrowed(out.choice(condition, *values), expr.dtype)
    out.emit(out.say.declare(type=out.type_of(expr.dtype), name=result))
    text = out.say.if_then_else(
        condition=condition,
        then_body=BODY,
        else_body=BODY,
    )
    out.emit_around(text, then_body, else_body)
    return out.named(result)


# Vectors and names.


def _broadcast(out: CFunction, expr: ir.Broadcast) -> CExpr:
    constant = as_constant(expr)
    if constant is not None and not expr.dtype.is_bool:
        return out.splat(constant, expr.dtype)
    value = out.value(expr.value)
    if not expr.dtype.is_bool:
        return out.vector(expr.dtype, [value])
    choice = out.tables["precedence"]["choice"]
    type_ = out.type_of(expr.dtype)
    condition = out.fit(value, choice + 1)
    return out.compound(out.say.mask_of, type=type_, condition=condition)


def _let(out: CFunction, let: ir.Let) -> CExpr:
    define(out, let.var, let.value)
    return out.value(let.body)


def define(
    out: CFunction,
    var: Var,
    value: Expr,
    *,
    is_volatile: bool = False,
) -> None:
    """Print the definition of a variable, which is kept in memory if `is_volatile`."""
    operand = out.value(value)
    if var.dtype.is_int:
        out.divisors[var] = divisor_of(value, out.divisors)
    macro: Callable[..., str] = out.say.define
    if is_volatile:
        macro = out.say.define_volatile
    type_ = out.type_of(var.dtype)
    out.emit(
        macro(
            type=type_,
            name=out.name(var),
            value=operand,
        )
    )


EXPRESSIONS: ExpressionPrinters = {
    Var: _var,
    ir.IntImm: _constant,
    ir.FloatImm: _constant,
    ir.Cast: convert,
    ir.Add: _arithmetic,
    ir.Sub: _arithmetic,
    ir.Mul: _arithmetic,
    ir.BitAnd: _bitwise,
    ir.BitOr: _bitwise,
    ir.BitXor: _bitwise,
    ir.EQ: _compare,
    ir.NE: _compare,
    ir.LT: _compare,
    ir.LE: _compare,
    ir.GT: _compare,
    ir.GE: _compare,
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
    ir.Ramp: _modular,
    ir.Broadcast: _broadcast,
    ir.Let: _let,
}

# Note [Modular arithmetic]
#
# Signed overflow is undefined in C, and clang exploits that; in the loop IR it wraps. Sums,
# differences and products are the same modulo 2^bits in the unsigned type. So a whole tree of them
# is printed in the unsigned type, and converted back once, at its root. C converts an operand to
# unsigned by itself if the other operand is unsigned. So `i * 64ul + j` needs no conversion of j. A
# subscript of 64 bits is not converted back: it is never negative.
