"""Steps: what translated code does for an instruction, as data.

`decode` returns the step of an instruction, or None if the interpreter must run it. Sources and
results are numbered as `Registers.dirty` numbers them. An instruction that changes EXEC, that has
modifiers with an effect, or that runs in another mode than IEEE's has no step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from refcomp.emulator.code.assembly import EXEC, IEEE_MODE, VCC, Instruction, Operand
from refcomp.emulator.code.modifiers import flags_of
from refcomp.emulator.generations.generation import Generation
from refcomp.emulator.instructions.memory.loads_and_stores import (
    offset_of,
    transfer_of,
)
from refcomp.emulator.instructions.operation import Semantics
from refcomp.emulator.instructions.vector.pairs import half_of_pair
from refcomp.emulator.machine.arrays import bits_of, mask_kind, registers_of
from refcomp.emulator.machine.registers import FIRST_VECTOR, SCALARS, SCC
from refcomp.emulator.machine.sources import constant, vector_index
from refcomp.emulator.translation.texts import LETTER_OF, load_texts
from refcomp.foundation.errors import Unsupported

_VCC = Operand("vcc", "s", VCC, 2)
_SCC_NAMES = ("scc", "src_scc")
_WITH_16_BITS = ("s_cmpk", "s_addk", "s_mulk", "s_movk", "s_cmovk")
# Modifiers that change no value, and those that `_access` reads.
_CACHE_HINTS = frozenset({"glc", "slc", "dlc", "sc0", "sc1", "nt"})
_OFFSETS = frozenset({"offset", "offset0", "offset1"})
_SELECTORS = frozenset({"op_sel", "op_sel_hi", "neg_lo", "neg_hi"})
_MAX_OFFSET = 1 << 20  # bytes
_SCALAR_LOADS = {
    "s_load_dword" + ("" if n == 1 else f"x{n}"): n for n in (1, 2, 4, 8, 16)
}
_TWO_PLACES = {
    f"ds_{name}2{stride}_b{bits}": (bits // 32, 64 if stride else 1)
    for name in ("read", "write")
    for stride in ("", "st64")
    for bits in (32, 64)
}
_ANY_WIDTH = 2  # a width of vectors by which texts are looked up


@dataclass(frozen=True, slots=True)
class SourceValue:
    """A source of a step: a register or a constant, of a kind such as `f32`."""

    kind: str
    number: int | None  # the first register, as in `Registers.dirty`; None: a constant
    bits: int = 0  # of the constant
    is_negative: bool = False
    is_absolute: bool = False

    @property
    def numbers(self) -> range:
        """The registers that hold it."""
        if self.number is None:
            return range(0)
        if self.number == SCC:
            return range(SCC, SCC + 1)
        return range(self.number, self.number + registers_of(self.kind))

    @property
    def is_vector(self) -> bool:
        """True if each lane has its own value."""
        return self.number is not None and self.number >= FIRST_VECTOR


@dataclass(frozen=True, slots=True)
class ResultPlace:
    """A result of a step."""

    kind: str
    number: int  # the first register
    keeps_high: bool = False  # the upper half of the register stays

    @property
    def numbers(self) -> range:
        """The registers that are written."""
        if self.number == SCC:
            return range(SCC, SCC + 1)
        return range(self.number, self.number + registers_of(self.kind))


@dataclass(frozen=True, slots=True)
class Computation:
    """A row of a table with its operands."""

    mnemonic: str  # whose text it is
    sources: tuple[SourceValue, ...]
    targets: tuple[ResultPlace, ...]
    is_scalar: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive words, or one narrower item, of an access."""

    offset: int  # bytes, added to the address
    register: int  # the first vector register, as `dirty` numbers it
    count: int = 1  # of items
    width: int = 4  # bytes of an item
    is_signed: bool = False

    @property
    def numbers(self) -> range:
        """The registers that hold the items."""
        return range(self.register, self.register + self.count)

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.count * self.width


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """A load or store of all lanes."""

    is_shared: bool
    is_store: bool
    address: (
        SourceValue  # u32 within a group's memory, u64, or a u32 offset from `base`
    )
    base: SourceValue | None
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class ScalarLoad:
    """A load of scalar registers."""

    base: SourceValue
    more: SourceValue  # a register that is added; a constant 0 if there is none
    offset: int
    first: int  # the first register
    count: int


