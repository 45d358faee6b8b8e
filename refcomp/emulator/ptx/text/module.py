"""The contents of a PTX file: functions, their instructions, and variables.

Source: NVIDIA, "Parallel Thread Execution ISA", sections "Syntax", "State Spaces, Types, and
Variables" and "Instruction Operands".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

# The type `bytes`, for the class `Variable`, whose field `bytes` hides it.
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
    """A number in the text.

    Attributes:
        type: "int" for a whole number of at most 64 bits; "f32" or "f64" for a float.
        bits: the bits of the number. A whole number is in two's complement with 64 bits.
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
    """A line of the source program of the PTX.

    Attributes:
        file: the name of the source file.
        line: the number of the line, from 1 on.
        caller: the call where the function of the line was inlined. Of nested calls, the outermost.
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
        number: the index in the list of its function.
        line: the number of the line in the file, from 1 on.
        opcode: the name up to the first dot, such as `ld`.
        modifiers: the parts of the name after the first dot, such as `("global", "v4", "f32")`.
        operands: the operands, results first. The operands of `call` are: results or None, callee,
            arguments or None, prototype or None. Each is a `Vector`, an operand or a `LabelName`.
        text: the text in the file, as one line.
        predicate: the register that must be True in a thread that executes the instruction; None:
            all threads execute it.
        is_negated: True if the predicate must be False instead.
        location: the source line, by the last `.loc`; None without one.
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
    """A place in a variable that holds the address of a symbol."""

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
        bytes: the size of all elements; 0 for an array without a length, which the launch sets.
        alignment: the alignment in bytes.
        initial: the first bytes; all further bytes are 0. Empty without an initializer.
        addresses: the addresses of symbols that `initial` contains.
    """

    name: str
    space: Space
    type: str
    bytes: int
    alignment: int
    initial: Content = b""
    addresses: tuple[SymbolRelocation, ...] = ()
    is_extern: bool = False
    is_pointer: bool = (
        False  # True for a parameter that `.ptr` declares to be an address
    )


@dataclass(frozen=True, slots=True)
class PtxFunction:
    """A kernel (`.entry`) or a function that kernels call (`.func`).

    Attributes:
        registers: register -> its type, such as "b32" or "pred".
        variables: the variables declared in the function. Names of inner scopes are unique.
        instructions: the instructions; empty for a declaration.
        labels: label -> the number of the instruction after it.
        branch_targets: label of `.branchtargets` -> labels; label of `.calltargets` -> functions.
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
        version: the version of PTX, such as (9, 0).
        target: the oldest GPU that runs the file, such as "sm_90".
        functions: the functions by name. A declaration is left out if the file has a definition.
        variables: the variables outside of functions, in order.
    """

    version: tuple[int, int]
    target: str
    functions: Mapping[str, PtxFunction]
    variables: tuple[Variable, ...]
