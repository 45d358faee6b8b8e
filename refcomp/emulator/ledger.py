"""Which instructions the emulator knows, and how far each is to be believed.

`ledger.md` lists those that ran in kernels whose results agreed with an independent reference; a
test writes it from a trace of these runs (tests/emulator/test_ledger.py --update-golden) and holds
it against each later one. What has a row in a table, but is not listed there, is told apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from refcomp.emulator.generation import VECTOR
from refcomp.emulator.packed import PACKED
from refcomp.emulator.program import known_mnemonics

PATH = Path(__file__).with_name("ledger.md")
_HEAD = """# Instructions of gfx942 that agree with a reference

Written from a trace: each of them ran in kernels whose results were those of the loop IR's
interpreter. Approximate: a GPU may differ by 1 ulp.

"""


@dataclass(frozen=True, slots=True)
class Entry:
    """`is_compared`: it ran in kernels that agreed with a reference."""

    mnemonic: str
    is_compared: bool
    is_approximate: bool

    def __str__(self) -> str:
        certainty = "approximate" if self.is_approximate else "exact"
        return f"{self.mnemonic}: {certainty}" + ("" if self.is_compared else ", not compared")


def read_ledger() -> tuple[Entry, ...]:
    """All instructions that are known, by name."""
    lines = PATH.read_text(encoding="utf-8").splitlines()
    compared = {line[2:].partition(":")[0] for line in lines if line.startswith("- ")}
    names = sorted({*known_mnemonics(), *compared})
    return tuple(Entry(name, name in compared, is_approximate(name)) for name in names)


def ledger_text(executed: Iterable[str]) -> str:
    """What `ledger.md` says when these instructions ran."""
    entries = (Entry(name, True, is_approximate(name)) for name in sorted(executed))
    return _HEAD + "".join(f"- {entry}\n" for entry in entries)


def is_approximate(mnemonic: str) -> bool:
    """Whether a GPU may give another result, within 1 ulp."""
    row = VECTOR.get(mnemonic) or PACKED.get(mnemonic, ("", None))[1]
    return mnemonic.startswith("v_mfma_f32") or bool(row and row.is_approximate)
