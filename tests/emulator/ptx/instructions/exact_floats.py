"""Floats by Python's integers and fractions: what any rounding of an exact number gives."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Format:
    """A binary format: bits of the exponent, and of the mantissa that are stored."""

    exponent: int
    mantissa: int

    @property
    def width(self) -> int:
        return 1 + self.exponent + self.mantissa

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent) - 1) << self.mantissa

    @property
    def sign(self) -> int:
        return 1 << (self.width - 1)

    @property
    def plain_nan(self) -> int:
        return self.sign - 1

    def value(self, bits: int) -> Fraction | None:
        """The number; None for an infinity or a NaN."""
        size = bits & (self.sign - 1)
        if size >= self.infinity:
            return None
        exponent = max(size >> self.mantissa, 1)
        units = size & ((1 << self.mantissa) - 1)
        if size >> self.mantissa:
            units |= 1 << self.mantissa
        number = units * Fraction(2) ** (exponent - self.bias - self.mantissa)
        return -number if bits & self.sign else number

    def is_nan(self, bits: int) -> bool:
        return bits & (self.sign - 1) > self.infinity

    def is_infinite(self, bits: int) -> bool:
        return bits & (self.sign - 1) == self.infinity


F16, BF16, F32, F64 = Format(5, 10), Format(8, 7), Format(8, 23), Format(11, 52)
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}


def rounded(number: Fraction, kind: Format, mode: str, negative_zero: bool = False) -> int:
    """The bits of the number; `negative_zero` is the sign if it is exactly 0."""
    if number == 0:
        return kind.sign if negative_zero else 0
    sign = kind.sign if number < 0 else 0
    size = abs(number)
    # floor(log2(size)), by the lengths of integers.
    power = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** power > size:
        power -= 1
    power = max(power, 1 - kind.bias)
    units = size / Fraction(2) ** (power - kind.mantissa)
    whole = units.numerator // units.denominator
    rest = units - whole
    up = {
        "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1),
        "rna": rest >= Fraction(1, 2),
        "rz": False,
        "rm": rest > 0 and bool(sign),
        "rp": rest > 0 and not sign,
    }[mode]
    whole += up
    bits = ((power + kind.bias - 1) << kind.mantissa) + whole
    if bits >= kind.infinity:
        stays = mode == "rz" or mode == ("rp" if sign else "rm")
        bits = kind.infinity - 1 if stays else kind.infinity
    return sign | bits


def root(number: Fraction, kind: Format, mode: str) -> int:
    """The bits of the square root of a number > 0."""
    # With 200 bits below the point, of which the last says whether the root is inexact.
    scaled = number * 4**1400
    floor = scaled.numerator // scaled.denominator
    whole = math.isqrt(floor)
    is_exact = whole * whole == scaled
    return rounded(Fraction(2 * whole + (not is_exact), 2 * 2**1400), kind, mode)
