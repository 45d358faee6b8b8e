"""Instructions, read from the text that llvm-objdump prints of a code object.

    v_add_f32_e64 v1, -v2, |s3| clamp     // 000000002C70: D1010001 00000702

becomes Instruction("v_add_f32", operands v1, -v2, |s3|, modifiers {"clamp": ""}, ...).

- The suffix of the encoding is dropped: it changes how an instruction is written, not what it does.
- Where GPUs call one instruction by several names, it gets the name in `renamed`.
- A pair of instructions (`v_dual_mov_b32 v0, v1 :: v_dual_mul_f32 v2, v3, v4`) becomes the first
  one, which has the other one as its `second`.

Refuses, by ToolchainError, text that is not of this form.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, NamedTuple, cast

from refcomp.foundation.errors import ToolchainError

_LINE = re.compile(r"^\t(\S+)(.*?)\s*// ([0-9A-F]+): ((?:[0-9A-F]{8} ?)+)")
_SOURCE = re.compile(r"^; (\S+:\d+)$")
_SYMBOL = re.compile(r"^([0-9a-f]+) <(.+)>:$")
_SUFFIX = re.compile(r"_(e32|e64|sdwa|dpp|e64_dpp|vi|gfx\d+)$")
# Commas separate operands, and blanks modifiers, except within brackets.
_PART = re.compile(r",\s*(?![^(\[]*[)\]])")
_BLANK = re.compile(r"\s+(?![^(\[]*[)\]])")
_REGISTERS = re.compile(r"^([vas]|ttmp)(?:(\d+)(?:\.([lh]))?|\[(\d+):(\d+)\])$")


@dataclass(frozen=True, slots=True)
class RegisterRange:
    """Consecutive registers of one file, as in `s[4:7]`."""

    first: int  # number of the first register
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
TTMP = 108
VCC = 106
EXEC = 126
USUAL_LANES = 64
# Bits of MODE: clamping turns NaN into 0; signalling NaNs become quiet.
DX10_CLAMP = 0x100
IEEE_NANS = 0x200
# Rounds to nearest even and keeps all denormals: what compilers ask for by default.
IEEE_MODE = 0xF0 | DX10_CLAMP | IEEE_NANS


# What an operand is: a vector register, an accumulator (a vector register for matrices), a scalar
# register, or a constant.
RegisterFile = Literal["v", "a", "s", "c"]


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of an instruction: registers or a constant."""

    text: str  # as printed, without the modifiers below
    file: RegisterFile
    index: int = 0  # the first register
    count: int = 1  # of registers
    negative: bool = False
    absolute: bool = False
    sign_extended: bool = False
    is_high: bool = False  # the upper half of a register (`v1.h`)


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction as waves of `lanes` lanes run it."""

    mnemonic: str  # without the suffix of the encoding
    operands: tuple[Operand, ...]
    modifiers: Mapping[str, str]  # name -> value, "" for a flag
    address: int  # bytes from where the code object is loaded
    encoding: str  # words in hexadecimal
    text: str  # as printed
    number: int  # among all instructions
    source: str = ""  # the source line that it was made of; "" if not known
    lanes: int = USUAL_LANES
    mode: int = IEEE_MODE  # MODE: how it rounds, and whether it keeps denormals
    second: Instruction | None = None  # the other half of a pair

    @property
    def printed(self) -> str:
        """The mnemonic as the manual of the GPU spells it."""
        return _without_suffix(self.text.partition(" ")[0])

    @property
    def size(self) -> int:
        """The size in bytes."""
        return 4 * len(self.encoding.split())

    def __str__(self) -> str:
        made_of = f", made of {self.source}" if self.source else ""
        return f"{self.text}  ({self.encoding} at {self.address:#x}{made_of})"


@dataclass(frozen=True, slots=True)
class Dialect:
    """The names that the disassembler prints for a GPU."""

    named: Mapping[str, RegisterRange]  # names of scalar registers
    # Name of an instruction on this GPU -> its name on other GPUs.
    renamed: Mapping[str, str]


USUAL_DIALECT = Dialect(NAMED, {})


@dataclass(frozen=True, slots=True)
class _InstructionParts:
    """The parts of a printed instruction."""

    mnemonic: str
    operands: tuple[Operand, ...]
    modifiers: dict[str, str]  # name -> value, "" for a flag


class Assembly:
    """All instructions in the order of their addresses. Each is parsed when it is first needed."""

    def __init__(
        self,
        lines: Sequence[re.Match[str]],
        symbols: Mapping[int, str],
        sources: Mapping[int, str],
        dialect: Dialect,
        lanes: int,
    ) -> None:
        self._lines = lines  # matches of `_LINE`
        self.symbols = symbols  # address -> name
        self._sources = sources  # number of an instruction -> source line
        self._dialect = dialect
        self.lanes = lanes
        self._read: dict[int, Instruction] = {}
        self._operands: dict[str, Operand] = {}  # of all that were read
        self._numbers = {int(line[3], 16): number for number, line in enumerate(lines)}
        self._starts = sorted(symbols)

    def __len__(self) -> int:
        return len(self._lines)

    def mnemonic(self, number: int) -> str:
        """Return the mnemonic of an instruction as printed, without parsing the rest."""
        return _without_suffix(self._lines[number][1])

    def instruction(self, number: int) -> Instruction:
        """Return instruction `number`."""
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
        name = _without_suffix(printed)
        texts = _split(rest.strip())
        operands = tuple(map(self._operand, texts.operands))
        return _InstructionParts(
            self._dialect.renamed.get(name, name), operands, texts.modifiers
        )

    def _operand(self, text: str) -> Operand:
        found = self._operands.get(text)
        if found is None:
            found = self._operands[text] = read_operand(text, self._dialect.named)
        return found

    def number_at(self, address: int) -> int | None:
        """Return the number of the instruction at an address; None if none begins there."""
        return self._numbers.get(address)

    def symbol_of(self, instruction: Instruction) -> str:
        """Return the function of an instruction and the offset in it, such as `f+0x1c`."""
        place = bisect_right(self._starts, instruction.address)
        if not place:
            return f"{instruction.address:#x}"
        start = self._starts[place - 1]
        return f"{self.symbols[start]}+{instruction.address - start:#x}"


def read_assembly(
    text: str, dialect: Dialect = USUAL_DIALECT, lanes: int = USUAL_LANES
) -> Assembly:
    """Return the instructions of a disassembly, for waves of `lanes` lanes.

    Raises:
        ToolchainError: the text has no instructions.
    """
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


@cache
def _without_suffix(printed: str) -> str:
    """Return a printed mnemonic without the suffix of its encoding."""
    return _SUFFIX.sub("", printed)


class _OperandTexts(NamedTuple):
    """The operands and modifiers of an instruction, as texts."""

    operands: list[str]
    modifiers: dict[str, str]  # name -> value, "" for a flag


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
    """Return the operand that `text` denotes. `named` has the names of scalar registers."""
    bare = text
    negative = False
    absolute = False
    extended = False
    if bare.startswith("lit("):  # as newer LLVMs print constants that could be shorter
        bare = bare[4:-1]
    if bare.startswith("sext("):
        bare = bare[5:-1]
        extended = True
    if bare.startswith("neg("):
        bare = bare[4:-1]
        negative = True
    if bare.startswith("-") and not bare[1:2].isdigit():
        bare = bare[1:]
        negative = True
    if bare.startswith("|"):
        bare = bare[1:-1]
        absolute = True
    registers = _registers(bare, named)
    return Operand(
        bare,
        registers.file,
        registers.index,
        registers.count,
        negative=negative,
        absolute=absolute,
        sign_extended=extended,
        is_high=registers.file == "v" and bare.endswith(".h"),
    )


@dataclass(frozen=True, slots=True)
class _Registers:
    """The registers of an operand."""

    file: RegisterFile
    index: int
    count: int


def _registers(text: str, named: Mapping[str, RegisterRange]) -> _Registers:
    if (found := named.get(text)) is not None:
        return _Registers("s", found.first, found.count)
    match = _REGISTERS.match(text)
    if match is None:
        return _Registers("c", 0, 1)
    first = int(match[2] or match[4])
    count = int(match[5]) - first + 1 if match[5] else 1
    if match[1] == "ttmp":
        return _Registers("s", TTMP + first, count)
    file = cast(RegisterFile, match[1])
    return _Registers(file, first, count)
