"""The layouts of the matrices of an MFMA: the lane of each element, and its place in the lane.

    v_mfma_f32_16x16x1_4b_f32        four products of [16, 1] by [1, 16] at once
    v_mfma_f32_16x16x1f32            the same, as gfx90a names it

A is [block, row, depth], B [block, depth, column], C and D [block, row, column]. All have `rows`
rows and columns.

- *Factors*: a lane holds `each` consecutive elements along the depth. Element k of a row is the
  element k % each of lane rows * block + rows * blocks * (k // each) + row.
- *Sums*: four registers of a lane hold four rows of a column (64-bit sums: one register holds one
  row). The next rows or blocks are in other lanes, and then in further registers.

Layouts: AMD's Matrix Instruction Calculator; the CDNA3 ISA manual, section on matrix arithmetic.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from refcomp.emulator.machine.arrays import Array

_WAVE = 64
_NAME = re.compile(
    r"v_mfma_(f32|i32|f64)_(4|16|32)x(?:4|16|32)x(\d+)(?:_(\d+)b)?(_?)"
    r"(xf32|f32|bf16|f16|i8|f64|(?:fp8|bf8)_(?:fp8|bf8))(_1k)?$"
)
# Type -> bytes of a factor that a lane holds, of instructions whose names lack the blocks.
_HELD = {"f32": 4, "f16": 8, "bf16": 4, "i8": 4, "f64": 8, "xf32": 8}
_BYTES = {
    "f32": 4,
    "xf32": 4,
    "f16": 2,
    "bf16": 2,
    "i8": 1,
    "f64": 8,
    "fp8": 1,
    "bf8": 1,
}


class FactorTypes(NamedTuple):
    """The types of the elements of both factors."""

    a: str
    b: str


class SumPlaces(NamedTuple):
    """The places of the sums of a product in a wave: int [block, row, column]."""

    lane: Array
    number: Array  # of the sum among those of its lane


@dataclass(frozen=True, slots=True)
class Product:
    """The shape and the types of the products that an instruction computes."""

    sum: str  # type of the sums
    rows: int  # and columns
    depth: int
    blocks: int  # number of products
    elements: FactorTypes
    # Whether denormals of f16, bf16 and of their sums are kept; gfx90a flushes them.
    has_denormals: bool = True

    @property
    def each(self) -> int:
        """Number of elements of a factor that a lane holds."""
        return self.rows * self.depth * self.blocks // _WAVE

    @property
    def factor_words(self) -> int:
        """Number of registers of a factor that a lane holds."""
        return self.each * _BYTES[self.elements.a] // 4

    @property
    def sums(self) -> int:
        """Number of sums that a lane holds."""
        return self.rows * self.rows * self.blocks // _WAVE

    @property
    def sum_words(self) -> int:
        """Number of registers of a sum."""
        return 2 if self.sum == "f64" else 1

    @property
    def multiply_adds(self) -> int:
        """Number of multiply-adds of a wave."""
        return self.blocks * self.rows * self.rows * self.depth

    def factor_lanes(self, file: Array) -> Array:
        """Return [wave, lane, element] as [wave, block, row, depth]."""
        groups = self.depth // self.each
        parts = file.reshape(-1, groups, self.blocks, self.rows, self.each)
        return parts.transpose(0, 2, 3, 1, 4).reshape(
            -1, self.blocks, self.rows, self.depth
        )

    def sum_places(self) -> SumPlaces:
        """Return where each sum lies."""
        block, row, column = np.ogrid[: self.blocks, : self.rows, : self.rows]
        height = 1 if self.sum == "f64" else 4
        # Stripes of `height` rows, and whole blocks, that stand side by side in the lanes.
        stripes = _WAVE // self.rows
        together = max(1, _WAVE * height // (self.rows * self.rows))
        stripe = row // height
        lane = column + self.rows * (block % together)
        lane = lane + self.rows * together * (stripe % (stripes // together))
        number = row % height + height * (stripe // (stripes // together))
        number = number + self.sums * together // self.blocks * (block // together)
        shape = self.blocks, self.rows, self.rows
        return SumPlaces(np.broadcast_to(lane, shape), np.broadcast_to(number, shape))


@cache
def product_of(mnemonic: str, *, has_denormals: bool = True) -> Product | None:
    """Return what an instruction multiplies; None for any other instruction.

    `has_denormals`: whether the GPU keeps them.
    """
    match = _NAME.match(mnemonic)
    if match is None:
        return None
    total, rows, depth, blocks, is_new, what, wide = match.groups()
    types = FactorTypes(*what.split("_")) if "_" in what else FactorTypes(what, what)
    if is_new:
        count = int(blocks or 1)
    else:
        held = 8 if wide else _HELD[what]
        count = _WAVE * held // _BYTES[what] // (int(rows) * int(depth))
    keeps = has_denormals or what not in ("f16", "bf16")
    found = Product(total, int(rows), int(depth), count, types, keeps)
    # Each lane holds one or two registers of each factor, and all lanes hold sums.
    held = found.rows * found.depth * found.blocks * _BYTES[found.elements.a]
    is_whole = held in (4 * _WAVE, 8 * _WAVE) and found.depth % found.each == 0
    return found if is_whole else None


def broadcast_blocks(blocks: int, size: int, chosen: int) -> Array:
    """Return the block of A that each product reads, by the modifiers cbsz and abid.

    Of every 2**size consecutive blocks it is number `chosen`.
    """
    number = np.arange(blocks)
    return (number >> size << size) + chosen


def moved_lanes(pattern: int) -> Array:
    """Return the lane of B that each lane reads, by the modifier blgp."""
    lane = np.arange(_WAVE)
    if pattern in (1, 2):
        return lane % 32 + 32 * (pattern - 1)
    if pattern == 3:
        return (lane + 16) % _WAVE
    return lane % 16 + 16 * (pattern - 4) if pattern else lane
