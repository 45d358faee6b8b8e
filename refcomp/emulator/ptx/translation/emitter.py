"""The text of a thread's function: its lines, the values of registers, and operands.

A register is a variable (`alloca`) of the function, which LLVM promotes to values. Within a block,
the last value of a register is used by its name, without a load. This keeps the text short.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from refcomp.emulator.ptx.instructions.types import bits_of
from refcomp.emulator.ptx.machine.spaces import WINDOWS, lay_out
from refcomp.emulator.ptx.text.module import (
    Immediate,
    Negated,
    Operand,
    PtxFunction,
    PtxInstruction,
    Register,
    Sink,
    SymbolAddress,
)
from refcomp.emulator.ptx.translation.refusal import NotTranslated
from refcomp.emulator.ptx.translation.texts import filled

# Words of i64 at the begin of a thread's frame, before the registers.
FRAME_PLACE, FRAME_STATUS, FRAME_NUMBER, FRAME_MASK, FRAME_POSITION = range(5)
FRAME_EXCHANGED = FRAME_POSITION + 3  # operands and results of instructions of a warp
_TYPES = {"pred": "i1", "%cc": "i1", "f16": "half", "f32": "float", "f64": "double"}
_MANGLED = {"half": "f16", "float": "f32", "double": "f64"}
_AXES = "xyz"


def type_of(kind: str) -> str:
    """Return the type of LLVM IR for values of a PTX type."""
    return _TYPES.get(kind) or f"i{bits_of(kind)}"


def mangled(kind: str) -> str:
    """Return the spelling of a type in names of LLVM's intrinsics, such as f32 for float."""
    return _MANGLED.get(kind, kind)


def width_of(kind: str) -> int:
    """Return the bits of a type of LLVM IR."""
    return int(mangled(kind)[1:])


@dataclass(frozen=True, slots=True)
class PlacedNames:
    """The places of the variables of a kernel.

    Attributes:
        spaces: variable -> its space.
        shared: shared variable -> its offset in the memory of a block.
        local: local variable -> its offset in the memory of a thread.
        shared_bytes: the size of all shared variables, without dynamic shared memory.
        parameters: parameter of the kernel -> the range of its bytes among those of all parameters.
    """

    spaces: Mapping[str, str]
    shared: Mapping[str, int]
    local: Mapping[str, int]
    shared_bytes: int
    parameters: Mapping[str, range]


def places_of_parameters(kernel: PtxFunction) -> dict[str, range]:
    """Return the ranges of the parameters of a kernel among the bytes of all parameters."""
    begins = lay_out(kernel.parameters).offsets
    return {
        one.name: range(begins[one.name], begins[one.name] + one.bytes)
        for one in kernel.parameters
    }