@dataclass(frozen=True, slots=True)
class HostStep:
    """The translation of an instruction. All computations read before any writes."""

    computations: tuple[Computation, ...] = ()
    access: MemoryAccess | None = None
    load: ScalarLoad | None = None

    @property
    def reads(self) -> frozenset[int]:
        """The numbers of the registers that are read."""
        return frozenset(self._reads())

    def _reads(self) -> Iterator[int]:
        for computation in self.computations:
            for source in computation.sources:
                yield from source.numbers
            for target in computation.targets:
                if target.keeps_high:
                    yield from target.numbers
        if self.access is not None:
            yield from self.access.address.numbers
            if self.access.base is not None:
                yield from self.access.base.numbers
            if self.access.is_store:
                for piece in self.access.pieces:
                    yield from piece.numbers
        if self.load is not None:
            yield from self.load.base.numbers
            yield from self.load.more.numbers

    @property
    def writes(self) -> frozenset[int]:
        """The numbers of the registers that are written."""
        found = {
            number
            for computation in self.computations
            for target in computation.targets
            for number in target.numbers
        }
        if self.access is not None and not self.access.is_store:
            found.update(n for piece in self.access.pieces for n in piece.numbers)
        if self.load is not None:
            found.update(range(self.load.first, self.load.first + self.load.count))
        return frozenset(found)

    @property
    def is_scalar(self) -> bool:
        """True if it is the same for all lanes."""
        return self.load is not None or any(c.is_scalar for c in self.computations)


def decode(instruction: Instruction, of: Generation) -> HostStep | None:
    """Return the step of an instruction; None if the interpreter must run it."""
    if instruction.mode != IEEE_MODE:
        return None
    try:
        step = _decode(instruction, of)
    except (Unsupported, ValueError, LookupError):
        return None
    # Who runs is the same for all of a unit.
    if step is None or not step.writes.isdisjoint((EXEC, EXEC + 1)):
        return None
    return step


def _decode(instruction: Instruction, of: Generation) -> HostStep | None:
    if instruction.second is not None:
        pair = (half_of_pair(one) for one in (instruction, instruction.second))
        halves = [_vector(one, of) for one in pair]
        found = tuple(half for half in halves if half is not None)
        return HostStep(found) if len(found) == 2 else None
    name = instruction.mnemonic
    if name in of.special:
        return None
    if name in of.vector:
        computation = _vector(instruction, of)
        return None if computation is None else HostStep((computation,))
    if name in of.packed:
        return _packed(instruction, of)
    if name in of.scalar:
        return _scalar(instruction, of.scalar[name])
    if name in _SCALAR_LOADS:
        return _scalar_load(instruction)
    access = _access(instruction)
    return None if access is None else HostStep(access=access)


# Operands.


def _value(operand: Operand, kind: str, offset: int = 0) -> SourceValue:
    """Return a source; `offset` registers behind the operand's own."""
    if operand.is_high or operand.sign_extended:
        raise ValueError(operand.text)
    negative = {"is_negative": operand.negative, "is_absolute": operand.absolute}
    if operand.text in _SCC_NAMES:
        if kind != "scc":
            raise ValueError(operand.text)
        return SourceValue(kind, SCC)
    if operand.file in ("v", "a"):
        number = FIRST_VECTOR + vector_index(operand) + offset
        return SourceValue(kind, number, **negative)
    if operand.file == "s" and operand.text != "null":
        number = operand.index + offset
        if number + registers_of(kind) > SCALARS:
            raise ValueError(operand.text)
        return SourceValue(kind, number, **negative)
    text = "0" if operand.text == "null" else operand.text
    if kind.startswith("mask"):
        return SourceValue(kind, None, {"0": 0, "-1": -1}[text])
    bits = np.asarray(constant(text, kind)).view(f"u{bits_of(kind) // 8}")
    return SourceValue(kind, None, int(bits), **negative)


def _target(operand: Operand, kind: str, *, keeps_high: bool = False) -> ResultPlace:
    if operand.is_high:
        raise ValueError(operand.text)
    if operand.file == "s":
        if operand.index + registers_of(kind) > SCALARS:
            raise ValueError(operand.text)
        return ResultPlace(kind, operand.index)
    if kind not in LETTER_OF:
        raise ValueError(kind)
    return ResultPlace(kind, FIRST_VECTOR + vector_index(operand), keeps_high)


def _vector(instruction: Instruction, of: Generation) -> Computation | None:
    row = of.vector.get(instruction.mnemonic)
    text = load_texts(_ANY_WIDTH).instruction(instruction.mnemonic)
    if row is None or text is None or instruction.modifiers:
        return None
    own = mask_kind(instruction.lanes)
    kinds = [own if kind == "mask" else kind for kind in row.sources]
    results = [own if kind == "mask" else kind for kind in row.results]
    operands = list(instruction.operands)
    sources = operands[len(results) :]
    for name in row.implicit:
        sources.append(_VCC if name == "vcc" else operands[0])
        kinds.append(own if name == "vcc" else results[0])
    pairs = zip(sources, kinds, strict=True)
    return Computation(
        instruction.mnemonic,
        tuple(_value(operand, kind) for operand, kind in pairs),
        tuple(
            _target(operand, kind, keeps_high=row.keeps_high)
            for operand, kind in zip(operands, results, strict=False)
        ),
    )


def _packed(instruction: Instruction, of: Generation) -> HostStep | None:
    """Return both halves of a packed instruction on pairs of registers."""
    packed = of.packed[instruction.mnemonic]
    row = packed.half
    name = instruction.mnemonic.replace("v_pk_", "v_")
    text = load_texts(_ANY_WIDTH).instruction(name)
    if bits_of(packed.kind) != 32 or text is None or row.implicit:
        return None
    if not instruction.modifiers.keys() <= _SELECTORS:
        return None
    return HostStep(
        tuple(_half(instruction, row, name, is_high=high) for high in (False, True))
    )


