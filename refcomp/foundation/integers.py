"""The meaning of integer operators, for all rooms that compute with constants or sizes.

Operators take and return Python's unbounded integers. `wrap` converts a result to a dtype, by
modular arithmetic. A division by zero gives 0. The oracle has a table of its own on purpose, since
it judges results of this one.
"""

import operator
from collections.abc import Callable

from refcomp.foundation.dtype import DType


def floor_quotient(a: int, b: int) -> int:
    """Return a / b rounded down; 0 for b = 0."""
    return a // b if b else 0


def floor_remainder(a: int, b: int) -> int:
    """Return a - b * floor_quotient(a, b), which has the sign of b; 0 for b = 0."""
    return a % b if b else 0


def truncated_quotient(a: int, b: int) -> int:
    """Return a / b rounded towards zero; 0 for b = 0."""
    quotient = abs(a) // abs(b) if b else 0
    return quotient if (a < 0) == (b < 0) else -quotient


def truncated_remainder(a: int, b: int) -> int:
    """Return a - b * truncated_quotient(a, b), which has the sign of a; 0 for b = 0."""
    return a - b * truncated_quotient(a, b) if b else 0


COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
# Name of a node of `refcomp.ir.expr` in lower case -> function. Shifts are functions below,
# since they depend on a dtype.
OPERATORS: dict[str, Callable[[int, int], int]] = {
    **COMPARISONS,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": truncated_quotient,
    "mod": truncated_remainder,
    "floordiv": floor_quotient,
    "floormod": floor_remainder,
    "min": min,
    "max": max,
    "bitand": operator.and_,
    "bitor": operator.or_,
    "bitxor": operator.xor,
    "and": lambda a, b: bool(a) and bool(b),
    "or": lambda a, b: bool(a) or bool(b),
}


def shift_left(a: int, amount: int, dtype: DType) -> int:
    """Return `a << amount`; 0 if `amount`, as an unsigned number, is at least the width."""
    amount %= 1 << dtype.bits
    return a << amount if amount < dtype.bits else 0


def shift_right(a: int, amount: int, dtype: DType) -> int:
    """Return `a >> amount`, filled with the sign of `a`; `amount` is taken as unsigned."""
    return a >> amount % (1 << dtype.bits)


def wrap(value: int, dtype: DType) -> int:
    """Return `value` modulo 2 ** bits, as an integer of `dtype`; for bool, `value != 0`."""
    if dtype.is_bool:
        return int(value != 0)
    if 0 <= value < 1 << (dtype.bits - 1):  # fits, whether signed or not
        return value
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if value > dtype.max_value else value
