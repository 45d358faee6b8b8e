"""Machine code for this processor: loading a shared object, and calling its functions.

A function takes a pointer for each array, scalars by value, an i64 for each symbol, and finally the
number of threads. It returns 0 for success, 1 if it could not allocate memory, or the number of an
exception (see `callback.py`). Calls release the interpreter lock, and may run in several threads at
once.

Ensures: the bytes are loaded from a file in memory that has no name, so that no other process can
change them. A loaded object stays in the process: see Note [Never unloaded].
"""

from __future__ import annotations

import ctypes
import itertools
import os
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from refcomp.foundation.artifacts import (
    CALL_ALL,
    Binary,
    ScalarParam,
    Signature,
    TensorParam,
    caller_symbol,
)
from refcomp.foundation.c_functions import c_type
from refcomp.foundation.errors import CompilerBug, ToolchainError, UserError
from refcomp.runtime.arrays.access_status import fresh_status, require_in_bounds
from refcomp.runtime.arrays.entry_checks import MachineValues
from refcomp.runtime.device import address_of
from refcomp.runtime.function import Function
from refcomp.runtime.host import callback, thread_pool
from refcomp.runtime.host.threads import shared_thread_count

if TYPE_CHECKING:
    from _ctypes import CFuncPtr

    from refcomp.foundation.c_functions import CNumber

_OUT_OF_MEMORY = 1
# Counts the objects that were loaded.
_numbers = itertools.count(1)


def load_shared_object(binary: Binary) -> ctypes.CDLL:
    """Load `binary` (format `so`) into this process, invisible to other libraries.

    Raises UserError for another format, and ToolchainError if the dynamic loader refuses it.
    """
    if binary.format != "so":
        raise UserError(
            f"a binary of format {binary.format!r} cannot be loaded",
            remedy="link it to a shared object (format 'so')",
        )
    try:
        with open(os.memfd_create("refcomp"), "wb") as file:
            file.write(binary.data)
            file.flush()
            path = _unused_path(file.fileno())
            return ctypes.CDLL(path, mode=os.RTLD_LOCAL | os.RTLD_NOW)
    except OSError as error:
        raise ToolchainError(
            "the dynamic loader refuses the compiled code",
            stderr=str(error),
            remedy=_remedy(str(error)),
        ) from error


def _unused_path(descriptor: int) -> str:
    """Return a path of an open file that no earlier call returned.

    The dynamic loader takes files of equal paths for one file, and numbers of descriptors are used
    again. So the digits of a number become steps to the folder itself: 5 becomes `/./` and `/.`.
    """
    steps = f"{next(_numbers):b}".replace("0", "/").replace("1", "/.")
    return f"/proc/self/fd{steps}/{descriptor}"


def _remedy(message: str) -> str:
    if match := re.match(r"(\S+): cannot open shared object file: No such", message):
        return f"install the library {match[1]}" + missing_library_advice(match[1])
    return "compile it again for this machine"


def missing_library_advice(library: str) -> str:
    """Return how to install a library that compiled code needs, '' if not known.

    The packages are those of Debian.
    """
    packages = {
        "libgomp.so.1": "libgomp1",
        "libm.so.6": "libc6",
        "libmvec.so.1": "libc6",
    }
    package = packages.get(library)
    return f": apt-get install {package}" if package else ""


