"""The needs of AMD's matrix cores, as a schedule must meet them: used by matrix_core_block.py.

Lanes that move data together must use different banks of shared memory. So rows of tiles are
padded. CDNA reads by two times four lanes, for which 32 bytes are right, as for eight lanes that
write to four rows. RDNA reads by eight lanes from eight rows, for which 16 bytes are right, and
lanes write to every other row. With WMMA, a wave has fewer blocks, because factors take four times
the registers. `refcomp emulate --profile` shows the lanes that waited for banks.
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
    """A kind of matrix cores, and the sizes that suit it."""

    names: dict[str, str]  # dtype -> instruction
    factors: int  # elements of a factor that a thread holds
    sums: int  # elements of the result that a thread holds
    wave: int  # lanes
    blocks: int  # blocks of a wave along both sides
    padding: int  # elements at the end of a row of a tile
    unroll: int  # tiles an iteration, at most
    least: int  # tiles an iteration with which 95 % of the vector instructions multiply

    @property
    def rows(self):
        """The rows of C of a group; it has as many columns."""
        return WAVES * self.blocks * SIZE

    @property
    def is_whole(self):
        """True if each thread has all 16 elements of a row.

        Then the halves of a wave have the same elements, and the lower half gets the even rows of
        C.
        """
        return self.factors == SIZE

    @property
    def run(self):
        """Elements that a thread reads of a row."""
        return max(self.factors, LANES)

    def tiles_a_loop(self, tiles):
        """Return the best number of tiles an iteration, an even one because a tile has two places.

        LLVM 19 spills in a loop of two iterations, and with 8 to 13 tiles left behind the loop.
        """
        fitting = [n for n in range(2, self.unroll + 1, 2) if (tiles - 2) // n >= 3]

        def faults(n):
            rest = 2 + (tiles - 2) % n
            return n < self.least, 7 < rest < 14, rest

        return min(fitting, key=faults, default=2)

    def threads(self, ib):
        """Return the axes of the wave, of the row that it loads, and of the half of that row."""
        extents = (WAVES * WAVES, self.wave // 2, 2)
        tags = [f"threadIdx.{tag}" for tag in "zyx"]
        axes = [rc.thread_axis((0, n), tag) for n, tag in zip(extents, tags, strict=True)]
        for axis, extent in zip(axes, extents, strict=True):
            ib.scope_attr(axis, "thread_extent", extent)
        return axes

    def rows_to_bring(self, wave, down):
        """Return the thread's row in the tiles, and the rows of A and of B that it loads from.

        The rows of B are permuted so that the even rows of the result are 8 adjacent columns of C.
        """
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
    """Return the GPU and the dtype of a command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("gpu", nargs="?", choices=CORES, default="gfx942")
    parser.add_argument("dtype", nargs="?", choices=DTYPES, default="float16")
    return parser.parse_args(argv)


if __name__ == "__main__":
    print(__doc__)
