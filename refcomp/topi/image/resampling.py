"""Resampling of a tensor along some of its axes, which all kinds of resizing share.

The weights of an axis are a small table [element of the result, neighbour] of its own. They are
made from exact fractions, so a float rounds only where a weight is computed.

Reference: R. G. Keys, "Cubic convolution interpolation for digital image processing", IEEE
Transactions on Acoustics, Speech, and Signal Processing 29, 1981; ONNX Resize.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from refcomp.foundation.dtype import F32, DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast, const
from refcomp.te import maths, reducer
from refcomp.te.extents import extents, require_tensor
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.image.positions import (
    COORDINATES,
    ROUNDINGS,
    AxisPositions,
    require_choice,
)
from refcomp.topi.shapes import replace_entry
from refcomp.topi.tags import REDUCTION, SHARED

MODES = ("nearest", "linear", "cubic")
# Elements on each side of a position that a kernel weighs, if the scale is at least 1.
_REACH = {"linear": 1, "cubic": 2}


@dataclass(frozen=True, slots=True)
class Resampling:
    """The options that the operators of resizing share.

    Attributes:
        operator: the name of the operator, for messages.
        mode: one of MODES.
        coordinates: one of COORDINATES.
        rounding: one of ROUNDINGS, for the mode nearest.
        cubic_coefficient: the parameter a of Keys' kernel.
        exclude_outside: True if elements outside of the input have the weight 0.
        antialias: True if the kernel is stretched where the result is smaller.
        extrapolation_value: the value outside of the input, for tf_crop_and_resize.
    """

    operator: str
    mode: str
    coordinates: str
    rounding: str = "round_prefer_floor"
    cubic_coefficient: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    extrapolation_value: float = 0.0

    def check(self, data: Tensor) -> None:
        """Raise UserError if an option is unknown, or floats are needed but not given."""
        require_tensor(data, self.operator)
        require_choice(self.mode, MODES, self.operator, "mode")
        require_choice(self.coordinates, COORDINATES, self.operator, "coordinates")
        require_choice(self.rounding, ROUNDINGS, self.operator, "rounding")
        if self.mode != "nearest" and not data.dtype.is_float:
            raise UserError(
                f"{self.operator} takes float tensors in the mode {self.mode}, "
                f"not {data.dtype}",
                remedy='use the mode "nearest", or convert: x[i].astype("float32")',
                earlier=[data.declaration()],
            )


@dataclass(frozen=True, slots=True)
class _AxisWeights:
    """The weights of the neighbours of each position along one axis.

    Attributes:
        options: the mode and its options.
        axis: the positions.
        dtype: the dtype of the weights.
    """

    options: Resampling
    axis: AxisPositions
    dtype: DType

    @property
    def stretch(self) -> Fraction:
        """Return the factor by which distances are multiplied, at most 1."""
        return (
            min(self.axis.scale, Fraction(1)) if self.options.antialias else Fraction(1)
        )

    @property
    def first(self) -> int:
        """Return the first neighbour, counted from the floor of the position."""
        return math.floor(-_REACH[self.options.mode] / self.stretch) + 1

    @property
    def count(self) -> int:
        """Return the number of neighbours: as many on the right as on the left."""
        return 2 - 2 * self.first

    def table(self) -> Tensor:
        """Return the weights [element of the result, neighbour]."""
        shape = (self.axis.count, self.count)
        raw = compute(shape, self._weight, name="raw_weights", tag=SHARED)
        if not self.options.antialias and not self.options.exclude_outside:
            return raw
        k = reduce_axis(self.count, "k")
        total = compute(
            shape[:1],
            lambda x: reducer.sum(raw[x, k.var], axis=k),
            name="total_weight",
            tag=REDUCTION,
        )
        return compute(
            shape, lambda x, t: raw[x, t] / total[x], name="weights", tag=SHARED
        )

    def _weight(self, x: Expr, neighbour: Expr) -> Expr:
        """Return the weight of a neighbour, which is counted from 0."""
        offset = neighbour + self.first
        remainder = self.axis.remainder(x)
        distance = maths.abs(offset * self.axis.divisor - remainder)
        # The distance in the kernel is numerator / unit.
        numerator = distance * self.stretch.numerator
        unit = self.axis.divisor * self.stretch.denominator
        weight = self._at(numerator, unit)
        if not self.options.exclude_outside:
            return weight
        element = self.axis.floor(x) + offset
        is_inside = maths.all(element >= 0, element < self.axis.size)
        return maths.select(is_inside, weight, const(0, self.dtype))

    def _at(self, numerator: Expr, unit: int) -> Expr:
        """Return the kernel at the distance numerator / unit."""
        one = const(1, self.dtype)
        zero = const(0, self.dtype)
        distance = cast(self.dtype, numerator) / const(float(unit), self.dtype)
        if self.options.mode == "linear":
            return maths.select(numerator < unit, one - distance, zero)
        a = const(self.options.cubic_coefficient, self.dtype)
        near = ((a + 2) * distance - (a + 3)) * distance * distance + one
        far = ((a * distance - a * 5) * distance + a * 8) * distance - a * 4
        outer = maths.select(numerator < 2 * unit, far, zero)
        return maths.select(numerator <= unit, near, outer)


def resample(
    data: Tensor, axes: Mapping[int, AxisPositions], options: Resampling
) -> Tensor:
    """Return `data` resampled along the axes, one after the other.

    Args:
        data: a tensor of any rank.
        axes: axis -> its positions.
        options: the mode and its options.
    """
    if options.mode == "nearest":
        return _nearest(data, axes, options)
    work = data.dtype if data.dtype.bits >= 32 else F32
    current = data
    for axis, positions in sorted(axes.items()):
        # The weights of an unmoved axis are 1 and 0; 0 times infinity must not make NaN.
        if not positions.is_identity:
            current = _resample_axis(
                current, axis, _AxisWeights(options, positions, work)
            )

    def element(*index: Expr) -> Expr:
        value = cast(data.dtype, current[index])
        return _extrapolate(value, index, axes, options)

    is_cropped = options.coordinates == "tf_crop_and_resize"
    if current is not data and current.dtype == data.dtype and not is_cropped:
        return current
    return compute(extents(current), element, name=options.operator, tag=INJECTIVE)


def _resample_axis(data: Tensor, axis: int, kernel: _AxisWeights) -> Tensor:
    positions = kernel.axis
    weights = kernel.table()
    k = reduce_axis(kernel.count, "k")
    shape = replace_entry(extents(data), axis, positions.count)

    def element(*index: Expr) -> Expr:
        x = index[axis]
        neighbour = positions.clamp(positions.floor(x) + k.var + kernel.first)
        source = replace_entry(index, axis, neighbour)
        value = cast(kernel.dtype, data[source])
        return reducer.sum(weights[x, k.var] * value, axis=k)

    return compute(shape, element, name=f"resample{axis}", tag=REDUCTION)


def _nearest(
    data: Tensor, axes: Mapping[int, AxisPositions], options: Resampling
) -> Tensor:
    shape = list(extents(data))
    for axis, positions in axes.items():
        shape[axis] = positions.count

    def element(*index: Expr) -> Expr:
        source = list(index)
        for axis, positions in axes.items():
            source[axis] = positions.nearest(index[axis], options.rounding)
        return _extrapolate(data[tuple(source)], index, axes, options)

    return compute(shape, element, name=options.operator, tag=INJECTIVE)


def _extrapolate(
    value: Expr,
    index: Sequence[Expr],
    axes: Mapping[int, AxisPositions],
    options: Resampling,
) -> Expr:
    """Return `value`, or the extrapolation value where a position lies outside."""
    if options.coordinates != "tf_crop_and_resize" or not axes:
        return value
    inside = [positions.is_inside(index[axis]) for axis, positions in axes.items()]
    outside = const(options.extrapolation_value, value.dtype)
    return maths.select(maths.all(*inside), value, outside)
