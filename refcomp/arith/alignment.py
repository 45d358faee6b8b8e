"""Find powers of two that divide an index, so that an access can state its alignment.

    t = threadIdx.x * 4 + k % 2 * 1024     divisible by 4: with elements of 4 bytes, by 16 bytes

LLVM finds most alignments without help, but not if another pass has moved parts of an address.
Needs the divisors of variables that lets bind. Ensures: the result holds for every value of the
other variables. It also holds after wrapping, as the divisors are powers of two.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from refcomp.ir import expr as ir
from refcomp.ir.expr import Expr, IntImm, Var

MAX_DIVISOR = 1 << 16  # result for 0; more than any access needs


def divisor_of(index: Expr, known: Mapping[Var, int]) -> int:
    """Return a power of two, at most MAX_DIVISOR, that divides `index`.

    Args:
        index: an integer expression. The result for a vector is that for its first lane.
        known: divisors of variables; 1 for the others.
    """
    match index:
        case IntImm(value):
            return gcd(value, MAX_DIVISOR)
        case Var():
            return known.get(index, 1)
        case ir.Add(a, b) | ir.Sub(a, b) | ir.BitOr(a, b) | ir.BitXor(a, b):
            return min(divisor_of(a, known), divisor_of(b, known))
        case ir.Mul(a, b):
            return min(divisor_of(a, known) * divisor_of(b, known), MAX_DIVISOR)
        case ir.FloorMod(a, IntImm(value)) if value:
            return min(divisor_of(a, known), gcd(value, MAX_DIVISOR))
        case ir.FloorDiv(a, IntImm(value)) if value:
            # If d divides a, and value divides d, then d / value divides a // value.
            divisor = divisor_of(a, known)
            return 1 if divisor % value else max(1, divisor // abs(value))
        case ir.ShiftLeft(a, IntImm(value)) if 0 <= value < a.dtype.bits:
            return min(
                divisor_of(a, known) << min(value, MAX_DIVISOR.bit_length()),
                MAX_DIVISOR,
            )
        case ir.Cast(value=value) if value.dtype.is_int and index.dtype.is_int:
            return divisor_of(value, known)
        case ir.Ramp(base=base):
            return divisor_of(base, known)
    return 1
