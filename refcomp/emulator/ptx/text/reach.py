"""The functions that a kernel may run, and the variables that they name."""

from __future__ import annotations

from collections.abc import Iterator

from refcomp.emulator.ptx.text.module import (
    Address,
    Operand,
    PtxFunction,
    PtxModule,
    SymbolAddress,
    Vector,
)


def reached_functions(module: PtxModule, kernel: str) -> tuple[PtxFunction, ...]:
    """Return a kernel and all functions that it may call, directly or indirectly.

    A call by address may reach each function whose address is taken.
    """
    found: dict[str, PtxFunction] = {}
    waiting = [kernel]
    while waiting:
        name = waiting.pop()
        if name in found or name not in module.functions:
            continue
        function = module.functions[name]
        found[name] = function
        names = set(symbols_in(function))
        if any(_is_indirect(one.opcode, one.operands) for one in function.instructions):
            names |= _addressed(module)
        waiting += [one for one in names if one in module.functions]
    return tuple(found.values())


def symbols_in(function: PtxFunction) -> Iterator[str]:
    """Yield the names of variables and functions in a function's instructions."""
    for instruction in function.instructions:
        for operand in instruction.operands:
            yield from _symbols_of(operand)


def _symbols_of(operand: Operand | None) -> Iterator[str]:
    match operand:
        case SymbolAddress(symbol):
            yield symbol
        case Address(base=SymbolAddress(symbol)):
            yield symbol
        case Vector(parts):
            for part in parts:
                yield from _symbols_of(part)


def _is_indirect(opcode: str, operands: tuple[Operand | None, ...]) -> bool:
    return opcode == "call" and not isinstance(operands[1], SymbolAddress)


def _addressed(module: PtxModule) -> set[str]:
    """Return the functions whose addresses are taken."""
    found = {one.symbol for variable in module.variables for one in variable.addresses}
    for function in module.functions.values():
        for instruction in function.instructions:
            if instruction.opcode == "mov":
                found.update(_symbols_of(instruction.operands[1]))
    return found & module.functions.keys()
