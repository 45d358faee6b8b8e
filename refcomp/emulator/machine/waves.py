"""The waves of some work-groups, together with all the memory that they reach."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from refcomp.emulator.code.assembly import IEEE_MODE, Assembly, Instruction
from refcomp.emulator.code.findings import OUT_OF_BOUNDS, UNDEFINED, Finding, Findings
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.memory import BASE, Arena, Bytes, may_reach
from refcomp.emulator.machine.observation import Observer, kind_of_access, tell_access
from refcomp.emulator.machine.registers import Registers


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all batches of a launch share. `base` is where the code object is loaded; `block` are
    the threads of a group in x, y and z."""

    arena: Arena
    assembly: Assembly
    base: int
    kernel: str
    block: tuple[int, int, int]
    shared_bytes: int
    private_bytes: int
    is_watched: bool
    findings: Findings = field(default_factory=Findings)
    observers: tuple[Observer, ...] = ()


class CheckedOffsets(NamedTuple):
    """Where the active lanes access a memory, after the check of bounds. A tuple, since each
    access makes one."""

    # Offset in bytes of each active lane, flat; where it is wrong, one that is in bounds.
    offsets: Array
    # Which lanes are out of bounds, flat; None: none.
    wrong: Array | None


class Waves(Registers):
    """`groups` are the ids of the work-groups, [group, 3]; the waves of a group stand together."""

    def __init__(
        self,
        around: Surroundings,
        vectors: int,
        existing: Array,
        groups: Array,
        unused: slice = slice(0, 0),
    ) -> None:
        super().__init__(vectors, existing, is_watched=around.is_watched, unused=unused)
        self.around, self.groups = around, groups
        self.per_group = len(existing) // len(groups)
        self._stride = -(-around.shared_bytes // 16) * 16
        self._private = -(-around.private_bytes // 16) * 16
        self.shared = Bytes(self._stride * len(groups), is_watched=around.is_watched)
        self.private = Bytes(
            self._private * self.waves * self.lanes, is_watched=around.is_watched
        )
        # Of each wave how it rounds and whether it keeps denormals; None: as IEEE has it.
        self.modes: Array | None = None
        # What was worked out of registers with addresses: see `shared_words`.
        self.places: dict[int, Any] = {}
        number = np.arange(self.waves)
        self.shared_base = (number // self.per_group * self._stride)[:, None]
        thread = np.arange(self.waves * self.lanes).reshape(self.waves, self.lanes)
        self._private_base = thread * self._private

    def set_modes(self, modes: Any) -> None:
        """The modes of the waves that run."""
        if self.modes is None and (np.asarray(modes) == IEEE_MODE).all():
            return
        if self.modes is None:
            self.modes = np.full(self.waves, IEEE_MODE, np.uint32)
        self.modes[self.rows] = modes

    # Addresses -> where the bytes lie. `active` picks the lanes; None: all of them.

    def pick(self, value: Any, active: Array | None) -> Array:
        """The active lanes of [wave, lane], flat."""
        shape = self.count(), self.lanes
        whole = value if np.shape(value) == shape else np.broadcast_to(value, shape)
        return whole.reshape(-1) if active is None else whole[active]

    def active(self) -> Array | None:
        """Which lanes run; None when all do."""
        return None if self.is_full else self.mask

    def global_index(self, address: Any, size: int, ins: Instruction) -> CheckedOffsets:
        """Of addresses in the device's memory."""
        active = self.active()
        picked = self.pick(address, active)
        is_load = kind_of_access(ins.mnemonic).is_load
        wrong = self.around.arena.outside(picked, size, is_load=is_load)
        index = (picked - np.uint64(BASE)).view(np.int64)
        if wrong is not None:
            first = int(picked[np.flatnonzero(wrong)[0]])
            self._report_outside(ins, self.around.arena.describe(first, size), wrong)
            index = np.where(wrong, 0, index)
        if self.around.observers:
            tell_access(self, ins, "global", size, index, wrong)
        return CheckedOffsets(index, wrong)

    def shared_index(self, address: Any, size: int, ins: Instruction) -> CheckedOffsets:
        """Of addresses in a group's shared memory."""
        limit = self.around.shared_bytes
        return self._bounded(
            address, size, self.shared_base[self.rows], limit, "shared", ins
        )

    def private_index(
        self, address: Any, size: int, ins: Instruction
    ) -> CheckedOffsets:
        """Of addresses in a lane's private memory."""
        limit = self.around.private_bytes
        return self._bounded(
            address, size, self._private_base[self.rows], limit, "private", ins
        )

    def _bounded(
        self,
        address: Any,
        size: int,
        base: Array,
        limit: int,
        what: str,
        ins: Instruction,
    ) -> CheckedOffsets:
        active = self.active()
        picked = self.pick(address, active).astype(np.int64)
        index = self.pick(base, active) + picked
        wrong = None
        if picked.size and (int(picked.min()) < 0 or int(picked.max()) + size > limit):
            wrong = self._wrong(picked, size, limit, what, ins)
            if wrong is not None:
                index = np.where(wrong, self.pick(base, active), index)
        if self.around.observers:
            tell_access(self, ins, what, size, index, wrong)
        return CheckedOffsets(index, wrong)

    def _wrong(
        self, picked: Array, size: int, limit: int, what: str, ins: Instruction
    ) -> Array | None:
        """Which of some offsets are out of bounds, after telling of them; None: none is."""
        wrong = (picked < 0) | (picked + size > limit)
        if kind_of_access(ins.mnemonic).is_load:
            wrong = (picked < 0) | ~may_reach(picked, np.int64(limit), size)
        if not wrong.any():
            return None
        first = int(picked[np.flatnonzero(wrong)[0]])
        told = f"{size} bytes at {first} of {limit} bytes of {what} memory"
        self._report_outside(ins, told, wrong)
        return wrong

    # Findings.

    def _report_outside(self, ins: Instruction, what: str, wrong: Array) -> None:
        active = self.active()
        lanes = np.zeros((self.count(), self.lanes), np.bool_)
        lanes[slice(None) if active is None else active] = (
            wrong.reshape(-1, self.lanes) if active is None else wrong
        )
        self.report(OUT_OF_BOUNDS, ins, what, lanes)

    def report_undefined(self, ins: Instruction, what: str, where: Array) -> None:
        """Undefined bits reach `what`, in the waves or lanes `where`."""
        self.report(UNDEFINED, ins, f"{what} depends on bits that nothing wrote", where)

    def report(self, kind: str, ins: Instruction, what: str, where: Array) -> None:
        """A finding in the waves or lanes `where`: bool [wave] or [wave, lane]."""
        lanes = where if where.ndim == 2 else where[:, None] & self.existing[self.rows]
        wave, lane = np.argwhere(np.broadcast_to(lanes, (self.count(), self.lanes)))[0]
        number = int(np.arange(self.waves)[self.rows][wave])
        group, item = divmod(number, self.per_group)
        thread = item * self.lanes + int(lane)
        x, y, _ = self.around.block
        self.around.findings.add(
            Finding(
                kind=kind,
                what=what,
                instruction=ins,
                place=self.around.assembly.symbol_of(ins),
                kernel=self.around.kernel,
                group=tuple(int(n) for n in self.groups[group]),  # type: ignore[arg-type]
                item=(thread % x, thread // x % y, thread // (x * y)),
                wave=item,
                lane=int(lane),
                times=int(np.count_nonzero(lanes)),
            )
        )
