"""Estimates of the time that a core takes for convolutions of 3 x 3 kernels, for an image.

The times are in cycles of the core. Data are in its caches and weights in memory, as in a network,
where other layers have displaced the weights of a layer. A time has three parts:

- multiply-adds, of which two vectors begin in a cycle;
- weights, which are read from memory for each image;
- transforms of tiles, for Winograd's filtering only.

The figures were measured on one core of a Zen 3 with AVX2. The estimates agree with it within 10
percent from 16 channels of 56 x 56 to 256 channels of 14 x 14. At 512 channels of 7 x 7, they agree
within 20 percent.
"""

from __future__ import annotations

from dataclasses import dataclass

from refcomp.topi.schedules.vector_registers import VectorRegisters

_MULTIPLY_ADDS = 2  # vectors in a cycle
_WEIGHT_BYTES = 5  # that come from memory in a cycle
# For a vector of input channels of a tile, and likewise for one of output channels.
_TRANSFORM_CYCLES = 56
_WINDOW = 9  # elements of a kernel
_POINTS = 16  # products of a tile
_TILE = 2  # rows and columns of results in a tile


@dataclass(frozen=True, slots=True)
class ConvolutionSize:
    """The sizes of a convolution with 3 x 3 kernels, strides of 1 and one group.

    Attributes:
        channels: of the data.
        outs: channels of the result.
        height: rows of the result.
        width: columns of the result.
        element_bytes: bytes of an element.
    """

    channels: int
    outs: int
    height: int
    width: int
    element_bytes: int = 4

    @property
    def pairs(self) -> int:
        """Return the number of pairs of an input and an output channel."""
        return self.channels * self.outs

    @property
    def tiles(self) -> int:
        """Return the number of tiles of 2 x 2 results."""
        return -(-self.height // _TILE) * -(-self.width // _TILE)


def direct_cycles(size: ConvolutionSize, registers: VectorRegisters) -> float:
    """Return the cycles of direct sums (`conv2d_nchwc`)."""
    return _product_cycles(size, registers, size.height * size.width, _WINDOW)


def winograd_cycles(size: ConvolutionSize, registers: VectorRegisters) -> float:
    """Return the cycles of `conv2d_nchwc_winograd`, with kernels transformed in advance."""
    lanes = registers.lanes(size.element_bytes)
    vectors = -(-size.channels // lanes) + -(-size.outs // lanes)
    transforms = size.tiles * vectors * _TRANSFORM_CYCLES
    return transforms + _product_cycles(size, registers, size.tiles, _POINTS)


def winograd_gain(size: ConvolutionSize, registers: VectorRegisters) -> float:
    """Return the time of direct sums, divided by that of Winograd's filtering.

    Example::

        >>> from refcomp.topi.schedules.convolution_cost import ConvolutionSize, winograd_gain
        >>> from refcomp.topi.schedules.vector_registers import AVX2
        >>> sizes = [(64, 56), (256, 14), (512, 7)]
        >>> [round(winograd_gain(ConvolutionSize(c, c, n, n), AVX2), 1) for c, n in sizes]
        [1.9, 1.8, 1.2]
    """
    return direct_cycles(size, registers) / winograd_cycles(size, registers)


def _product_cycles(
    size: ConvolutionSize, registers: VectorRegisters, places: int, weights: int
) -> float:
    """Return the cycles of products with `weights` elements for each place and pair of channels."""
    lanes = registers.lanes(size.element_bytes)
    products = places * weights * size.pairs / (_MULTIPLY_ADDS * lanes)
    return products + weights * size.pairs * size.element_bytes / _WEIGHT_BYTES
