"""Compiles texts of translated code, at once or beside the interpreter.

Beside the interpreter a thread waits for the tools, one module after the other. `collect` takes the
functions of those that are finished, so nothing changes while waves run.
"""

from __future__ import annotations

import ctypes
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
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


class _PendingModule(NamedTuple):
    """A module that the tools compile."""

    library: Future[HostLibrary]
    wanted: Sequence[WantedVariant]  # in the order of its functions


class Compilations:
    """The modules of a program."""

    def __init__(self, tools: HostTools) -> None:
        self._tools = tools
        self._pending: deque[_PendingModule] = deque()
        self._executor: ThreadPoolExecutor | None = None
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
        library = self._submit(print_module(texts, width))
        self._pending.append(_PendingModule(library, wanted))
        self.collect(is_waiting=not self._tools.is_concurrent)

    def collect(self, *, is_waiting: bool = False) -> None:
        """Take the functions of modules that are finished, or of all (`is_waiting`)."""
        while self._pending and (is_waiting or self._pending[0].library.done()):
            module = self._pending.popleft()
            try:
                library = module.library.result()
            except ToolchainError as error:
                self._give_up(error)
                continue
            for number, (unit, variant) in enumerate(module.wanted):
                function = library[_name(number)]
                function.restype = ctypes.c_int64  # type: ignore[attr-defined]
                numbers = [ctypes.c_int64] * unit.numbers
                function.argtypes = [ctypes.c_void_p, *numbers]  # type: ignore[attr-defined]
                unit.functions[variant] = function

    def _submit(self, text: str) -> Future[HostLibrary]:
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "refcomp-translation")
        return self._executor.submit(self._tools.compile, text)

    def _give_up(self, error: ToolchainError) -> None:
        if not self.is_broken:
            _LOG.warning("all emulated code is interpreted, which is slow: %s", error)
        self.is_broken = True


def _name(number: int) -> str:
    return f"unit{number}"
