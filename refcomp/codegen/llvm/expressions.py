"""Prints expressions that read no memory as LLVM instructions: one function per node class.

Each takes the function being printed and a node, emits what computes it, and returns the operand
that names its value. Constants are operands themselves and emit nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from refcomp.codegen.accumulator import BODY
from refcomp.codegen.llvm.function import LlvmFunction
from refcomp.foundation.dtype import BOOL, F32, DType
from refcomp.ir import expr as ir
from refcomp.ir.constants import as_constant
from refcomp.ir.expr import Expr, Var


def _var(out: LlvmFunction, var: Var) -> str:
    return out.name_of(var)


def _constant(out: LlvmFunction, constant: ir.IntImm | ir.FloatImm) -> str:
    return out.module.constant(constant.value, constant.dtype)


# Arithmetic.


def _binary(out: LlvmFunction, expr: ir.BinaryExpr) -> str:
    dtype = expr.a.dtype
    return _emit_binary(
        out, out.module.opcode(expr, dtype), dtype, out.value(expr.a), expr.b
    )


def _emit_binary(out: LlvmFunction, opcode: str, dtype: DType, a: str, b: Expr) -> str:
    operand, result = out.value(b), out.fresh()
    out.emit(out.say.binary(result, opcode, out.module.type_of(dtype), a, operand))
    return result


def _not(out: LlvmFunction, expr: ir.Not) -> str:
    a, result, true = out.value(expr.a), out.fresh(), out.module.constant(1, expr.dtype)
    opcode, type_ = out.module.opcode(expr, expr.dtype), out.module.type_of(expr.dtype)
    out.emit(out.say.binary(result, opcode, type_, a, true))
    return result


def _is_safe_divisor(expr: Expr) -> bool:
    return as_constant(expr) not in (None, 0, -1)


def _div(out: LlvmFunction, expr: ir.Div) -> str:
    if expr.dtype.is_float or _is_safe_divisor(expr.b):
        return _binary(out, expr)
    if expr.dtype.kind == "uint":
        return _guarded_unsigned(out, out.say.div_unsigned, expr)
    return _guarded_signed(out, out.say.div_signed, expr)


def _mod(out: LlvmFunction, expr: ir.Mod) -> str:
    if expr.dtype.is_float:
        out.module.bring("maths")
        return _binary(out, expr)
    if _is_safe_divisor(expr.b):
        return _binary(out, expr)
    if expr.dtype.kind == "uint":
        return _guarded_unsigned(out, out.say.mod_unsigned, expr)
    return _guarded_signed(out, out.say.mod_signed, expr)


def _floordiv(out: LlvmFunction, expr: ir.FloorDiv) -> str:
    divisor = _power_of_two(expr.b)
    if divisor is not None:
        return _by_power_of_two(out, expr, divisor.bit_length() - 1)
    if expr.dtype.kind == "uint":
        if _is_safe_divisor(expr.b):
            return _binary(out, expr)
        return _guarded_unsigned(out, out.say.div_unsigned, expr)
    if _is_positive(expr.b):
        return _by_positive(out, out.say.floordiv_positive, expr)
    return _guarded_signed(out, out.say.floordiv_signed, expr)


def _floormod(out: LlvmFunction, expr: ir.FloorMod) -> str:
    divisor = _power_of_two(expr.b)
    if divisor is not None:
        return _by_power_of_two(out, expr, divisor - 1)
    if expr.dtype.kind == "uint":
        if _is_safe_divisor(expr.b):
            return _binary(out, expr)
        return _guarded_unsigned(out, out.say.mod_unsigned, expr)
    if _is_positive(expr.b):
        return _by_positive(out, out.say.floormod_positive, expr)
    return _guarded_signed(out, out.say.floormod_signed, expr)


def _power_of_two(expr: Expr) -> int | None:
    value = as_constant(expr)
    is_power = isinstance(value, int) and value > 0 and value & (value - 1) == 0
    return int(value) if is_power and value is not None else None


def _is_positive(expr: Expr) -> bool:
    value = as_constant(expr)
    return value is not None and value > 0


def _by_power_of_two(out: LlvmFunction, expr: ir.BinaryExpr, operand: int) -> str:
    a, result = out.value(expr.a), out.fresh()
    opcode = out.module.tables["floor_by_power"][
        f"{type(expr).__name__}.{expr.dtype.kind}"
    ]
    constant = out.module.constant(operand, expr.dtype)
    out.emit(
        out.say.binary(result, opcode, out.module.type_of(expr.dtype), a, constant)
    )
    return result


def _by_positive(
    out: LlvmFunction, macro: Callable[..., str], expr: ir.BinaryExpr
) -> str:
    a, b, result = out.value(expr.a), out.value(expr.b), out.fresh()
    sign_bit = out.module.constant(expr.dtype.bits - 1, expr.dtype)
    out.emit(macro(result, out.module.type_of(expr.dtype), a, b, sign_bit))
    return result


def _bool_type(out: LlvmFunction, dtype: DType) -> str:
    return out.module.type_of(BOOL.with_lanes(dtype.lanes))


def _guarded_unsigned(
    out: LlvmFunction, macro: Callable[..., str], expr: ir.BinaryExpr
) -> str:
    a, b, result, dtype = out.value(expr.a), out.value(expr.b), out.fresh(), expr.dtype
    zero, one = (out.module.constant(value, dtype) for value in (0, 1))
    type_, bool_ = out.module.type_of(dtype), _bool_type(out, dtype)
    out.emit(macro(result, type_, bool_, a, b, zero, one))
    return result


def _guarded_signed(
    out: LlvmFunction, macro: Callable[..., str], expr: ir.BinaryExpr
) -> str:
    a, b, result, dtype = out.value(expr.a), out.value(expr.b), out.fresh(), expr.dtype
    zero, one, minus_one = (out.module.constant(value, dtype) for value in (0, 1, -1))
    type_, bool_ = out.module.type_of(dtype), _bool_type(out, dtype)
    out.emit(macro(result, type_, bool_, a, b, zero, one, minus_one))
    return result


def _shift(out: LlvmFunction, expr: ir.ShiftLeft | ir.ShiftRight) -> str:
    amount, dtype = as_constant(expr.b), expr.dtype
    if amount is not None and 0 <= amount < dtype.bits:
        return _binary(out, expr)
    a, b, result = out.value(expr.a), out.value(expr.b), out.fresh()
    type_, bool_ = out.module.type_of(dtype), _bool_type(out, dtype)
    width, last = (
        out.module.constant(value, dtype) for value in (dtype.bits, dtype.bits - 1)
    )
    if isinstance(expr, ir.ShiftRight) and dtype.kind == "int":
        out.emit(out.say.shift_right_signed(result, type_, bool_, a, b, width, last))
        return result
    opcode, zero = out.module.opcode(expr, dtype), out.module.constant(0, dtype)
    out.emit(out.say.shift_or_zero(result, opcode, type_, bool_, a, b, width, zero))
    return result


def _min_max(out: LlvmFunction, expr: ir.Min | ir.Max) -> str:
    a, b, result = out.value(expr.a), out.value(expr.b), out.fresh()
    comparison, macro = out.module.opcode(expr, expr.dtype), out.say.pick
    if expr.dtype.is_float and not _is_number(expr.b):
        if _is_number(expr.a):
            comparison = out.module.tables["or_unordered"][comparison]
        else:
            macro = out.say.pick_or_nan
    type_, bool_ = out.module.type_of(expr.dtype), _bool_type(out, expr.dtype)
    out.emit(macro(result, comparison, type_, bool_, a, b))
    return result


def _is_number(expr: Expr) -> bool:
    value = as_constant(expr)
    return value is not None and value == value


# Conversions.


def _cast(out: LlvmFunction, expr: ir.Cast) -> str:
    source, target = expr.value.dtype, expr.dtype
    if source == target:
        return out.value(expr.value)
    if _crosses_half(source, target):
        # Exact: an integer that f32 must round lies beyond f16's range.
        through = F32.with_lanes(source.lanes)
        return _cast(out, ir.Cast(target, ir.Cast(through, expr.value)))
    value = out.value(expr.value)
    if target.is_bool:
        return is_nonzero(out, value, source)
    if source.is_float and target.is_int:
        return _saturate(out, value, source, target)
    name = _cast_name(source, target)
    if not name:
        return value
    return convert_between(out, out.module.tables["cast"][name], value, source, target)


def _crosses_half(source: DType, target: DType) -> bool:
    half, other = (source, target) if source.is_float else (target, source)
    return (
        half.is_float and half.bits == 16 and not other.is_float and not target.is_bool
    )


def _cast_name(source: DType, target: DType) -> str:
    """The key of the table `cast`, or '' where the bits stay as they are."""
    if source.is_bool:
        return "bool_to_float" if target.is_float else "bool_to_int"
    if source.is_int and target.is_float:
        return f"{source.kind}_to_float"
    if source.bits == target.bits:
        return ""
    if source.bits > target.bits:
        return "float_narrow" if source.is_float else "int_narrow"
    return f"{source.kind}_widen"


def convert_between(
    out: LlvmFunction, opcode: str, value: str, source: DType, target: DType
) -> str:
    """Prints the conversion `opcode` of an operand of dtype `source` to `target`."""
    result, types = out.fresh(), out.module
    out.emit(
        out.say.convert(
            result, opcode, types.type_of(source), value, types.type_of(target)
        )
    )
    return result


def is_nonzero(out: LlvmFunction, value: str, source: DType) -> str:
    """Prints the comparison with 0 of an operand of dtype `source`; a bool."""
    kind = "float" if source.is_float else source.kind
    result, opcode = out.fresh(), out.module.tables["opcode"]["NE"][kind]
    zero, type_ = out.module.constant(0, source), out.module.type_of(source)
    out.emit(out.say.binary(result, opcode, type_, value, zero))
    return result


def _saturate(out: LlvmFunction, value: str, source: DType, target: DType) -> str:
    module, result = out.module, out.fresh()
    base = module.tables["cast"][f"float_to_{target.kind}"]
    function = f"{base}.{module.suffix_of(target)}.{module.suffix_of(source)}"
    to, source_type = module.type_of(target), module.type_of(source)
    declare = out.say.declare_intrinsic
    module.declarations.add(function, lambda: declare(to, function, [source_type]))
    out.emit(out.say.call(result, to, function, [out.say.argument(source_type, value)]))
    return result


# Choices.


def _select(out: LlvmFunction, expr: ir.Select) -> str:
    condition = out.value(expr.condition)
    yes, no, result = (
        out.value(expr.true_value),
        out.value(expr.false_value),
        out.fresh(),
    )
    condition_type = out.module.type_of(expr.condition.dtype)
    type_ = out.module.type_of(expr.dtype)
    out.emit(out.say.select(result, condition_type, condition, type_, yes, no))
    return result


def _if_then_else(out: LlvmFunction, expr: ir.IfThenElseExpr) -> str:
    condition, number = out.value(expr.condition), out.number()
    values: list[str] = []
    then_body = out.capture(lambda: values.append(out.value(expr.true_value)))
    else_body = out.capture(lambda: values.append(out.value(expr.false_value)))
    result, type_ = out.fresh(), out.module.type_of(expr.dtype)
    text = out.say.choose(
        result, number, condition, type_, BODY, values[0], BODY, values[1]
    )
    out.emit_around(text, then_body, else_body)
    return result


# Vectors and names.


def _ramp(out: LlvmFunction, ramp: ir.Ramp) -> str:
    dtype, stride = ramp.dtype, as_constant(ramp.stride)
    base = _splat(out, out.value(ramp.base), ramp.base, ramp.lanes)
    if stride is None:
        steps = out.fresh()
        numbers = out.module.constant_lanes(list(range(ramp.lanes)), dtype)
        distance = _splat(out, out.value(ramp.stride), ramp.stride, ramp.lanes)
        _emit_named(out, steps, "Mul", dtype, distance, numbers)
    else:
        steps = out.module.constant_lanes(
            [int(stride) * k for k in range(ramp.lanes)], dtype
        )
    return _emit_named(out, out.fresh(), "Add", dtype, base, steps)


def _emit_named(
    out: LlvmFunction, result: str, node: str, dtype: DType, a: str, b: str
) -> str:
    opcode = out.module.tables["opcode"][node][dtype.kind]
    out.emit(out.say.binary(result, opcode, out.module.type_of(dtype), a, b))
    return result


def _broadcast(out: LlvmFunction, expr: ir.Broadcast) -> str:
    return _splat(out, "", expr.value, expr.lanes)


def _splat(out: LlvmFunction, operand: str, scalar: Expr, lanes: int) -> str:
    constant = as_constant(scalar)
    if constant is not None:
        return out.module.constant(constant, scalar.dtype.with_lanes(lanes))
    operand, result = operand or out.value(scalar), out.fresh()
    out.emit(
        out.say.broadcast(result, out.module.type_of(scalar.dtype), operand, lanes)
    )
    return result


def _let(out: LlvmFunction, let: ir.Let) -> str:
    out.names[let.var] = out.value(let.value)
    return out.value(let.body)


EXPRESSIONS: dict[type[Any], Callable[[LlvmFunction, Any], str]] = {
    Var: _var,
    ir.IntImm: _constant,
    ir.FloatImm: _constant,
    ir.Cast: _cast,
    **dict.fromkeys((ir.Add, ir.Sub, ir.Mul, ir.BitAnd, ir.BitOr, ir.BitXor), _binary),
    **dict.fromkeys((ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE, ir.And, ir.Or), _binary),
    ir.Not: _not,
    ir.Div: _div,
    ir.Mod: _mod,
    ir.FloorDiv: _floordiv,
    ir.FloorMod: _floormod,
    ir.ShiftLeft: _shift,
    ir.ShiftRight: _shift,
    ir.Min: _min_max,
    ir.Max: _min_max,
    ir.Select: _select,
    ir.IfThenElseExpr: _if_then_else,
    ir.Ramp: _ramp,
    ir.Broadcast: _broadcast,
    ir.Let: _let,
}
