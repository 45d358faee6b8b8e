"""How Python values become expressions, and how operands of different types meet.

The rules are C's, with two differences: a Python number takes the type of the expression it meets
where it fits, and no type is widened to `int` first (i8 + i8 is i8 and wraps).
"""

from __future__ import annotations

from typing import Any

from refcomp.foundation.dtype import BOOL, F32, I32, I64, DType, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import (
    NE,
    And,
    BitAnd,
    BitOr,
    BitXor,
    Broadcast,
    Cast,
    Expr,
    FloatImm,
    IntImm,
    Mul,
    Not,
    Operators,
    Or,
    Sub,
)


def const(value: bool | int | float, dtype: Any = None) -> Expr:
    """Return a constant.

    Args:
        value: a bool, an int, a float or a numpy scalar. An expression is converted to `dtype`.
        dtype: the dtype. By default, a bool is bool, an int is i32 (i64 if it needs more bits), a
            float is f32, and a numpy scalar keeps its dtype. A vector dtype repeats the value.

    Raises:
        UserError: an integer does not fit the dtype, a float with a fraction is given for an
            integer dtype, or the value is not a number.

    Source: TVM, tir.const.

    Example::

        >>> rc.const(3), rc.const(3, "uint8"), rc.const(2**40), rc.const(1.5), rc.const(True)
        (3i32, 3u8, 1099511627776, 1.5f32, true)
        >>> rc.const(300, "uint8")
        Traceback (most recent call last):
            ...
        refcomp.foundation.errors.UserError: the constant 300 does not fit dtype u8...
    """
    if isinstance(value, Expr):
        return value if dtype is None else cast(dtype, value)
    if not isinstance(value, int | float) and getattr(value, "ndim", None) != 0:
        raise UserError(
            f"{type(value).__name__} {value!r} cannot be used as an expression",
            remedy="pass an expression, a bool, an int or a float",
        )
    target = _default_dtype(value) if dtype is None else as_dtype(dtype)
    element = target.element
    scalar: Expr
    if element.is_float:
        scalar = FloatImm(_as_float(value), element)
    elif isinstance(value, float) and not value.is_integer():
        raise UserError(
            f"{value} is no constant of dtype {target}", remedy="round it first"
        )
    else:
        scalar = IntImm(int(value), element)
        if isinstance(scalar, IntImm) and scalar.value != int(value):
            raise UserError(
                f"the constant {value} does not fit dtype {target}",
                remedy=f"values lie in {element.min_value} .. {element.max_value}",
            )
    return scalar if target.lanes == 1 else Broadcast(scalar, target.lanes)


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError as error:
        raise UserError(f"the constant {value} is beyond all floats") from error


def _default_dtype(value: Any) -> DType:
    if getattr(value, "ndim", None) == 0:  # a numpy scalar
        return as_dtype(value.dtype)
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return I32 if -(1 << 31) <= value < (1 << 31) else I64
    return F32


def cast(dtype: Any, value: Any) -> Expr:
    """`value` converted to `dtype`; constants are converted at once where that is exact."""
    target = as_dtype(dtype)
    operand = as_expr(value)
    if operand.dtype.lanes == 1 and target.lanes > 1:
        return Broadcast(cast(target.element, operand), target.lanes)
    return _cast_lanes(target.with_lanes(operand.dtype.lanes), operand)


def _cast_lanes(target: DType, value: Expr) -> Expr:
    if value.dtype == target:
        return value
    if isinstance(value, IntImm) and (target.is_int or target.is_float):
        return (
            const(value.value, target)
            if _fits(value.value, target)
            else Cast(target, value)
        )
    if isinstance(value, FloatImm) and target.is_float:
        return FloatImm(value.value, target)
    return Cast(target, value)


def _fits(value: int, dtype: DType) -> bool:
    if dtype.is_float:
        return abs(value) <= 256  # exact in every float type
    return dtype.min_value <= value <= dtype.max_value


def as_expr(value: Any) -> Expr:
    """Return `value` as an expression.

    Args:
        value: an expression, which is returned as it is; an axis or a tensor of rank 0; or a Python
            or numpy number, which becomes a constant as in `const`.

    Raises:
        UserError: the value is none of these, for example a text.

    Source: TVM, te.convert.

    Example::

        >>> k = rc.reduce_axis((0, 8), name="k")
        >>> rc.convert(k) * rc.convert(2)
        k * 2
    """
    if isinstance(value, Expr):
        return value
    to_expr = getattr(value, "as_expr", None)
    expr: Expr = const(value) if to_expr is None else to_expr()
    return expr


