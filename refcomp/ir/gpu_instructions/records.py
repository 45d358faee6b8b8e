"""Records of the instructions of GPUs: operands, GPUs that have them, and where matrices lie.

A matrix product needs the elements of three matrices, which the threads of a wave hold in parts. A
`Fragment` says which elements each thread holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from refcomp.foundation.dtype import F32, I32, DType

REGISTER_BITS = 32
ROW_BITS = 128  # of a row that a thread brings to a MatrixLoad
_ROWS_OF_MATRIX = 8


class MatrixPlace(NamedTuple):
    """The place of an element in its matrix."""

    row: int
    column: int


@dataclass(frozen=True, slots=True)
class Fragment:
    """The elements of a matrix that each thread of a wave holds."""

    count: int  # elements of a thread
    # (thread of the wave, number among its elements) -> the place in the matrix
    place: Callable[[int, int], MatrixPlace]


@dataclass(frozen=True, slots=True)
class DotProduct:
    """The sum of the products of two registers' elements and a third operand.

    The operands are the elements of the first factor, then those of the second, then the old sum.
    """

    name: str
    element: DType  # of the factors
    sum: DType
    gpus: tuple[str, ...] = ()  # AMD: prefixes of the names of the GPUs that have it
    capability: int = 0  # NVIDIA: the least compute capability, times ten
    wave: int = 1  # threads that compute it together

    @property
    def counts(self) -> tuple[int, int]:
        """Return the number of elements of each factor."""
        count = REGISTER_BITS // self.element.bits
        return count, count

    @property
    def operands(self) -> tuple[DType, ...]:
        """Return the dtypes of all operands."""
        return (*(self.element,) * sum(self.counts), self.sum)

    @property
    def rounds_once(self) -> bool:
        """Return True if a sum of floats is rounded once (Note [Sums of products])."""
        return self.element != F32


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """One element of D = A B + C, for matrices that the threads of a wave hold together.

    The operands are the thread's elements of A, of B and of C, then the number of the wanted
    element of D among those of the thread. D lies as C does.
    """

    name: str
    element: DType  # of A and B
    sum: DType  # of C and D
    depth: int  # columns of A: each element of D is the sum of so many products
    a: Fragment
    b: Fragment
    c: Fragment
    wave: int  # threads that hold the matrices together
    gpus: tuple[str, ...] = ()  # AMD: prefixes of the names of the GPUs that have it
    capability: int = 0  # NVIDIA: the least compute capability, times ten
    unread_bits: int = 0  # low bits of a factor that the instruction does not read

    @property
    def counts(self) -> tuple[int, int]:
        """Return the number of a thread's elements of each factor."""
        return self.a.count, self.b.count

    @property
    def operands(self) -> tuple[DType, ...]:
        """Return the dtypes of all operands."""
        factors = (self.element,) * sum(self.counts)
        return (*factors, *(self.sum,) * self.c.count, I32)

    @property
    def rounds_once(self) -> bool:
        """Return True if a sum of floats is rounded once (Note [Sums of products])."""
        return self.element != F32 or self.unread_bits > 0


@dataclass(frozen=True, slots=True)
class MatrixLoad:
    """One element of several small matrices, whose rows the threads of a wave bring together.

    Each thread brings one row of `ROW_BITS`. The operands are the elements of this row, then the
    number of the wanted element among those that the thread gets. The result has their dtype. Note
    [Matrix loads] of `refcomp.ir.gpu_instructions.nvidia` says which thread gets which element.
    """

    name: str
    is_transposed: bool
    wave: int  # threads that bring and get the matrices together
    gpus: tuple[str, ...] = ()
    capability: int = 0  # the least compute capability, times ten

    def fragment(self, element: DType) -> Fragment:
        """Return what each thread gets of the rows of all threads, one below the other."""
        per_register = REGISTER_BITS // element.bits

        def place(thread: int, number: int) -> MatrixPlace:
            matrix, within = divmod(number, per_register)
            across = thread % 4 * per_register + within
            down = thread // 4
            if self.is_transposed:
                across, down = down, across
            return MatrixPlace(matrix * _ROWS_OF_MATRIX + down, across)

        return Fragment(self.row(element), place)

    def row(self, element: DType) -> int:
        """Return the number of elements of a row."""
        return ROW_BITS // element.bits

    def fits(self, element: DType) -> bool:
        """Return True if the instruction moves elements of this dtype."""
        return element.bits == 16 or (element.bits == 8 and not self.is_transposed)


GpuInstruction = DotProduct | MatrixProduct | MatrixLoad
