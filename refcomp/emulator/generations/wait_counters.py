"""What instructions are not done when the next one begins, and the counters that tell of them.

A load, a store or an update of memory raises a counter of its wave when it begins, and lowers it
when it is done; `s_waitcnt vmcnt(2)` waits until at most 2 of those that `vmcnt` counts are under
way. Most are done in the order in which they began, scalar loads in any, so that only a wait for 0
says that one of them is. Overwriting what a store has not yet read needs no wait on these GPUs.
Sources: AMD's "CDNA3" and "RDNA3 Instruction Set Architecture", sections on manually inserted waits
and data dependency resolution; LLVM's SIInsertWaitcnts says the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from refcomp.emulator.code.assembly import Instruction, Operand
from refcomp.emulator.machine.observation import kind_of_access
from refcomp.emulator.machine.registers import FIRST_VECTOR
from refcomp.emulator.machine.sources import vector_index

_WAIT = re.compile(r"(\w+)\((\d+)\)")
_VECTOR = ("global_", "scratch_", "buffer_", "tbuffer_", "flat_")
_UNCOUNTED = re.compile(r"buffer_(wbinvl1\w*|gl[01]_inv)$")
_SCALAR = re.compile(r"s_(buffer_|scratch_)?load_|s_mem(real)?time|s_dcache_")
_RETURNS = ("sc0", "glc")
_SHARED_RESULT = re.compile(r"_rtn|permute|swizzle|consume|append")
_NAMES = {106: "vcc_lo", 107: "vcc_hi", 126: "exec_lo", 127: "exec_hi"}


class Queue(NamedTuple):
    """What a counter counts of one order. A tuple, since it is looked up at each instruction."""

    counter: str
    # What is counted here is done in the order in which it began.
    is_ordered: bool


@dataclass(frozen=True, slots=True)
class Counters:
    """`counted`: kind of what is under way -> the counters that count it. Those `unordered` may be
    done in any order. `most` is where each counter ends: a wait for as many waits for nothing."""

    counted: Mapping[str, tuple[str, ...]]
    unordered: frozenset[str]
    most: Mapping[str, int]

    def queues(self, kind: str) -> tuple[Queue, ...]:
        """The queues that something of a kind stands in: it is done when it has left all."""
        return tuple(
            Queue(counter, kind not in self.unordered) for counter in self.counted[kind]
        )

    def all_queues(self) -> tuple[Queue, ...]:
        """Every queue that there is."""
        return tuple(
            dict.fromkeys(queue for kind in self.counted for queue in self.queues(kind))
        )


GFX9_COUNTERS = Counters(
    {
        **{"load": ("vmcnt",), "store": ("vmcnt",), "direct load": ("vmcnt",)},
        **{"flat load": ("vmcnt", "lgkmcnt"), "flat store": ("vmcnt", "lgkmcnt")},
        **{"shared": ("lgkmcnt",), "scalar": ("lgkmcnt",), "message": ("lgkmcnt",)},
    },
    frozenset(("scalar", "message", "flat load", "flat store")),
    {"vmcnt": 63, "lgkmcnt": 15, "expcnt": 7},
)
GFX11_COUNTERS = Counters(
    {
        **{"load": ("vmcnt",), "store": ("vscnt",), "direct load": ("vmcnt",)},
        **{"flat load": ("vmcnt", "lgkmcnt"), "flat store": ("vscnt", "lgkmcnt")},
        **{"shared": ("lgkmcnt",), "scalar": ("lgkmcnt",), "message": ("lgkmcnt",)},
    },
    frozenset(("scalar", "message")),
    {"vmcnt": 63, "vscnt": 63, "lgkmcnt": 63, "expcnt": 7},
)


@dataclass(frozen=True, slots=True)
class Effect:
    """What an instruction means to waits: the registers it `touches` at once, the ones it `fills`
    later (numbered as `Registers.dirty` has them), the `kind` of what it begins ("": nothing), and
    how many of each counter it `waits` for."""

    touches: frozenset[int]
    fills: frozenset[int]
    kind: str
    waits: Mapping[str, int]


def effect_of(instruction: Instruction) -> Effect:
    """What an instruction means to waits."""
    begun = _begun(instruction)
    operands = _operands(instruction)
    late = operands[:1] if begun.has_result else ()
    # What an update of a buffer gives comes to where it takes its value from.
    at_once = operands[
        0 if instruction.mnemonic.startswith("buffer_atomic") else len(late) :
    ]
    touched = numbers_of_operands(at_once) | _implied(instruction)
    return Effect(touched, numbers_of_operands(late), begun.kind, waits_of(instruction))


def waits_of(instruction: Instruction) -> dict[str, int]:
    """How many of each counter may still be under way after a wait; empty for anything else."""
    name = instruction.mnemonic
    if name == "s_waitcnt":
        return {counter: int(most) for counter, most in _WAIT.findall(instruction.text)}
    if name.startswith("s_waitcnt_") and len(instruction.operands) == 2:
        return {name.removeprefix("s_waitcnt_"): int(instruction.operands[1].text, 0)}
    return {}


@dataclass(frozen=True, slots=True)
class _Begun:
    """What an instruction begins, which is done later."""

    # A key of `Counters.counted`, or "": nothing.
    kind: str
    # The first operand is filled when it is done.
    has_result: bool = False


def _begun(instruction: Instruction) -> _Begun:
    name = instruction.mnemonic
    if name.startswith("ds_"):
        access = kind_of_access(name)
        has_result = access.is_atomic and bool(_SHARED_RESULT.search(name))
        return _Begun("shared", access.is_load or has_result)
    if name.startswith(_VECTOR):
        return _begun_by_vector(instruction)
    if _SCALAR.match(name):
        return _Begun("scalar", not name.startswith("s_dcache_"))
    if name.startswith("s_sendmsg"):
        return _Begun("message", "_rtn" in name)
    return _Begun("")


def _begun_by_vector(instruction: Instruction) -> _Begun:
    name = instruction.mnemonic
    if _UNCOUNTED.match(name):
        return _Begun("")
    access = kind_of_access(name)
    returns = any(modifier in instruction.modifiers for modifier in _RETURNS)
    has_result = access.is_load or (access.is_atomic and "atomic" in name and returns)
    if is_direct_load(instruction):
        return _Begun("direct load")
    kind = "load" if has_result else "store"
    return _Begun(f"flat {kind}" if name.startswith("flat_") else kind, has_result)


def is_direct_load(instruction: Instruction) -> bool:
    """Whether an instruction loads to shared memory, past all registers."""
    return "_lds_" in instruction.mnemonic or "lds" in instruction.modifiers


def numbers_of_operands(operands: tuple[Operand, ...]) -> frozenset[int]:
    """The registers of some operands, as `Registers.dirty` counts them."""
    found: set[int] = set()
    for operand in operands:
        if operand.file == "c":
            continue
        start = (
            operand.index
            if operand.file == "s"
            else FIRST_VECTOR + vector_index(operand)
        )
        found.update(range(start, start + operand.count))
    return frozenset(found)


def _operands(instruction: Instruction) -> tuple[Operand, ...]:
    """Of two instructions that are one those of both."""
    second = instruction.second
    return (
        instruction.operands
        if second is None
        else (*instruction.operands, *second.operands)
    )


def _implied(instruction: Instruction) -> frozenset[int]:
    """VCC, where an instruction reads it without naming it."""
    name = instruction.mnemonic
    is_read = name.startswith(("v_div_fmas", "s_cbranch_vcc")) or any(
        one is not None
        and one.mnemonic.endswith("cndmask_b32")
        and len(one.operands) == 3
        for one in (instruction, instruction.second)
    )
    return frozenset((106, 107)) if is_read else frozenset()


def register_name(number: int) -> str:
    """What a register is called, by its number in `Registers.dirty`."""
    if number < FIRST_VECTOR:
        return _NAMES.get(number, f"s{number}")
    vector = number - FIRST_VECTOR
    return f"a{vector - 256}" if vector >= 256 else f"v{vector}"
