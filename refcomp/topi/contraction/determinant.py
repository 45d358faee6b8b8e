"""The determinants of matrices, by Gaussian elimination with partial pivoting.

Source: G. H. Golub and C. F. Van Loan, "Matrix Computations", 4th edition, section 3.4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.ir import builder
from refcomp.ir.builder import BufferPointer, IRBuilder
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.ir.stmt import Stmt
from refcomp.ir.view import BufferView
from refcomp.te import maths
from refcomp.te.extents import extents, require_extent
from refcomp.te.externs import extern
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor, as_dim
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.reduction.reduce import accumulator_of
from refcomp.topi.shapes import Array, require_constant, require_float, require_matrices


def det(data: Tensor) -> Tensor:
    """Return the determinant of each matrix in the last two axes.

    It is the product of the pivots of Gaussian elimination. The pivot is the first element of its
    column with the greatest absolute value. f16 and bf16 are eliminated in f32. The determinant of
    a matrix without elements is 1. One thread eliminates one matrix.

    Args:
        data: floats [..., n, n]; all extents are constant.

    Returns:
        A tensor [...] of the dtype of `data`. Elements that are not finite propagate as they do in
        the elimination: mostly to NaN, but a column of zeros gives 0.

    Raises:
        UserError: `data` is not a tensor of floats, its matrices are not square, or an extent is
            symbolic.

    Reference: ONNX Det; numpy.linalg.det.

    Example::

        >>> A = rc.placeholder((2, 2), name="A")
        >>> print(*rc.oracle.evaluate([rc.topi.det(A)], {A: np.array([[2, 1], [4, 6]], "float32")}))
        8.0
    """
    require_float(data, "det")
    require_matrices(data, "det")
    *_, rows, columns = extents(data)
    require_extent(columns, rows, "det", "the number of columns", tensors=[data])
    sizes = [require_constant(one, "det: an extent") for one in extents(data)]
    if 0 in sizes:
        one = const(1, data.dtype)
        return compute(tuple(sizes[:-2]), lambda *_: one, name="det", tag=INJECTIVE)
    count = math.prod(sizes[:-2])
    wide = accumulator_of(data.dtype)
    elimination = _Elimination(count, sizes[-1], wide)
    products: Tensor = extern(
        (count,), [data], elimination.statement, name="pivots", dtype=wide
    )
    strides = [math.prod(sizes[axis + 1 : -2]) for axis in range(len(sizes) - 2)]

    def element(*index: Expr) -> Expr:
        place = as_dim(0)
        for i, stride in zip(index, strides, strict=True):
            place = place + i * stride
        return products[place].astype(data.dtype)

    return compute(tuple(sizes[:-2]), element, name="det", tag=INJECTIVE)


@dataclass(frozen=True, slots=True)
class _Elimination:
    """The elimination of square matrices, each by a thread of its own.

    Attributes:
        count: the number of matrices.
        size: the number of rows and columns of each.
        dtype: the float dtype in which elements are computed.
    """

    count: int
    size: int
    dtype: DType

    def statement(self, ins: Sequence[BufferView], outs: Sequence[BufferView]) -> Stmt:
        """Return the statement that computes the determinants, as an extern has it."""
        ib = builder.create()
        data = ib.buffer_ptr(ins[0])
        product = ib.buffer_ptr(outs[0])
        area = self.size * self.size
        work = ib.allocate(str(self.dtype), self.count * area, name="work")
        chosen = ib.allocate("int32", self.count, name="chosen")
        total = self.count * area
        with ib.for_range(0, total, name="place", for_type="parallel") as place:
            work[place] = data[place].astype(self.dtype)
        with ib.for_range(0, self.count, name="matrix", for_type="parallel") as matrix:
            product[matrix] = const(1, self.dtype)
            with ib.for_range(0, self.size, name="step") as step:
                rows = _Rows(work, matrix * area, self.size)
                self._choose(ib, rows, step, chosen, matrix)
                self._exchange(ib, rows, step, chosen[matrix], product, matrix)
                product[matrix] = product[matrix] * rows[step, step]
                # A column of zeros makes the product 0, and leaves nothing to eliminate.
                with ib.if_scope(rows[step, step] != 0):
                    self._eliminate(ib, rows, step)
        return ib.get()

    def _choose(
        self,
        ib: IRBuilder,
        rows: _Rows,
        step: Expr,
        chosen: BufferPointer,
        matrix: Expr,
    ) -> None:
        """Choose the row with the pivot of a step."""
        chosen[matrix] = step.astype("int32")
        with ib.for_range(step + 1, self.size, name="row") as row:
            best = maths.abs(rows[chosen[matrix].astype("int64"), step])
            with ib.if_scope(maths.abs(rows[row, step]) > best):
                chosen[matrix] = row.astype("int32")

    def _exchange(
        self,
        ib: IRBuilder,
        rows: _Rows,
        step: Expr,
        chosen: Expr,
        product: BufferPointer,
        matrix: Expr,
    ) -> None:
        """Exchange two rows, unless they are the same. That changes the sign."""
        other = ib.let("other", chosen.astype("int64"))
        with ib.if_scope(other != step):
            product[matrix] = -product[matrix]
            with ib.for_range(step, self.size, name="column") as column:
                kept = ib.let("kept", rows[step, column])
                rows[step, column] = rows[other, column]
                rows[other, column] = kept

    def _eliminate(self, ib: IRBuilder, rows: _Rows, step: Expr) -> None:
        """Subtract multiples of the row of the pivot from all rows below."""
        with ib.for_range(step + 1, self.size, name="row") as row:
            factor = ib.let("factor", rows[row, step] / rows[step, step])
            with ib.for_range(step + 1, self.size, name="column") as column:
                rows[row, column] = rows[row, column] - factor * rows[step, column]


@dataclass(frozen=True, slots=True)
class _Rows:
    """A matrix in a buffer of one dimension.

    Attributes:
        buffer: where it is.
        begin: the place of its first element.
        size: the number of its columns.
    """

    buffer: BufferPointer
    begin: Expr
    size: int

    def __getitem__(self, index: tuple[Expr, Expr]) -> Expr:
        row, column = index
        return self.buffer[self.begin + row * self.size + column]

    def __setitem__(self, index: tuple[Expr, Expr], value: Expr) -> None:
        row, column = index
        self.buffer[self.begin + row * self.size + column] = value


def _sample_det(draws: Draws) -> Sample:
    size = draws.integer(0, 5)
    shape = (*draws.shape(0, 2), size, size)
    dtype = draws.float_dtype()
    if draws.flag():
        return Sample((draws.array(shape, dtype, special=False),))
    # Small integers: pivots are often equal, and matrices singular.
    return Sample((draws.integers(shape, -2, 2).astype(draws.array((), dtype).dtype),))


@meaning_of(det, pattern="opaque", sample=_sample_det)
def det_numpy(data: Array) -> Array:
    # numpy.linalg.det multiplies by way of logarithms, which is not exact for integers.
    wide = data.astype(np.longdouble)
    products = np.ones(data.shape[:-2], np.longdouble)
    with np.errstate(all="ignore"):
        for index in np.ndindex(*data.shape[:-2]):
            products[index] = _product_of_pivots(wide[index])
        return np.asarray(products, data.dtype)


def _product_of_pivots(rows: Array) -> Array:
    product = np.ones((), rows.dtype)
    for step in range(len(rows)):
        column = np.abs(rows[step:, step])
        other = step
        for row, size in enumerate(column, step):
            if size > column[other - step]:
                other = row
        if other != step:
            rows[[step, other]] = rows[[other, step]]
            product = -product
        product = product * rows[step, step]
        if rows[step, step] != 0:
            factors = rows[step + 1 :, step] / rows[step, step]
            rows[step + 1 :] -= factors[:, None] * rows[step]
    return product
