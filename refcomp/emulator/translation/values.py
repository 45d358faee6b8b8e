"""Reading and writing registers in the text of a unit.

A register that a unit writes is a value of the text until the end of the loop over lanes. If the
unit reads a vector register before it writes it, the new value goes to scratch memory first. For
the interpreter may have to run the wave from the beginning.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from refcomp.emulator.machine.arrays import bits_of
from refcomp.emulator.machine.registers import FIRST_VECTOR, SCC
from refcomp.emulator.translation.names import Lines
from refcomp.emulator.translation.steps import ResultPlace, SourceValue
from refcomp.emulator.translation.texts import Texts

_HALVES = {32: "i16", 64: "i32"}


@dataclass(slots=True)
class Loop:
    """An open loop over the lanes of a wave.

    Attributes:
        name: prefix of its names.
        lines: its body.
        vectors: register -> its value.
        written: registers that it writes, in order.
        masks: first register -> the mask that the loop computed.
        shared: key -> a value that is made once, such as a scalar in all lanes.
        known: which loaded bits were written; "": all.
        undefined: undefined bits of what it read; "": none.
    """

    name: str
    lines: Lines
    vectors: dict[int, str] = field(default_factory=dict)
    written: dict[int, None] = field(default_factory=dict)
    masks: dict[int, str] = field(default_factory=dict)
    shared: dict[tuple[str, str], str] = field(default_factory=dict)
    known: str = ""
    undefined: str = ""
    label: str = ""  # of the block that is open

    @property
    def mask(self) -> str:
        """The name of the mask of lanes that run."""
        return f"%{self.name}.mask"


class Scratch:
    """Offsets in scratch memory, which holds new values until registers may be written."""

    def __init__(self) -> None:
        self.size = 64
        self.vectors: dict[int, int] = {}  # register -> offset
        self.masks: dict[int, int] = {}  # first register -> offset

    def reserve(self, size: int) -> int:
        """Return the offset of `size` bytes."""
        offset = self.size
        self.size += -(-size // 64) * 64
        return offset


class ScalarValues:
    """The scalar registers of a wave: values that are the same for all its lanes."""

    def __init__(self, lines: Lines, scratch: Scratch) -> None:
        self.lines = lines
        self.scratch = scratch
        self.values: dict[int, str] = {}
        self.written: dict[int, None] = {}
        self._wide: dict[int, tuple[str, str, str]] = {}

    def word(self, number: int) -> str:
        """Return the value of a register, or of SCC."""
        if number not in self.values:
            if number == SCC:
                self.values[number] = self.lines.put("registers", "load_scc")
            else:
                t = self.lines.fresh()
                self.lines.put("registers", "scalar_place", t, register=number)
                self.values[number] = self.lines.put("registers", "load", t, type="i32")
        return self.values[number]

    def read(self, value: SourceValue) -> str:
        """Return a source as an integer of its width, or i1 for SCC."""
        if value.number is None:
            bits = bits_of(value.kind)
            number = value.bits & ((1 << bits) - 1)
            return str(number - (number >> (bits - 1) << bits))
        if value.number == SCC or bits_of(value.kind) <= 32:
            return self.word(value.number)
        return self.pair(value.number)

    def pair(self, number: int) -> str:
        """Return two registers as i64."""
        low, high = self.word(number), self.word(number + 1)
        kept = self._wide.get(number)
        if kept is not None and kept[:2] == (low, high):
            return kept[2]
        holes = {"half": "i32", "whole": "i64", "low": low, "high": high, "by": 32}
        whole = self.lines.put("registers", "join", **holes)
        self._wide[number] = (low, high, whole)
        return whole

    def write(self, target: ResultPlace, value: str) -> None:
        """Set a register, two, or SCC."""
        if target.number == SCC or bits_of(target.kind) == 32:
            self._set(target.number, value)
            return
        whole = {"half": "i32", "whole": "i64", "value": value, "by": 32}
        low = self.lines.put("registers", "low_half", **whole)
        high = self.lines.put("registers", "high_half", **whole)
        self._set(target.number, low)
        self._set(target.number + 1, high)
        self._wide[target.number] = (low, high, value)

    def _set(self, number: int, value: str) -> None:
        self.values[number] = value
        self.written[number] = None

    def set_from_mask(self, number: int, lanes: int) -> None:
        """Set the registers of a mask to what a loop left in scratch memory."""
        offset = self.scratch.masks[number]
        for word in range(lanes // 32):
            value = self.lines.put("registers", "load_mask", offset=offset + 4 * word)
            self._set(number + word, value)

    def commit(self) -> None:
        """Write all registers that were set."""
        for number in self.written:
            value = self.values[number]
            if number == SCC:
                self.lines.put("registers", "store_scc", value=value)
                continue
            t = self.lines.fresh()
            self.lines.put("registers", "scalar_place", t, register=number)
            self.lines.put("registers", "store", t, type="i32", value=value)


@dataclass(slots=True)
class VectorValues:
    """The vector registers of the lanes of an open loop.

    Attributes:
        texts: for vectors.
        lanes: of a wave.
        scalars: the scalar registers.
        scratch: memory for what is not written yet.
        kept: registers that go to scratch memory.
        is_masked: some lanes may not run.
        has_shadow: undefined bits of registers are looked for.
    """

    texts: Texts
    lanes: int
    scalars: ScalarValues
    scratch: Scratch
    kept: frozenset[int]
    is_masked: bool
    has_shadow: bool
    earlier: set[int] = field(default_factory=set)  # written by loops that are closed

    def word(self, loop: Loop, number: int) -> str:
        """Return the bits of a vector register, 32 in each lane."""
        if number not in loop.vectors:
            loop.vectors[number] = self._load(loop, number)
            if self.has_shadow and number not in self.earlier:
                shadow = self._load_from(loop, number, f"%{loop.name}.u")
                if loop.undefined:
                    pair = {"a": loop.undefined, "b": shadow}
                    shadow = loop.lines.put("registers", "union", **pair)
                loop.undefined = shadow
        return loop.vectors[number]

    def _load(self, loop: Loop, number: int) -> str:
        if number in self.earlier and number in self.kept:
            t = self.place(loop, number)
            return loop.lines.put("registers", "load", t, type=self.texts.expand("$I"))
        return self._load_from(loop, number, f"%{loop.name}.v")

    def _load_from(self, loop: Loop, number: int, base: str) -> str:
        t = self._file_place(loop, number, base)
        return loop.lines.put("registers", "load", t, type=self.texts.expand("$I"))

    def _file_place(self, loop: Loop, number: int, base: str) -> str:
        t = loop.lines.fresh()
        register = number - FIRST_VECTOR
        loop.lines.put("registers", "vector_place", t, base=base, register=register)
        return t

    def place(self, loop: Loop, number: int) -> str:
        """Return the prefix of the address of a register's lanes, where the unit keeps it."""
        if number not in self.kept:
            return self._file_place(loop, number, f"%{loop.name}.v")
        if number not in self.scratch.vectors:
            self.scratch.vectors[number] = self.scratch.reserve(4 * self.lanes)
        t = loop.lines.fresh()
        offset = self.scratch.vectors[number]
        chunk = f"%{loop.name}.o"
        loop.lines.put("registers", "scratch_place", t, offset=offset, chunk=chunk)
        return t

    def read(self, loop: Loop, value: SourceValue) -> str:
        """Return a source with the type of its kind in each lane."""
        if value.kind.startswith("mask"):
            return self._mask(loop, value)
        bits = self._changed(loop, value, self._bits(loop, value))
        return self._cast(loop, bits, f"$_{bits_of(value.kind)}", value.kind)

    def _cast(self, loop: Loop, value: str, old: str, kind: str) -> str:
        """Return integers of a width (`$_32`) as values of a kind."""
        new = self.texts.type_of(kind)
        source = self._integers(old)
        if new == source:
            return value
        return loop.lines.put("registers", "bitcast", old=source, value=value, new=new)

    def _integers(self, text: str) -> str:
        return self.texts.expand({"$_16": "$S", "$_32": "$I", "$_64": "$L"}[text])

    def _bits(self, loop: Loop, value: SourceValue) -> str:
        bits = bits_of(value.kind)
        if not value.is_vector:
            return self._in_all_lanes(loop, self.scalars.read(value), bits, value)
        assert value.number is not None
        low = self.word(loop, value.number)
        if bits == 64:
            high = self.word(loop, value.number + 1)
            expand = self.texts.expand
            holes = {"half": expand("$I"), "whole": expand("$L")}
            by = expand("$[i64 32]")
            return loop.lines.put(
                "registers", "join", low=low, high=high, by=by, **holes
            )
        if bits == 16:
            types = {"old": self.texts.expand("$I"), "new": self.texts.expand("$S")}
            return loop.lines.put("registers", "trunc", value=low, **types)
        return low

    def _in_all_lanes(
        self, loop: Loop, scalar: str, bits: int, value: SourceValue
    ) -> str:
        key = (scalar, f"i{bits}")
        if value.number is None:
            return self.texts.expand(f"$[i{bits} {scalar}]")
        if bits == 16:
            scalar = self.scalars.lines.put(
                "registers", "trunc", old="i32", new="i16", value=scalar
            )
        if key not in loop.shared:
            loop.shared[key] = loop.lines.put(
                "registers", "splat", type=f"i{bits}", value=scalar
            )
        return loop.shared[key]

    def _changed(self, loop: Loop, value: SourceValue, bits: str) -> str:
        width = bits_of(value.kind)
        integers = self._integers(f"$_{width}")
        sign = -(1 << (width - 1))
        if value.is_absolute:
            constant = self.texts.expand(f"$[i{width} {-sign - 1}]")
            holes = {"type": integers, "value": bits, "constant": constant}
            bits = loop.lines.put("registers", "clear", **holes)
        if value.is_negative:
            constant = self.texts.expand(f"$[i{width} {sign}]")
            holes = {"type": integers, "value": bits, "constant": constant}
            bits = loop.lines.put("registers", "flip", **holes)
        return bits

    def _mask(self, loop: Loop, value: SourceValue) -> str:
        if value.number is None:
            return self.texts.expand(f"$[i1 {'true' if value.bits else 'false'}]")
        if value.number in loop.masks:
            return loop.masks[value.number]
        bits = self.scalars.read(value)
        if bits_of(value.kind) == 32:
            bits = self.scalars.lines.put(
                "registers", "zext", old="i32", value=bits, new="i64"
            )
        key = (bits, "mask")
        if key not in loop.shared:
            loop.shared[key] = loop.lines.put(
                "registers", "mask_bits", value=bits, loop=loop.name
            )
        return loop.shared[key]

    def write(self, loop: Loop, target: ResultPlace, value: str) -> None:
        """Set a register, two, or the mask in scalar registers."""
        if target.kind.startswith("mask"):
            self._write_mask(loop, target, value)
            return
        bits = bits_of(target.kind)
        integers = self._integers(f"$_{bits}")
        own = self.texts.type_of(target.kind)
        if own != integers:
            casts = {"old": own, "value": value, "new": integers}
            value = loop.lines.put("registers", "bitcast", **casts)
        if bits == 64:
            expand = self.texts.expand
            holes = {"half": expand("$I"), "whole": expand("$L"), "value": value}
            by = expand("$[i64 32]")
            low = loop.lines.put("registers", "low_half", **holes)
            high = loop.lines.put("registers", "high_half", by=by, **holes)
            self.set(loop, target.number, low)
            self.set(loop, target.number + 1, high)
            return
        if bits == 16:
            types = {"old": integers, "new": self.texts.expand("$I")}
            value = loop.lines.put("registers", "zext", value=value, **types)
            if target.keeps_high:
                old = self.word(loop, target.number)
                value = loop.lines.put("registers", "keep_high", old=old, value=value)
        self.set(loop, target.number, value)

    def set(self, loop: Loop, number: int, value: str) -> None:
        """Set a vector register."""
        loop.vectors[number] = value
        loop.written[number] = None

    def _write_mask(self, loop: Loop, target: ResultPlace, value: str) -> None:
        masks = self.scratch.masks
        if target.number not in masks:
            masks[target.number] = self.scratch.reserve(8)
        loop.lines.put(
            "registers",
            "store_mask",
            value=value,
            mask=loop.mask,
            offset=masks[target.number],
            loop=loop.name,
        )
        loop.masks[target.number] = value

    def close(self, loop: Loop) -> None:
        """Write the registers that a loop has set to where the unit keeps them."""
        for number in loop.written:
            value = loop.vectors[number]
            if self.is_masked:
                old = self._load(loop, number)
                holes = {"mask": loop.mask, "value": value, "old": old}
                value = loop.lines.put("registers", "choose", **holes)
            t = self.place(loop, number)
            types = self.texts.expand("$I")
            loop.lines.put("registers", "store", t, type=types, value=value)
        self.earlier.update(loop.written)
