"""Print expressions that read no memory as LLVM instructions: one function per node class.

Each function takes the function that is being printed and a node, emits the node's computation,
and returns the operand with its value. Constants are operands themselves and emit nothing.
"""

from __future__ import annotations

from refcomp.codegen.accumulator import BODY
from refcomp.codegen.half_conversions import is_between_half_and_integer
from refcomp.codegen.llvm.function import ExpressionPrinters, LlvmFunction, TypedValue
from refcomp.codegen.llvm.pair_products import print_pair_product
from refcomp.foundation.dtype import BOOL, F32, I32, DType
from refcomp.ir import expr as ir
from refcomp.ir.constants import as_constant
from refcomp.ir.expr import Expr, Var

_F16 = DType("float", 16)
_F16_INFINITY = 0x7C00  # its bits
# The limits of integers of so many bits are exact in f32.
_EXACT_BITS = 16


def _var(out: LlvmFunction, var: Var) -> str:
    return out.name_of(var)


def _constant(out: LlvmFunction, constant: ir.IntImm | ir.FloatImm) -> str:
    return out.constant(constant.value, constant.dtype)


# Arithmetic.


def _binary(out: LlvmFunction, expr: ir.BinaryExpr) -> str:
    a = out.value(expr.a)
    return out.binary(type(expr).__name__, expr.a.dtype, a, out.value(expr.b))


def _add(out: LlvmFunction, expr: ir.Add) -> str:
    product = print_pair_product(out, expr)
    return _binary(out, expr) if product is None else product


def _not(out: LlvmFunction, expr: ir.Not) -> str:
    return out.binary("Not", expr.dtype, out.value(expr.a), out.constant(1, expr.dtype))


def _div(out: LlvmFunction, expr: ir.Div | ir.FloorDiv) -> str:
    if expr.dtype.is_float or _is_safe_divisor(expr.b):
        return _binary(out, expr)
    return _guarded(out, expr, "div")


def _mod(out: LlvmFunction, expr: ir.Mod | ir.FloorMod) -> str:
    if expr.dtype.is_float:
        out.module.require_library("maths")
        return _binary(out, expr)
    if _is_safe_divisor(expr.b):
        return _binary(out, expr)
    return _guarded(out, expr, "mod")


def _floordiv(out: LlvmFunction, expr: ir.FloorDiv) -> str:
    divisor = _power_of_two(expr.b)
    if divisor is not None:
        return _by_power_of_two(out, expr, divisor.bit_length() - 1)
    if expr.dtype.kind == "uint":
        return _div(out, expr)
    if _is_positive(expr.b):
        return _by_positive(out, expr, "floordiv")
    return _guarded(out, expr, "floordiv")


def _floormod(out: LlvmFunction, expr: ir.FloorMod) -> str:
    divisor = _power_of_two(expr.b)
    if divisor is not None:
        return _by_power_of_two(out, expr, divisor - 1)
    if expr.dtype.kind == "uint":
        return _mod(out, expr)
    if _is_positive(expr.b):
        return _by_positive(out, expr, "floormod")
    return _guarded(out, expr, "floormod")


def _is_safe_divisor(expr: Expr) -> bool:
    return as_constant(expr) not in (None, 0, -1)


def _power_of_two(expr: Expr) -> int | None:
    value = as_constant(expr)
    if isinstance(value, int) and value > 0 and value.bit_count() == 1:
        return int(value)
    return None


def _is_positive(expr: Expr) -> bool:
    value = as_constant(expr)
    return value is not None and value > 0


def _by_power_of_two(out: LlvmFunction, expr: ir.BinaryExpr, operand: int) -> str:
    opcodes = out.tables["floor_by_power"]
    return out.instruction(
        out.say.binary,
        a=out.value(expr.a),
        opcode=opcodes[f"{type(expr).__name__}.{expr.dtype.kind}"],
        type=out.type_of(expr.dtype),
        b=out.constant(operand, expr.dtype),
    )


def _by_positive(out: LlvmFunction, expr: ir.BinaryExpr, operation: str) -> str:
    """Print a floor division by a positive constant."""
    return out.instruction(
        getattr(out.say, f"{operation}_positive"),
        a=out.value(expr.a),
        b=out.value(expr.b),
        type=out.type_of(expr.dtype),
        sign_bit=out.constant(expr.dtype.bits - 1, expr.dtype),
    )


