"""Memory of a program that is lent to a registered function, as arrays of its own.

A registered function gets an NDArray for each buffer: a copy, which is read-only if the function
may only read the buffer. After the call, what it wrote is copied to the program's memory. So a
function cannot write an input of its caller, and an array that it keeps stays valid.

Machine code and the interpreter call here, so that they agree. Buffers that are passed twice for
writing arrive as one array. If the function raises, the program's memory stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from refcomp.foundation.records import record

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Elements = npt.NDArray[np.generic]


@record
class LentMemory:
    """Memory of a program that a registered function may access."""

    elements: Elements  # a view of the memory itself
    is_written: bool  # the function may write it


# Makes what functions receive of a copy. The package sets it to `from_numpy`, which belongs to a
# room above this one.
array_maker: Callable[[Elements], object] | None = None


def call_with_copies(function: Callable[..., Any], args: Sequence[object]) -> None:
    """Call a function with arrays in place of lent memory, and store what it writes.

    Args:
        function: the registered function. Its result is dropped.
        args: the arguments. A LentMemory becomes an NDArray, anything else is passed as it is.

    Raises:
        Exception: the function raised it, and no memory is changed.

    Example::

        >>> from refcomp.foundation.lent_arrays import LentMemory, call_with_copies
        >>> read, written = np.arange(3.0), np.zeros(3)
        >>> def reverse(a, b):
        ...     b[:] = a[::-1]
        >>> call_with_copies(reverse, [LentMemory(read, False), LentMemory(written, True)])
        >>> written.tolist()
        [2.0, 1.0, 0.0]
    """
    assert array_maker is not None
    copies: dict[tuple[object, ...], tuple[LentMemory, Elements, object]] = {}
    passed: list[object] = []
    for arg in args:
        if not isinstance(arg, LentMemory):
            passed.append(arg)
            continue
        elements = arg.elements
        address = elements.__array_interface__["data"][0]
        # Arrays without elements may have equal addresses, and different shapes.
        key: tuple[object, ...] = (
            address,
            elements.shape,
            elements.dtype,
            arg.is_written,
        )
        if key not in copies:
            copied = elements.copy()
            copied.flags.writeable = arg.is_written
            copies[key] = arg, copied, array_maker(copied)
        passed.append(copies[key][2])
    function(*passed)
    for memory, copied, _ in copies.values():
        if memory.is_written:
            memory.elements[...] = copied
