"""Which powers of two divide an index, so that an access says how far its address is aligned.

    t = threadIdx.x * 4 + k % 2 * 1024     divisible by 4: with elements of 4 bytes, by 16 bytes

LLVM finds most of this out by itself, but not where an address is put together in parts that
another pass has moved. Needs the divisors of variables that lets bind. Ensures: what is said holds
for every value of the other variables, and after wrapping, as the divisors are powers of two.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from refcomp.ir import expr as ir
from refcomp.ir.expr import Expr, IntImm, Var

MOST = 1 << 16  # what 0 counts as: more than any access asks for


def divisor_of(index: Expr, known: Mapping[Var, int]) -> int:
    """A power of two, at most MOST, that divides `index`; of a vector, its first lane. `known` are
    those of variables."""
    match index:
        case IntImm(value):
            return gcd(value, MOST)
        case Var():
            return known.get(index, 1)
        case ir.Add(a, b) | ir.Sub(a, b) | ir.BitOr(a, b) | ir.BitXor(a, b):
            return min(divisor_of(a, known), divisor_of(b, known))
        case ir.Mul(a, b):
            return min(divisor_of(a, known) * divisor_of(b, known), MOST)
        case ir.FloorMod(a, IntImm(value)) if value:
            return min(divisor_of(a, known), gcd(value, MOST))
        case ir.FloorDiv(a, IntImm(value)) if value:
            return _quotient(divisor_of(a, known), value)
        case ir.ShiftLeft(a, IntImm(value)) if 0 <= value < a.dtype.bits:
            return min(divisor_of(a, known) << min(value, MOST.bit_length()), MOST)
        case ir.Cast(value=value) if value.dtype.is_int and index.dtype.is_int:
            return divisor_of(value, known)
        case ir.Ramp(base=base):
            return divisor_of(base, known)
    return 1


def _quotient(divisor: int, value: int) -> int:
    """What divides a // value where `divisor` divides a."""
    return 1 if divisor % value else max(1, divisor // abs(value))