def _guarded(out: LlvmFunction, expr: ir.BinaryExpr, operation: str) -> str:
    """Print a division by a divisor that may be zero or, if signed, minus one."""
    dtype = expr.dtype
    holes: dict[str, str] = {
        "type": out.type_of(dtype),
        "bool": _bool_type(out, dtype),
        "zero": out.constant(0, dtype),
        "one": out.constant(1, dtype),
    }
    if dtype.kind == "int":
        holes["minus_one"] = out.constant(-1, dtype)
    signedness = "signed" if dtype.kind == "int" else "unsigned"
    return out.instruction(
        getattr(out.say, f"{operation}_{signedness}"),
        a=out.value(expr.a),
        b=out.value(expr.b),
        **holes,
    )


def _bool_type(out: LlvmFunction, dtype: DType) -> str:
    return out.type_of(BOOL.with_lanes(dtype.lanes))


def _shift(out: LlvmFunction, expr: ir.ShiftLeft | ir.ShiftRight) -> str:
    dtype = expr.dtype
    amount = as_constant(expr.b)
    if amount is not None and 0 <= amount < dtype.bits:
        return _binary(out, expr)
    holes: dict[str, str] = {
        "type": out.type_of(dtype),
        "bool": _bool_type(out, dtype),
        "a": out.value(expr.a),
        "b": out.value(expr.b),
        "width": out.constant(dtype.bits, dtype),
    }
    if isinstance(expr, ir.ShiftRight) and dtype.kind == "int":
        sign_bit = out.constant(dtype.bits - 1, dtype)
        return out.instruction(out.say.shift_right_signed, sign_bit=sign_bit, **holes)
    return out.instruction(
        out.say.shift_or_zero,
        opcode=out.module.opcode(type(expr).__name__, dtype),
        zero=out.constant(0, dtype),
        **holes,
    )


def _min_max(out: LlvmFunction, expr: ir.Min | ir.Max) -> str:
    if expr.dtype.element == _F16 and expr.dtype.lanes > 1:
        architectures = out.tables["min_max_of_halves"]["architectures"]
        if out.module.architecture in architectures:
            return _min_max_of_halves(out, expr)
    comparison = out.module.opcode(type(expr).__name__, expr.dtype)
    macro = out.say.pick
    if expr.dtype.is_float and not _is_number(expr.b):
        if _is_number(expr.a):
            comparison = out.tables["or_unordered"][comparison]
        else:
            macro = out.say.pick_or_nan
    return out.instruction(
        macro,
        comparison=comparison,
        type=out.type_of(expr.dtype),
        bool=_bool_type(out, expr.dtype),
        a=out.value(expr.a),
        b=out.value(expr.b),
    )


def _min_max_of_halves(out: LlvmFunction, expr: ir.Min | ir.Max) -> str:
    integers = DType("int", 16, expr.dtype.lanes)
    return out.instruction(
        out.say.pick_half,
        comparison=out.module.opcode(type(expr).__name__, integers),
        type=out.type_of(expr.dtype),
        bool=_bool_type(out, expr.dtype),
        integers=out.type_of(integers),
        a=out.value(expr.a),
        b=out.value(expr.b),
        last_bit=out.constant(_F16.bits - 1, integers),
        magnitude=out.constant(integers.max_value, integers),
        infinity=out.constant(_F16_INFINITY, integers),
    )


def _is_number(expr: Expr) -> bool:
    """Return True for a constant that is not NaN."""
    value = as_constant(expr)
    return value is not None and value == value


# Conversions.


def _cast(out: LlvmFunction, expr: ir.Cast) -> str:
    source = expr.value.dtype
    target = expr.dtype
    if source == target:
        return out.value(expr.value)
    if is_between_half_and_integer(source, target):
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
    return out.convert(out.tables["cast"][name], value, source, target)


def _cast_name(source: DType, target: DType) -> str:
    """Return the key of the table `cast`, or '' if the bits stay as they are."""
    if source.is_bool:
        return "bool_to_float" if target.is_float else "bool_to_int"
    if source.is_int and target.is_float:
        return f"{source.kind}_to_float"
    if source.bits == target.bits:
        return ""
    if source.bits > target.bits:
        return "float_narrow" if source.is_float else "int_narrow"
    return f"{source.kind}_widen"


def is_nonzero(out: LlvmFunction, value: str, source: DType) -> str:
    """Print the comparison with 0 of an operand of dtype `source`. Return a bool."""
    return out.binary("NE", source, value, out.constant(0, source))