class ThreadText:
    """The text of a function, while it is written.

    Attributes:
        prologue: the lines before all others.
        lazy: registers whose f32 NaN may have other bits than on GPUs.
        symbols: variables and parameters whose addresses are arguments of the function, in order.
        windows: the number of windows that the function uses.
        values: register -> the name of its value, if the value is known.
        unsure: registers that may be read before they were written.
    """

    def __init__(
        self,
        types: Mapping[str, str],
        names: PlacedNames,
        *,
        is_watched: bool,
        lazy: Collection[str],
        unsure: Collection[str],
    ) -> None:
        self.types = types
        self.names = names
        self.is_watched = is_watched
        self.lazy = lazy
        self.unsure = unsure if is_watched else ()
        self.prologue: list[str] = []
        self.lines: list[str] = []
        self.symbols: dict[str, int] = {}
        self.windows = 0
        self.values: dict[str, str] = {}
        self._dirty: set[str] = set()
        self._numbers = {name: n for n, name in enumerate(types)}
        self._specials: dict[str, str] = {}
        self._count = 0

    # Lines.

    def fresh(self) -> str:
        """Return a new name of a value."""
        self._count += 1
        return f"%v{self._count}"

    def put(self, text: str) -> None:
        """Add a line."""
        self.lines.append(f"  {text}")

    def let(self, text: str) -> str:
        """Add a line that computes a value, and return the name of the value."""
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def row(self, text: str, operands: list[str], **holes: str) -> str:
        """Add the text of a row of a table, and return its result."""
        letters = dict(zip("abcd", operands, strict=False))
        if text == "{a}":
            return operands[0]
        name = self.fresh()
        self.lines += filled(text, r=name, **letters, **holes).strip().split("\n")
        return name

    def label(self, name: str) -> None:
        """Begin a block."""
        self.lines.append(f"{name}:")

    def fresh_label(self, prefix: str) -> str:
        """Return a new name of a block."""
        self._count += 1
        return f"{prefix}{self._count}"

    def stop_if(self, condition: str) -> None:
        """Bail out where a condition holds."""
        after = self.fresh_label("fine")
        self.put(f"br i1 {condition}, label %trouble, label %{after}, !prof !0")
        self.label(after)

    # Registers.

    def place_of(self, register: str) -> str:
        """Return the variable of a register."""
        return f"%r{self._numbers[register]}"

    def flag_of(self, register: str) -> str:
        """Return the variable that is True if a register was written."""
        return f"%w{self._numbers[register]}"

    def value_of(self, register: str) -> str:
        """Return the value of a register, in its type."""
        found = self.values.get(register)
        if found is None:
            if register in self.unsure:
                flag = self.let(f"load i1, ptr {self.flag_of(register)}")
                self.stop_if(self.let(f"xor i1 {flag}, true"))
            found = self.let(
                f"load {self.types[register]}, ptr {self.place_of(register)}"
            )
            self.values[register] = found
        return found

    def set_value(self, register: str, value: str) -> None:
        """Give a register a value of its type."""
        self.values[register] = value
        self._dirty.add(register)
        if register in self.unsure:
            self.put(f"store i1 true, ptr {self.flag_of(register)}")

    def flush(self, is_live: Callable[[str], bool] = lambda name: True) -> None:
        """Store the values of registers that were written since the last flush."""
        for register in sorted(self._dirty, key=self._numbers.__getitem__):
            if is_live(register):
                value = self.values[register]
                self.put(
                    f"store {self.types[register]} {value}, ptr {self.place_of(register)}"
                )
        self._dirty.clear()

    def forget(self) -> None:
        """Begin a block, in which no value is known."""
        self.values.clear()
        self._dirty.clear()

    @contextmanager
    def only_if(self, condition: str) -> Iterator[None]:
        """Put the lines of the `with` block into a branch that runs if a condition holds."""
        self.flush()
        then, after = self.fresh_label("then"), self.fresh_label("after")
        self.put(f"br i1 {condition}, label %{then}, label %{after}")
        self.label(then)
        before = dict(self.values)
        yield
        self.flush()
        self.put(f"br label %{after}")
        self.label(after)
        changed = {n for n, v in self.values.items() if before.get(n) != v}
        self.values = {n: v for n, v in before.items() if n not in changed}

    # Operands.

    def as_type(self, value: str, given: str, wanted: str) -> str:
        """Return bits in another type: truncated, or extended by zeros."""
        if given == wanted:
            return value
        have, need = width_of(given), width_of(wanted)
        if given[0] != "i":
            value = self.let(f"bitcast {given} {value} to i{have}")
        if have != need:
            verb = "trunc" if have > need else "zext"
            value = self.let(f"{verb} i{have} {value} to i{need}")
        if wanted[0] != "i":
            value = self.let(f"bitcast i{need} {value} to {wanted}")
        return value

    def operand(
        self,
        instruction: PtxInstruction,
        operand: Operand | None,
        kind: str,
        *,
        raw: bool = False,
    ) -> str:
        """Return an operand as a value of a PTX type.

        Args:
            instruction: the instruction.
            operand: its operand.
            kind: the type.
            raw: True if the bits of a NaN do not matter to the instruction.
        """
        wanted = type_of(kind)
        match operand:
            case Negated(register):
                return self.let(f"xor i1 {self.value_of(register.name)}, true")
            case Register(name) if name in self.types:
                value = self.value_of(name)
                if name in self.lazy and not raw:
                    value = self.let(f"call float @plain.f32(float {value})")
                return self.as_type(value, self.types[name], wanted)
            case Register(name):
                return self.as_type(self.special(instruction, name), "i32", wanted)
            case Immediate():
                return constant(operand, kind)
            case SymbolAddress(symbol, offset):
                space = self.names.spaces.get(symbol, "global")
                address = self.symbol_address(symbol, offset, space)
                return self.as_type(address, "i64", wanted)
        raise NotTranslated(instruction, f"the operand {operand}")

    def symbol_address(self, symbol: str, offset: int, space: str) -> str:
        """Return the address of a variable in `space`; a generic address if `space` is ""."""
        window = 0 if space else WINDOWS["shared"]
        if symbol in self.names.shared:
            return str(self.names.shared[symbol] + offset + window)
        if symbol in self.names.local:
            window = 0 if space else WINDOWS["local"]
            return str(self.names.local[symbol] + offset + window)
        number = self.symbols.setdefault(symbol, len(self.symbols))
        name = f"%symbol{number}"
        if name not in self._specials:
            self._specials[name] = name
            self.prologue += [
                f"  {name}.p = getelementptr i64, ptr %symbols, i64 {number}",
                f"  {name} = load i64, ptr {name}.p",
            ]
        return self.let(f"add i64 {name}, {offset}") if offset else name

    def special(self, instruction: PtxInstruction, name: str) -> str:
        """Return the value of a special register, as i32."""
        found = self._specials.get(name)
        if found is None:
            found = self._specials[name] = f"%special{len(self._specials)}"
            self.prologue += _special_lines(instruction, name[1:], found)
        return found

    def result(
        self,
        instruction: PtxInstruction,
        operand: Operand | None,
        kind: str,
        value: str,
    ) -> None:
        """Set a result of a PTX type. A wider register gets the number, signed for s types."""
        if isinstance(operand, Sink):
            return
        if not isinstance(operand, Register) or operand.name not in self.types:
            raise NotTranslated(instruction, f"the result {operand}")
        held, given = self.types[operand.name], type_of(kind)
        if kind[0] == "s" and width_of(held) > width_of(given):
            wide = f"i{width_of(held)}"
            value = self.let(f"sext {given} {value} to {wide}")
            given = wide
        self.set_value(operand.name, self.as_type(value, given, held))


