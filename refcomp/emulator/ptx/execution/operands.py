"""Operands of instructions as functions that read and write registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.ptx.instructions.rule import ValueRule
from refcomp.emulator.ptx.instructions.types import (
    CARRY,
    bits_of,
    dtype_of,
    unsigned_of,
)
from refcomp.emulator.ptx.machine.threads import BlockThreads
from refcomp.emulator.ptx.text.module import (
    Immediate,
    Negated,
    Operand,
    Pair,
    PtxInstruction,
    Register,
    Sink,
    SymbolAddress,
    Vector,
)
from refcomp.foundation.errors import Unsupported

Run: TypeAlias = Callable[[BlockThreads], None]
Read: TypeAlias = Callable[[BlockThreads], Array]


class NumberedRegisters:
    """The registers of a function, numbered.

    Attributes:
        numbers: name -> number.
        initial: the value of each register before it is written, by its number.
    """

    def __init__(self, types: Mapping[str, str], used: Sequence[str]) -> None:
        self._types = {**types, CARRY: "pred"}
        used = [*used, CARRY]
        self.numbers = {name: number for number, name in enumerate(used)}
        self.initial: list[Array] = [
            np.zeros((), _held(self._types[name])) for name in used
        ]

    def type_of(self, name: str) -> str:
        """Return the declared type of a register."""
        return self._types[name]


def _held(kind: str) -> np.dtype[Any]:
    """Return the numpy type that holds a register.

    A register of 128 bits may be declared. Instructions that use it are refused.
    """
    return np.dtype(np.uint64) if bits_of(kind) > 64 else unsigned_of(kind)


class SourceOperand(NamedTuple):
    """An operand that is read."""

    value: Read  # in the numpy type of its PTX type
    number: int | None  # of the register; None for another operand


def flat(operand: Operand | None) -> list[Operand]:
    """Return the parts of a vector or of a pair. Another operand is its only part."""
    if operand is None:
        return []
    if isinstance(operand, Vector):
        return [one for part in operand.parts for one in flat(part)]
    if isinstance(operand, Pair):
        return [operand.first, operand.second]
    return [operand]


def source(
    instruction: PtxInstruction,
    operand: Operand | None,
    kind: str,
    registers: NumberedRegisters,
) -> SourceOperand:
    """Return an operand as a source of type `kind`. UserError if it cannot be one."""
    wanted = dtype_of(kind)
    if isinstance(operand, Negated):
        number = registers.numbers[operand.register.name]
        return SourceOperand(lambda threads: ~threads.read(number), number)
    if isinstance(operand, Register):
        name = operand.name
        if name in registers.numbers:
            number = registers.numbers[name]
            return SourceOperand(
                _register(number, registers.type_of(name), kind), number
            )
        return SourceOperand(
            lambda threads: _converted(threads.special(instruction, name), wanted), None
        )
    if isinstance(operand, Immediate):
        value = _immediate(operand, kind)
        return SourceOperand(lambda threads: value, None)
    if isinstance(operand, SymbolAddress):
        symbol, offset = operand.symbol, operand.offset

        def address(threads: BlockThreads) -> Array:
            return np.asarray(
                threads.around.symbols[symbol] + offset, np.uint64
            ).astype(wanted)

        return SourceOperand(address, None)
    raise Unsupported(
        f"the operand {operand} of {instruction.opcode} is not emulated",
        where=f"line {instruction.line}: {instruction.text}",
        remedy="run the kernel on a GPU",
    )


def _register(number: int, declared: str, kind: str) -> Read:
    wanted, held = dtype_of(kind), unsigned_of(declared)
    if bits_of(declared) == bits_of(kind):
        if held == wanted:
            return lambda threads: threads.read(number)
        return lambda threads: threads.read(number).view(wanted)
    return lambda threads: _converted(threads.read(number), wanted)


def _converted(value: Array, wanted: np.dtype[Any]) -> Array:
    """Return bits in a type of another width: truncated, or extended by zeros."""
    if value.dtype == wanted:
        return value
    return value.astype(f"u{wanted.itemsize}").view(wanted)


def _immediate(operand: Immediate, kind: str) -> Array:
    wanted = dtype_of(kind)
    if kind == "pred":
        return np.asarray(operand.bits != 0)
    width = bits_of(kind)
    bits = operand.bits
    if operand.type == "f64" and width == 32:
        bits = int(np.float32(np.uint64(bits).view(np.float64)).view(np.uint32))
    elif operand.type == "f32" and width == 64:
        bits = int(np.float64(np.uint32(bits).view(np.float32)).view(np.uint64))
    mask = (1 << width) - 1
    return np.asarray(bits & mask, f"u{width // 8}").view(wanted)


def check_written(
    threads: BlockThreads, instruction: PtxInstruction, one: SourceOperand, what: str
) -> None:
    """Report undefined bits of an operand on which control flow depends; `what` describes it."""
    bits = None if one.number is None else threads.read_undefined(one.number)
    if bits is not None:
        threads.report_undefined(instruction, what, bits)


def value_for(
    threads: BlockThreads,
    instruction: PtxInstruction,
    one: SourceOperand,
    numbers: Array,
    what: str,
) -> Array:
    """Return the value of an operand for the threads of these numbers.

    Report undefined bits, since control flow depends on the operand; `what` describes it.
    """
    before = threads.at, threads.lanes
    threads.at = threads.lanes = numbers
    check_written(threads, instruction, one, what)
    value = np.broadcast_to(one.value(threads), len(numbers))
    threads.at, threads.lanes = before
    return value


Write: TypeAlias = Callable[[BlockThreads, Array, Array | None], None]


def result(
    instruction: PtxInstruction,
    operand: Operand | None,
    kind: str,
    registers: NumberedRegisters,
) -> Write:
    """Return a function that sets a result of type `kind` for the threads `at`.

    A wider register gets the number, which is extended by its sign for signed types.
    """
    if isinstance(operand, Sink):
        return lambda threads, value, undefined: None
    if not isinstance(operand, Register) or operand.name not in registers.numbers:
        raise Unsupported(
            f"{instruction.opcode} cannot write to {operand}",
            where=f"line {instruction.line}: {instruction.text}",
            remedy="name a register that the function declares",
        )
    number = registers.numbers[operand.name]
    declared = registers.type_of(operand.name)
    held = unsigned_of(declared)
    if bits_of(declared) == bits_of(kind):

        def write(threads: BlockThreads, value: Array, undefined: Array | None) -> None:
            threads.write(number, value.view(held), undefined)

        return write
    is_signed = kind[0] == "s"

    def write_wider(
        threads: BlockThreads, value: Array, undefined: Array | None
    ) -> None:
        bits = value if is_signed else value.view(unsigned_of(kind))
        wide = bits.astype(held)
        if undefined is not None:
            undefined = undefined.astype(held)
        threads.write(number, wide, undefined)

    return write_wider


def bind_rule(
    instruction: PtxInstruction, rule: ValueRule, registers: NumberedRegisters
) -> Run:
    """Return an instruction on values as a function."""
    operands = iter([one for operand in instruction.operands for one in flat(operand)])
    carry = Register(CARRY)
    writes: list[Write] = [
        result(instruction, carry if kind == CARRY else next(operands), kind, registers)
        for kind in rule.results
    ]
    sources = [
        source(instruction, carry if kind == CARRY else next(operands), kind, registers)
        for kind in rule.sources
    ]
    values = [one.value for one in sources]
    numbers = [one.number for one in sources if one.number is not None]
    compute = rule.compute

    def run(threads: BlockThreads) -> None:
        found = compute(*[value(threads) for value in values])
        undefined = threads.frame.undefined
        if any(undefined[number] is not None for number in numbers):
            run_undefined(threads, found)
        elif not isinstance(found, tuple):
            writes[0](threads, found, None)
        else:
            for write, value in zip(writes, found, strict=True):
                write(threads, value, None)

    def run_undefined(threads: BlockThreads, found: Array | tuple[Array, ...]) -> None:
        bits = [
            _undefined_bits(threads, one, kind)
            for one, kind in zip(sources, rule.sources, strict=True)
        ]
        results = found if isinstance(found, tuple) else (found,)
        each: Sequence[Array]
        if rule.undefined is not None:
            spread = rule.undefined(*[value(threads) for value in values], *bits)
            each = spread if isinstance(spread, tuple) else [spread] * len(results)
        else:
            spoiled = np.asarray(False)
            for one in bits:
                spoiled = spoiled | (one != 0)
            each = [_where_spoiled(spoiled, kind) for kind in rule.results]
        for write, value, undefined in zip(writes, results, each, strict=True):
            shape = np.broadcast_shapes(value.shape, undefined.shape)
            write(
                threads,
                value if value.shape == shape else np.broadcast_to(value, shape).copy(),
                undefined if undefined.any() else None,
            )

    return run


def _where_spoiled(spoiled: Array, kind: str) -> Array:
    held = unsigned_of(kind)
    if held == np.bool_:
        return spoiled
    nothing = np.zeros((), held)
    return np.where(spoiled, ~nothing, nothing)


def _undefined_bits(threads: BlockThreads, one: SourceOperand, kind: str) -> Array:
    """Return the undefined bits of a source in the width of its type; zeros if there are none."""
    held = unsigned_of(kind)
    bits = None if one.number is None else threads.read_undefined(one.number)
    if bits is None:
        return np.zeros((), held)
    return bits if bits.dtype == held else bits.astype(held)
