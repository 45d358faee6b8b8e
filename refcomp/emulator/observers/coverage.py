"""What runs of kernels have shown of each instruction: an observer, from which the ledger is made.

Of each mnemonic it records whether it ran with some lanes of a wave switched off (partial EXEC),
which values at the borders of their type its operands had in lanes that ran, and with which
modifiers. What a run shows counts only when its results agreed with a reference: whoever compares
them adds the coverage of those runs up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from refcomp.emulator.code.assembly import Instruction
from refcomp.emulator.code.modifiers import modifiers_of
from refcomp.emulator.generations.generation import GFX942, Generation
from refcomp.emulator.instructions.operation import Semantics
from refcomp.emulator.machine.arrays import NUMPY, Array
from refcomp.emulator.machine.observation import Observer
from refcomp.emulator.machine.sources import (
    OperandSource,
    half_source,
    scalar_source,
    vector_source,
)

OF_FLOATS = ("inf", "nan", "denormal", "-0")
OF_INTEGERS = ("least", "greatest")
# Which lanes run is nothing to scalar instructions, and to those that work for the whole wave.
_OF_LANES = ("v_", "ds_", "global_", "flat_", "scratch_", "buffer_")
_OF_WAVES = (
    "v_readlane",
    "v_writelane",
    "v_mfma",
    "v_smfmac",
    "v_wmma",
    "v_nop",
    "buffer_gl",
)


@dataclass(slots=True)
class Seen:
    """What was seen of one mnemonic."""

    is_partial: bool = False
    edges: set[str] = field(default_factory=set)
    modifiers: set[str] = field(default_factory=set)

    def add(self, other: Seen) -> None:
        """What another run has shown, too."""
        self.is_partial |= other.is_partial
        self.edges |= other.edges
        self.modifiers |= other.modifiers


class _LookKey(NamedTuple):
    """An instruction of a code object, or one of two in one: they have the same number. A tuple,
    since each instruction that runs looks it up."""

    number: int
    text: str


class _TypedSource(NamedTuple):
    """A source operand and how it is read. A tuple, since each instruction that runs reads them."""

    source: OperandSource
    # A key of `NUMPY`.
    kind: str


class Coverage(Observer):
    """`seen` has what was seen of each mnemonic."""

    def __init__(self) -> None:
        self.seen: dict[str, Seen] = {}
        self._generation = GFX942
        self._looks: dict[_LookKey, Callable[[Any, Seen], None] | None] = {}
        self._code: Any = None

    def add(self, other: Mapping[str, Seen]) -> None:
        """What other runs have shown, too."""
        for mnemonic, seen in other.items():
            self.seen.setdefault(mnemonic, Seen()).add(seen)

    def launched(self, loaded: Any, request: Any) -> None:
        """Instructions are told apart by their number in one code object."""
        if loaded is not self._code:
            self._code, self._generation, self._looks = loaded, loaded.generation, {}

    def instruction(self, waves: Any, instruction: Instruction) -> None:
        """Looks at it, until there is nothing more to see of it; of two in one, at both."""
        self._see(waves, instruction)
        if instruction.second is not None:
            self._see(waves, instruction.second)

    def _see(self, waves: Any, instruction: Instruction) -> None:
        mnemonic, key = (
            instruction.printed,
            _LookKey(instruction.number, instruction.text),
        )
        seen = self.seen.get(mnemonic)
        if seen is None:
            seen = self.seen[mnemonic] = Seen()
        if key not in self._looks:
            seen.modifiers |= modifiers_of(instruction)
            self._looks[key] = _look_at(instruction, self._generation)
        if not seen.is_partial and depends_on_lanes(mnemonic) and not waves.covers:
            seen.is_partial = is_partial(waves)
        look = self._looks[key]
        if look is not None and not seen.edges.issuperset(
            edges_wanted(mnemonic, self._generation)
        ):
            look(waves, seen)


def depends_on_lanes(mnemonic: str) -> bool:
    """Whether it does something in each lane that runs."""
    return mnemonic.startswith(_OF_LANES) and not mnemonic.startswith(_OF_WAVES)


def is_partial(waves: Any) -> bool:
    """Whether a wave has lanes that run and work items that do not."""
    mask, existing = waves.mask, waves.existing[waves.rows]
    return bool((mask.any(axis=1) & (existing & ~mask).any(axis=1)).any())


def edges_wanted(mnemonic: str, of: Generation) -> frozenset[str]:
    """The values at the borders of the types of an instruction's sources."""
    found: set[str] = set()
    for kind in filter(_has_borders, _kinds(mnemonic, of)):
        found.update(OF_FLOATS if kind.startswith("f") else OF_INTEGERS)
    return frozenset(found)


def _has_borders(kind: str) -> bool:
    return kind in NUMPY and not kind.startswith("p")


def _row(mnemonic: str, of: Generation) -> Semantics | None:
    """What a table says of the instruction, if one does."""
    name = of.dialect.renamed.get(mnemonic, mnemonic)
    if name.startswith("v_cmpx_"):
        row = of.vector.get(name.replace("v_cmpx_", "v_cmp_"))
        return None if row is None else replace(row, results=())
    if name in of.packed:
        packed = of.packed[name]
        sources = tuple(packed.kind for _ in packed.half.sources)
        return replace(packed.half, results=(packed.kind,), sources=sources)
    return of.vector.get(name) or of.scalar.get(name)


def _kinds(mnemonic: str, of: Generation) -> tuple[str, ...]:
    row = _row(mnemonic, of)
    return () if row is None else row.sources


def _look_at(
    instruction: Instruction, of: Generation
) -> Callable[[Any, Seen], None] | None:
    """What looks at the operands; None when they say nothing."""
    sources = list(_sources(instruction, of))
    if not sources:
        return None

    def look(waves: Any, seen: Seen) -> None:
        for source, kind in sources:
            seen.edges |= edges_in(_running(waves, source), kind)

    return look


def _sources(instruction: Instruction, of: Generation) -> Iterator[_TypedSource]:
    """The sources that are no constants."""
    row, name = _row(instruction.mnemonic, of), instruction.mnemonic
    written = [] if row is None else [kind for kind in row.results if kind != "scc"]
    kinds = () if row is None else row.sources
    operands = instruction.operands[len(written) :]
    for place, (operand, kind) in enumerate(zip(operands, kinds, strict=False)):
        if operand.file == "c" or not _has_borders(kind):
            continue
        if name in of.packed:
            for half in (0, 1):
                yield _TypedSource(half_source(operand, kind, half, False), kind)
        elif name in of.scalar:
            yield _TypedSource(scalar_source(operand, kind), kind)
        else:
            source = vector_source(operand, kind, instruction.modifiers, place)
            yield _TypedSource(source, kind)


def _running(waves: Any, source: OperandSource) -> Array:
    """The values in the lanes that run."""
    values = np.asarray(source.value(waves))
    is_of_lanes = values.ndim == 2 and values.shape[1] > 1
    return values[waves.mask] if is_of_lanes else values


def edges_in(values: Array, kind: str) -> set[str]:
    """The values at the borders of their type that are among some."""
    if kind.startswith("f"):
        size = np.abs(values)
        is_small = (size > 0) & (size < np.finfo(NUMPY[kind]).tiny)
        tests = (
            np.isinf(values),
            np.isnan(values),
            is_small,
            (values == 0) & np.signbit(values),
        )
        return {name for name, test in zip(OF_FLOATS, tests, strict=True) if test.any()}
    limits = np.iinfo(NUMPY[kind])
    found = (values == limits.min, values == limits.max)
    return {name for name, test in zip(OF_INTEGERS, found, strict=True) if test.any()}
