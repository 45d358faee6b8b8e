"""The ledger of PTX: the instructions that the emulator knows, and how their results were checked.

The page `ptx.md` in `refcomp/emulator/ledgers/` names three references. A test compares again, and
writes the page (tests/emulator/ptx/test_ledger.py --update-golden).

    host      this machine gave the same bits for the LLVM IR that the PTX was made of
    formula   a program that follows the ISA's text, thread by thread, gave the same bits
    bound     the result of an approximation was within the error that the ISA documents
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from refcomp.emulator.ptx.execution.program import known_opcodes
from refcomp.emulator.ptx.instructions.rules import RULES
from refcomp.emulator.ptx.instructions.types import is_type
from refcomp.emulator.ptx.text.module import PtxInstruction

FOLDER = Path(__file__).parent.with_name("ledgers")
REFERENCES = ("host", "formula", "bound")
_HEAD = """# Instructions of PTX that agree with a reference

Generated from runs whose results agreed. An instruction is named by its opcode and its types. Its
other modifiers stand behind the reference with which they ran.

- `host`: this machine gave the same bits for the LLVM IR that the PTX was made of.
- `formula`: a program that follows the ISA's text, thread by thread, gave the same bits.
- `bound`: the result of an approximation was within the error that the ISA documents.

## Compared

"""
_NOT_COMPARED = """
## Compared with nothing

Some have no result: fences, hints, and instructions that stop a kernel.

"""


@dataclass(frozen=True, slots=True)
class PtxEntry:
    """An instruction in the ledger.

    Attributes:
        name: its opcode and its types, such as "cvt.s32.f32".
        modifiers: reference -> the other modifiers that it ran with. Empty: it was not compared.
    """

    name: str
    modifiers: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def is_compared(self) -> bool:
        """True if its results agreed with a reference."""
        return bool(self.modifiers)

    def __str__(self) -> str:
        if not self.modifiers:
            return f"{self.name}: not compared"
        parts = [
            " ".join([reference, *sorted(self.modifiers[reference])])
            for reference in REFERENCES
            if reference in self.modifiers
        ]
        return f"{self.name}: {'; '.join(parts)}"


def name_of(instruction: PtxInstruction) -> str:
    """Return the name of an instruction in the ledger: its opcode and its types."""
    return ".".join([instruction.opcode, *filter(is_type, instruction.modifiers)])


def entries_of(
    seen: Mapping[str, Iterable[PtxInstruction]],
) -> tuple[PtxEntry, ...]:
    """Return the entries of all instructions that the emulator knows, sorted by name.

    Args:
        seen: reference -> instructions that ran in kernels whose results agreed with it.
    """
    found: dict[str, dict[str, set[str]]] = {}
    for reference, instructions in seen.items():
        for one in instructions:
            by_reference = found.setdefault(name_of(one), {})
            names = by_reference.setdefault(reference, set())
            names.update(name for name in one.modifiers if not is_type(name))
    return _with_unseen(
        PtxEntry(name, {r: frozenset(names) for r, names in by_reference.items()})
        for name, by_reference in found.items()
    )


def _with_unseen(compared: Iterable[PtxEntry]) -> tuple[PtxEntry, ...]:
    """Return entries, and those of the known instructions that are not among them."""
    entries = {entry.name: entry for entry in compared}
    covered = {_row_of(name) for name in entries}
    opcodes = {opcode for opcode, _ in covered}
    with_types = {opcode for opcode, _ in RULES}
    for opcode, kind in RULES:
        if (opcode, kind) not in covered:
            entries[f"{opcode}.{kind}"] = PtxEntry(f"{opcode}.{kind}")
    for opcode in known_opcodes() - opcodes - with_types:
        entries[opcode] = PtxEntry(opcode)
    return tuple(entries[name] for name in sorted(entries))


def _row_of(name: str) -> tuple[str, str]:
    """Return the opcode and the last type of a name."""
    opcode, *kinds = name.split(".")
    return opcode, kinds[-1] if kinds else ""


def ptx_ledger_text(entries: Iterable[PtxEntry]) -> str:
    """Return the page of some entries."""
    all_entries = list(entries)
    compared = [f"- {entry}\n" for entry in all_entries if entry.is_compared]
    others = [f"- {entry.name}\n" for entry in all_entries if not entry.is_compared]
    return "".join([_HEAD, *compared, _NOT_COMPARED, *others])


@cache
def read_ptx_ledger() -> tuple[PtxEntry, ...]:
    """Return the entries of the page, and of all other instructions that the emulator knows."""
    path = FOLDER / "ptx.md"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    items = [line[2:] for line in lines if line.startswith("- ") and line[2] != "`"]
    return _with_unseen(_entry_of(item) for item in items if ": " in item)


def _entry_of(item: str) -> PtxEntry:
    name, _, references = item.partition(": ")
    parts = [part.split() for part in references.split("; ")]
    return PtxEntry(name, {first: frozenset(names) for first, *names in parts})


def not_compared_in(instructions: Iterable[PtxInstruction]) -> tuple[str, ...]:
    """Return the names of instructions that were never compared with a reference.

    A name of a compared instruction comes with those of its modifiers that were not compared.

    Example::

        >>> from refcomp.emulator.ptx.ledger import not_compared_in
        >>> from refcomp.emulator.ptx.text.module import PtxInstruction
        >>> add = PtxInstruction(0, 1, "add", ("rn", "f32"), (), "add.rn.f32 ...")
        >>> stop = PtxInstruction(0, 2, "brkpt", (), (), "brkpt")
        >>> not_compared_in([add, stop])
        ('brkpt',)
    """
    entries = {entry.name: entry for entry in read_ptx_ledger()}
    found = set()
    for one in instructions:
        entry = entries.get(name_of(one))
        if entry is None or not entry.is_compared:
            found.add(name_of(one))
            continue
        known = frozenset().union(*entry.modifiers.values())
        new = [m for m in one.modifiers if not is_type(m) and m not in known]
        if new:
            found.add(f"{entry.name} with {', '.join(sorted(new))}")
    return tuple(sorted(found))
