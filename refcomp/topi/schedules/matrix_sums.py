"""Sums of products for matrix cores, and the tiles in which they are computed.

A *matrix sum* is a product of matrices without being stored as one (*implicit GEMM*)::

    C[row, column] = sum over depth of A[row, depth] * B[depth, column]

For a convolution with channels last, a row is a pixel, and a column is an output channel. The depth
runs over the window and the input channels. Elementwise computes may stand before and behind it.

Requires constant extents, a depth whose innermost extent is a multiple of 16, and a multiple of 16
columns. Images of at most four channels are the exception. There, a step is a row of the window,
padded with zeros to whole channels and pixels. `find_matrix_sum` returns None for all other
computes.

Reference: S. Chetlur et al., "cuDNN: Efficient Primitives for Deep Learning", 2014, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from refcomp.arith import simplify
from refcomp.foundation.dtype import F32, I64
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.rewrite import substitute, variables_in
from refcomp.schedule.schedule import create_schedule
from refcomp.te.operation import ComputeOp, PlaceholderOp, reachable_operations
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import IterVar, Tensor, TensorRead
from refcomp.topi.schedules.blocked_convolution import elementwise_follower
from refcomp.topi.schedules.register_tiles import find_tiles
from refcomp.topi.schedules.stored_borders import PIXEL, is_padded, pixels_shape
from refcomp.topi.schedules.window_walk import Digit
from refcomp.topi.tags import PAD

SIDE = 16  # rows and columns of a block, which one instruction computes
WAVES = 4  # of a group
_MAX_ROWS = 112  # of a tile
# Addresses, and the filling of B, take the time of so many rows in each step of a tile.
_ROWS_OF_OVERHEAD = 24
_COLUMNS = (128, 64, 32, 16)
_DEPTHS = (32, 16)
_PIXELS = (4, 8)  # of a step
_MAX_GROUPS = 256  # if groups share the depth: about the units of a large card
_STEPS_OF_PART = 16
_MIN_ROWS = 16  # fewer would leave most of a block unused


@dataclass(frozen=True, slots=True)
class MatrixTile:
    """The part of C that a group computes, in steps along the depth.

    Attributes:
        rows: of C, a multiple of 16 `wave_rows`.
        columns: of C, a multiple of 16 `wave_columns`.
        depth: elements of a step, 16 or 32.
    """

    rows: int
    columns: int
    depth: int

    @property
    def wave_columns(self) -> int:
        """Return the number of waves along the columns."""
        return min(WAVES, self.columns // SIDE)

    @property
    def wave_rows(self) -> int:
        """Return the number of waves along the rows."""
        return WAVES // self.wave_columns

    @property
    def blocks(self) -> tuple[int, int]:
        """Return the blocks of a wave along its rows and along its columns."""
        rows = self.rows // (SIDE * self.wave_rows)
        return rows, self.columns // (SIDE * self.wave_columns)


@dataclass(frozen=True, slots=True)
class MatrixSum:
    """A sum of products that matrix cores can compute.

    Attributes:
        output: the tensor that is stored: the sum, or the end of what follows it elementwise.
        sums: the tensor that is the sum itself.
        left: the factor that depends on the rows. Its last index is `deep`.
        right: the factor that depends on the column, which is its last index.
        rows: the axes of the rows, in order.
        column: the last axis.
        window: the reduction axes but `deep`, in order.
        deep: the innermost axis of the depth.
        pixels: pixels of a step, each of four channels; 0 if a step is a part of `deep`. Then the
            last axis of `window` runs over the pixels, of which the last ones may be missing.
    """

    output: Tensor
    sums: Tensor
    left: TensorRead
    right: TensorRead
    rows: tuple[IterVar, ...]
    column: IterVar
    window: tuple[IterVar, ...]
    deep: IterVar
    pixels: int = 0

    @property
    def is_stored(self) -> bool:
        """Return True if `left` is stored as one row, by a kernel of its own."""
        return self.pixels > 0 or is_padded(self.left.tensor)

    @property
    def has_other_reads(self) -> bool:
        """Return True if more than the sum's one factor reads the tensor `left`."""
        tensor = self.left.tensor
        if self.right.tensor is tensor:
            return True
        found = reachable_operations([self.output.op])
        others = (op for op in found if op is not self.sums.op)
        return any(tensor in op.inputs for op in others)

    @property
    def stored_shape(self) -> list[int]:
        """Return the extents of `left` as it is stored."""
        shape = [as_int(extent) or 0 for extent in self.left.tensor.shape]
        return pixels_shape(shape) if self.pixels else shape

    def steps(self, depth: int) -> int:
        """Return the number of steps of `depth` elements."""
        axes = self.window[:-1] if self.pixels else (*self.window, self.deep)
        elements = math.prod(map(extent_of, axes))
        return elements if self.pixels else elements // depth

    @property
    def inputs(self) -> list[Tensor]:
        """Return the tensors in memory that the output is computed from: placeholders and images.

        If `left` is stored, the image that it copies is not read.
        """
        return self._in_memory(
            self.output, [self.left.tensor] if self.is_stored else []
        )

    @property
    def inputs_behind(self) -> list[Tensor]:
        """Return the placeholders that the output is computed from, but for the sum."""
        found = self._in_memory(self.output, [self.sums])
        return [tensor for tensor in found if tensor is not self.sums]

    @property
    def inputs_of_sums(self) -> list[Tensor]:
        """Return the tensors in memory that the sum is computed from, as `inputs` does."""
        return self._in_memory(self.sums, [self.left.tensor] if self.is_stored else [])

    def _in_memory(self, root: Tensor, others: Sequence[Tensor]) -> list[Tensor]:
        """Return the placeholders that `root` depends on, and those of `others`."""
        found: list[Tensor] = []

        def visit(tensor: Tensor) -> None:
            is_known = tensor in found
            if tensor in others or isinstance(tensor.op, PlaceholderOp):
                found.extend([] if is_known else [tensor])
                return
            for read in tensor.op.inputs:
                visit(read)

        visit(root)
        return found

    def with_single_axes(self, at: Mapping[Var, Expr]) -> dict[Var, Expr]:
        """Return the values of axes, with 0 for the axes of the sum that have one element."""
        op = self.sums.op
        assert isinstance(op, ComputeOp)
        zero = IntImm(0, I64)
        return {a.var: zero for a in op.axis if extent_of(a) == 1} | dict(at)

    def parts(self) -> int:
        """Return the number of parts of the depth that groups share; 1 if there are many tiles.

        A part has so many steps that its share of the work is worth a kernel that adds the parts.
        """
        tile = self.tile()
        rows = math.prod(map(extent_of, self.rows))
        groups = -(-rows // tile.rows) * extent_of(self.column) // tile.columns
        steps = self.steps(tile.depth)
        fitting = [
            parts
            for parts in range(1, steps // _STEPS_OF_PART + 1)
            if steps % parts == 0 and groups * parts <= _MAX_GROUPS
        ]
        return max(fitting, default=1)

    def place(self, at: Mapping[Var, Expr]) -> Expr:
        """Return the number of an element of `left` in memory. Axes that `at` lacks are 0."""
        op = self.sums.op
        assert isinstance(op, ComputeOp)
        zero = IntImm(0, I64)
        none = {axis.var: zero for axis in (*op.axis, *op.reduce_axis)}
        place: Expr = zero
        for index, extent in zip(self.left.indices, self.stored_shape, strict=True):
            place = place * extent + substitute(index, none | dict(at))
        return simplify(place)

    def walk(self, depth: int) -> list[Digit] | None:
        """Return the loops over the stored `left` in steps of `depth`, if it is linear in them.

        They are linear in convolutions. Return None for other sums, and unless the place of an
        element is the sum of a place by its row and a place by its depth.
        """
        reduced = (*self.window, self.deep)
        all_axes = {axis.var: axis.var for axis in (*self.rows, *reduced)}
        place: Expr = self.place({axis.var: axis.var for axis in self.rows})
        digits = []
        for axis in reduced:
            stride = as_int(self.place({axis.var: IntImm(1, I64)}))
            if stride is None:
                return None
            place = place + axis.var * stride
            if axis is not self.deep:
                digits.append(Digit(extent_of(axis), stride))
            elif not self.pixels:
                digits.append(Digit(extent_of(axis) // depth, stride * depth))
        difference = simplify(self.place(all_axes) - place)
        if self.pixels:
            # The pixels of a row of the window are one step.
            digits = digits[:-1] or [Digit(1, 0)]
        return digits if as_int(difference) == 0 else None

    def tile(self) -> MatrixTile:
        """Return the tile of the least work, which has a part for each row and a fixed part."""
        columns = next(n for n in _COLUMNS if extent_of(self.column) % n == 0)
        depth = self.pixels * PIXEL
        if not depth:
            depth = next(n for n in _DEPTHS if extent_of(self.deep) % n == 0)
        least = SIDE * MatrixTile(SIDE, columns, depth).wave_rows
        rows = math.prod(map(extent_of, self.rows))

        def cost(size: int) -> int:
            return -(-rows // size) * (size + _ROWS_OF_OVERHEAD)

        sizes = range(least, _MAX_ROWS + 1, least)
        return MatrixTile(min(sizes, key=cost), columns, depth)


def find_matrix_sum(output: Tensor) -> MatrixSum | None:
    """Return the sum of products of which `output` is computed; None if there is not exactly one.

    Between the sum and `output`, and between placeholders and the sum, are only computes that a
    thread repeats for each element.
    """
    found = reachable_operations([output.op])
    ops = [op for op in found if isinstance(op, ComputeOp)]
    others = [op for op in found if not isinstance(op, ComputeOp | PlaceholderOp)]
    if others or any(len(op.outputs) != 1 for op in ops):
        return None
    reductions = [op for op in ops if op.reduce_axis]
    if len(reductions) != 1:
        return None
    (op,) = reductions
    if any(other.tag not in (INJECTIVE, PAD) for other in ops if other is not op):
        return None
    (sums,) = op.outputs
    if (
        sums is not output
        and elementwise_follower(create_schedule([output]), op) is not output
    ):
        return None
    made = _matrix_sum(output, op)
    if made is not None and not _is_fitting(made):
        made = _by_pixels(made)
    return made


def _matrix_sum(output: Tensor, op: ComputeOp) -> MatrixSum | None:
    tiles = find_tiles(op)
    if tiles is None or [tile.axis for tile in tiles.columns] != [op.axis[-1]]:
        return None
    rows = tuple(tile.axis for tile in tiles.rows)
    column = op.axis[-1]
    wide = [axis for axis in op.axis if extent_of(axis) != 1]
    if wide != [*rows, column]:
        return None
    return MatrixSum(
        output=output,
        sums=op.outputs[0],
        left=tiles.by_row,
        right=tiles.by_column,
        rows=rows,
        column=column,
        window=tuple(axis for axis in op.reduce_axis if axis is not tiles.deep),
        deep=tiles.deep,
    )


def _is_fitting(found: MatrixSum) -> bool:
    """Return True if dtypes and extents suit the instruction, and vectors are contiguous."""
    if not _has_f32(found):
        return False
    if extent_of(found.column) % SIDE or extent_of(found.deep) % SIDE:
        return False
    if math.prod(map(extent_of, found.rows)) < _MIN_ROWS:
        return False
    return _ends_in(found.left, found.deep) and _ends_in(found.right, found.column)


def _has_f32(found: MatrixSum) -> bool:
    tensors = (found.output, found.sums, found.left.tensor, found.right.tensor)
    return all(tensor.dtype == F32 for tensor in tensors)


def _by_pixels(found: MatrixSum) -> MatrixSum | None:
    """Return the sum in steps of rows of the window; None if the image has many channels."""
    left, right = found.left, found.right
    reduced = {axis.var: axis for axis in (*found.window, found.deep)}
    deep = reduced.get(left.indices[-1]) if isinstance(left.indices[-1], Var) else None
    if deep is None or len(left.indices) < 2 or not 1 < extent_of(deep) <= PIXEL:
        return None
    across = [
        axis for v, axis in reduced.items() if v in variables_in(left.indices[-2])
    ]
    if len(across) != 1 or not 1 < extent_of(across[0]) <= max(_PIXELS):
        return None
    down = [axis for axis in reduced.values() if axis not in (deep, across[0])]
    order = sorted(down, key=[*found.window, found.deep].index)
    pixels = next(n for n in _PIXELS if extent_of(across[0]) <= n)
    made = replace(found, window=(*order, across[0]), deep=deep, pixels=pixels)
    # Another channel of the image may be NaN, which a weight of zero does not remove.
    has_all_channels = as_int(left.tensor.shape[-1]) == extent_of(deep)
    is_fitting = (
        _has_f32(made)
        and has_all_channels
        and extent_of(made.column) % SIDE == 0
        and math.prod(map(extent_of, made.rows)) >= _MIN_ROWS
        and _ends_in(left, deep)
        and _ends_in(right, made.column)
    )
    return made if is_fitting else None


def _ends_in(read: TensorRead, axis: IterVar) -> bool:
    *before, last = read.indices
    if last is not axis.var:
        return False
    return all(axis.var is not var for index in before for var in variables_in(index))


def extent_of(axis: IterVar) -> int:
    """Return the extent of the axis, or 0 if it is symbolic."""
    return as_int(axis.extent) or 0


def digits_of(number: Expr, axes: Sequence[IterVar]) -> dict[Var, Expr]:
    """Return the values of axes at a number of the loop that they are fused to."""
    found: dict[Var, Expr] = {}
    for place, axis in enumerate(reversed(axes)):
        extent = extent_of(axis)
        is_outermost = place == len(axes) - 1
        found[axis.var] = number if is_outermost else number % extent
        number = number // extent
    return found