def _rank(dtype: DType) -> tuple[int, int]:
    order = {"bool": 0, "int": 1, "uint": 1, "bfloat": 2, "float": 2}
    if dtype.kind not in order:
        raise UserError(f"no arithmetic on dtype {dtype}")
    return order[dtype.kind], dtype.bits


def promote(a: DType, b: DType) -> DType:
    """The common type of two operands, element-wise.

    A float wins over integers, integers over bool; then the wider wins. Of i and u of one width the
    unsigned wins, as in C. f16 with bf16 gives f32, as neither holds the other.
    """
    if (
        a.kind != b.kind
        and {a.kind, b.kind} == {"bfloat", "float"}
        and a.bits == b.bits
    ):
        return F32
    if _rank(a) == _rank(b):
        return a if a.kind == "uint" else b
    return a if _rank(a) > _rank(b) else b


def match_types(a: Any, b: Any) -> tuple[Expr, Expr]:
    """Both operands as Exprs of one dtype; a Python number takes the other operand's type."""
    if isinstance(a, Expr) and _is_number(b):
        b = _number_like(b, a.dtype)
    elif isinstance(b, Expr) and _is_number(a):
        a = _number_like(a, b.dtype)
    x = as_expr(a)
    y = as_expr(b)
    lanes = max(x.dtype.lanes, y.dtype.lanes)
    if {x.dtype.lanes, y.dtype.lanes} - {1, lanes}:
        raise UserError(
            f"operands of {x.dtype.lanes} and {y.dtype.lanes} lanes do not match"
        )
    joint = promote(x.dtype.element, y.dtype.element).with_lanes(lanes)
    return cast(joint, x), cast(joint, y)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number_like(value: int | float, dtype: DType) -> Expr:
    element = dtype.element
    if isinstance(value, float) and not element.is_float:
        return const(value)
    if element.is_bool:
        return const(value)
    if element.is_int and not _fits(int(value), element):
        return const(value)
    return const(value, element)


_ALLOWED = {
    "FloorDiv": ("int", "uint"),
    "FloorMod": ("int", "uint"),
    "BitAnd": ("int", "uint", "bool"),
    "BitOr": ("int", "uint", "bool"),
    "BitXor": ("int", "uint", "bool"),
    "ShiftLeft": ("int", "uint"),
    "ShiftRight": ("int", "uint"),
    "Add": ("int", "uint", "float", "bfloat"),
    "Sub": ("int", "uint", "float", "bfloat"),
    "Mul": ("int", "uint", "float", "bfloat"),
    "Div": ("int", "uint", "float", "bfloat"),
    "Mod": ("int", "uint", "float", "bfloat"),
    "And": ("bool",),
    "Or": ("bool",),
}


def binary(cls: type[Any], a: Any, b: Any) -> Expr:
    """The node `cls` of two operands after promotion.

    bool operands of arithmetic become i32; `&`, `|`, `^` of bools are And, Or and NE. Raises
    UserError for kinds that have no such operation.
    """
    x, y = match_types(a, b)
    if x.dtype.is_bool and cls in (BitAnd, BitOr, BitXor):
        cls = {BitAnd: And, BitOr: Or, BitXor: NE}[cls]
    elif x.dtype.is_bool and "bool" not in _ALLOWED.get(cls.__name__, ("bool",)):
        x = cast(I32, x)
        y = cast(I32, y)
    allowed = _ALLOWED.get(cls.__name__)
    if allowed is not None and x.dtype.kind not in allowed:
        raise UserError(
            f"{cls.__name__} is not defined on dtype {x.dtype}",
            remedy=f"it takes {', '.join(allowed)}; convert with .astype(...)",
        )
    result: Expr = cls(x, y)
    return result


def _negate(value: Any) -> Expr:
    operand = as_expr(value)
    if operand.dtype.is_float:  # not 0 - x, which loses the sign of zero
        return binary(Mul, operand, FloatImm(-1.0, operand.dtype.element))
    return binary(Sub, 0, operand)


def _invert(value: Any) -> Expr:
    operand = as_expr(value)
    return (
        Not(operand)
        if operand.dtype.is_bool
        else binary(BitXor, operand, IntImm(-1, operand.dtype.element))
    )


Operators.build_binary = staticmethod(binary)
Operators.build_cast = staticmethod(cast)
Operators.negate = staticmethod(_negate)
Operators.invert = staticmethod(_invert)
