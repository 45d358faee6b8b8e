"""Operations that complete later than they begin, and the counters that track them.

A load, store or update of memory increments a counter of its wave when it begins. The counter is
decremented when the operation completes. `s_waitcnt vmcnt(2)` waits until at most 2 operations that
`vmcnt` counts are in flight. Most operations complete in the order in which they began. Scalar
loads complete in any order, so that only a wait for 0 says that a certain one has completed. On
these GPUs, registers that a store reads may be overwritten without a wait.

Sources: AMD's "CDNA3" and "RDNA3 Instruction Set Architecture", sections on manually inserted waits
and data dependency resolution; LLVM's SIInsertWaitcnts agrees.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

from refcomp.emulator.code.assembly import EXEC, VCC, Instruction, Operand
from refcomp.emulator.machine.observation import kind_of_access
from refcomp.emulator.machine.registers import FIRST_VECTOR
from refcomp.emulator.machine.sources import vector_index

_WAIT = re.compile(r"(\w+)\((\d+)\)")
_VECTOR = ("global_", "scratch_", "buffer_", "tbuffer_", "flat_")
_UNCOUNTED = re.compile(r"buffer_(wbinvl1\w*|gl[01]_inv)$")
_SCALAR = re.compile(r"s_(buffer_|scratch_)?load_|s_mem(real)?time|s_dcache_")
_RETURNING_MODIFIERS = ("sc0", "glc")
_SHARED_RESULT = re.compile(r"_rtn|permute|swizzle|consume|append")
_NAMES = {VCC: "vcc_lo", VCC + 1: "vcc_hi", EXEC: "exec_lo", EXEC + 1: "exec_hi"}


# Loads of vector memory (and stores, before gfx10), stores since gfx10, shared memory and scalar
# loads, exports.
WaitCounter = Literal["vmcnt", "vscnt", "lgkmcnt", "expcnt"]


class OperationKind(StrEnum):
    """A kind of operation that completes later than it begins."""

    LOAD = "load"
    STORE = "store"  # or an update without a result
    DIRECT_LOAD = "direct load"  # from global to shared memory
    FLAT_LOAD = "flat load"  # from an address that may be of any memory
    FLAT_STORE = "flat store"
    SHARED = "shared"  # any access of shared memory
    SCALAR = "scalar"
    MESSAGE = "message"


class Queue(NamedTuple):
    """Operations of one order that a counter counts. A tuple: each instruction looks it up."""

    counter: WaitCounter
    is_ordered: bool  # operations complete in the order in which they began


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters of a GPU."""

    # Kind of operation -> the counters that count it.
    counted: Mapping[OperationKind, tuple[WaitCounter, ...]]
    # Kinds that may complete in any order.
    unordered: frozenset[OperationKind]
    # Counter -> its maximum. A wait for the maximum waits for nothing.
    maxima: Mapping[WaitCounter, int]

    def queues(self, kind: OperationKind) -> tuple[Queue, ...]:
        """Return the queues of an operation. It has completed when it has left all of them."""
        return tuple(
            Queue(counter, kind not in self.unordered) for counter in self.counted[kind]
        )

    def all_queues(self) -> tuple[Queue, ...]:
        """Return the queues of all kinds."""
        return tuple(
            dict.fromkeys(queue for kind in self.counted for queue in self.queues(kind))
        )


