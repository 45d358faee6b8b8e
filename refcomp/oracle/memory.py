"""The memory of a program that is run: the elements of its buffers, each access checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from refcomp.dtype import to_numpy
from refcomp.errors import RefcompError
from refcomp.ir.buffer import Buffer
from refcomp.oracle.scalars import Scalar


class InterpretError(RefcompError):
    """The program breaks a rule of the IR; `where` holds the statement and the variables."""


class Memory:
    """A buffer's elements, in row-major order, and which of them have been written."""

    def __init__(self, buffer: Buffer, shape: tuple[int, ...], array: Any = None) -> None:
        self.buffer, self.shape, self.size = buffer, shape, math.prod(shape)
        fresh = array is None
        self.array = np.empty(shape, to_numpy(buffer.dtype)) if fresh else array
        self.written = np.zeros(self.size, np.bool_) if fresh else None

    def read(self, index: int) -> Scalar:
        self._check(index)
        if self.written is not None and not self.written[index]:
            raise InterpretError(f"element {index} of {self.buffer.name} is read, never written")
        value = self.array.flat[index]
        return value if self.buffer.dtype.is_float else value.item()

    def write(self, index: int, value: Scalar) -> None:
        self._check(index)
        self.array.flat[index] = value
        if self.written is not None:
            self.written[index] = True

    def offset(self, indices: Sequence[int]) -> int:
        """The row-major position of `indices`, each of which must lie within its dimension."""
        if len(indices) != len(self.shape):
            raise InterpretError(
                f"{self.buffer.name} of rank {len(self.shape)} is given {len(indices)} indices"
            )
        position = 0
        for dim, (index, extent) in enumerate(zip(indices, self.shape, strict=True)):
            if not 0 <= index < extent:
                raise InterpretError(
                    f"index {index} in dimension {dim} of {self.buffer.name} is out of range",
                    why=f"the dimension has {extent} elements",
                )
            position = position * extent + index
        return position

    def _check(self, index: int) -> None:
        if not 0 <= index < self.size:
            raise InterpretError(
                f"element {index} of {self.buffer.name} is out of range",
                why=f"it has {self.size} elements",
            )
