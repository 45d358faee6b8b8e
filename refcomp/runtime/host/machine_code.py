"""Loads machine code for this processor from a shared object and calls it.

A function takes a pointer per array, its scalars by value, an i64 per symbol, and at last the
number of threads; it returns 0, or 1 when memory could not be had. Calls release the interpreter
lock and may run in several threads at once.
Ensures: the bytes are loaded from a private file that is gone afterwards. A loaded object stays
in the process: see Note [Never unloaded].
"""

import ctypes
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

from refcomp.foundation.artifacts import Binary, ScalarParam, Signature, TensorParam
from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import CompilerBug, ToolchainError, UserError
from refcomp.foundation.private_folder import private_folder
from refcomp.runtime.arrays.access_status import fresh_status, require_in_bounds
from refcomp.runtime.device import address_of
from refcomp.runtime.function import Function
from refcomp.runtime.host import callback
from refcomp.runtime.host.threads import shared_thread_count

_FLOATS: dict[int, Any] = {16: ctypes.c_uint16, 32: ctypes.c_float, 64: ctypes.c_double}
_OUT_OF_MEMORY = 1


def load_shared_object(binary: Binary) -> ctypes.CDLL:
    """Map `binary` (format `so`) into this process, its names visible to nobody else.

    UserError for another format; ToolchainError when the dynamic loader refuses it.
    """
    if binary.format != "so":
        raise UserError(
            f"a binary of format {binary.format!r} cannot be loaded",
            remedy="link it to a shared object (format 'so')",
        )
    with private_folder() as folder:
        path = folder / "module.so"
        try:
            path.write_bytes(binary.data)
            return ctypes.CDLL(str(path), mode=os.RTLD_LOCAL | os.RTLD_NOW)
        except OSError as error:
            raise _load_error(str(error)) from error


def _load_error(message: str) -> ToolchainError:
    return ToolchainError(
        "the dynamic loader refuses the compiled code",
        stderr=message,
        remedy=_remedy(message),
    )


def _remedy(message: str) -> str:
    if match := re.match(r"(\S+): cannot open shared object file: No such", message):
        return f"install the library {match[1]}" + missing_library_advice(match[1])
    if "failed to map segment" in message:
        return "set TMPDIR to a folder whose file system is not mounted noexec"
    return "compile it again for this machine"


def missing_library_advice(library: str) -> str:
    """Which Debian package has a library that compiled code needs; '' when unknown."""
    packages = {
        "libgomp.so.1": "libgomp1",
        "libm.so.6": "libc6",
        "libmvec.so.1": "libc6",
    }
    package = packages.get(library)
    return f": apt-get install {package}" if package else ""


def require_library(library: str) -> None:
    """ToolchainError when the dynamic loader does not find `library` (a file name)."""
    try:
        ctypes.CDLL(library, mode=os.RTLD_LOCAL | os.RTLD_NOW)
    except OSError as error:
        raise ToolchainError(
            f"the compiled code needs the library {library}, which cannot be loaded",
            stderr=str(error),
            remedy=f"install {library}" + missing_library_advice(library),
        ) from error


class HostFunction(Function):
    """The function `symbol` of a loaded shared object."""

    __slots__ = ("_entry", "_types", "_untyped_entry")

    def __init__(self, signature: Signature, library: ctypes.CDLL, symbol: str) -> None:
        super().__init__(signature)
        callback.connect(library)
        self._types = [
            *map(_c_type, signature.params),
            *([ctypes.c_void_p] if signature.checks else []),
            *(ctypes.c_int64 for _ in signature.symbols),
        ]
        # Two objects for one symbol: the typed one converts Python numbers, the other passes
        # ready-made C values on without looking at them.
        self._entry = _entry_of(library, symbol)
        self._entry.argtypes = [*self._types, ctypes.c_int32]
        self._untyped_entry = _entry_of(library, symbol)
        shared_thread_count()

    def _run(self, args: Sequence[Any], values: list[Any]) -> None:
        if self.signature.checks:
            self._run_checked(values)
        elif status := self._entry(*values, shared_thread_count()):
            raise failure(self.name, status)

    def _run_checked(self, values: list[Any]) -> None:
        accesses = fresh_status(self.signature)
        values.insert(len(self.signature.params), address_of(accesses))
        status = self._entry(*values, shared_thread_count())
        require_in_bounds(self.signature, accesses)
        if status:
            raise failure(self.name, status)

    def _bound(self, args: Sequence[Any], values: list[Any]) -> Callable[[], None]:
        c_values = [
            c_type(value) for c_type, value in zip(self._types, values, strict=True)
        ]
        c_values.append(shared_thread_count())
        return _BoundCall(self.name, self._untyped_entry, tuple(c_values), tuple(args))


class _BoundCall:
    """A function with its C arguments; keeps the arrays alive that they point into."""

    __slots__ = ("_args", "_c_values", "_entry", "_name")

    def __init__(
        self, name: str, entry: Any, c_values: tuple[Any, ...], args: tuple[Any, ...]
    ) -> None:
        self._name, self._entry, self._c_values, self._args = (
            name,
            entry,
            c_values,
            args,
        )

    def __call__(self) -> None:
        status = self._entry(*self._c_values)
        if status:
            raise failure(self._name, status)


def _entry_of(library: ctypes.CDLL, symbol: str) -> Any:
    try:
        entry = library[symbol]
    except AttributeError as error:
        raise UserError(
            f"the shared object has no function {symbol!r}",
            why=str(error),
            remedy="compile it again; a file that was made elsewhere may not fit",
        ) from error
    entry.restype = ctypes.c_int32
    return entry


def _c_type(param: TensorParam | ScalarParam) -> Any:
    if isinstance(param, TensorParam):
        return ctypes.c_void_p
    return _scalar_type(param.dtype)


def _scalar_type(dtype: DType) -> Any:
    if dtype.is_bool:
        return ctypes.c_uint8
    if dtype.is_int:
        sign = "" if dtype.kind == "int" else "u"
        return getattr(ctypes, f"c_{sign}int{dtype.bits}")
    return _FLOATS[dtype.bits]


def failure(name: str, status: int) -> BaseException:
    """What to raise when the function `name` returned `status`: what a function that it called
    has raised, or an error of our own."""
    raised = callback.take_raised(status)
    if raised is not None:
        return raised
    if status == _OUT_OF_MEMORY:
        return MemoryError(
            f"{name} could not allocate its temporary buffers; the outputs are undefined. "
            "Free memory, or schedule it with smaller buffers"
        )
    return CompilerBug(
        f"{name} returned {status}",
        why="machine code returns 0, 1 for lack of memory, or what was raised",
    )


# Note [Never unloaded]
# ~~~~~~~~~~~~~~~~~~~~~
# dlclose would be safe only when no thread can still be inside the object and when it was not the
# last user of libgomp, whose pooled threads outlive every call: unloading that library under them
# ends the process. A loaded object costs some ten kilobytes of address space, so it stays.
