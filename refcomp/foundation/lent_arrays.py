"""Arrays on memory that a program lends to a registered function.

A LentArray is a numpy array without a copy, and has the methods of `refcomp.nd.NDArray` that
callbacks of the classic system use. It is valid only during the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from refcomp.foundation.errors import UserError

if TYPE_CHECKING:
    import numpy.typing as npt


class LentArray(np.ndarray):
    """A numpy array on memory of the program, which is valid only during the call.

    Example::

        >>> from refcomp.foundation.lent_arrays import LentArray
        >>> memory = np.zeros(3, "float32")
        >>> lent = memory.view(LentArray)
        >>> rc.nd.array([1, 2, 3], dtype="float32").copyto(lent).asnumpy().tolist()
        [1.0, 2.0, 3.0]
        >>> lent[0] = 7
        >>> memory.tolist()
        [7.0, 2.0, 3.0]
    """

    def asnumpy(self) -> npt.NDArray[Any]:
        """Return a copy as a plain numpy array, which outlives the call."""
        return np.array(self, subok=False)

    def numpy(self) -> npt.NDArray[Any]:
        """Return a plain numpy array that shares the memory."""
        return self.view(np.ndarray)

    def copyfrom(self, source: object) -> LentArray:
        """Copy the elements of another array of the same shape to this one, and return this one.

        Raises:
            UserError: the shapes differ, or the function may only read this array.
        """
        elements = np.asarray(source)
        if elements.shape != self.shape:
            raise UserError(
                f"an array of shape {elements.shape} cannot be copied to an array of "
                f"shape {self.shape}",
                remedy="pass an array of the same shape",
            )
        if not self.flags.writeable:
            raise UserError(
                "the array is read-only",
                why="it is an input of the operation that calls this function",
                remedy="write to an output, or copy it: a.asnumpy()",
            )
        self[...] = elements
        return self

    def copyto(self, target: Any) -> Any:
        """Copy the elements to an NDArray or another lent array, and return that.

        Raises:
            UserError: the target is something else, or of another shape.
        """
        if not hasattr(target, "copyfrom"):
            raise UserError(
                f"copyto cannot write a {type(target).__name__}",
                remedy="pass an array of refcomp; for numpy use a.asnumpy()",
            )
        return target.copyfrom(self.numpy())
