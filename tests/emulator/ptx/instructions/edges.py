"""Numbers at which instructions go wrong, and some others."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.emulator.ptx.instructions.exact_floats import FORMATS, Format


def integers(bits: int, count: int = 12) -> list[int]:
    """Unsigned integers: the extremes, neighbours of powers of two, and random ones."""
    draw = random.Random(bits)
    top = 1 << (bits - 1)
    edges = [0, 1, 2, 7, bits - 1, bits, top - 1, top, top + 1, 2 * top - 2, 2 * top - 1]
    # Numbers of all lengths.
    return [*edges, *(draw.getrandbits(draw.randint(1, bits)) for _ in range(count))]


def floats(kind: Format, count: int = 16) -> list[int]:
    """Bits of floats: zeros, denormals, neighbours of 1, extremes, infinities, NaN, random."""
    draw = random.Random(kind.width)
    one = kind.bias << kind.mantissa
    least = 1 << kind.mantissa
    edges = [0, 1, least - 1, least, least + 1, one - 1, one, one + 1, one + least]
    edges += [kind.infinity - 1, kind.infinity, kind.plain_nan]
    near = [one + draw.getrandbits(kind.mantissa + 3) for _ in range(count)]
    small = [draw.getrandbits(kind.mantissa + 2) for _ in range(4)]
    sizes = [*edges, *near, *small, *(draw.getrandbits(kind.width - 1) for _ in range(count // 2))]
    return [*sizes, *(size | kind.sign for size in sizes)]


def grid(*axes: list[int], kind: Any) -> list[npt.NDArray[Any]]:
    """All combinations, as an array for each axis."""
    arrays = np.meshgrid(*(np.array(axis, kind) for axis in axes), indexing="ij")
    return [array.ravel() for array in arrays]


def signed(bits: int, width: int) -> int:
    """The integer whose two's complement has the bits."""
    return bits - (bits >> (width - 1) << width)


def float_bits(kind: str) -> list[int]:
    return floats(FORMATS[kind])
