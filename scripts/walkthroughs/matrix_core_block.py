"""How four waves compute a block of C = A B^T on AMD's matrix cores: used by tuned_matrix_cores.py.

The block has 128 x 128 elements, each wave 4 x 4 blocks by instructions of 16 x 16 x 16. Everything
moves 16 bytes at a time, for which a thread's elements of a factor lie side by side along k: that
changes nothing as long as both factors do it. Rows of tiles are 32 bytes longer than they need to
be: so the eight lanes that write together, and the twice four that read together, find different
banks. With 16 bytes the profile counted a clock of waiting for each clock of shared memory.
"""

import itertools

import refcomp as rc

NAMES = {"float16": "mfma.f32.16x16x16f16", "bfloat16": "mfma.f32.16x16x16bf16.1k"}
SIZE, ELEMENTS = 16, 4  # of the instruction: rows, a thread's elements
WAVES, BLOCKS, ROWS = 2, 4, 128  # along a side: of a group, of a wave; rows for a group
DEPTH, UNROLL, LANES = 32, 4, 8  # columns of a tile; tiles a loop; elements of 16 bytes


class Block:
    """The statements of a group for its block of C."""

    def __init__(self, ib, dtype, factors):
        self.ib, self.factors, self.name = ib, factors, f"llvm.amdgcn.{NAMES[dtype]}"
        axes = [
            rc.thread_axis((0, n), f"threadIdx.{a}") for n, a in ((4, "z"), (32, "y"), (2, "x"))
        ]
        for axis, extent in zip(axes, (4, 32, 2), strict=True):
            ib.scope_attr(axis, "thread_extent", extent)
        self.wave, down, self.side = axes
        self.row, lane = self.wave * 32 + down, down * 2 + self.side
        self.column, self.part = lane % SIZE, lane // SIZE
        self.tiles = [self.pair(dtype, (ROWS, DEPTH + 2 * LANES), half, "shared") for half in "01"]
        self.coming = self.pair(dtype, (2, LANES), "coming")
        self.held = self.pair(dtype, (BLOCKS, LANES), "held")
        self.sums = ib.allocate("float32", (BLOCKS, BLOCKS, ELEMENTS), "sums", scope="local")
        self.more = ib.allocate("float32", (ELEMENTS,), "more", scope="local")
        self.origin = [n * BLOCKS * SIZE for n in (self.wave // WAVES, self.wave % WAVES)]

    def pair(self, dtype, shape, name, scope="local"):
        """Memory for a part of both factors."""
        return [self.ib.allocate(dtype, shape, f"{n}.{name}", scope=scope) for n in "AB"]

    def move(self, into, row, column, source, source_row, source_column):
        """16 bytes."""
        with self.ib.for_range(0, LANES, "v", for_type="vectorize") as v:
            into[row, column + v] = source[source_row, source_column + v]

    def fetch(self, k):
        """What the thread brings of the tiles from column k on: two parts of a row of each."""
        for r in range(2):
            for into, source in zip(self.coming, self.factors, strict=True):
                self.move(into, r, 0, source, self.row, k + (self.side + 2 * r) * LANES)

    def keep(self, tiles):
        """Puts it into shared memory."""
        for r in range(2):
            for into, source in zip(tiles, self.coming, strict=True):
                self.move(into, self.row, (self.side + 2 * r) * LANES, source, r, 0)

    def multiply(self, tiles):
        """Adds the products of two tiles."""
        for b in range(BLOCKS):
            for into, source, first in zip(self.held, tiles, self.origin, strict=True):
                self.move(into, b, 0, source, first + b * SIZE + self.column, self.part * LANES)
        for k in range(0, LANES, ELEMENTS):
            for i in range(BLOCKS):
                for j in range(BLOCKS):
                    self.add(i, j, k)

    def add(self, i, j, k):
        """One instruction: each thread asks for its four elements of the result."""
        a, b = self.held
        numbers = range(ELEMENTS)
        operands = [a[i, k + n] for n in numbers] + [b[j, k + n] for n in numbers]
        operands += [self.sums[i, j, n] for n in numbers]
        for n in numbers:
            which = rc.const(n, "int32")
            self.more[n] = rc.call_llvm_intrin("float32", self.name, *operands, which)
        for n in numbers:
            self.sums[i, j, n] = self.more[n]

    def places(self):
        """Of each sum of the thread: where it is kept, and the row and column of the block."""
        for i, j, n in itertools.product(range(BLOCKS), range(BLOCKS), range(ELEMENTS)):
            row, column = (first + b * SIZE for first, b in zip(self.origin, (i, j), strict=True))
            yield (i, j, n), (row + self.part * ELEMENTS + n, column + self.column)


if __name__ == "__main__":
    print(__doc__)
