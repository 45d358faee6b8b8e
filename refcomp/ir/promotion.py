"""Conversion of Python values to expressions, and promotion of operands of different dtypes.

The rules are those of C, with two differences. A Python number takes the dtype of the other operand
if it fits. No type is widened to `int` first: i8 + i8 is i8 and wraps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from typing import cast as cast_type

from refcomp.foundation.dtype import BOOL, F32, I32, I64, DType, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import (
    EQ,
    NE,
    And,
    BinaryExpr,
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
from refcomp.ir.not_numbers import NotANumber


def const(value: object, dtype: object = None) -> Expr:
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
    number = cast_type(float, value)  # or an int, or a numpy scalar
    target = _default_dtype(number) if dtype is None else as_dtype(dtype)
    element = target.element
    scalar: Expr
    if element.is_float:
        try:
            scalar = FloatImm(float(number), element)
        except OverflowError as error:
            raise UserError(f"the constant {value} is beyond all floats") from error
    elif isinstance(value, float) and not value.is_integer():
        raise UserError(
            f"{value} is not a constant of dtype {target}", remedy="round it first"
        )
    else:
        scalar = IntImm(int(number), element)
        if scalar.value != int(number):  # IntImm wraps
            raise UserError(
                f"the constant {value} does not fit dtype {target}",
                remedy=f"values lie in {element.min_value} .. {element.max_value}",
            )
    return scalar if target.lanes == 1 else Broadcast(scalar, target.lanes)


def _default_dtype(number: float) -> DType:
    if getattr(number, "ndim", None) == 0:  # a numpy scalar
        return as_dtype(getattr(number, "dtype", None))
    if isinstance(number, bool):
        return BOOL
    if isinstance(number, int):
        return I32 if -(1 << 31) <= number < (1 << 31) else I64
    return F32


def cast(dtype: object, value: object) -> Expr:
    """Return `value` converted to `dtype`; a scalar is broadcast to a vector dtype.

    A scalar dtype converts each lane of a vector. A constant is converted at once if that is exact.
    Raises UserError if `dtype` has other lanes than a vector.
    """
    target = as_dtype(dtype)
    operand = as_expr(value)
    if operand.dtype.lanes == 1 and target.lanes > 1:
        return Broadcast(cast(target.element, operand), target.lanes)
    if target.lanes not in (1, operand.dtype.lanes):
        raise UserError(
            f"a vector of {operand.dtype} cannot be converted to {target}",
            why="a conversion keeps the number of lanes",
            remedy=f"convert it to {target.element.with_lanes(operand.dtype.lanes)}",
        )
    target = target.with_lanes(operand.dtype.lanes)
    if operand.dtype == target:
        return operand
    if isinstance(operand, IntImm) and (target.is_int or target.is_float):
        if _fits(operand.value, target):
            return const(operand.value, target)
    elif isinstance(operand, FloatImm) and target.is_float:
        return FloatImm(operand.value, target)
    return Cast(target, operand)


def _fits(value: int, dtype: DType) -> bool:
    if dtype.is_float:
        # Exact in every float type: bf16 has the fewest bits of significand, 8.
        return abs(value) <= 256
    return dtype.min_value <= value <= dtype.max_value


def as_expr(value: object) -> Expr:
    """Return `value` as an expression.

    Args:
        value: an expression, which is returned as it is; an axis or a tensor of rank 0; or a Python
            or numpy number, which becomes a constant as in `const`.

    Raises:
        UserError: the value is none of these, for example a text.

    Example::

        >>> from refcomp.ir.promotion import as_expr
        >>> k = rc.reduce_axis((0, 8), name="k")
        >>> as_expr(k) * as_expr(2)
        k * 2
    """
    if isinstance(value, Expr):
        return value
    to_expr: Callable[[], Expr] | None = getattr(value, "as_expr", None)
    return const(value) if to_expr is None else to_expr()


# The kinds of dtypes that operators take, in the order in which one is converted to another.
_ORDER = {"bool": 0, "int": 1, "uint": 1, "bfloat": 2, "float": 2}


def _rank(dtype: DType) -> tuple[int, int]:
    if dtype.kind not in _ORDER:
        raise UserError(f"no arithmetic on dtype {dtype}")
    return _ORDER[dtype.kind], dtype.bits


def promote(a: DType, b: DType) -> DType:
    """Return the common dtype of the elements of two operands.

    A float wins over integers, and an integer over bool. Then the wider one wins. If the widths are
    equal, unsigned wins over signed, as in C. f16 and bf16 give f32, since neither of them holds
    all values of the other.
    """
    is_mixed = {a.kind, b.kind} == {"bfloat", "float"}
    if is_mixed and a.bits == b.bits:
        return F32
    if _rank(a) == _rank(b):
        return a if a.kind == "uint" else b
    return a if _rank(a) > _rank(b) else b


def match_types(a: object, b: object) -> tuple[Expr, Expr]:
    """Return both operands as expressions of one dtype.

    A Python number takes the dtype of the other operand if it fits.
    """
    if isinstance(a, Expr):
        x = a
        y = _as_expr_like(b, x.dtype)
    elif isinstance(b, Expr):
        y = b
        x = _as_expr_like(a, y.dtype)
    else:
        x = as_expr(a)
        y = as_expr(b)
    if x.dtype is y.dtype and x.dtype.kind in _ORDER:
        return x, y
    lanes = max(x.dtype.lanes, y.dtype.lanes)
    if {x.dtype.lanes, y.dtype.lanes} - {1, lanes}:
        raise UserError(
            f"operands of {x.dtype.lanes} and {y.dtype.lanes} lanes do not match"
        )
    joint = promote(x.dtype.element, y.dtype.element).with_lanes(lanes)
    return cast(joint, x), cast(joint, y)


def _as_expr_like(value: object, dtype: DType) -> Expr:
    """Return `value` as an expression; a Python number gets the element of `dtype` if it fits."""
    if isinstance(value, Expr):
        return value
    element = dtype.element
    if isinstance(value, bool):
        return const(value)
    if isinstance(value, float) and element.is_float:
        return const(value, element)
    if isinstance(value, int):
        fits = element.is_float or (element.is_int and _fits(value, element))
        return const(value, element) if fits else const(value)
    return as_expr(value)


# Operator -> kinds of dtypes that it takes; those that are missing here take all.
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


_LOGICAL: dict[type[BinaryExpr], type[BinaryExpr]] = {
    BitAnd: And,
    BitOr: Or,
    BitXor: NE,
}


def binary(cls: type[BinaryExpr], a: object, b: object) -> Expr:
    """Return the node `cls` of two operands after promotion.

    bool operands of arithmetic become i32. `&`, `|`, `^` of bools are And, Or and NE. Raises
    UserError for kinds that have no such operation.
    """
    x, y = match_types(a, b)
    allowed = _ALLOWED.get(cls.__name__)
    if x.dtype.is_bool and cls in _LOGICAL:
        return _LOGICAL[cls](x, y)
    if allowed is not None and x.dtype.is_bool and "bool" not in allowed:
        x = cast(I32, x)
        y = cast(I32, y)
    if allowed is not None and x.dtype.kind not in allowed:
        raise UserError(
            f"{cls.__name__} is not defined on dtype {x.dtype}",
            remedy=f"it takes {', '.join(allowed)}; convert with .astype(...)",
        )
    return cls(x, y)


def _negate(value: object) -> Expr:
    operand = as_expr(value)
    if operand.dtype.is_float:
        # 0 - x would lose the sign of zero.
        return binary(Mul, operand, FloatImm(-1.0, operand.dtype.element))
    return binary(Sub, 0, operand)


def _invert(value: object) -> Expr:
    operand = as_expr(value)
    if operand.dtype.is_bool:
        return Not(operand)
    return binary(BitXor, operand, IntImm(-1, operand.dtype.element))


def _binary_operator(cls: type[BinaryExpr], a: object, b: Any) -> Any:
    """Return `binary(cls, a, b)`; leave a tensor of rank 1 or more to its own operators."""
    is_tensor = isinstance(b, NotANumber) and not isinstance(b, Operators)
    if is_tensor and b.ndim and cls not in (EQ, NE):
        return NotImplemented
    return binary(cls, a, b)


Operators.build_binary = staticmethod(_binary_operator)
Operators.build_cast = staticmethod(cast)
Operators.negate = staticmethod(_negate)
Operators.invert = staticmethod(_invert)
