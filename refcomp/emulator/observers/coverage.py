"""Coverage: what runs of kernels have shown of each instruction. The ledger is made from it.

For each mnemonic, the observer records its modifiers, and whether it ran with some lanes of a wave
off (partial EXEC). It also records which values at the limits of their types the operands had, in
lanes that ran. A run counts only if its results agreed with a reference. Whoever compares the
results adds the coverage of such runs together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from refcomp.emulator.code.assembly import Instruction
from refcomp.emulator.code.modifiers import modifiers_of
from refcomp.emulator.execution.launch import LaunchRequest, LoadedCode
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
from refcomp.emulator.machine.waves import Waves

OF_FLOATS = ("inf", "nan", "denormal", "-0")
OF_INTEGERS = ("least", "greatest")
# EXEC does not matter to scalar instructions, and to those that work on the whole wave.
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
    """The facts that runs have shown of one mnemonic."""

    is_partial: bool = False  # it ran with some lanes off
    edges: set[str] = field(default_factory=set)  # of `OF_FLOATS` and `OF_INTEGERS`
    modifiers: set[str] = field(default_factory=set)

    def add(self, other: Seen) -> None:
        """Add what another run has shown."""
        self.is_partial |= other.is_partial
        self.edges |= other.edges
        self.modifiers |= other.modifiers


class _LookKey(NamedTuple):
    """An instruction of a code object, or half of a pair, which have the same number.

    A tuple: each instruction that runs looks it up.
    """

    number: int
    text: str


class _TypedSource(NamedTuple):
    """A source operand and its type. A tuple: each instruction that runs reads it."""

    source: OperandSource
    kind: str  # a key of `NUMPY`


class Coverage(Observer):
    """Records what runs show of each mnemonic, in `seen`."""

    def __init__(self) -> None:
        self.seen: dict[str, Seen] = {}
        self._generation = GFX942
        self._looks: dict[_LookKey, Callable[[Waves, Seen], None] | None] = {}
        self._code: LoadedCode | None = None

    def add(self, other: Mapping[str, Seen]) -> None:
        """Add what other runs have shown."""
        for mnemonic, seen in other.items():
            self.seen.setdefault(mnemonic, Seen()).add(seen)

    def launched(self, loaded: LoadedCode, request: LaunchRequest) -> None:
        # An instruction is known by its number, which only holds within one code object.
        if loaded is not self._code:
            self._code = loaded
            self._generation = loaded.generation
            self._looks = {}

    def instruction(self, waves: Waves, instruction: Instruction) -> None:
        self._see(waves, instruction)
        if instruction.second is not None:
            self._see(waves, instruction.second)

    def _see(self, waves: Waves, instruction: Instruction) -> None:
        mnemonic = instruction.printed
        key = _LookKey(instruction.number, instruction.text)
        seen = self.seen.get(mnemonic)
        if seen is None:
            seen = self.seen[mnemonic] = Seen()
        if key not in self._looks:
            seen.modifiers |= modifiers_of(instruction)
            self._looks[key] = _look_at(instruction, self._generation)
        if not seen.is_partial and depends_on_lanes(mnemonic) and not waves.covers:
            seen.is_partial = is_partial(waves)
        look = self._looks[key]
        if look is None:
            return
        if not seen.edges.issuperset(edges_wanted(mnemonic, self._generation)):
            look(waves, seen)


def depends_on_lanes(mnemonic: str) -> bool:
    """Return True if an instruction does something in each lane that runs."""
    return mnemonic.startswith(_OF_LANES) and not mnemonic.startswith(_OF_WAVES)


def is_partial(waves: Waves) -> bool:
    """Return True if some wave has both work items that run and work items that do not."""
    mask = waves.mask
    existing = waves.existing[waves.rows]
    return bool((mask.any(axis=1) & (existing & ~mask).any(axis=1)).any())


def edges_wanted(mnemonic: str, of: Generation) -> frozenset[str]:
    """Return names of the values at the limits of the types of an instruction's sources."""
    found: set[str] = set()
    for kind in filter(_has_limits, _kinds(mnemonic, of)):
        found.update(OF_FLOATS if kind.startswith("f") else OF_INTEGERS)
    return frozenset(found)


def _has_limits(kind: str) -> bool:
    return kind in NUMPY and not kind.startswith("p")


def _row(mnemonic: str, of: Generation) -> Semantics | None:
    """Return the row of an instruction in a table, or None."""
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
) -> Callable[[Waves, Seen], None] | None:
    """Return a function that records the operands' values; None if no operand counts."""
    sources = list(_sources(instruction, of))
    if not sources:
        return None

    def look(waves: Waves, seen: Seen) -> None:
        for source, kind in sources:
            seen.edges |= edges_in(_running(waves, source), kind)

    return look


def _sources(instruction: Instruction, of: Generation) -> Iterator[_TypedSource]:
    """Yield the sources that are not constants."""
    name = instruction.mnemonic
    row = _row(name, of)
    written = [] if row is None else [kind for kind in row.results if kind != "scc"]
    kinds = () if row is None else row.sources
    operands = instruction.operands[len(written) :]
    for place, (operand, kind) in enumerate(zip(operands, kinds, strict=False)):
        if operand.file == "c" or not _has_limits(kind):
            continue
        if name in of.packed:
            for half in (0, 1):
                yield _TypedSource(half_source(operand, kind, half, False), kind)
        elif name in of.scalar:
            yield _TypedSource(scalar_source(operand, kind), kind)
        else:
            source = vector_source(operand, kind, instruction.modifiers, place)
            yield _TypedSource(source, kind)


def _running(waves: Waves, source: OperandSource) -> Array:
    """Return the values of a source in the lanes that run."""
    values = np.asarray(source.value(waves))
    is_of_lanes = values.ndim == 2 and values.shape[1] > 1
    return values[waves.mask] if is_of_lanes else values


def edges_in(values: Array, kind: str) -> set[str]:
    """Return names of the values at the limits of their type that are in `values`."""
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