def constant(operand: Immediate, kind: str) -> str:
    """Return a number of the text as a constant of a PTX type."""
    if kind == "pred":
        return "true" if operand.bits else "false"
    width, bits = bits_of(kind), operand.bits
    if (operand.type == "f64" and width == 32) or (
        operand.type == "f32" and width == 64
    ):
        bits = _converted(bits, width)
    bits &= (1 << width) - 1
    signed = bits - (bits >> (width - 1) << width)
    wanted = type_of(kind)
    if wanted[0] == "i":
        return str(signed)
    return f"bitcast (i{width} {signed} to {wanted})"


def _converted(bits: int, width: int) -> int:
    """Convert the bits of an f64 to those of an f32 (`width` 32), or the reverse."""
    if width == 32:
        number = np.float32(np.uint64(bits).view(np.float64))
        return int(number.view(np.uint32))
    return int(np.float64(np.uint32(bits).view(np.float32)).view(np.uint64))


def _special_lines(instruction: PtxInstruction, name: str, result: str) -> list[str]:
    base, _, axis = name.partition(".")
    lane = f"{result}.t = trunc i64 %thread to i32"
    if base == "tid" and axis and axis in _AXES:
        place = FRAME_POSITION + _AXES.index(axis)
        return [
            f"  {result}.p = getelementptr i64, ptr %frame, i64 {place}",
            f"  {result} = load i32, ptr {result}.p",
        ]
    if base in ("ctaid", "ntid", "nctaid") and axis and axis in _AXES:
        return [
            f"  {result}.w = field {name}",
            f"  {result} = trunc i64 {result}.w to i32",
        ]
    if name == "laneid":
        return [f"  {lane}", f"  {result} = and i32 {result}.t, 31"]
    if name == "warpid":
        return [f"  {lane}", f"  {result} = lshr i32 {result}.t, 5"]
    if name == "dynamic_smem_size":
        return [
            f"  {result}.w = field dynamic",
            f"  {result} = trunc i64 {result}.w to i32",
        ]
    raise NotTranslated(instruction, f"the special register %{name}")
