"""Declarations of PTX: registers, variables with their initial contents, and parameters.

Source: "Parallel Thread Execution ISA", sections "State Spaces", "Types", "Variables" and
"Initializers".
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import cast

from refcomp.emulator.ptx.text.constants import read_constant, read_number, read_whole
from refcomp.emulator.ptx.text.module import (
    Immediate,
    Space,
    SymbolRelocation,
    Variable,
)
from refcomp.emulator.ptx.text.scopes import MAX_RANGE, Scopes
from refcomp.emulator.ptx.text.tokens import MAX_CHARACTERS, Tokens

_MAX_BYTES = 1 << 40
_MAX_ALIGNMENT = 1 << 20
_MAX_DIMENSIONS = 8
ADDRESS_BYTES = 8
SPACES = (".global", ".const", ".shared", ".local", ".param")
_OPAQUE = (".texref", ".samplerref", ".surfref")
_FLOATS = {"f16": "<e", "f32": "<f", "f64": "<d"}
_VECTORS = {".v2": 2, ".v4": 4, ".v8": 8}
_SIZES = {
    **{f"{kind}{bits}": bits // 8 for kind in "bsu" for bits in (8, 16, 32, 64)},
    **{"b128": 16, "f16": 2, "bf16": 2, "f16x2": 4, "bf16x2": 4, "f32": 4, "f64": 8},
    "pred": 1,
}


@dataclass(slots=True)
class Head:
    """The part of a declaration before the names."""

    space: str = ""  # with its dot; also ".reg"
    type: str = ""
    parts: int = 1  # the number of elements of a vector
    alignment: int = 0  # in bytes; 0: the alignment of the type
    is_pointer: bool = False

    @property
    def bytes(self) -> int:
        """The size of an element."""
        return _SIZES[self.type] * self.parts


def read_head(tokens: Tokens) -> Head:
    """Read a declaration up to its first name."""
    head = Head()
    while tokens.kind == "directive":
        text = tokens.text
        if text in _OPAQUE:
            tokens.refuse("textures, samplers and surfaces", "read memory instead")
        tokens.advance()
        if text == ".ptr":
            head.is_pointer = True
        elif text == ".align":
            alignment = read_whole(tokens, "an alignment", _MAX_ALIGNMENT)
            if alignment & (alignment - 1) or not alignment:
                tokens.fail(f"the alignment {alignment} is not a power of 2")
            if not head.is_pointer:
                head.alignment = alignment
        elif text == ".attribute":
            skip_parentheses(tokens)
        elif text in SPACES or text == ".reg":
            head.space = head.space if head.is_pointer else text
        elif text in _VECTORS:
            head.parts = _VECTORS[text]
        elif text[1:] in _SIZES:
            head.type = text[1:]
        else:
            tokens.fail(f"{text} does not belong into a declaration")
    if not head.space or not head.type:
        tokens.fail("a declaration lacks its space or its type")
    if head.type == "pred" and head.space != ".reg":
        tokens.fail("a predicate is declared that is not a register")
    return head


def skip_parentheses(tokens: Tokens) -> None:
    """Skip `( ... )`, which may contain further parentheses."""
    tokens.expect("(", "in front of the arguments of an attribute")
    depth = 1
    while depth:
        if tokens.kind == "end":
            tokens.fail("a parenthesis is not closed")
        text = tokens.advance()
        depth += (text == "(") - (text == ")")


def read_registers(tokens: Tokens, head: Head, scopes: Scopes) -> None:
    """Read the names of `.reg`, up to the semicolon."""
    while True:
        name = tokens.name("a register")
        count = None
        if tokens.accept("<"):
            count = read_number(tokens, "the number of registers", MAX_RANGE)
            tokens.expect(">", "behind the number of registers")
        scopes.declare_registers(name, head.type, head.parts, count)
        if not tokens.accept(","):
            break
    tokens.expect(";", "behind a declaration of registers")


def read_variables(
    tokens: Tokens, head: Head, *, is_extern: bool, use: Callable[[str], None]
) -> list[Variable]:
    """Read the names of variables, up to the semicolon.

    Args:
        tokens: the tokens behind the head.
        head: the part of the declaration before the names.
        is_extern: True if other modules or the launch define the variables.
        use: called with each symbol that an initializer names.
    """
    found = []
    while True:
        variable, extents = _read_name(tokens, head)
        variable = replace(variable, is_extern=is_extern)
        if tokens.accept("="):
            if head.space not in (".global", ".const"):
                tokens.fail(f"a variable in {head.space} has an initializer")
            variable = _initialized(tokens, head, variable, extents, use)
        found.append(variable)
        if not tokens.accept(","):
            break
    tokens.expect(";", "behind a declaration of variables")
    return found


def read_parameter(tokens: Tokens) -> Variable:
    """Read a parameter of a function, or a result."""
    head = read_head(tokens)
    if head.space == ".reg":
        tokens.refuse("parameters in registers", "declare them as .param")
    if head.space != ".param":
        tokens.fail(f"a parameter is declared in {head.space}")
    return _read_name(tokens, head)[0]


def _read_name(tokens: Tokens, head: Head) -> tuple[Variable, list[int]]:
    """Read a name and the extents of an array. The first extent is 0 if it is missing."""
    name = tokens.name("a variable")
    tokens.count_piece()
    if tokens.text == "<":
        tokens.refuse("ranges of variables", "declare each by itself")
    extents: list[int] = []
    while tokens.accept("["):
        if len(extents) >= _MAX_DIMENSIONS:
            tokens.fail(f"{name} has more than {_MAX_DIMENSIONS} dimensions")
        is_open = tokens.text == "]" and not extents
        extents.append(
            0 if is_open else read_whole(tokens, f"an extent of {name}", _MAX_BYTES)
        )
        tokens.expect("]", "behind the extent of an array")
    size = head.bytes
    for extent in extents:
        size *= extent
    if size > _MAX_BYTES:
        tokens.fail(f"{name} has {size} bytes, more than {_MAX_BYTES}")
    variable = Variable(
        name,
        cast(Space, head.space[1:]),
        head.type,
        size,
        head.alignment or head.bytes,
        is_pointer=head.is_pointer,
    )
    return variable, extents


@dataclass(slots=True)
class _Content:
    """The content of an initializer."""

    tokens: Tokens
    type: str
    use: Callable[[str], None]
    written: bytearray = field(default_factory=bytearray)
    addresses: list[SymbolRelocation] = field(default_factory=list)

    def read(self, extents: list[int]) -> None:
        """Read the elements of an array; a single one without extents."""
        if not extents:
            self._read_element()
            return
        inner = _SIZES[self.type]
        for extent in extents[1:]:
            inner *= extent
        start = len(self.written)
        self.tokens.expect("{", "in front of the elements of an array")
        while self.tokens.text != "}":
            place = len(self.written)
            # Elements of inner arrays may be listed without braces of their own.
            has_braces = self.tokens.text == "{"
            if has_braces and len(extents) == 1:
                self.tokens.fail("an initializer has more braces than dimensions")
            self.read(extents[1:] if has_braces else [])
            if has_braces:
                self._fill(place + inner)
            if not self.tokens.accept(","):
                break
        self.tokens.expect("}", "behind the elements of an array")
        if extents[0] and len(self.written) - start > extents[0] * inner:
            self.tokens.fail("an initializer has too many elements")

    def _fill(self, size: int) -> None:
        """Append zeros until the content has `size` bytes."""
        if size > MAX_CHARACTERS:
            self.tokens.refuse(
                f"initial contents of {size} bytes", "copy them to the GPU instead"
            )
        self.written += bytes(max(size - len(self.written), 0))

    def _read_element(self) -> None:
        size = _SIZES[self.type]
        tokens = self.tokens
        if tokens.kind == "word":
            self._read_address(0)
            return
        value = read_constant(tokens)
        if value.type == "int" and tokens.accept("("):
            self._read_masked(value.bits)
            return
        self.written += self._element(value, size)

    def _element(self, value: Immediate, size: int) -> bytes:
        tokens = self.tokens
        if value.type == "int":
            number = value.bits - (value.bits >> 63 << 64)
            if self.type in _FLOATS:
                return struct.pack(_FLOATS[self.type], number)
            if size == 16:
                return number.to_bytes(size, "little", signed=True)
            low = -(1 << 8 * size - 1)
            if not (low <= number < 1 << 8 * size or size == ADDRESS_BYTES):
                tokens.fail(f"{value} does not fit into {self.type}")
            return (number & (1 << 8 * size) - 1).to_bytes(size, "little")
        width = 4 if value.type == "f32" else 8
        content = value.bits.to_bytes(width, "little")
        if size == width:
            return content
        if self.type not in _FLOATS:
            tokens.refuse(
                f"a float as the first content of {self.type}",
                "write the bits as a whole number; ptxas takes the lowest ones of a float",
            )
        number = struct.unpack("<f" if width == 4 else "<d", content)[0]
        try:
            return struct.pack(_FLOATS[self.type], number)
        except OverflowError:
            tokens.fail(f"{value} is too large for {self.type}")

    def _read_address(self, place: int) -> None:
        """Read an address that fills an element."""
        size = _SIZES[self.type]
        if size != ADDRESS_BYTES:
            self.tokens.refuse(
                f"an address in {self.type}", "keep addresses in elements of 64 bits"
            )
        self._add(self._symbol(), size)
        self.written += bytes(size)

    def _read_masked(self, mask: int) -> None:
        """Read `0xFF00(symbol)`: one byte of an address, in an array of bytes."""
        symbol = self._symbol()
        self.tokens.expect(")", "behind an address")
        number = (mask.bit_length() or 1) - 1 >> 3
        if mask != 0xFF << 8 * number or _SIZES[self.type] != 1:
            self.tokens.refuse(
                "this mask of an address", "give bytes of it, by 0xFF, 0xFF00 and so on"
            )
        if number == 0:
            self._add(symbol, 1)
        else:
            known = self.addresses[-1] if self.addresses else None
            follows = known is not None and (
                known == replace(symbol, place=known.place, size=number)
                and known.place + number == len(self.written)
            )
            if known is None or not follows:
                self.tokens.refuse(
                    "bytes of an address out of their order",
                    "list them from the first on",
                )
            self.addresses[-1] = replace(known, size=number + 1)
        self.written.append(0)

    def _add(self, symbol: SymbolRelocation, size: int) -> None:
        self.tokens.count_piece()
        self.addresses.append(replace(symbol, place=len(self.written), size=size))

    def _symbol(self) -> SymbolRelocation:
        """Read a symbol with an offset, `generic(symbol)+8`. The caller sets its place."""
        tokens = self.tokens
        name = tokens.name("a symbol")
        is_generic = name == "generic" and tokens.accept("(")
        if is_generic:
            name = tokens.name("a symbol")
            tokens.expect(")", "behind generic(symbol")
        addend = 0
        if tokens.text in ("+", "-"):
            addend = read_offset(tokens)
        self.use(name)
        return SymbolRelocation(0, name, addend, 0, is_generic)


def read_offset(tokens: Tokens) -> int:
    """Read `+8`, `-8` or `+-8`."""
    if tokens.text == "+":
        tokens.advance()
    found = read_constant(tokens)
    if found.type != "int":
        tokens.fail(f"an offset must be a whole number, not {found}")
    return found.bits - (found.bits >> 63 << 64)


def _initialized(
    tokens: Tokens,
    head: Head,
    variable: Variable,
    extents: list[int],
    use: Callable[[str], None],
) -> Variable:
    """Read the initializer of a variable. It also sets the length of an array without one."""
    dimensions = [*extents, head.parts] if head.parts > 1 else extents
    content = _Content(tokens, head.type, use)
    content.read(dimensions)
    size = variable.bytes
    if extents and not extents[0]:
        row = head.bytes
        for extent in extents[1:]:
            row *= extent
        size = -(-len(content.written) // max(row, 1)) * row
    return replace(
        variable,
        bytes=size,
        initial=bytes(content.written),
        addresses=tuple(content.addresses),
    )
