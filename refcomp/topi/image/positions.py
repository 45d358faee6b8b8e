"""Positions along one axis of an image, as exact fractions of the index of the result.

The index is an integer and the scale is a fraction, so integer arithmetic finds the neighbours of a
position. No rounding of a float can choose another neighbour.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths

# A scale is read as the nearest fraction whose divisor is at most this number.
MAX_DIVISOR = 4096
COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def require_choice(
    value: str, known: tuple[str, ...], operator: str, attribute: str
) -> None:
    """Raise UserError unless `value` is one of the `known` words."""
    if value not in known:
        raise UserError(
            f"{operator} does not know the {attribute} {value!r}",
            remedy=advise(value, known, f"use one of {', '.join(known)}"),
        )


def as_fraction(number: float) -> Fraction:
    """Return the nearest fraction with a small divisor: 1/3 for 0.3333333."""
    return Fraction(number).limit_denominator(MAX_DIVISOR)


@dataclass(frozen=True, slots=True)
class AxisPositions:
    """The positions in the input of the elements of a result, along one axis.

    Element x of the result is at (step * x + start) / divisor.

    Attributes:
        size: elements of the input.
        count: elements of the result.
        scale: the factor by which the input is enlarged.
        step: a numerator.
        start: a numerator.
        divisor: the common denominator, above 0.
    """

    size: int
    count: int
    scale: Fraction
    step: int
    start: int
    divisor: int

    @property
    def is_identity(self) -> bool:
        """Return True if the result has the elements of the input, in their order."""
        is_same = self.size == self.count and self.start == 0
        return is_same and (self.step == self.divisor or self.count == 1)

    def numerator(self, x: Expr) -> Expr:
        """Return the numerator of the position of element `x`."""
        return x * self.step + self.start

    def floor(self, x: Expr) -> Expr:
        """Return the greatest integer that is not above the position."""
        return maths.floordiv(self.numerator(x), self.divisor)

    def remainder(self, x: Expr) -> Expr:
        """Return the numerator of the position's fractional part."""
        return maths.floormod(self.numerator(x), self.divisor)

    def nearest(self, x: Expr, rounding: str) -> Expr:
        """Return the element of the input to which `rounding` moves the position."""
        doubled = self.numerator(x) * 2
        divisor = 2 * self.divisor
        # ceil(n / d) is floor((n + d - 1) / d).
        offsets = {
            "round_prefer_floor": self.divisor - 1,
            "round_prefer_ceil": self.divisor,
            "floor": 0,
            "ceil": divisor - 1,
        }
        return self.clamp(maths.floordiv(doubled + offsets[rounding], divisor))

    def clamp(self, position: Expr) -> Expr:
        """Return `position` moved into the input."""
        zero = const(0, position.dtype)
        last = const(self.size - 1, position.dtype)
        return maths.minimum(maths.maximum(position, zero), last)

    def is_inside(self, x: Expr) -> Expr:
        """Return the condition that the position lies between the first and last element."""
        numerator = self.numerator(x)
        return maths.all(numerator >= 0, numerator <= (self.size - 1) * self.divisor)


def positions_of(
    coordinates: str,
    *,
    size: int,
    count: int,
    scale: Fraction,
    begin: float = 0.0,
    end: float = 1.0,
) -> AxisPositions:
    """Return the positions of a mode of coordinates.

    Args:
        coordinates: one of COORDINATES.
        size: elements of the input.
        count: elements of the result.
        scale: the factor by which the input is enlarged.
        begin: the begin of the cropped part, for tf_crop_and_resize: 0 is the first element.
        end: the end of the cropped part: 1 is the last element.

    Reference: ONNX Resize, coordinate_transformation_mode.
    """
    slope = 1 / scale
    start = (slope - 1) / 2
    match coordinates:
        case "half_pixel_symmetric":
            # The image that the scale asks for may have a fraction of an element more.
            start += Fraction(size) / 2 * (1 - count / (scale * size))
        case "pytorch_half_pixel" if count == 1:
            start = Fraction(0)
        case "align_corners":
            slope = Fraction(size - 1, count - 1) if count > 1 else Fraction(0)
            start = Fraction(0)
        case "asymmetric":
            start = Fraction(0)
        case "tf_half_pixel_for_nn":
            start = slope / 2
        case "tf_crop_and_resize":
            first = as_fraction(begin) * (size - 1)
            last = as_fraction(end) * (size - 1)
            slope = (last - first) / (count - 1) if count > 1 else Fraction(0)
            start = first if count > 1 else (first + last) / 2
    divisor = lcm(slope.denominator, start.denominator)
    return AxisPositions(
        size=size,
        count=count,
        scale=scale,
        step=int(slope * divisor),
        start=int(start * divisor),
        divisor=divisor,
    )
