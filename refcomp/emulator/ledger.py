"""The ledger: which instructions the emulator knows, and how well each is tested.

A GPU's page in `ledgers/` lists the instructions that ran in kernels whose results agreed with an
independent reference. For each it says whether some lanes were off (partial EXEC), which operands
at the limits of their types it had, and which modifiers. A test writes the page from these runs
(tests/emulator/test_ledger.py --update-golden), and compares it with each later run. An instruction
counts as compared if it ran with everything that applies to its kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from refcomp.emulator.execution.program import ExecutedForm, known_mnemonics
from refcomp.emulator.generations.generation import GFX942, Generation
from refcomp.emulator.observers.coverage import (
    OF_FLOATS,
    OF_INTEGERS,
    Seen,
    depends_on_lanes,
    edges_wanted,
)

FOLDER = Path(__file__).with_name("ledgers")
_HEAD = """# Instructions of {name} that agree with a reference

Generated from runs of kernels whose results agreed with the loop IR's interpreter, or with the same
text compiled for this machine. Approximate: a GPU may differ by 1 ulp, for f64 by 2**29 ulp.

"""
_PARTIAL = "some lanes off"
_LINE = re.compile(r"- (\w+): \w+((?:; [^;]+)*)$")
# Sums of several products: a GPU may round in between.
_SUMS = ("v_mfma_f32", "v_wmma_f32", "v_dot2_f32", "v_dot2c_f32")
_OPERANDS = "operands "
_MODIFIERS = "modifiers "
_EDGES = (*OF_FLOATS, *OF_INTEGERS)


@dataclass(frozen=True, slots=True)
class Entry:
    """An instruction in the ledger."""

    mnemonic: str
    is_approximate: bool  # a GPU may give another result
    seen: Seen | None = None  # what it ran with; None if it did not run
    lacks: tuple[str, ...] = ()  # what it was never compared with

    @property
    def is_compared(self) -> bool:
        """True if the instruction counts as supported."""
        return self.seen is not None and not self.lacks

    def __str__(self) -> str:
        certainty = "approximate" if self.is_approximate else "exact"
        if self.seen is None:
            return f"{self.mnemonic}: {certainty}, not compared"
        lacks = f", not compared with {', '.join(self.lacks)}" if self.lacks else ""
        names = ", ".join(sorted(self.seen.modifiers))
        modifiers = f"; {names}" if names else ""
        return f"{self.mnemonic}: {certainty}{lacks}{modifiers}"


@cache
def read_ledger(of: Generation = GFX942) -> tuple[Entry, ...]:
    """Return all instructions that the emulator knows, sorted by name."""
    path = FOLDER / f"{of.name}.md"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    seen = {m[1]: _seen_of(m[2]) for line in lines if (m := _LINE.match(line))}
    return tuple(
        entry_of(n, seen.get(n), of) for n in sorted({*known_mnemonics(of), *seen})
    )


def ledger_text(seen: Mapping[str, Seen], of: Generation) -> str:
    """Return the page of a GPU if its runs have shown `seen`."""
    lines = [_HEAD.format(name=of.name)]
    for name, one in sorted(seen.items()):
        parts = [f"- {name}: {'approximate' if is_approximate(name, of) else 'exact'}"]
        if one.is_partial:
            parts.append(_PARTIAL)
        if one.edges:
            parts.append(
                _OPERANDS + " ".join(edge for edge in _EDGES if edge in one.edges)
            )
        if one.modifiers:
            parts.append(_MODIFIERS + " ".join(sorted(one.modifiers)))
        lines.append("; ".join(parts) + "\n")
    return "".join(lines)


def _seen_of(text: str) -> Seen:
    seen = Seen()
    for part in text.split("; "):
        seen.is_partial |= part == _PARTIAL
        if part.startswith(_OPERANDS):
            seen.edges.update(part.removeprefix(_OPERANDS).split())
        if part.startswith(_MODIFIERS):
            seen.modifiers.update(part.removeprefix(_MODIFIERS).split())
    return seen


def entry_of(mnemonic: str, seen: Seen | None, of: Generation = GFX942) -> Entry:
    """Return the entry of an instruction of which runs have shown `seen`."""
    lacks: list[str] = []
    if seen is not None:
        if depends_on_lanes(mnemonic) and not seen.is_partial:
            lacks.append(_PARTIAL)
        wanted = edges_wanted(mnemonic, of) - seen.edges
        lacks += [edge for edge in _EDGES if edge in wanted]
    return Entry(mnemonic, is_approximate(mnemonic, of), seen, tuple(lacks))


def not_compared(
    executed: Iterable[ExecutedForm], of: Generation = GFX942
) -> tuple[str, ...]:
    """Return what ran but was never compared with a reference: mnemonics with modifiers."""
    entries = {entry.mnemonic: entry for entry in read_ledger(of)}
    found = set()
    for mnemonic, modifiers in executed:
        seen = entries[mnemonic].seen if mnemonic in entries else None
        more = sorted(modifiers - seen.modifiers) if seen else []
        if seen is None or more:
            found.add(mnemonic + (f" with {', '.join(more)}" if more else ""))
    return tuple(sorted(found))


def is_approximate(mnemonic: str, of: Generation = GFX942) -> bool:
    """Return True if a GPU may give another result."""
    name = of.dialect.renamed.get(mnemonic, mnemonic)
    row = of.vector.get(name)
    if row is None and name in of.packed:
        row = of.packed[name].half
    return name.startswith(_SUMS) or bool(row and row.is_approximate)
