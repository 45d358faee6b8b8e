"""Products of f16 or bf16 matrices on NVIDIA's tensor cores, with sums in f32.

A group of threads computes a block of C = A B. It walks along the depth in tiles. The tiles of A
and B are copied to shared memory by accesses of 16 bytes. Each operand has two places there. While
one tile is multiplied, the next one is loaded to registers, and then stored in the other place. So
a tile needs one barrier.

Each warp holds its part of the block in registers. It loads the fragments of A and B by ldmatrix.
Rows in shared memory are 8 elements longer than their contents, so that 8 neighbouring rows lie in
different banks. Lanes that store together store such rows, or one row.

Requires constant extents that the block divides, and a GPU of compute capability 8.0. The
statements replace loops by `tensorize`, so lowering checks that both compute the same.

Reference: NVIDIA, PTX ISA, "Matrix multiply-accumulate operation using mma instruction"; NVIDIA,
"CUTLASS: Efficient GEMM in CUDA" (documentation), for the tiles of groups and warps.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NoReturn

from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import UserError
from refcomp.ir import builder
from refcomp.ir.builder import BufferPointer, IRBuilder
from refcomp.ir.constants import as_ints
from refcomp.ir.expr import Cast, Expr, Mul
from refcomp.ir.promotion import const
from refcomp.ir.stmt import Stmt
from refcomp.ir.view import BufferView
from refcomp.schedule.schedule import Schedule, create_schedule
from refcomp.te import reducer
from refcomp.te.calls import call_llvm_intrin
from refcomp.te.declare import decl_buffer
from refcomp.te.intrin import TensorIntrin, decl_tensor_intrin
from refcomp.te.operation import ComputeOp, compute, placeholder
from refcomp.te.tensor import Tensor, TensorRead, thread_axis, var

_ROWS, _COLUMNS, _DEPTH = 16, 8, 16  # of the instruction
_LANES = 8  # elements of 16 bytes
_WARP = 32
_PADDING = 8  # elements behind a row in shared memory
_PRODUCTS = {
    "f16": "llvm.nvvm.mma.m16n8k16.row.col.f32.f32",
    "bf16": "llvm.nvvm.mma.m16n8k16.row.col.bf16",
}
_LOAD = "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4"


@dataclass(frozen=True, slots=True)
class TensorCoreBlock:
    """The part of C that a group of threads computes, and the parts of its warps.

    Attributes:
        rows: of C, a multiple of 16 `warp_rows`.
        columns: of C, a multiple of 16 `warp_columns`.
        depth: columns of A in a tile, 16 or 32.
        warp_rows: number of warps along the rows.
        warp_columns: number of warps along the columns.

    Example::

        >>> block = rc.topi.TensorCoreBlock(rows=64, columns=128, warp_rows=1)
        >>> block.warps
        2
    """

    rows: int = 128
    columns: int = 128
    depth: int = 32
    warp_rows: int = 2
    warp_columns: int = 2

    @property
    def warps(self) -> int:
        """Return the number of warps of a group."""
        return self.warp_rows * self.warp_columns


def schedule_tensor_cores(
    output: Tensor, block: TensorCoreBlock | None = None
) -> Schedule:
    """Return a schedule for NVIDIA GPUs of a product of matrices on tensor cores.

    Args:
        output: f32 [m, n], the sum over k of `A[i, k].astype("float32") *
            B[k, j].astype("float32")`. A and B are both f16 or both bf16.
        block: the part of a group, by default 128 x 128 in 4 warps. It divides m, n and the depth.

    Raises:
        UserError: `output` is another compute, its extents are not constant, or the block is not a
            TensorCoreBlock or does not divide them.

    The sum is accumulated in f32, 16 products at a time: see `sum_error_bound` of
    `refcomp.ir.gpu_instructions.nvidia`. Infinities and NaN propagate. Build for
    `cuda -arch=sm_80` or newer.

    Example::

        >>> A = rc.placeholder((256, 64), "float16", "A")
        >>> B = rc.placeholder((64, 128), "float16", "B")
        >>> k = rc.reduce_axis((0, 64), "k")
        >>> product = lambda i, j: A[i, k].astype("float32") * B[k, j].astype("float32")
        >>> C = rc.compute((256, 128), lambda i, j: rc.sum(product(i, j), axis=k), name="C")
        >>> s = rc.topi.schedule_tensor_cores(C)
        >>> [step.primitive for step in s.steps]
        ['tile', 'bind', 'bind', 'tensorize']
    """
    chosen = TensorCoreBlock() if block is None else block
    if not isinstance(chosen, TensorCoreBlock):
        raise UserError(
            f"a {type(block).__name__} is not a block for tensor cores",
            remedy="pass refcomp.topi.TensorCoreBlock(rows=128, columns=128)",
        )
    element, depth = _check(output, chosen)
    schedule = create_schedule([output])
    stage = schedule[output]
    op = output.op
    assert isinstance(op, ComputeOp)
    i, j = op.axis
    by, bx, rows, _ = stage.tile(i, j, chosen.rows, chosen.columns)
    stage.bind(by, thread_axis("blockIdx.y"))
    stage.bind(bx, thread_axis("blockIdx.x"))
    stage.tensorize(rows, _intrinsic(chosen, element, depth))
    return schedule


def _fault_of(block: TensorCoreBlock) -> str | None:
    """Describe an illegal property of a block; None if there is none."""
    sizes = [getattr(block, field.name) for field in fields(block)]
    if any(type(size) is not int or size < 1 for size in sizes):
        return "its sizes are not all positive integers"
    if block.depth not in (16, 32):
        return f"its depth is {block.depth}, not 16 or 32"
    if block.rows % (16 * block.warp_rows) or block.columns % (16 * block.warp_columns):
        return "a warp's rows and columns are not multiples of 16"
    lanes = block.warps * _WARP * _LANES  # elements that all threads move at once
    if block.rows * block.depth % lanes or block.columns * block.depth % lanes:
        return f"{block.warps} warps cannot share the elements of a tile evenly"
    return None


def _check(output: Tensor, block: TensorCoreBlock) -> tuple[DType, int]:
    """Return the dtype of the factors and the depth of a product that `block` fits."""

    def refuse(why: str, remedy: str) -> NoReturn:
        raise UserError(
            f"{getattr(output, 'name', output)!r} cannot be computed on tensor cores",
            why=why,
            remedy=remedy,
        )

    if fault := _fault_of(block):
        refuse(f"no kernel fits {block}: {fault}", "choose another TensorCoreBlock")
    found = _product(output)
    if found is None:
        refuse(
            "it is not a sum of A[i, k] * B[k, j] of f16 or bf16, converted to f32",
            'write rc.sum(A[i, k].astype("float32") * B[k, j].astype("float32"), axis=k)',
        )
    element, extents = found
    sizes = as_ints(extents)
    if sizes is None:
        refuse("its extents are not constants", "declare it with constant shapes")
    for size, part, what in zip(
        sizes,
        (block.rows, block.columns, block.depth),
        ("rows", "columns", "depth"),
        strict=True,
    ):
        if size % part:
            refuse(
                f"a block of {part} does not divide its {what}, {size}",
                "pad the matrices, or choose another TensorCoreBlock",
            )
    return element, sizes[2]


def _product(output: Tensor) -> tuple[DType, tuple[Expr, Expr, Expr]] | None:
    """Return the dtype of the factors, and rows, columns and depth; None for other computes."""
    op = getattr(output, "op", None)
    if not isinstance(op, ComputeOp) or op.reduction is None or len(op.axis) != 2:
        return None
    source = op.reduction.sources[0]
    if len(op.reduce_axis) != 1 or not isinstance(source, Mul):
        return None
    (k,) = op.reduce_axis
    factors = (source.a, source.b)
    reads = [factor.value for factor in factors if isinstance(factor, Cast)]
    if len(reads) != 2 or str(output.dtype) != "f32":
        return None
    wanted = ((op.axis[0].var, k.var), (k.var, op.axis[1].var))
    for read, indices in zip(reads, wanted, strict=True):
        if not isinstance(read, TensorRead) or read.tensor.ndim != 2:
            return None
        if any(a is not b for a, b in zip(read.indices, indices, strict=True)):
            return None
    dtypes = {read.dtype for read in reads}
    (dtype, *others) = dtypes
    if others or str(dtype) not in _PRODUCTS:
        return None
    return dtype, (op.axis[0].extent, op.axis[1].extent, k.extent)


def _intrinsic(block: TensorCoreBlock, element: DType, depth: int) -> TensorIntrin:
    """Return the statements of a group, which compute its block of C."""
    a = placeholder((block.rows, depth), element, "A")
    b = placeholder((depth, block.columns), element, "B")
    k = reducer.reduce_axis((0, depth), "k")
    c = compute(
        (block.rows, block.columns),
        lambda i, j: reducer.sum(
            a[i, k].astype("float32") * b[k, j].astype("float32"), axis=k
        ),
        name="C",
    )
    views = {
        tensor: decl_buffer(
            tensor.shape,
            tensor.dtype,
            tensor.name,
            strides=[var(f"{tensor.name}.row"), 1],
            offset_factor=1,
        )
        for tensor in (a, b, c)
    }

    def statements(
        ins: list[BufferView], outs: list[BufferView]
    ) -> tuple[Stmt, None, None]:
        ib = builder.create()
        pointers = [ib.buffer_ptr(view) for view in (*ins, *outs)]
        _Group(ib, block, element, pointers).write(depth // block.depth)
        return ib.get(), None, None

    return decl_tensor_intrin(c.op, statements, "tensor_cores", views)


class _Group:
    """The statements of a group of threads."""

    def __init__(
        self,
        ib: IRBuilder,
        block: TensorCoreBlock,
        element: DType,
        matrices: list[BufferPointer],
    ) -> None:
        self.ib = ib
        self.block = block
        self.element = element
        *self.factors, self.c = matrices
        # Parts of the thread's number. Axes of their own keep divisions out of the indices, so
        # that the printer sees which vectors begin at multiples of 16 bytes.
        z = self._axis(2 * block.warps, "threadIdx.z")
        y = self._axis(2, "threadIdx.y")
        x = self._axis(8, "threadIdx.x")
        self.warp = z // 2
        self.half_warp = z % 2  # the lane // 16
        self.in_half = y * 8 + x  # the lane % 16
        self.eighth = z % 2 * 2 + y  # the lane // 8
        self.in_eighth = x  # the lane % 8
        self.first_row = self.warp // block.warp_columns * self._warp_rows
        self.first_column = self.warp % block.warp_columns * self._warp_columns
        shapes = ((block.rows, block.depth), (block.depth, block.columns))
        # Two places for a tile of A and of B.
        self.tiles = [
            [
                self._array((rows, columns + _PADDING), f"{name}.{half}", "shared")
                for name, (rows, columns) in zip("AB", shapes, strict=True)
            ]
            for half in range(2)
        ]
        # Vectors of a tile that each thread moves.
        threads = block.warps * _WARP
        self.moves = [rows * columns // (_LANES * threads) for rows, columns in shapes]
        self.coming = [
            self._array((count, _LANES), f"{name}.coming")
            for name, count in zip("AB", self.moves, strict=True)
        ]
        blocks = (self._warp_rows // _ROWS, self._warp_columns // (2 * _COLUMNS))
        # Fragments of 16 x 16 elements of A and of B, for the step that is multiplied and the next.
        self.held = [
            [
                self._array((count, _LANES), f"{name}.held.{half}")
                for name, count in zip("AB", blocks, strict=True)
            ]
            for half in range(2)
        ]
        self.counts = (blocks[0], 2 * blocks[1])
        self.sums = ib.allocate("float32", (*self.counts, 4), "sums", scope="local")
        self.more = ib.allocate("float32", (4,), "more", scope="local")

    @property
    def _warp_rows(self) -> int:
        return self.block.rows // self.block.warp_rows

    @property
    def _warp_columns(self) -> int:
        return self.block.columns // self.block.warp_columns

    def _axis(self, extent: int, tag: str) -> Expr:
        axis = thread_axis((0, extent), tag)
        self.ib.scope_attr(axis, "thread_extent", extent)
        return axis.var

    def _array(
        self, shape: tuple[int, ...], name: str, scope: str = "local"
    ) -> BufferPointer:
        return self.ib.allocate(self.element, shape, name, scope=scope)

    def write(self, tiles: int) -> None:
        """Compute the block from `tiles` tiles along the depth."""
        with (
            self.ib.for_range(0, self.counts[0], "i") as i,
            self.ib.for_range(0, self.counts[1], "j") as j,
            self.ib.for_range(0, 4, "n") as n,
        ):
            self.sums[i, j, n] = 0.0
        self.fetch(0)
        self.keep(0)
        pairs, is_even = divmod(tiles - 1, 2)
        with self.ib.for_range(0, pairs, "pair") as pair:
            self.advance(pair * 2, 0)
            self.advance(pair * 2 + 1, 1)
        if is_even:
            self.advance(const(pairs * 2, "int64"), 0)
        self.multiply(is_even)
        self.store()

    def advance(self, number: Expr, place: int) -> None:
        """Multiply tile `number`, which is in `place`, while the next tile is loaded."""
        self.fetch(number + 1)
        self.multiply(place)
        self.keep(1 - place)

    def _place(self, operand: int, n: Expr) -> tuple[Expr, Expr]:
        """Return the first row and column of vector `n` of A or B that the thread moves.

        Eight lanes that move together have one column of A, or one row of B.
        """
        block = self.block
        if operand == 0:
            down, across = self.in_eighth, self.eighth
            if block.depth == 16:
                down, across = self.in_half, self.half_warp
            rows = _WARP * _LANES // block.depth  # which a warp moves at once
            return (n * block.warps + self.warp) * rows + down, across * _LANES
        width = block.columns // _LANES
        lane = self.half_warp * 16 + self.in_half
        number = (n * block.warps + self.warp) * _WARP + lane
        return number // width, number % width * _LANES

    def fetch(self, tile: Expr | int) -> None:
        """Load the thread's share of a tile of A and of B into registers."""
        start = tile * self.block.depth
        for operand, (coming, source) in enumerate(
            zip(self.coming, self.factors, strict=True)
        ):
            with self.ib.for_range(0, self.moves[operand], "n") as n:
                row, column = self._place(operand, n)
                if operand == 0:
                    column = column + start
                else:
                    row = row + start
                self._move(coming, (n, 0), source, (row, column))

    def keep(self, place: int) -> None:
        """Store that share in shared memory."""
        for operand, (tile, coming) in enumerate(
            zip(self.tiles[place], self.coming, strict=True)
        ):
            with self.ib.for_range(0, self.moves[operand], "n") as n:
                self._move(tile, self._place(operand, n), coming, (n, 0))

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

    def multiply(self, place: int) -> None:
        """Add the products of the two tiles in `place`."""
        steps = self.block.depth // _DEPTH
        self._hold(place, 0)
        for step in range(steps):
            if step + 1 < steps:
                self._hold(place, step + 1)
            with (
                self.ib.for_range(0, self.counts[0], "i") as i,
                self.ib.for_range(0, self.counts[1], "j") as j,
            ):
                self._add(i, j, self.held[step % 2])

    def _hold(self, place: int, step: int) -> None:
        """Load the warp's fragments of one step of a tile."""
        a, b = self.tiles[place]
        row = self.first_row + self.in_half
        column = self.first_column + self.half_warp * _LANES
        depth = step * _DEPTH
        a_held, b_held = self.held[step % 2]
        with self.ib.for_range(0, self.counts[0], "i") as i:
            along = self.half_warp * _LANES + depth
            self._load(f"{_LOAD}.b16", a_held, i, a, (row + i * _ROWS, along))
        with self.ib.for_range(0, self.counts[1] // 2, "j") as j:
            at = (self.in_half + depth, column + j * 2 * _COLUMNS)
            self._load(f"{_LOAD}.trans.b16", b_held, j, b, at)

    def _load(
        self,
        name: str,
        held: BufferPointer,
        number: Expr,
        tile: BufferPointer,
        place: tuple[Expr, Expr],
    ) -> None:
        """Load a fragment of 16 x 16 elements. The lane gives the address of the row at `place`."""
        row = [tile[place[0], place[1] + n] for n in range(_LANES)]
        for n in range(_LANES):
            which = const(n, "int32")
            held[number, n] = call_llvm_intrin(self.element, name, *row, which)

    def _add(self, i: Expr, j: Expr, held: list[BufferPointer]) -> None:
        """Issue one instruction, which adds to the sums of fragment i, j."""
        name = _PRODUCTS[str(self.element)]
        half = j % 2 * 4  # of the columns of a fragment of B
        operands = [held[0][i, n] for n in range(_LANES)]
        operands += [held[1][j // 2, half + n] for n in range(4)]
        operands += [self.sums[i, j, n] for n in range(4)]
        for n in range(4):
            which = const(n, "int32")
            self.more[n] = call_llvm_intrin("float32", name, *operands, which)
        for n in range(4):
            self.sums[i, j, n] = self.more[n]

    def store(self) -> None:
        """Store the sums in C, two neighbours of a row at a time."""
        group = self.eighth * 2 + self.in_eighth // 4  # the lane // 4
        with (
            self.ib.for_range(0, self.counts[0], "i") as i,
            self.ib.for_range(0, self.counts[1], "j") as j,
        ):
            for half in range(2):
                row = self.first_row + i * _ROWS + half * 8 + group
                column = self.first_column + j * _COLUMNS + self.in_eighth % 4 * 2
                with self.ib.for_range(0, 2, "v", for_type="vectorize") as v:
                    self.c[row, column + v] = self.sums[i, j, half * 2 + v]
