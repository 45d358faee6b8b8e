"""A block of C = A B^T by four waves on AMD's matrix cores: used by tuned_matrix_cores.py.

A wave has 4 x 4 blocks of 16 x 16 on CDNA (MFMA, 64 lanes), 2 x 2 on RDNA 3 (WMMA, 32 lanes). Each
move is of 16 bytes, so the elements of a thread lie side by side along k. This changes no sum, as
both factors do the same. B is the first operand, so that a thread's results are neighbours in a row
of C.
"""

import itertools

from matrix_core_kinds import DEPTH, LANES, SIZE, WAVES

import refcomp as rc


class Block:
    """The statements of a group for its block of C."""

    def __init__(self, ib, cores, dtype, factors):
        self.ib, self.cores, self.factors = ib, cores, factors
        self.name = f"llvm.amdgcn.{cores.names[dtype]}"
        wave, down, self.side = cores.threads(ib)
        lane = down * 2 + self.side
        self.column, self.part = lane % SIZE, lane // SIZE
        self.rows = cores.rows_to_bring(wave, down)
        shape = (cores.rows, DEPTH + cores.padding)
        self.tiles = [self.pair(dtype, shape, half, "shared") for half in "01"]
        self.coming = self.pair(dtype, (2, LANES), "coming")
        self.held = self.pair(dtype, (cores.blocks, cores.run), "held")
        sums = (cores.blocks, cores.blocks, cores.sums)
        self.sums = ib.allocate("float32", sums, "sums", scope="local")
        self.more = ib.allocate("float32", (cores.sums,), "more", scope="local")
        self.origin = [n * cores.blocks * SIZE for n in (wave // WAVES, wave % WAVES)]

    def pair(self, dtype, shape, name, scope="local"):
        """Allocate memory for a part of both factors."""
        return [self.ib.allocate(dtype, shape, f"{n}.{name}", scope=scope) for n in "AB"]

    def move(self, into, row, column, source, source_row, source_column):
        """Move 16 bytes."""
        with self.ib.for_range(0, LANES, "v", for_type="vectorize") as v:
            into[row, column + v] = source[source_row, source_column + v]

    def fetch(self, k):
        """Load the thread's share of the tiles from column k on: two parts of a row of each."""
        for r in range(2):
            for into, source, row in zip(self.coming, self.factors, self.rows[1:], strict=True):
                self.move(into, r, 0, source, row, k + (self.side + 2 * r) * LANES)

    def keep(self, tiles):
        """Store that share in shared memory."""
        for r in range(2):
            for into, source in zip(tiles, self.coming, strict=True):
                self.move(into, self.rows[0], (self.side + 2 * r) * LANES, source, r, 0)

    def multiply(self, tiles):
        """Add the products of two tiles."""
        cores = self.cores
        parts = 1 if cores.is_whole else cores.wave // SIZE
        for k in range(0, DEPTH, cores.run * parts):
            self.hold(tiles, k if cores.is_whole else k + self.part * cores.run)
            for at in range(0, cores.run, cores.factors):
                for i, j in itertools.product(range(cores.blocks), repeat=2):
                    self.add(i, j, at)

    def hold(self, tiles, column):
        """Load the operands of the thread's products into registers."""
        for b, at in itertools.product(range(self.cores.blocks), range(0, self.cores.run, LANES)):
            for into, source, first in zip(self.held, tiles, self.origin, strict=True):
                self.move(into, b, at, source, first + b * SIZE + self.column, column + at)

    def add(self, i, j, k):
        """Issue one instruction, from which each thread takes its elements of the result."""
        a, b = self.held
        factors, numbers = range(self.cores.factors), range(self.cores.sums)
        operands = [b[j, k + n] for n in factors] + [a[i, k + n] for n in factors]
        operands += [self.sums[i, j, n] for n in numbers]
        for n in numbers:
            which = rc.const(n, "int32")
            self.more[n] = rc.call_llvm_intrin("float32", self.name, *operands, which)
        for n in numbers:
            self.sums[i, j, n] = self.more[n]

    def places(self, step=1):
        """Return the blocks, each with every `step`-th element of the thread's part."""
        blocks = range(self.cores.blocks)
        return itertools.product(blocks, blocks, range(0, self.cores.sums, step))

    def store(self, c):
        """Store the sums in C, four columns at a time."""
        for i, j, n in self.places(4):
            row = self.origin[0] + i * SIZE + self.column
            column = self.origin[1] + j * SIZE + self.part * self.cores.sums + n
            with self.ib.for_range(0, 4, "v", for_type="vectorize") as v:
                c[row, column + v] = self.sums[i, j, n + v]


if __name__ == "__main__":
    print(__doc__)
