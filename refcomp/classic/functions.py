"""Functions whose classic arguments have other names, order or meaning in refcomp."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from refcomp.classic.building import decl_tensor_intrin
from refcomp.classic.devices import context, enabled
from refcomp.foundation import registry
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr, IntImm
from refcomp.runtime.arrays import ndarray
from refcomp.runtime.arrays.ndarray import NDArray
from refcomp.runtime.device import Device
from refcomp.te import calls
from refcomp.te.tensor import AxisRange, DTypeLike, ExprLike, as_range

__all__ = [
    "Range",
    "TempDirectory",
    "array",
    "call_llvm_intrin",
    "context",
    "decl_tensor_intrin",
    "empty",
    "enabled",
    "register_api",
    "register_func",
    "tempdir",
]


# Classic callbacks that changed the text of kernels.
_POSTPROCESSORS = ("tvm_callback_cuda_postproc", "tvm_callback_opencl_postproc")


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


def Range(begin: ExprLike, end: ExprLike | None = None) -> AxisRange:
    """Return the range of an axis, which `reduce_axis` and `thread_axis` take.

    Args:
        begin: the first value. Without `end`, it is the number of values, and the first is 0.
        end: one more than the last value.

    Raises:
        UserError: a bound is not an integer.

    Example::

        >>> rc.classic.Range(2, 8).extent, rc.classic.Range(8).extent
        (6, 8)
        >>> rc.reduce_axis(rc.classic.Range(2, 8)).dom.min
        2
    """
    return as_range(begin if end is None else (begin, end))


def register_func(
    func_name: Any, f: Callable[..., Any] | None = None, override: bool = False
) -> Any:
    """Register a Python function that compiled code can call, by `refcomp.register_func`.

    Args:
        func_name: the name. A plain `@register_func` uses the function's own name.
        f: the function. Without it, the result is a decorator.
        override: True to replace a function that has the name.

    Returns:
        The function `f`, or a decorator that returns the function.

    Raises:
        UserError: the name is malformed or taken, or it is the name of a callback that changes the
            text of kernels.

    Example::

        >>> @rc.classic.register_func("demo.triple", override=True)
        ... def triple(x):
        ...     return 3 * x
        >>> rc.get_global_func("demo.triple")(2)
        6
    """
    name = getattr(func_name, "__name__", func_name)
    if name in _POSTPROCESSORS:
        raise UserError(
            f"no compiler calls {name}",
            why="the text of a kernel would no longer be what the loop IR means",
            remedy="change the schedule, or save the text by module.get_source, change it, and "
            "compile it yourself",
        )
    return registry.register_func(func_name, f, override)


def register_api(
    func_name: Any, f: Callable[..., Any] | None = None, override: bool = False
) -> Any:
    """Register a Python function, like `register_func`.

    Args:
        func_name: the name.
        f: the function. Without it, the result is a decorator.
        override: True to replace a function that has the name.

    Example::

        >>> rc.classic.register_api("demo.increment", lambda x: x + 1, override=True)(1)
        2
    """
    return register_func(func_name, f, override)


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
