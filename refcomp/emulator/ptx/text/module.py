"""The contents of a PTX file: functions, their instructions, and variables.

Source: NVIDIA, "Parallel Thread Execution ISA", sections "Syntax", "State Spaces, Types, and
Variables" and "Instruction Operands".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

# The first bytes of a variable, which has a field of the name `bytes`.
Content: TypeAlias = bytes
# The state spaces of variables.
Space = Literal["global", "const", "shared", "local", "param"]


@dataclass(frozen=True, slots=True)
class Register:
    """A register of a thread, such as `%r1`, or a special one, such as `%tid.x`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Negated:
    """The opposite of a predicate, `!%p1`."""

    register: Register

    def __str__(self) -> str:
        return f"!{self.register}"


@dataclass(frozen=True, slots=True)
class Immediate:
    """A number that stands in the text.

    Attributes:
        type: "int" for a whole number, which fits into 64 bits; "f32" or "f64" for a float.
        bits: of the number. A whole number is in two's complement, of 64 bits.
    """

    type: Literal["int", "f32", "f64"]
    bits: int

    def __str__(self) -> str:
        if self.type == "int":
            return str(self.bits - (self.bits >> 63 << 64))
        return f"0f{self.bits:08X}" if self.type == "f32" else f"0d{self.bits:016X}"


@dataclass(frozen=True, slots=True)
class SymbolAddress:
    """The address of a variable, a parameter or a function, and some bytes behind it."""

    symbol: str
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.symbol}+{self.offset}" if self.offset else self.symbol


@dataclass(frozen=True, slots=True)
class Address:
    """A place in memory, `[%rd1+16]`. Without a base it is the number `offset`."""

    base: Register | SymbolAddress | None
    offset: int = 0

    def __str__(self) -> str:
        if self.base is None:
            return f"[{self.offset}]"
        return f"[{self.base}+{self.offset}]" if self.offset else f"[{self.base}]"


@dataclass(frozen=True, slots=True)
class Vector:
    """Some operands together, `{%r1, %r2}`."""

    parts: tuple[Operand, ...]

    def __str__(self) -> str:
        return "{" + ", ".join(map(str, self.parts)) + "}"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two results, `%p1|%p2`."""

    first: Register | Sink
    second: Register | Sink

    def __str__(self) -> str:
        return f"{self.first}|{self.second}"


@dataclass(frozen=True, slots=True)
class Sink:
    """A result that is not kept, `_`."""

    def __str__(self) -> str:
        return "_"


@dataclass(frozen=True, slots=True)
class LabelName:
    """A place in a function, or a list of such places, or a prototype of a call."""

    name: str

    def __str__(self) -> str:
        return self.name


Operand: TypeAlias = (
    Register
    | Negated
    | Immediate
    | SymbolAddress
    | Address
    | Vector
    | Pair
    | Sink
    | LabelName
)


@dataclass(frozen=True, slots=True)
class Location:
    """A line of the program that the PTX was made of.

    Attributes:
        caller: where the function of the line was inlined; of nested calls, the outermost.
    """

    file: str
    line: int
    caller: Location | None = None

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}"
        return place if self.caller is None else f"{place}, inlined at {self.caller}"


def registers_in(operand: Operand | None) -> Iterator[str]:
    """Yield the names of the registers in an operand."""
    match operand:
        case Register(name):
            yield name
        case Negated(register):
            yield register.name
        case Address(base=Register(name)):
            yield name
        case Vector(parts):
            for part in parts:
                yield from registers_in(part)
        case Pair(first, second):
            yield from registers_in(first)
            yield from registers_in(second)


@dataclass(frozen=True, slots=True)
class PtxInstruction:
    """An instruction.

    Attributes:
        number: its place in the list of its function.
        line: its line in the file, from 1 on.
        predicate: it runs only in threads in which this register holds; None: in all.
        is_negated: True if it runs in the other threads.
        opcode: the name up to the first dot, such as `ld`.
        modifiers: what follows, such as `("global", "nc", "v4", "f32")`.
        operands: results first. Those of `call` are: results or None, callee, arguments or None,
            and the prototype or None; each of these is a `Vector`, an operand or a `LabelName`.
        text: as it stands in the file, in one line.
        location: by the last `.loc`; None without.
    """

    number: int
    line: int
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand | None, ...]
    text: str
    predicate: Register | None = None
    is_negated: bool = False
    location: Location | None = None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class SymbolRelocation:
    """A place in a variable at which the address of a symbol stands."""

    place: int  # in bytes
    symbol: str
    addend: int
    size: int  # bytes of the address
    is_generic: bool = False  # the generic address, not that within the symbol's space


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable or a parameter.

    Attributes:
        type: the type of an element, such as "b8" or "f32".
        bytes: of all elements; 0 for an array without a length, which the launch gives.
        alignment: in bytes.
        initial: its first bytes; those behind them are 0. Empty without an initializer.
        addresses: of symbols in `initial`.
    """

    name: str
    space: Space
    type: str
    bytes: int
    alignment: int
    initial: Content = b""
    addresses: tuple[SymbolRelocation, ...] = ()
    is_extern: bool = False
    is_pointer: bool = False  # a parameter that `.ptr` says is an address


@dataclass(frozen=True, slots=True)
class PtxFunction:
    """A kernel (`.entry`) or a function that kernels call (`.func`).

    Attributes:
        registers: the type of each register, such as "b32" or "pred".
        variables: those declared in it. Names of inner scopes are unique.
        instructions: empty for a declaration.
        labels: label -> number of an instruction, or the count of all for a label at the end.
        branch_targets: label of `.branchtargets` -> labels; `.calltargets` -> functions.
        limits: directive without its dot, such as `maxntid` -> its numbers.
    """

    name: str
    is_entry: bool
    results: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    registers: Mapping[str, str] = field(default_factory=dict)
    variables: tuple[Variable, ...] = ()
    instructions: tuple[PtxInstruction, ...] = ()
    labels: Mapping[str, int] = field(default_factory=dict)
    branch_targets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    limits: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    line: int = 0
    is_declaration: bool = False


@dataclass(frozen=True, slots=True)
class PtxModule:
    """A PTX file.

    Attributes:
        version: of PTX, such as (9, 0).
        target: the oldest GPU that runs it, such as "sm_90".
        functions: by name. A declaration is left out if a definition is there.
        variables: those outside of functions, in order.
    """

    version: tuple[int, int]
    target: str
    functions: Mapping[str, PtxFunction]
    variables: tuple[Variable, ...]
