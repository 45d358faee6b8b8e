"""What AMD's matrix cores ask of a schedule: used by matrix_core_block.py.

Lanes that move together must find different banks, for which rows of tiles are longer than their
contents. CDNA reads by two times four lanes: 32 bytes more are right for that, and for eight lanes
that write to four rows. RDNA reads by eight lanes from eight rows: it must be 16 bytes, and lanes
write to every other row. Of WMMA a wave has fewer blocks: factors take four times the registers
that they take of MFMA. What banks made lanes wait, `refcomp emulate --profile` tells.
"""

import argparse
from dataclasses import dataclass

import ml_dtypes
import numpy as np

import refcomp as rc

SIZE, WAVES = 16, 2  # rows of the instruction; waves of a group along both sides
DEPTH, LANES = 32, 8  # columns of a tile; elements of 16 bytes
DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


@dataclass(frozen=True)
class Cores:
    """The instruction by dtype, a thread's elements of a factor and of the result, lanes of a wave,
    a wave's blocks along both sides, elements that rows are longer, tiles a loop: how many at
    most, and how many make 95 % of the loop's vector instructions multiply."""

    names: dict[str, str]
    factors: int
    sums: int
    wave: int
    blocks: int
    padding: int
    unroll: int
    least: int

    @property
    def rows(self):
        """Of C, for a group; as many columns."""
        return WAVES * self.blocks * SIZE

    @property
    def is_whole(self):
        """Whether each thread has all 16 elements of a row: the halves of a wave have the same, and
        the lower half gets the even rows of the result."""
        return self.factors == SIZE

    @property
    def run(self):
        """Elements that a thread reads of a row."""
        return max(self.factors, LANES)

    def tiles_a_loop(self, tiles):
        """Of so many. They are even, as there are two places. LLVM 19 spills where it runs the loop
        but twice, and where it writes out more than seven tiles behind it, as it does up to 13."""
        fitting = [n for n in range(2, self.unroll + 1, 2) if (tiles - 2) // n >= 3]

        def faults(n):
            rest = 2 + (tiles - 2) % n
            return n < self.least, 7 < rest < 14, rest

        return min(fitting, key=faults, default=2)

    def threads(self, ib):
        """The wave, a row of those it brings, and which half: two lanes bring parts of a row."""
        extents = (WAVES * WAVES, self.wave // 2, 2)
        tags = [f"threadIdx.{tag}" for tag in "zyx"]
        axes = [rc.thread_axis((0, n), tag) for n, tag in zip(extents, tags, strict=True)]
        for axis, extent in zip(axes, extents, strict=True):
            ib.scope_attr(axis, "thread_extent", extent)
        return axes

    def rows_to_bring(self, wave, down):
        """A thread's row of tiles, and from which rows of A and of B. These of B are in an order
        by which the even rows of the result are eight columns of C side by side."""
        first = wave * (self.wave // 2)
        if not self.is_whole:
            return [first + down] * 3
        row = first + down // 8 * 8 + down % 4 * 2 + down // 4 % 2
        return row, row, row // SIZE * SIZE + row % 2 * (SIZE // 2) + row % SIZE // 2


_MFMA = {"float16": "mfma.f32.16x16x16f16", "bfloat16": "mfma.f32.16x16x16bf16.1k"}
_WMMA = {"float16": "wmma.f32.16x16x16.f16", "bfloat16": "wmma.f32.16x16x16.bf16"}
_CDNA = Cores(_MFMA, 4, 4, wave=64, blocks=4, padding=2 * LANES, unroll=4, least=4)
_RDNA = Cores(_WMMA, 16, 8, wave=32, blocks=2, padding=LANES, unroll=20, least=10)
CORES = {"gfx942": _CDNA, "gfx90a": _CDNA, "gfx1100": _RDNA}


def asked(argv):
    """The GPU and the dtype that a command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("gpu", nargs="?", choices=CORES, default="gfx942")
    parser.add_argument("dtype", nargs="?", choices=DTYPES, default="float16")
    return parser.parse_args(argv)


if __name__ == "__main__":
    print(__doc__)