def _saturate(out: LlvmFunction, value: str, source: DType, target: DType) -> str:
    if target.lanes > 1 and target.bits <= _EXACT_BITS:
        return _saturate_vector(out, value, source, target)
    module = out.module
    base = out.tables["cast"][f"float_to_{target.kind}"]
    function = f"{base}.{module.suffix_of(target)}.{module.suffix_of(source)}"
    argument = TypedValue(out.type_of(source), value)
    return out.call_intrinsic(function, out.type_of(target), argument)


def _saturate_vector(
    out: LlvmFunction, value: str, source: DType, target: DType
) -> str:
    """Print a conversion to narrow integers, whose limits are exact floats.

    LLVM takes the saturating conversion of a vector apart, lane by lane.
    """
    bounded = out.instruction(
        out.say.clamp_number,
        type=out.type_of(source),
        bool=_bool_type(out, source),
        value=value,
        zero=out.constant(0, source),
        least=out.constant(target.min_value, source),
        greatest=out.constant(target.max_value, source),
    )
    wide = I32.with_lanes(target.lanes)
    integers = out.convert(out.tables["cast"]["bounded_to_int"], bounded, source, wide)
    return out.convert(out.tables["cast"]["int_narrow"], integers, wide, target)


# Choices.


def _select(out: LlvmFunction, expr: ir.Select) -> str:
    return out.instruction(
        out.say.select,
        condition_type=out.type_of(expr.condition.dtype),
        condition=out.value(expr.condition),
        type=out.type_of(expr.dtype),
        yes=out.value(expr.true_value),
        no=out.value(expr.false_value),
    )


def _if_then_else(out: LlvmFunction, expr: ir.IfThenElseExpr) -> str:
    condition = out.value(expr.condition)
    number = out.number()
    values: list[str] = []
    then_body = out.capture(lambda: values.append(out.value(expr.true_value)))
    else_body = out.capture(lambda: values.append(out.value(expr.false_value)))
    result = out.fresh()
    text = out.say.choose(
        result=result,
        id=number,
        condition=condition,
        type=out.type_of(expr.dtype),
        then_body=BODY,
        then_value=values[0],
        else_body=BODY,
        else_value=values[1],
    )
    out.emit_around(text, then_body, else_body)
    return result


# Vectors and names.


def _ramp(out: LlvmFunction, ramp: ir.Ramp) -> str:
    dtype = ramp.dtype
    stride = as_constant(ramp.stride)
    first, offset = ramp.base, 0
    added = as_constant(first.b) if isinstance(first, ir.Add) else None
    if stride is not None and added is not None and isinstance(first, ir.Add):
        last = int(added) + int(stride) * (ramp.lanes - 1)
        # Ramps that differ by constants, such as those of an unrolled loop, share one splat.
        if dtype.min_value <= last <= dtype.max_value:
            first, offset = first.a, int(added)
    base = _splat(out, first, ramp.lanes)
    known = 1 if stride is None else int(stride)
    distances = [offset + known * number for number in range(ramp.lanes)]
    steps = out.module.constant_lanes(distances, dtype)
    if stride is None:
        product = out.fresh()
        factor = _splat(out, ramp.stride, ramp.lanes)
        out.emit(
            out.say.binary(
                result=product,
                opcode=out.module.opcode("Mul", dtype),
                type=out.type_of(dtype),
                a=factor,
                b=steps,
            )
        )
        steps = product
    return out.binary("Add", dtype, base, steps)


def _broadcast(out: LlvmFunction, expr: ir.Broadcast) -> str:
    return _splat(out, expr.value, expr.lanes)


def _splat(out: LlvmFunction, scalar: Expr, lanes: int) -> str:
    constant = as_constant(scalar)
    if constant is not None:
        return out.constant(constant, scalar.dtype.with_lanes(lanes))
    return out.instruction(
        out.say.broadcast,
        element=out.type_of(scalar.dtype),
        value=out.value(scalar),
        lanes=lanes,
    )


def _let(out: LlvmFunction, let: ir.Let) -> str:
    out.names[let.var] = out.value(let.value)
    return out.value(let.body)


EXPRESSIONS: ExpressionPrinters = {
    Var: _var,
    ir.IntImm: _constant,
    ir.FloatImm: _constant,
    ir.Cast: _cast,
    ir.Add: _add,
    ir.Sub: _binary,
    ir.Mul: _binary,
    ir.BitAnd: _binary,
    ir.BitOr: _binary,
    ir.BitXor: _binary,
    ir.EQ: _binary,
    ir.NE: _binary,
    ir.LT: _binary,
    ir.LE: _binary,
    ir.GT: _binary,
    ir.GE: _binary,
    ir.And: _binary,
    ir.Or: _binary,
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
