"""Observers: whoever wants to see what waves do while a kernel runs.

An observer is given with a launch, or with a GPU for all its launches. It is told of each
instruction, each access to memory, each barrier and each batch of waves; it changes nothing. It
reports by `waves.report`, or keeps its own counts. Without observers nothing here is ever called:
blocks are bound apart for those who observe, and an access asks once whether anybody does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from refcomp.emulator.code.assembly import Instruction
from refcomp.emulator.machine.arrays import Array

_KIND = re.compile(r"_(?:(load|read)|(store|write))(?:2|2st64)?_")


@dataclass(frozen=True, slots=True)
class Access:
    """What an instruction reads or writes, only what is in bounds: `size` bytes at each `index`.

    `space` is `global`, `shared` or `private`. `index` is flat, one for each lane of `active`:
    offsets in the memory of that space, for `global` addresses less `BASE`, for the others in
    `waves.shared` and `waves.private`, which hold all groups and lanes. `active` is bool
    [wave, lane] of the waves that run; None: all lanes. An atomic is neither load nor store. A
    scalar load counts as made by each wave's first lane. An instruction that reads or writes two
    places makes two accesses.
    """

    instruction: Instruction
    space: str
    is_store: bool
    is_atomic: bool
    size: int
    index: Array
    active: Array | None


class Observer:
    """Sees everything and does nothing; those who want to see derive from it.

    `waves.rows` and `waves.mask` are of the waves that run, unless said otherwise.
    """

    def launched(self, loaded: Any, request: Any) -> None:
        """A launch begins: a `LoadedCode` and a `LaunchRequest`."""

    def began(self, waves: Any) -> None:
        """A batch of waves begins, all of whose registers are set."""

    def instruction(self, waves: Any, instruction: Instruction) -> None:
        """An instruction is about to run: those that do nothing here and those that end a block,
        too."""

    def access(self, waves: Any, access: Access) -> None:
        """A load, store or update is about to be made."""

    def barrier(self, waves: Any, rows: Array) -> None:
        """The waves numbered `rows`, which waited at barriers, go on together."""

    def ended(self, waves: Any) -> None:
        """All waves of the batch have ended."""


def tell_of(instruction: Instruction) -> Callable[[Any], None]:
    """What tells the observers that an instruction is about to run."""

    def tell(waves: Any) -> None:
        for observer in waves.around.observers:
            observer.instruction(waves, instruction)

    return tell


def tell_access(
    waves: Any,
    instruction: Instruction,
    space: str,
    size: int,
    index: Array,
    wrong: Array | None,
) -> None:
    """Tells the observers of an access by the active lanes, less those that are `wrong`."""
    active = waves.active()
    if wrong is not None:
        active = np.array(waves.mask)
        active[active] = ~wrong.reshape(-1)
        index = index[~wrong]
    kind = kind_of_access(instruction.mnemonic)
    one = Access(
        instruction,
        space,
        kind.is_store,
        kind.is_atomic,
        size,
        index.reshape(-1),
        active,
    )
    for observer in waves.around.observers:
        observer.access(waves, one)


def tell_scalar_access(
    waves: Any, instruction: Instruction, size: int, index: Array, wrong: Array | None
) -> None:
    """Tells the observers of an access that is made once for each wave: index [wave]."""
    active = np.zeros((waves.count(), waves.existing.shape[1]), np.bool_)
    active[:, 0] = True if wrong is None else ~wrong
    one = Access(instruction, "global", False, False, size, index[active[:, 0]], active)
    for observer in waves.around.observers:
        observer.access(waves, one)


class AccessKind(NamedTuple):
    """How an instruction accesses memory: it loads, stores, or updates as an atomic."""

    is_store: bool
    # Neither load nor store.
    is_atomic: bool

    @property
    def is_load(self) -> bool:
        return not (self.is_store or self.is_atomic)


@cache
def kind_of_access(mnemonic: str) -> AccessKind:
    """Return how an instruction accesses memory, by its name."""
    match = _KIND.search(mnemonic)
    return AccessKind(match is not None and match[2] is not None, match is None)