_GFX9_COUNTED: dict[OperationKind, tuple[WaitCounter, ...]] = {
    OperationKind.LOAD: ("vmcnt",),
    OperationKind.STORE: ("vmcnt",),
    OperationKind.DIRECT_LOAD: ("vmcnt",),
    OperationKind.FLAT_LOAD: ("vmcnt", "lgkmcnt"),
    OperationKind.FLAT_STORE: ("vmcnt", "lgkmcnt"),
    OperationKind.SHARED: ("lgkmcnt",),
    OperationKind.SCALAR: ("lgkmcnt",),
    OperationKind.MESSAGE: ("lgkmcnt",),
}
GFX9_COUNTERS = Counters(
    counted=_GFX9_COUNTED,
    unordered=frozenset(
        (
            OperationKind.SCALAR,
            OperationKind.MESSAGE,
            OperationKind.FLAT_LOAD,
            OperationKind.FLAT_STORE,
        )
    ),
    maxima={"vmcnt": 63, "lgkmcnt": 15, "expcnt": 7},
)
GFX11_COUNTERS = Counters(
    # Since gfx10, stores have a counter of their own.
    counted=_GFX9_COUNTED
    | {
        OperationKind.STORE: ("vscnt",),
        OperationKind.FLAT_STORE: ("vscnt", "lgkmcnt"),
    },
    unordered=frozenset((OperationKind.SCALAR, OperationKind.MESSAGE)),
    maxima={"vmcnt": 63, "vscnt": 63, "lgkmcnt": 63, "expcnt": 7},
)


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of an instruction on waits. Registers are numbered as in `Registers.dirty`."""

    touches: frozenset[int]  # registers that it reads or writes at once
    fills: frozenset[int]  # registers that are written when its operation completes
    kind: OperationKind | None  # of the operation that it begins; None for none
    waits: Mapping[str, int]  # counter -> operations that may remain in flight


def effect_of(instruction: Instruction) -> Effect:
    """Return the effect of an instruction on waits."""
    operation = _operation(instruction)
    operands = instruction.operands
    if instruction.second is not None:
        operands = (*operands, *instruction.second.operands)
    late = operands[:1] if operation.has_result else ()
    at_once = operands[len(late) :]
    # An atomic of a buffer returns its result in the register of its source.
    if instruction.mnemonic.startswith("buffer_atomic"):
        at_once = operands
    return Effect(
        touches=numbers_of_operands(at_once) | _implied(instruction),
        fills=numbers_of_operands(late),
        kind=operation.kind,
        waits=waits_of(instruction),
    )


def waits_of(instruction: Instruction) -> dict[str, int]:
    """Return how many operations of each counter a wait leaves in flight; {} for others."""
    name = instruction.mnemonic
    if name == "s_waitcnt":
        return {counter: int(most) for counter, most in _WAIT.findall(instruction.text)}
    if name.startswith("s_waitcnt_") and len(instruction.operands) == 2:
        return {name.removeprefix("s_waitcnt_"): int(instruction.operands[1].text, 0)}
    return {}


@dataclass(frozen=True, slots=True)
class _Operation:
    """The operation that an instruction begins, and that completes later."""

    kind: OperationKind | None  # None for none
    has_result: bool = False  # it fills the first operand


def _operation(instruction: Instruction) -> _Operation:
    name = instruction.mnemonic
    if name.startswith("ds_"):
        access = kind_of_access(name)
        has_result = access.is_atomic and bool(_SHARED_RESULT.search(name))
        return _Operation(OperationKind.SHARED, access.is_load or has_result)
    if name.startswith(_VECTOR):
        return _vector_operation(instruction)
    if _SCALAR.match(name):
        return _Operation(OperationKind.SCALAR, not name.startswith("s_dcache_"))
    if name.startswith("s_sendmsg"):
        return _Operation(OperationKind.MESSAGE, "_rtn" in name)
    return _Operation(None)


def _vector_operation(instruction: Instruction) -> _Operation:
    name = instruction.mnemonic
    if _UNCOUNTED.match(name):
        return _Operation(None)
    if is_direct_load(instruction):
        return _Operation(OperationKind.DIRECT_LOAD)
    access = kind_of_access(name)
    returns = any(
        modifier in instruction.modifiers for modifier in _RETURNING_MODIFIERS
    )
    has_result = access.is_load or (access.is_atomic and "atomic" in name and returns)
    if name.startswith("flat_"):
        kind = OperationKind.FLAT_LOAD if has_result else OperationKind.FLAT_STORE
    else:
        kind = OperationKind.LOAD if has_result else OperationKind.STORE
    return _Operation(kind, has_result)


def is_direct_load(instruction: Instruction) -> bool:
    """Return True if an instruction loads to shared memory without a destination register."""
    return "_lds_" in instruction.mnemonic or "lds" in instruction.modifiers


def numbers_of_operands(operands: tuple[Operand, ...]) -> frozenset[int]:
    """Return the registers of some operands, numbered as in `Registers.dirty`."""
    found: set[int] = set()
    for operand in operands:
        if operand.file == "c":
            continue
        start = operand.index
        if operand.file != "s":
            start = FIRST_VECTOR + vector_index(operand)
        found.update(range(start, start + operand.count))
    return frozenset(found)


def _implied(instruction: Instruction) -> frozenset[int]:
    """Return the registers of VCC if an instruction reads it without naming it."""
    is_read = instruction.mnemonic.startswith(("v_div_fmas", "s_cbranch_vcc")) or any(
        half is not None
        and half.mnemonic.endswith("cndmask_b32")
        and len(half.operands) == 3
        for half in (instruction, instruction.second)
    )
    return frozenset((VCC, VCC + 1)) if is_read else frozenset()


def register_name(number: int) -> str:
    """Return the name of the register that has a number in `Registers.dirty`."""
    if number < FIRST_VECTOR:
        return _NAMES.get(number, f"s{number}")
    vector = number - FIRST_VECTOR
    return f"a{vector - 256}" if vector >= 256 else f"v{vector}"
