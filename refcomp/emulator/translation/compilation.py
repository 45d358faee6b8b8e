"""Compiles texts of translated code, at once or beside the interpreter.

A thread beside the interpreter runs the tools for one module after the other. Only `collect` takes
over the functions of finished modules, so that nothing changes while waves run. A process waits for
the tools before it ends. So their results are in the cache, and no temporary folder is left.
"""

from __future__ import annotations

import ctypes
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Thread, main_thread
from typing import NamedTuple, Protocol

from refcomp.emulator.translation.printer import Variant, print_module
from refcomp.foundation.errors import ToolchainError

_LOG = logging.getLogger("refcomp.emulator")


class HostLibrary(Protocol):
    """A loaded library, whose functions are found by their names."""

    def __getitem__(self, name: str) -> Callable[..., int]: ...


@dataclass(frozen=True, slots=True)
class HostTools:
    """The tools that translation needs.

    Attributes:
        compile: compiles LLVM IR without a target, and loads it. ToolchainError if it cannot.
        width: returns the lanes in a vector of the host, a multiple of 8. ToolchainError, too.
        hot: time that the interpreter spends on a unit before it is compiled, as a multiple of
            the time that compiling it takes. 0 compiles each unit when it first runs.
        is_concurrent: compile in a thread, while the interpreter goes on.
    """

    compile: Callable[[str], HostLibrary]
    width: Callable[[], int]
    hot: float = 1.0
    is_concurrent: bool = False


class Compilable:
    """Code that can be compiled, in several variants."""

    numbers = 0  # integers that a function takes beside the state

    def __init__(self, cost_ns: int) -> None:
        self.cost_ns = cost_ns  # of compiling a variant
        self.spent_ns: dict[Variant, int] = {}  # by the interpreter
        self.begun: set[Variant] = set()  # variants that are or were compiled
        self.functions: dict[Variant, Callable[..., int]] = {}

    def text(self, variant: Variant, name: str, width: int) -> str:
        """Return the text of the function `name` for a variant."""
        raise NotImplementedError

    def wanted(self, hot: float) -> list[Variant]:
        """Return new variants on which more than `hot` times their cost was spent."""
        return [
            variant
            for variant, spent_ns in self.spent_ns.items()
            if spent_ns > hot * self.cost_ns and variant not in self.begun
        ]


class WantedVariant(NamedTuple):
    """A variant of some code, to be compiled."""

    unit: Compilable
    variant: Variant


class _PendingModule(Thread):
    """A module that the tools compile."""

    def __init__(
        self,
        compile_text: Callable[[str], HostLibrary],
        text: str,
        wanted: Sequence[WantedVariant],
        earlier: Thread | None,
    ) -> None:
        super().__init__(name="refcomp-translation", daemon=False)
        self.wanted = wanted  # in the order of its functions
        self.error: BaseException | None = None
        self.library: HostLibrary | None = None
        self._compile_text = compile_text
        self._text = text
        self._earlier = earlier

    def run(self) -> None:
        """Compile the module after the earlier one."""
        if self._earlier is not None:
            self._earlier.join()
            self._earlier = None
        try:
            self.library = self._compile_text(self._text)
        except BaseException as error:  # raised again by `collect`
            self.error = error


class Compilations:
    """The modules of a program."""

    def __init__(self, tools: HostTools) -> None:
        self._tools = tools
        self._pending: deque[_PendingModule] = deque()
        self.is_broken = False  # a tool is missing or failed: never try again

    def begin(self, wanted: Sequence[WantedVariant]) -> None:
        """Begin to compile a module. Without `is_concurrent`, also wait for its end."""
        if self.is_broken or not wanted:
            return
        try:
            width = self._tools.width()
        except ToolchainError as error:
            self._give_up(error)
            return
        texts = []
        for number, (unit, variant) in enumerate(wanted):
            texts.append(unit.text(variant, _name(number), width))
            unit.begun.add(variant)
        earlier = self._pending[-1] if self._pending else None
        text = print_module(texts, width)
        module = _PendingModule(self._tools.compile, text, wanted, earlier)
        self._pending.append(module)
        # Python may start no thread once the main thread has ended.
        is_concurrent = self._tools.is_concurrent and main_thread().is_alive()
        if is_concurrent:
            module.start()
        else:
            module.run()
        self.collect(is_waiting=not is_concurrent)

    def collect(self, *, is_waiting: bool = False) -> None:
        """Take the functions of modules that are finished, or of all (`is_waiting`)."""
        while self._pending:
            module = self._pending[0]
            if module.ident is not None and is_waiting:
                module.join()
            if module.is_alive():
                return
            self._pending.popleft()
            self._take(module)

    def _take(self, module: _PendingModule) -> None:
        """Take the functions of a module that is finished."""
        if isinstance(module.error, ToolchainError):
            self._give_up(module.error)
            return
        if module.error is not None:
            raise module.error
        if module.library is None:
            # This process was forked while the thread ran, which did not come along.
            for unit, variant in module.wanted:
                unit.begun.discard(variant)
            return
        for number, (unit, variant) in enumerate(module.wanted):
            function = module.library[_name(number)]
            function.restype = ctypes.c_int64  # type: ignore[attr-defined]
            numbers = [ctypes.c_int64] * unit.numbers
            function.argtypes = [ctypes.c_void_p, *numbers]  # type: ignore[attr-defined]
            unit.functions[variant] = function

    def _give_up(self, error: ToolchainError) -> None:
        if not self.is_broken:
            _LOG.warning("all emulated code is interpreted, which is slow: %s", error)
        self.is_broken = True


def _name(number: int) -> str:
    return f"unit{number}"
