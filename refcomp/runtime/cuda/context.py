"""A GPU in use: its primary context, which is pushed around each use, and the end of one.

Other libraries of the process share the primary context. Threads need no preparation: each use
pushes the context for the calling thread, and pops it afterwards.

A kernel that fails, for example by an illegal access, ends the context. After that, the driver
refuses every call of this process for the GPU. The first error names the kernels that may have
failed; later uses raise an error that repeats it. Kernels run asynchronously, so `where` lists
those that were launched since the last wait.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TypeGuard

from refcomp.foundation.errors import ToolchainError
from refcomp.runtime.cuda.interface import PycudaDriver
from refcomp.runtime.cuda.library import meaning_of, remedy_of_ending

# Kernels that are remembered since the last wait.
_KERNELS_SHOWN = 16


class CudaContext:
    """GPU `index` in use. Several threads may use it.

    Raises MemoryError or ToolchainError if the driver cannot make the context.
    """

    def __init__(self, cuda: PycudaDriver, index: int) -> None:
        self.cuda = cuda
        self.index = index
        # The driver's report of the failure that ended the context.
        self.ending = ""
        # Names of the kernels since the last wait, which may still run.
        self._launched: deque[str] = deque(maxlen=_KERNELS_SHOWN)
        try:
            self.device = cuda.Device(index)
            self._primary = self.device.retain_primary_context()
        except cuda.Error as error:
            raise meaning_of(str(error), f"opening GPU {index}") from error

    @contextmanager
    def use(self, call: str) -> Iterator[PycudaDriver]:
        """Push the context for the calls inside. `call` says in messages what they are for.

        Raises MemoryError, UserError or ToolchainError if a call fails or the context has ended.
        """
        if self.ending:
            raise self._ended(call)
        cuda = self.cuda
        try:
            self._primary.push()
        except cuda.Error as error:
            raise meaning_of(str(error), call) from error
        try:
            yield cuda
        except (cuda.Error, UnicodeDecodeError) as error:
            ending = "" if isinstance(error, cuda.MemoryError) else self._find_ending()
            if ending:
                raise self._end(ending, call) from error
            raise meaning_of(words_of(error), call) from error
        finally:
            # A context that cannot be popped has failed before, and that error is the better one.
            with suppress(cuda.Error):
                cuda.Context.pop()

    def launched(self, kernel: str) -> None:
        """Note that a kernel was queued."""
        self._launched.append(kernel)

    def waited(self) -> None:
        """Note that all work that was queued is done."""
        self._launched.clear()

    def _find_ending(self) -> str:
        """Return the driver's words if waiting fails, too: then the context has ended. Else ""."""
        try:
            self.cuda.Context.synchronize()
        except self.cuda.Error as error:
            return words_of(error)
        return ""

    def _end(self, words: str, call: str) -> ToolchainError:
        """Note that a kernel ended the context, and return the error."""
        kernels = Counter(self._launched)
        self.ending = f"{call}: {words}"
        if len(kernels) == 1:
            what = f"the kernel {next(iter(kernels))} failed on the GPU"
        else:
            what = "a kernel that was launched before failed on the GPU"
        counted = (
            name if count == 1 else f"{name} ({count} times)"
            for name, count in kernels.items()
        )
        if kernels:
            self.ending += f"; launched since the last wait: {', '.join(counted)}"
        return ToolchainError(
            what,
            where=f"cuda:{self.index}",
            why=self.ending,
            remedy=f"{remedy_of_ending(words)}. This process cannot use the GPU any more: "
            "start another",
        )

    def _ended(self, call: str) -> ToolchainError:
        """Return the error for a call after the context has ended."""
        return ToolchainError(
            f"the GPU cuda:{self.index} cannot be used any more in this process",
            where=call,
            why=f"a kernel failed before, which ends all work on the GPU: {self.ending}",
            remedy="correct the kernel, and start another process; arrays of the host are intact",
        )


def words_of(error: BaseException) -> str:
    """Return the driver's words in an exception of pycuda.

    pycuda appends a buffer that it did not initialise if the driver wrote no log. Python cannot
    decode such a text, but the error holds the bytes.
    """
    if not _is_undecodable(error):
        return str(error).strip(" -\n")
    return error.object.partition(b" - ")[0].decode("ascii", "replace")


def _is_undecodable(error: BaseException) -> TypeGuard[UnicodeDecodeError]:
    return isinstance(error, UnicodeDecodeError)
