"""Atomic updates of integers as LLVM IR: a load and a store, because threads run in turn.

The order of the threads that update an address differs from the interpreter's. PTX allows both
orders. Sums of floats depend on the order, so they are interpreted.
"""

from __future__ import annotations

from collections.abc import Callable

from refcomp.emulator.ptx.instructions.types import bits_of
from refcomp.emulator.ptx.text.module import Address, PtxInstruction, Sink
from refcomp.emulator.ptx.translation.accesses import (
    SPACES,
    PlainAccess,
    ThreadAccesses,
)
from refcomp.emulator.ptx.translation.emitter import ThreadText
from refcomp.emulator.ptx.translation.refusal import NotTranslated

# Scopes and memory orders. They change nothing because threads run in turn.
_ORDERS = frozenset(
    {"relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu", "sys"}
)
_KINDS = frozenset({"u32", "u64", "s32", "s64", "b32", "b64"})


def print_atomic(
    text: ThreadText, accesses: ThreadAccesses, instruction: PtxInstruction
) -> None:
    """Print an atomic update. Raises NotTranslated if translated code lacks it."""
    *names, kind = instruction.modifiers
    spaces = [SPACES[one] for one in names if one in SPACES]
    chosen = [one for one in names if one in _UPDATES]
    if not _ORDERS.union(SPACES, _UPDATES).issuperset(names) or kind not in _KINDS:
        raise NotTranslated(instruction)
    if len(chosen) != 1 or spaces not in ([], ["global"], ["shared"]):
        raise NotTranslated(instruction)
    operands = list(instruction.operands)
    target = operands.pop(0) if instruction.opcode == "atom" else Sink()
    address = operands.pop(0)
    if not isinstance(address, Address):
        raise NotTranslated(instruction)
    size = bits_of(kind) // 8
    access = PlainAccess(
        instruction=instruction,
        space=spaces[0] if spaces else "",
        is_store=True,
        kind=kind,
        size=size,
        count=1,
        address=address,
        values=(),
    )
    width = f"i{8 * size}"
    given = [text.operand(instruction, one, kind) for one in operands]
    span, place = accesses.place(access)
    old = accesses.load_bits(span, place, size, width)
    new = _UPDATES[chosen[0]](text, width, kind[0] == "s", [old, *given])
    accesses.store_bits(access, span, place, new)
    text.result(instruction, target, f"b{8 * size}", old)


# (text, type, is signed, old value and operands) -> new value
_Update = Callable[[ThreadText, str, bool, list[str]], str]


def _by(verb: str) -> _Update:
    return lambda text, kind, signed, given: text.let(
        f"{verb} {kind} {given[0]}, {given[1]}"
    )


def _extreme(name: str) -> _Update:
    def update(text: ThreadText, kind: str, signed: bool, given: list[str]) -> str:
        function = f"@llvm.{'s' if signed else 'u'}{name}.{kind}"
        return text.let(f"call {kind} {function}({kind} {given[0]}, {kind} {given[1]})")

    return update


def _exchange(text: ThreadText, kind: str, signed: bool, given: list[str]) -> str:
    return given[1]


def _exchange_if(text: ThreadText, kind: str, signed: bool, given: list[str]) -> str:
    old, expected, new = given
    holds = text.let(f"icmp eq {kind} {old}, {expected}")
    return text.let(f"select i1 {holds}, {kind} {new}, {kind} {old}")


def _increment(text: ThreadText, kind: str, signed: bool, given: list[str]) -> str:
    old, limit = given
    is_last = text.let(f"icmp uge {kind} {old}, {limit}")
    more = text.let(f"add {kind} {old}, 1")
    return text.let(f"select i1 {is_last}, {kind} 0, {kind} {more}")


def _decrement(text: ThreadText, kind: str, signed: bool, given: list[str]) -> str:
    old, limit = given
    is_zero = text.let(f"icmp eq {kind} {old}, 0")
    is_above = text.let(f"icmp ugt {kind} {old}, {limit}")
    wraps = text.let(f"or i1 {is_zero}, {is_above}")
    less = text.let(f"sub {kind} {old}, 1")
    return text.let(f"select i1 {wraps}, {kind} {limit}, {kind} {less}")


_UPDATES: dict[str, _Update] = {
    "add": _by("add"),
    "and": _by("and"),
    "or": _by("or"),
    "xor": _by("xor"),
    "min": _extreme("min"),
    "max": _extreme("max"),
    "exch": _exchange,
    "cas": _exchange_if,
    "inc": _increment,
    "dec": _decrement,
}
