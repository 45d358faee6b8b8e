"""Instructions read off the text that llvm-objdump prints of a code object.

    v_add_f32_e64 v1, -v2, |s3| clamp     // 000000002C70: D1010001 00000702

becomes Instruction("v_add_f32", operands v1, -v2, |s3|, modifiers {"clamp": ""}, ...): the suffix
of the encoding is dropped, since it changes how an instruction is written, not what it does. Where
GPUs call one instruction by several names, it goes by the one in `renamed`. Two instructions in one
(`v_dual_mov_b32 v0, v1 :: v_dual_mul_f32 v2, v3, v4`) are the first, which has the other as its
`second`.
Refuses, by ToolchainError, text that is not of this form.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from refcomp.foundation.errors import ToolchainError

_LINE = re.compile(r"^\t(\S+)(.*?)\s*// ([0-9A-F]+): ((?:[0-9A-F]{8} ?)+)")
_SOURCE = re.compile(r"^; (\S+:\d+)$")
_SYMBOL = re.compile(r"^([0-9a-f]+) <(.+)>:$")
_SUFFIX = re.compile(r"_(e32|e64|sdwa|dpp|e64_dpp|vi|gfx\d+)$")
# Blanks that part modifiers, and the commas that part operands: neither stands within brackets.
_PART = re.compile(r",\s*(?![^(\[]*[)\]])")
_BLANK = re.compile(r"\s+(?![^(\[]*[)\]])")
_REGISTERS = re.compile(r"^([vas]|ttmp)(?:(\d+)(?:\.([lh]))?|\[(\d+):(\d+)\])$")


@dataclass(frozen=True, slots=True)
class RegisterRange:
    """Registers of one file that follow each other, as in `s[4:7]`."""

    # Number of the first register.
    first: int
    # How many there are.
    count: int


# Scalar registers that have names.
NAMED = {
    "flat_scratch": RegisterRange(102, 2),
    "flat_scratch_lo": RegisterRange(102, 1),
    "flat_scratch_hi": RegisterRange(103, 1),
    "xnack_mask": RegisterRange(104, 2),
    "vcc": RegisterRange(106, 2),
    "vcc_lo": RegisterRange(106, 1),
    "vcc_hi": RegisterRange(107, 1),
    "m0": RegisterRange(124, 1),
    "exec": RegisterRange(126, 2),
    "exec_lo": RegisterRange(126, 1),
    "exec_hi": RegisterRange(127, 1),
}
TTMP, VCC, EXEC = 108, 106, 126
USUAL_LANES = 64
# Of MODE: a clamp makes NaN 0; signalling NaNs become quiet.
DX10_CLAMP, IEEE_NANS = 0x100, 0x200
# To nearest even, all denormals kept: what compilers ask for unless they are asked otherwise.
IEEE_MODE = 0xF0 | DX10_CLAMP | IEEE_NANS


@dataclass(frozen=True, slots=True)
class Operand:
    """`file` is `v` or `a` (vector), `s` (scalar), `c` (a constant as written in `text`); `is_high`
    where the upper half of a register is meant (`v1.h`)."""

    text: str
    file: str
    index: int = 0
    count: int = 1
    negative: bool = False
    absolute: bool = False
    sign_extended: bool = False
    is_high: bool = False


@dataclass(frozen=True, slots=True)
class Instruction:
    """`address` counts from where the code object is loaded, `number` among all instructions;
    `source` is the line that it was made of, "" where that is not known; `lanes` says how many the
    waves have that run it, `mode` how they round and whether they keep denormals; `second` is what
    runs at the same time in the other half of the GPU."""

    mnemonic: str
    operands: tuple[Operand, ...]
    modifiers: Mapping[str, str]
    address: int
    encoding: str
    text: str
    number: int
    source: str = ""
    lanes: int = USUAL_LANES
    mode: int = IEEE_MODE
    second: Instruction | None = None

    @property
    def printed(self) -> str:
        """The mnemonic as the GPU's manual has it."""
        return _SUFFIX.sub("", self.text.partition(" ")[0])

    @property
    def size(self) -> int:
        """Bytes."""
        return 4 * len(self.encoding.split())

    def __str__(self) -> str:
        made_of = f", made of {self.source}" if self.source else ""
        return f"{self.text}  ({self.encoding} at {self.address:#x}{made_of})"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the disassembler prints for a GPU."""

    # Name of scalar registers -> where they stand among the others.
    named: Mapping[str, RegisterRange]
    # What an instruction is called here -> what it is called on other GPUs.
    renamed: Mapping[str, str]


USUAL_DIALECT = Dialect(NAMED, {})


@dataclass(frozen=True, slots=True)
class _InstructionParts:
    """What one instruction is printed as."""

    mnemonic: str
    operands: tuple[Operand, ...]
    # Name -> value, empty for a flag.
    modifiers: dict[str, str]


class Assembly:
    """All instructions in the order of their addresses, each read when it is asked for."""

    def __init__(
        self,
        lines: Sequence[re.Match[str]],
        symbols: Mapping[int, str],
        sources: Mapping[int, str],
        dialect: Dialect,
        lanes: int,
    ) -> None:
        self._lines, self.symbols, self._sources = lines, symbols, sources
        self._dialect, self.lanes = dialect, lanes
        self._read: dict[int, Instruction] = {}
        self._numbers = {int(line[3], 16): number for number, line in enumerate(lines)}
        self._starts = sorted(symbols)

    def __len__(self) -> int:
        return len(self._lines)

    def mnemonic(self, number: int) -> str:
        """The name of an instruction alone, as it is printed."""
        return _SUFFIX.sub("", self._lines[number][1])

    def instruction(self, number: int) -> Instruction:
        """Instruction `number`."""
        if number not in self._read:
            self._read[number] = self._read_one(number)
        return self._read[number]

    def _read_one(self, number: int) -> Instruction:
        name, rest, address, encoding = self._lines[number].groups()
        text = f"{name} {rest.strip()}".strip()
        first, _, other = text.partition(" :: ")
        parts = self._read_parts(first)
        whole = Instruction(
            parts.mnemonic,
            parts.operands,
            parts.modifiers,
            address=int(address, 16),
            encoding=encoding.strip(),
            text=text,
            number=number,
            source=self._sources.get(number, ""),
            lanes=self.lanes,
        )
        if not other:
            return whole
        parts = self._read_parts(other)
        second = replace(
            whole,
            mnemonic=parts.mnemonic,
            operands=parts.operands,
            modifiers=parts.modifiers,
            text=other,
        )
        return replace(whole, second=second)

    def _read_parts(self, text: str) -> _InstructionParts:
        printed, _, rest = text.partition(" ")
        name, named = _SUFFIX.sub("", printed), self._dialect.named
        texts = _split(rest.strip())
        operands = tuple(read_operand(text, named) for text in texts.operands)
        return _InstructionParts(
            self._dialect.renamed.get(name, name), operands, texts.modifiers
        )

    def number_at(self, address: int) -> int | None:
        """The number of the instruction at an address; None where none begins."""
        return self._numbers.get(address)

    def symbol_of(self, instruction: Instruction) -> str:
        """The name of the function that the instruction stands in, and how far in it."""
        place = bisect_right(self._starts, instruction.address)
        if not place:
            return f"{instruction.address:#x}"
        start = self._starts[place - 1]
        return f"{self.symbols[start]}+{instruction.address - start:#x}"


def read_assembly(
    text: str, dialect: Dialect = USUAL_DIALECT, lanes: int = USUAL_LANES
) -> Assembly:
    """The instructions of a disassembly, for waves of so many lanes. ToolchainError when there
    are none."""
    lines: list[re.Match[str]] = []
    symbols: dict[int, str] = {}
    sources: dict[int, str] = {}
    source = ""
    for line in text.splitlines():
        if match := _LINE.match(line):
            sources[len(lines)] = source
            lines.append(match)
        elif match := _SOURCE.match(line):
            source = match[1]
        elif match := _SYMBOL.match(line):
            symbols[int(match[1], 16)] = match[2]
            source = ""
    if not lines:
        raise ToolchainError(
            "the disassembly holds no instructions",
            why=f"it begins: {text[:200]!r}",
            remedy="disassemble by the llvm-objdump of the LLVM that made the code object",
        )
    return Assembly(lines, symbols, sources, dialect, lanes)


class _OperandTexts(NamedTuple):
    """What follows a mnemonic, taken apart."""

    operands: list[str]
    # Name -> value, empty for a flag.
    modifiers: dict[str, str]


def _split(rest: str) -> _OperandTexts:
    """Split what follows a mnemonic into operands and modifiers."""
    if not rest:
        return _OperandTexts([], {})
    operands = _PART.split(rest)
    last, *modifiers = _BLANK.split(operands[-1])
    pairs = (modifier.partition(":") for modifier in modifiers)
    values = {name: value for name, _, value in pairs}
    return _OperandTexts([*operands[:-1], last], values)


def read_operand(text: str, named: Mapping[str, RegisterRange] = NAMED) -> Operand:
    """What one operand means."""
    bare, negative, absolute, extended = text, False, False, False
    if bare.startswith("lit("):  # as newer LLVMs print constants that could be shorter
        bare = bare[4:-1]
    if bare.startswith("sext("):
        bare, extended = bare[5:-1], True
    if bare.startswith("neg("):
        bare, negative = bare[4:-1], True
    if bare.startswith("-") and not bare[1:2].isdigit():
        bare, negative = bare[1:], True
    if bare.startswith("|"):
        bare, absolute = bare[1:-1], True
    place = _place(bare, named)
    is_high = place.file == "v" and bare.endswith(".h")
    return Operand(
        bare,
        place.file,
        place.index,
        place.count,
        negative,
        absolute,
        extended,
        is_high,
    )


@dataclass(frozen=True, slots=True)
class _RegisterPlace:
    """Where an operand stands: some registers of a file, or none of a constant ("c")."""

    file: str
    index: int
    count: int


def _place(text: str, named: Mapping[str, RegisterRange]) -> _RegisterPlace:
    if (found := named.get(text)) is not None:
        return _RegisterPlace("s", found.first, found.count)
    match = _REGISTERS.match(text)
    if match is None:
        return _RegisterPlace("c", 0, 1)
    first = int(match[2] or match[4])
    count = int(match[5]) - first + 1 if match[5] else 1
    if match[1] == "ttmp":
        return _RegisterPlace("s", TTMP + first, count)
    return _RegisterPlace(match[1], first, count)
