"""Products and convolutions of f32 on AMD's matrix cores (MFMA), for the kernels of graphs.

`on_matrix_cores` replaces a sum of products by an extern operation. So it does with the elementwise
computes behind the sum. The operation's statement is a whole kernel. All other computes stay as
they are. The module `matrix_sums` finds the sum. It also defines the rows and columns of the sum,
its depth, its factors A and B and its result C. A group of four waves computes a tile of C.

- Its threads load a step of A and B into registers while the step before is multiplied, and then
  store it in shared memory. An image with a border is stored before, by a kernel of its own
  (`refcomp.topi.schedules.stored_borders`). So these loads have no conditions.
- A wave multiplies blocks of 16 x 16. A thread reads four neighbours of A along the depth at once.
  Both factors permute the depth alike, which changes no term of the sum. B is the instruction's
  first operand, so that a thread's results are neighbours in a row of C.
- Bias, residual and activation are applied to the sums in registers.
- If there are few tiles, groups share the depth. Another kernel adds their sums
  (`refcomp.topi.schedules.added_parts`).

Rows in shared memory are four elements longer than their contents, so that lanes use different
banks. Rows behind the last one repeat it, and are not stored.

Reference: AMD, "CDNA3 ISA", section on matrix arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from refcomp.arith import simplify
from refcomp.foundation.dtype import F32
from refcomp.foundation.target import Target
from refcomp.ir import builder
from refcomp.ir.builder import BufferPointer, IRBuilder
from refcomp.ir.expr import And, Expr, Min, Select, Var
from refcomp.ir.gpu_intrinsics import GPU_INTRINSICS
from refcomp.ir.promotion import const
from refcomp.ir.rewrite import substitute
from refcomp.ir.stmt import Stmt
from refcomp.ir.view import BufferView
from refcomp.te.calls import call_llvm_intrin
from refcomp.te.externs import extern
from refcomp.te.tensor import Tensor, thread_axis
from refcomp.topi.schedules.added_parts import add_parts, store_element
from refcomp.topi.schedules.computed_reads import element_of
from refcomp.topi.schedules.matrix_sums import (
    SIDE,
    WAVES,
    MatrixSum,
    digits_of,
    extent_of,
    find_matrix_sum,
)
from refcomp.topi.schedules.stored_borders import (
    PIXEL,
    has_border,
    has_pixels,
    store_border,
    store_pixels,
)
from refcomp.topi.schedules.window_walk import WindowWalk

_INSTRUCTION = "llvm.amdgcn.mfma.f32.16x16x4f32"
_PARTS = 4  # of a wave, which hold four elements of the depth
_LANES = 4  # f32 of an access of 128 bits
_THREADS = WAVES * SIDE * _PARTS
_PADDING = 4  # elements behind a row in shared memory
_ZERO = const(0, "int64")


def on_matrix_cores(outputs: Sequence[Tensor], target: Target) -> list[Tensor]:
    """Return tensors equal to `outputs`, by matrix cores where `target` has them.

    Args:
        outputs: the outputs of a kernel.
        target: what it is compiled for. Only `rocm` with a GPU that multiplies matrices of f32
            changes anything.

    Returns:
        One tensor that an extern operation computes, or `outputs` themselves.

    Example::

        >>> A, B = rc.placeholder((64, 32), name="A"), rc.placeholder((32, 64), name="B")
        >>> C = rc.topi.relu(rc.topi.matmul(A, B))
        >>> from refcomp.foundation.target import as_target
        >>> from refcomp.topi.schedules.matrix_cores import on_matrix_cores
        >>> (D,) = on_matrix_cores([C], as_target("rocm -mcpu=gfx942"))
        >>> D.shape == C.shape, type(D.op).__name__
        (True, 'ExternOp')
        >>> on_matrix_cores([C], as_target("rocm -mcpu=gfx1100")) == [C]
        True
    """
    listed = list(outputs)
    if not _has_matrix_cores(target) or len(listed) != 1:
        return listed
    found = find_matrix_sum(listed[0])
    if found is None:
        return listed
    left = found.left.tensor
    stored = left
    if found.is_stored:
        is_possible = has_pixels(left) if found.pixels else has_border(left)
        # Other reads would need the image itself, not one row.
        if not is_possible or found.has_other_reads:
            return listed
        if found.walk(found.tile().depth) is None:
            return listed
        stored = store_pixels(left) if found.pixels else store_border(left)
    parts = found.parts()
    rows = math.prod(map(extent_of, found.rows))
    in_memory = found.inputs if parts == 1 else found.inputs_of_sums

    def statement(ins: list[BufferView], outs: list[BufferView]) -> Stmt:
        ib = builder.create()
        views = zip(in_memory, ins, strict=True)
        pointers = {tensor: ib.buffer_ptr(view) for tensor, view in views}
        result = ib.buffer_ptr(outs[0])
        if parts == 1:
            group = _MatrixGroup(ib, found, {**pointers, found.output: result})
        else:
            group = _MatrixGroup(ib, found, pointers, result)
        group.write()
        return ib.get()

    made: Tensor = extern(
        found.output.shape if parts == 1 else (parts, rows, found.column.extent),
        [stored if tensor is left else tensor for tensor in in_memory],
        statement,
        name=found.output.name if parts == 1 else "parts",
        dtype=F32,
    )
    return [made if parts == 1 else add_parts(found, made)]


def _has_matrix_cores(target: Target) -> bool:
    if target.kind != "rocm":
        return False
    return target.option("mcpu", "").startswith(GPU_INTRINSICS[_INSTRUCTION].gpus)


class _MatrixGroup:
    """The statements of a group of threads."""

    def __init__(
        self,
        ib: IRBuilder,
        found: MatrixSum,
        pointers: Mapping[Tensor, BufferPointer],
        parts: BufferPointer
        | None = None,  # of the sums of parts, if groups share the depth
    ) -> None:
        self.ib = ib
        self.found = found
        self.pointers = pointers
        self.tile = tile = found.tile()
        self.count = math.prod(map(extent_of, found.rows))
        self.parts = parts
        count = found.parts() if parts is not None else 1
        self.steps = found.steps(tile.depth) // count  # of this group
        self.part_number = self._axis(count, "blockIdx.z") if count > 1 else _ZERO
        row_tiles = -(-self.count // tile.rows)
        self.first_row = self._axis(row_tiles, "blockIdx.y") * tile.rows
        column_tiles = extent_of(found.column) // tile.columns
        self.first_column = self._axis(column_tiles, "blockIdx.x") * tile.columns
        # One axis: from several, LLVM 19 makes vectors of 16-bit indices, and then widens them
        # wrongly to 64 bits.
        self.thread = self._axis(_THREADS, "threadIdx.x")
        self.wave = self.thread // (_PARTS * SIDE)
        self.part = self.thread // SIDE % _PARTS
        self.side = self.thread % SIDE
        # Vectors of A and of B that a thread moves in a step. A's tile has rows for all threads.
        self.a_moves = -(-tile.rows * tile.depth // (_LANES * _THREADS))
        self.b_moves = -(-tile.columns * tile.depth // (_LANES * _THREADS))
        rows = self.a_moves * _LANES * _THREADS // tile.depth
        self.a = self._array((rows, tile.depth + _PADDING), "A.tile", "shared")
        shape = (tile.depth, tile.columns + _PADDING)
        self.b = self._array(shape, "B.tile", "shared")
        self.a_coming = self._array((self.a_moves, _LANES), "A.coming")
        self.b_coming = self._array((self.b_moves, _LANES), "B.coming")
        down, across = tile.blocks
        self.a_held = self._array((down, _LANES), "A.held")
        self.b_held = self._array((across, _LANES), "B.held")
        self.sums = self._array((down, across, _LANES), "sums")
        self.more = self._array((_LANES,), "more")
        # The moved vectors of A in the first step, if A is one row; see `_place_rows`.
        self.starts: list[Expr] = []
        self.walk: WindowWalk | None = None

    def _axis(self, extent: int, tag: str) -> Expr:
        axis = thread_axis((0, extent), tag)
        self.ib.scope_attr(axis, "thread_extent", extent)
        return axis.var

    def _array(
        self, shape: tuple[int, ...], name: str, scope: str = "local"
    ) -> BufferPointer:
        return self.ib.allocate(F32, shape, name, scope=scope)

    def write(self) -> None:
        """Compute the tile of the group, and store it."""
        steps = self.steps
        self._place_rows()
        self.fetch(self._first_step)
        self.keep()
        if steps > 1:
            self._advance(self._first_step + 1, is_first=True)
        if steps > 2:
            with self.ib.for_range(2, steps, "step") as step:
                self._advance(self._first_step + step)
        self.multiply(is_first=steps == 1)
        self.store()

    @property
    def _first_step(self) -> Expr:
        return self.part_number * self.steps

    def _advance(self, step: Expr, *, is_first: bool = False) -> None:
        """Multiply the step in shared memory, while `step` comes."""
        self.fetch(step)
        self.multiply(is_first=is_first)
        self.keep()

    def _a_place(self, move: int) -> tuple[Expr, Expr]:
        """Return the row in the tile, and the depth in the step, of a vector that is moved."""
        width = self.tile.depth // _LANES
        row = self.thread // width + move * (_THREADS // width)
        return row, self.thread % width * _LANES

    def _b_place(self, move: int) -> tuple[Expr, Expr]:
        """Return the depth in the step, and the column in the tile, of a vector of B.

        A thread moves vectors of one row where it can, so that it computes one address.
        """
        width = self.tile.columns // _LANES
        sharing = _THREADS // self.tile.depth  # threads of a row
        if width % sharing == 0:
            column = (self.thread % sharing + move * sharing) * _LANES
            return self.thread // sharing, column
        depth = self.thread // width + move * (_THREADS // width)
        return depth, self.thread % width * _LANES

    def fetch(self, step: Expr) -> None:
        """Load the thread's share of a step of A and of B into registers."""
        found = self.found
        for move in range(self.a_moves):
            self._fetch_left(move, step)
        if self.walk is not None:
            self.walk.advance()
        for move in range(self.b_moves):
            depth, column = self._b_place(move)
            at = self._at(None, step, depth)
            at[self.found.column.var] = self.first_column + column
            right = found.right
            *before, last = (substitute(index, at) for index in right.indices)
            indices = (*before, simplify(last))
            if found.pixels:
                with self.ib.if_scope(self._has_weights(depth)):
                    self._load(self.b_coming, move, right.tensor, indices)
                with self.ib.else_scope():
                    for n in range(_LANES):
                        self.b_coming[move, n] = 0.0
                continue
            with self._if_needed(depth < self.tile.depth, self._has_idle_threads):
                self._load(self.b_coming, move, right.tensor, indices)

    def _has_weights(self, depth: Expr) -> Expr:
        """Return the condition that a pixel and a channel of a step are of the window."""
        found = self.found
        pixel = depth // PIXEL < extent_of(found.window[-1])
        return And(pixel, depth % PIXEL < extent_of(found.deep))

    @property
    def _has_idle_threads(self) -> bool:
        """True if B has fewer vectors than there are threads."""
        return self.tile.depth * self.tile.columns < _LANES * _THREADS

    def _if_needed(
        self, condition: Expr, is_needed: bool
    ) -> AbstractContextManager[None]:
        return self.ib.if_scope(condition) if is_needed else self.ib.scope()

    def _clamped(self, row: Expr) -> Expr:
        """Return the row, or the last one for rows behind it."""
        rows = self.a_moves * _LANES * _THREADS // self.tile.depth
        is_inside = self.count % self.tile.rows == 0 and rows == self.tile.rows
        return row if is_inside else Min(row, const(self.count - 1, "int64"))

    def _at(self, row: Expr | None, step: Expr, depth: Expr) -> dict[Var, Expr]:
        """Return the values of the axes at a row of C, and at a depth of a step."""
        found = self.found
        if found.pixels:
            *down, across = found.window
            at = digits_of(step, down)
            at |= {across.var: depth // PIXEL, found.deep.var: depth % PIXEL}
        elif not found.window:
            at = {found.deep.var: step * self.tile.depth + depth}
        else:
            place = step // self._steps_of_place
            at = digits_of(place, found.window)
            first = (step - place * self._steps_of_place) * self.tile.depth
            at[found.deep.var] = first + depth
        if row is not None:
            at |= digits_of(row, found.rows)
        return self.found.with_single_axes(at)

    @property
    def _steps_of_place(self) -> int:
        return extent_of(self.found.deep) // self.tile.depth

    def _fetch_left(self, move: int, step: Expr) -> None:
        """Load a vector of A."""
        if self.walk is not None:
            stored = self.pointers[self.found.left.tensor]
            first = self.starts[move] + self.walk.place
            with self.ib.for_range(0, _LANES, "v", for_type="vectorize") as v:
                self.a_coming[move, v] = stored[first + v]
            return
        row, depth = self._a_place(move)
        at = self._at(self._clamped(self.first_row + row), step, depth)
        left = self.found.left
        indices = tuple(substitute(index, at) for index in left.indices)
        self._load(self.a_coming, move, left.tensor, indices)

    def _place_rows(self) -> None:
        """Compute where the moved vectors of A begin, if A is an image that is stored as one row.

        The place of an element is the sum of that of its row and that of its depth. The latter is
        the same for all threads.
        """
        if not self.found.is_stored:
            return
        for move in range(self.a_moves):
            row, depth = self._a_place(move)
            at = self._at(self._clamped(self.first_row + row), _ZERO, depth)
            start = self.found.place(at)
            if self.found.pixels:
                # Further pixels of the window are those of zeros, which end each row.
                is_pixel = depth // PIXEL < extent_of(self.found.window[-1])
                zeros = (self.found.stored_shape[-2] - 1) * PIXEL
                start = Select(is_pixel, start, const(zeros, "int64"))
            self.starts.append(self.ib.let(f"A.start{move}", start))
        digits = self.found.walk(self.tile.depth)
        assert digits is not None
        self.walk = WindowWalk(self.ib, digits, self._first_step)

    def _load(
        self, into: BufferPointer, move: int, tensor: Tensor, indices: Sequence[Expr]
    ) -> None:
        """Load four neighbours along the last axis."""
        *before, last = indices
        with self.ib.for_range(0, _LANES, "v", for_type="vectorize") as v:
            element = element_of(tensor, (*before, last + v), self.pointers)
            into[move, v] = element

    def keep(self) -> None:
        """Store that share in shared memory."""
        for move in range(self.a_moves):
            self._move(self.a, self._a_place(move), self.a_coming, (move, 0))
        for move in range(self.b_moves):
            place = self._b_place(move)
            with self._if_needed(place[0] < self.tile.depth, self._has_idle_threads):
                self._move(self.b, place, self.b_coming, (move, 0))

    def _move(
        self,
        target: BufferPointer,
        to: tuple[Expr | int, Expr | int],
        source: BufferPointer,
        at: tuple[Expr | int, Expr | int],
    ) -> None:
        """Copy 16 bytes."""
        with self.ib.for_range(0, _LANES, "v", for_type="vectorize") as v:
            target[to[0], to[1] + v] = source[at[0], at[1] + v]

    def _origin(self) -> tuple[Expr, Expr]:
        """Return the first row and column of the wave's blocks in the tile."""
        down, across = self.tile.blocks
        wave_row = self.wave // self.tile.wave_columns
        wave_column = self.wave % self.tile.wave_columns
        return wave_row * (down * SIDE), wave_column * (across * SIDE)

    def multiply(self, *, is_first: bool) -> None:
        """Add the products of the step in shared memory to the sums, at first to zeros."""
        down, across = self.tile.blocks
        first_row, first_column = self._origin()
        for start in range(0, self.tile.depth, _PARTS * _LANES):
            depth = self.part * _LANES + start
            for i in range(down):
                row = first_row + i * SIDE + self.side
                self._move(self.a_held, (i, 0), self.a, (row, depth))
            for j in range(across):
                column = first_column + j * SIDE + self.side
                for n in range(_LANES):
                    self.b_held[j, n] = self.b[depth + n, column]
            for n in range(_LANES):
                with (
                    self.ib.for_range(0, down, "i") as row_block,
                    self.ib.for_range(0, across, "j") as column_block,
                ):
                    is_new = is_first and start == 0 and n == 0
                    self._add(row_block, column_block, n, is_new=is_new)

    def _add(self, i: Expr, j: Expr, n: int, *, is_new: bool) -> None:
        """Issue one instruction, which adds to the sums of a block."""
        operands = [self.b_held[j, n], self.a_held[i, n]]
        if is_new:
            operands += [const(0.0, "float32")] * _LANES
        else:
            operands += [self.sums[i, j, k] for k in range(_LANES)]
        for k in range(_LANES):
            which = const(k, "int32")
            value = call_llvm_intrin("float32", _INSTRUCTION, *operands, which)
            self.more[k] = value
        for k in range(_LANES):
            self.sums[i, j, k] = self.more[k]

    def store(self) -> None:
        """Store what is computed from the sums, four columns at a time."""
        down, across = self.tile.blocks
        first_row, first_column = self._origin()
        for i in range(down):
            row = self.first_row + first_row + i * SIDE + self.side
            is_partial = self.count % self.tile.rows != 0
            with self._if_needed(row < self.count, is_partial):
                at = self.found.with_single_axes(digits_of(row, self.found.rows))
                for j in range(across):
                    column = first_column + j * SIDE + self.part * _LANES
                    with self.ib.for_range(0, _LANES, "v", for_type="vectorize") as v:
                        at[self.found.column.var] = self.first_column + column + v
                        self._store_one(row, at, self.sums[i, j, v])

    def _store_one(self, row: Expr, at: dict[Var, Expr], sums: Expr) -> None:
        """Store an element of the output, or of the sum of a part."""
        if self.parts is None:
            store_element(self.found, at, sums, self.pointers)
        else:
            self.parts[self.part_number, row, at[self.found.column.var]] = sums