def require_library(library: str) -> None:
    """Raise ToolchainError if the dynamic loader cannot load `library` (a file name)."""
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

    __slots__ = ("_entry", "_types", "_untyped_entry", "call_all", "caller")

    def __init__(self, signature: Signature, library: ctypes.CDLL, symbol: str) -> None:
        super().__init__(signature)
        callback.connect(library)
        thread_pool.connect(library)
        self._types: list[type[CNumber]] = [
            *(_c_type(param) for param in signature.params),
            *([ctypes.c_void_p] if signature.checks else []),
            *(ctypes.c_int64 for _ in signature.symbols),
        ]
        # Two objects for one symbol: the typed one converts Python numbers in each call, and the
        # untyped one passes C values that were made before (see `bind`).
        self._entry = _entry_of(library, symbol)
        self._entry.argtypes = [*self._types, ctypes.c_int32]
        self._untyped_entry = _entry_of(library, symbol)
        # For `joined_calls`.
        self.call_all = _find(library, CALL_ALL)
        caller = None
        if all(isinstance(param, TensorParam) for param in signature.params):
            arrays = len(signature.params)
            caller = _find(library, caller_symbol(arrays, len(signature.symbols)))
        self.caller = 0 if caller is None else _address_of(caller)
        shared_thread_count()

    def _run(self, args: Sequence[object], values: MachineValues) -> None:
        accesses = None
        if self.signature.checks:
            accesses = fresh_status(self.signature)
            values.insert(len(self.signature.params), address_of(accesses))
        status = self._entry(*values, shared_thread_count())
        # A wrong access is the likely cause of any other failure, so it is reported first.
        if accesses is not None:
            require_in_bounds(self.signature, accesses)
        if status:
            raise failure(self.name, status)

    def _bound(
        self, args: Sequence[object], values: MachineValues
    ) -> Callable[[], None]:
        c_values = [
            c_type(value) for c_type, value in zip(self._types, values, strict=True)
        ]
        c_values.append(shared_thread_count())
        return BoundCall(self, self._untyped_entry, tuple(c_values), tuple(args))


class BoundCall:
    """A function with its C arguments. It keeps the arrays alive that they point to.

    Attributes:
        name: of the function.
        function: its address.
        caller: the address of the code that calls it with arguments from memory; 0 if none.
        call_all: the code that makes joined calls; None if the module has none.
    """

    __slots__ = (
        "_args",
        "_c_values",
        "_entry",
        "call_all",
        "caller",
        "function",
        "name",
    )

    def __init__(
        self,
        function: HostFunction,
        entry: CFuncPtr,
        c_values: tuple[CNumber, ...],
        args: tuple[object, ...],
    ) -> None:
        self.name = function.name
        self.caller = function.caller
        self.call_all = function.call_all
        self.function = _address_of(entry)
        self._entry = entry
        self._c_values = c_values
        self._args = args

    def __call__(self) -> None:
        status = self._entry(*self._c_values)
        if status:
            raise failure(self.name, status)

    @property
    def can_join(self) -> bool:
        """Return True if `joined_calls` can make this call."""
        return self.caller != 0 and self.call_all is not None

    def argument_words(self) -> ctypes.Array[ctypes.c_uint64]:
        """Return the arguments but the number of threads, as the caller loads them."""
        values = [int(value.value or 0) for value in self._c_values[:-1]]
        return (ctypes.c_uint64 * max(1, len(values)))(*values)


def _address_of(entry: CFuncPtr) -> int:
    return ctypes.cast(entry, ctypes.c_void_p).value or 0


def _find(library: ctypes.CDLL, symbol: str) -> CFuncPtr | None:
    """Return a function that only some modules have."""
    try:
        return library[symbol]
    except AttributeError:
        return None


def _entry_of(library: ctypes.CDLL, symbol: str) -> CFuncPtr:
    try:
        entry = library[symbol]
    except AttributeError as error:
        raise UserError(
            f"the shared object has no function {symbol!r}",
            why=str(error),
            remedy="compile it again, since the file may come from another version",
        ) from error
    entry.restype = ctypes.c_int32
    return entry


def _c_type(param: TensorParam | ScalarParam) -> type[CNumber]:
    if isinstance(param, TensorParam):
        return ctypes.c_void_p
    if param.dtype.is_bool:
        return ctypes.c_uint8
    if param.dtype.is_float and param.dtype.bits == 16:
        return ctypes.c_uint16
    return c_type(param.dtype)


def failure(name: str, status: int) -> BaseException:
    """Return the exception for a call of function `name` that returned `status`.

    This is the exception of a registered function that it called, or an error of refcomp.
    """
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
        why="machine code returns 0, 1 if memory is exhausted, or the number of an exception",
    )


# Note [Never unloaded]
# ~~~~~~~~~~~~~~~~~~~~~
# dlclose is safe only if no thread is inside of the object. The threads of the process's pool run
# code of the object that was loaded first, and they outlive every call. A loaded object costs about
# ten kilobytes of address space, so it stays.
