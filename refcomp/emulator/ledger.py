"""Which instructions the emulator knows, and how far each is to be believed.

A GPU's page in `ledgers/` lists those that ran in kernels whose results agreed with an independent
reference, and with what: some lanes switched off (partial EXEC), operands at the borders of their
types, modifiers. A test writes it from what was seen in these runs (tests/emulator/test_ledger.py
--update-golden) and holds it against each later one. An instruction counts as compared when it ran
with all that its kind has; what has a row in a table, but did not, is told apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
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

Written from what was seen in kernels whose results were those of the loop IR's interpreter, or of
the same text compiled for this machine. Approximate: a GPU may differ by 1 ulp, of f64 by 2**29.

"""
_PARTIAL = "some lanes off"
_LINE = re.compile(r"- (\w+): \w+((?:; [^;]+)*)$")
# Of several products, which a GPU may round in between.
_SUMS = ("v_mfma_f32", "v_wmma_f32", "v_dot2_f32", "v_dot2c_f32")
_OPERANDS, _MODIFIERS = "operands ", "modifiers "


@dataclass(frozen=True, slots=True)
class Entry:
    """`seen` is what it ran with, None for nothing; `lacks` what it was never compared with."""

    mnemonic: str
    is_approximate: bool
    seen: Seen | None = None
    lacks: tuple[str, ...] = field(default=())

    @property
    def is_compared(self) -> bool:
        """Whether it counts as supported."""
        return self.seen is not None and not self.lacks

    def __str__(self) -> str:
        certainty = "approximate" if self.is_approximate else "exact"
        if self.seen is None:
            return f"{self.mnemonic}: {certainty}, not compared"
        lacks = f", not compared with {', '.join(self.lacks)}" if self.lacks else ""
        modifiers = ", ".join(sorted(self.seen.modifiers))
        return f"{self.mnemonic}: {certainty}{lacks}" + (
            f"; {modifiers}" if modifiers else ""
        )


@cache
def read_ledger(of: Generation = GFX942) -> tuple[Entry, ...]:
    """All instructions that are known, by name."""
    path = FOLDER / f"{of.name}.md"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    seen = {m[1]: _seen_of(m[2]) for line in lines if (m := _LINE.match(line))}
    return tuple(
        entry_of(n, seen.get(n), of) for n in sorted({*known_mnemonics(of), *seen})
    )


def ledger_text(seen: Mapping[str, Seen], of: Generation) -> str:
    """What the page says when this was seen."""
    return _HEAD.format(name=of.name) + "".join(
        f"- {name}: {'approximate' if is_approximate(name, of) else 'exact'}{_told(one)}\n"
        for name, one in sorted(seen.items())
    )


def _told(seen: Seen) -> str:
    parts = [_PARTIAL] if seen.is_partial else []
    parts += [
        _OPERANDS + " ".join(e for e in (*OF_FLOATS, *OF_INTEGERS) if e in seen.edges)
    ]
    parts += [_MODIFIERS + " ".join(sorted(seen.modifiers))]
    return "".join(f"; {part}" for part in parts if part not in (_OPERANDS, _MODIFIERS))


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
    """What is told of an instruction of which that was seen."""
    lacks: list[str] = []
    if seen is not None:
        lacks += (
            [_PARTIAL] if depends_on_lanes(mnemonic) and not seen.is_partial else []
        )
        wanted = edges_wanted(mnemonic, of) - seen.edges
        lacks += [edge for edge in (*OF_FLOATS, *OF_INTEGERS) if edge in wanted]
    return Entry(mnemonic, is_approximate(mnemonic, of), seen, tuple(lacks))


def not_compared(
    executed: Iterable[ExecutedForm], of: Generation = GFX942
) -> tuple[str, ...]:
    """What ran, as mnemonics and their modifiers, and was never compared so with a reference."""
    entries, found = {entry.mnemonic: entry for entry in read_ledger(of)}, set()
    for mnemonic, modifiers in executed:
        seen = entries[mnemonic].seen if mnemonic in entries else None
        more = sorted(modifiers - seen.modifiers) if seen else []
        if seen is None or more:
            found.add(mnemonic + (f" with {', '.join(more)}" if more else ""))
    return tuple(sorted(found))


def is_approximate(mnemonic: str, of: Generation = GFX942) -> bool:
    """Whether a GPU may give another result."""
    name = of.dialect.renamed.get(mnemonic, mnemonic)
    row = of.vector.get(name)
    if row is None and name in of.packed:
        row = of.packed[name].half
    return name.startswith(_SUMS) or bool(row and row.is_approximate)