def _half(
    instruction: Instruction, row: Semantics, name: str, *, is_high: bool
) -> Computation:
    count = len(row.sources)
    modifiers = instruction.modifiers
    halves = flags_of(
        modifiers, "op_sel_hi" if is_high else "op_sel", count, usual=is_high
    )
    signs = flags_of(modifiers, "neg_hi" if is_high else "neg_lo", count)
    result, *operands = instruction.operands
    sources = []
    for number, (operand, kind) in enumerate(zip(operands, row.sources, strict=True)):
        is_register = operand.file != "c"
        one = _value(operand, kind, int(halves[number]) if is_register else 0)
        sources.append(replace(one, is_negative=signs[number], is_absolute=False))
    index = FIRST_VECTOR + vector_index(result) + int(is_high)
    return Computation(name, tuple(sources), (ResultPlace(row.results[0], index),))


def _scalar(instruction: Instruction, row: Semantics) -> HostStep | None:
    name = instruction.mnemonic
    if load_texts(1).instruction(name) is None or instruction.modifiers:
        return None
    written = [kind for kind in row.results if kind != "scc"]
    operands = list(instruction.operands)
    sources = operands[len(written) :]
    kinds = list(row.sources)
    if name.startswith(_WITH_16_BITS):
        number = int(sources[-1].text, 0) & 0xFFFF
        if not kinds[-1].startswith("u") and number & 0x8000:
            number -= 0x10000
        sources[-1] = Operand(str(number), "c")
    for implicit in row.implicit:
        sources.append(Operand("scc", "c") if implicit == "scc" else operands[0])
        kinds.append("scc" if implicit == "scc" else row.results[0])
    pairs = zip(sources, kinds, strict=True)
    values = tuple(_value(operand, kind) for operand, kind in pairs)
    results = zip(operands, written, strict=False)
    targets = [_target(operand, kind) for operand, kind in results]
    if "scc" in row.results:
        targets.append(ResultPlace("scc", SCC))
    if any(n > SCC for target in targets for n in target.numbers):
        return None
    return HostStep((Computation(name, values, tuple(targets), is_scalar=True),))


def _scalar_load(instruction: Instruction) -> HostStep | None:
    if not instruction.modifiers.keys() <= _CACHE_HINTS | _OFFSETS:
        return None
    result, base, offset = instruction.operands
    more = _value(offset, "i64" if offset.file == "c" else "u32")
    count = _SCALAR_LOADS[instruction.mnemonic]
    if result.file != "s" or result.index + count > SCALARS:
        return None
    shift = offset_of(instruction)
    if more.number is None:
        signed = more.bits - (more.bits >> 63 << 64)
        shift += signed
        more = SourceValue("u32", None)
    if abs(shift) > _MAX_OFFSET or base.file != "s":
        return None
    return HostStep(
        load=ScalarLoad(_value(base, "u64"), more, shift, result.index, count)
    )


# Accesses of lanes.


def _access(instruction: Instruction) -> MemoryAccess | None:
    name = instruction.mnemonic
    if not instruction.modifiers.keys() <= _CACHE_HINTS | _OFFSETS:
        return None
    operands = instruction.operands
    if name in _TWO_PLACES:
        return _two_places(instruction)
    transfer = transfer_of(name)
    is_shared = name.startswith("ds_")
    if transfer is None or transfer.place:
        return None
    if not is_shared and not name.startswith("global_"):
        return None
    address = operands[0 if transfer.is_store else 1]
    data = operands[1 if transfer.is_store else 0]
    offset = offset_of(instruction)
    if address.file != "v" or abs(offset) > _MAX_OFFSET:
        return None
    register = FIRST_VECTOR + vector_index(data)
    piece = Piece(offset, register, transfer.count, transfer.width, transfer.is_signed)
    if is_shared:
        found = _value(address, "u32") if offset >= 0 else None
        base = None
    elif operands[2].text == "off":
        found, base = _value(address, "u64"), None
    else:
        found, base = _value(address, "u32"), _value(operands[2], "u64")
    if found is None:
        return None
    return MemoryAccess(is_shared, transfer.is_store, found, base, (piece,))


def _two_places(instruction: Instruction) -> MemoryAccess | None:
    words, stride = _TWO_PLACES[instruction.mnemonic]
    is_store = "write" in instruction.mnemonic
    operands = instruction.operands
    address = operands[0 if is_store else 1]
    if address.file != "v":
        return None
    pieces = []
    for number in range(2):
        if is_store:
            register = vector_index(operands[1 + number])
        else:
            register = vector_index(operands[0]) + words * number
        offset = offset_of(instruction, f"offset{number}") * 4 * words * stride
        pieces.append(Piece(offset, FIRST_VECTOR + register, words))
    return MemoryAccess(True, is_store, _value(address, "u32"), None, tuple(pieces))
