"""Functions whose classic arguments have other names or another order in refcomp."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence

from refcomp.ir.expr import Expr, IntImm
from refcomp.runtime.arrays import ndarray
from refcomp.runtime.arrays.ndarray import NDArray
from refcomp.runtime.device import Device
from refcomp.te import calls
from refcomp.te.tensor import DTypeLike


def array(arr: object, ctx: Device | None = None) -> NDArray:
    """Return a copy of an array on a device, by `refcomp.nd.array`.

    Example::

        >>> rc.classic.nd.array(np.ones(2, "float32"), ctx=rc.cpu(0))
        NDArray(shape=(2,), dtype=float32, device=cpu:0)
    """
    return ndarray.array(arr, ctx)


def empty(
    shape: int | Sequence[int],
    dtype: DTypeLike = "float32",
    ctx: Device | None = None,
) -> NDArray:
    """Return an array with undefined elements on a device, by `refcomp.nd.empty`.

    Example::

        >>> rc.classic.nd.empty((2, 3), "int8", ctx=rc.cpu(0))
        NDArray(shape=(2, 3), dtype=int8, device=cpu:0)
    """
    return ndarray.empty(shape, dtype, ctx)


def call_llvm_intrin(dtype: DTypeLike, name: str, *args: calls.CallArgument) -> Expr:
    """Return the result of an LLVM intrinsic, by `refcomp.call_llvm_intrin`.

    Args:
        dtype: the dtype of the result.
        name: the intrinsic, such as `llvm.ctpop.i32`.
        *args: its arguments. An unsigned constant may stand before them: the number of arguments
            that choose the overload. refcomp reads the overload from the name.

    Example::

        >>> x = rc.var("x", "uint32")
        >>> one = rc.const(1, "uint32")
        >>> rc.classic.call_llvm_intrin("uint32", "llvm.ctpop.i32", one, x)
        popcount(x)
    """
    first = args[0] if args else None
    counts = isinstance(first, IntImm) and first.dtype == "uint32" and len(args) > 1
    return calls.call_llvm_intrin(dtype, name, *args[counts:])


class TempDirectory:
    """A folder that is removed with its last reference. `tempdir` makes it.

    Attributes:
        temp_dir: the path of the folder.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="refcomp-")
        self.temp_dir = self._folder.name

    def relpath(self, name: str) -> str:
        """Return the path of a file in the folder."""
        return os.path.join(self.temp_dir, name)

    def listdir(self) -> list[str]:
        """Return the names of the files in the folder."""
        return os.listdir(self.temp_dir)

    def remove(self) -> None:
        """Remove the folder and its files now."""
        self._folder.cleanup()


def tempdir() -> TempDirectory:
    """Return a new folder for files of this process.

    Example::

        >>> folder = rc.classic.contrib.util.tempdir()
        >>> folder.relpath("add.so") == folder.temp_dir + "/add.so", folder.listdir()
        (True, [])
    """
    return TempDirectory()
