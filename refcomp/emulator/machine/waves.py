"""The waves of some work-groups, together with all the memory that they reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from refcomp.emulator.code.assembly import IEEE_MODE, Assembly, Instruction
from refcomp.emulator.code.findings import OUT_OF_BOUNDS, UNDEFINED, Finding, Findings
from refcomp.emulator.machine.arrays import Array, Mask, Offsets, Words
from refcomp.emulator.machine.memory import BASE, Arena, Bytes, may_reach
from refcomp.emulator.machine.observation import (
    Access,
    AddressSpace,
    Observer,
    kind_of_access,
)
from refcomp.emulator.machine.registers import Registers
from refcomp.foundation.counted import counted


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The environment that all batches of waves of a launch share."""

    arena: Arena
    assembly: Assembly
    base: int  # address that the code object is loaded at
    kernel: str
    block: tuple[int, int, int]  # threads of a group in x, y and z
    shared_bytes: int  # of a group
    private_bytes: int  # of a lane
    is_watched: bool  # whether undefined bits are tracked
    findings: Findings = field(default_factory=Findings)
    observers: tuple[Observer, ...] = ()


class CheckedOffsets(NamedTuple):
    """The offsets of the active lanes in a memory, after the check of bounds.

    A tuple, since each access makes one.
    """

    # In bytes, flat. An offset out of bounds is replaced by one within them.
    offsets: Offsets
    wrong: Mask | None  # flat: the lanes that are out of bounds; None: no lane is


class Waves(Registers):
    """The waves of some work-groups. The waves of a group follow one another."""

    def __init__(
        self,
        around: Surroundings,
        vectors: int,
        existing: Mask,
        groups: Array,  # ids of the work-groups, [group, 3]
        unused: slice = slice(0, 0),
    ) -> None:
        super().__init__(vectors, existing, is_watched=around.is_watched, unused=unused)
        self.around = around
        self.groups = groups
        self.per_group = len(existing) // len(groups)
        self._stride = -(-around.shared_bytes // 16) * 16
        self._private = -(-around.private_bytes // 16) * 16
        self.shared = Bytes(self._stride * len(groups), is_watched=around.is_watched)
        self.private = Bytes(
            self._private * self.waves * self.lanes, is_watched=around.is_watched
        )
        # Word [wave]: the rounding and denormals of MODE; None: all waves have IEEE's.
        self.modes: Words | None = None
        # Registers of an address -> what was computed from it: `SharedWords` or `GlobalWords`.
        self.places: dict[object, object] = {}
        # Addresses of the state of these waves, for translated code; None: not computed yet.
        self.host_state: object = None
        number = np.arange(self.waves)
        self.shared_base = (number // self.per_group * self._stride)[:, None]
        thread = np.arange(self.waves * self.lanes).reshape(self.waves, self.lanes)
        self._private_base = thread * self._private

    def set_modes(self, modes: npt.ArrayLike) -> None:
        """Set the MODE register of the running waves."""
        if self.modes is None and (np.asarray(modes) == IEEE_MODE).all():
            return
        if self.modes is None:
            self.modes = np.full(self.waves, IEEE_MODE, np.uint32)
        self.modes[self.rows] = modes

    # From addresses to offsets in memory.

    def pick(self, value: npt.ArrayLike, active: Mask | None) -> Array:
        """Return the elements of [wave, lane] in active lanes, flat; None: all lanes are active."""
        whole = np.asarray(value)
        shape = self.count(), self.lanes
        if whole.shape != shape:
            whole = np.broadcast_to(whole, shape)
        return whole.reshape(-1) if active is None else whole[active]

    def active(self) -> Mask | None:
        """Return which lanes run; None when all do."""
        return None if self.is_full else self.mask

    def global_index(
        self, address: Array, size: int, ins: Instruction
    ) -> CheckedOffsets:
        """Check addresses in the device's memory."""
        picked = self.pick(address, self.active())
        is_load = kind_of_access(ins.mnemonic).is_load
        wrong = self.around.arena.outside(picked, size, is_load=is_load)
        index = (picked - np.uint64(BASE)).view(np.int64)
        if wrong is not None:
            first = int(picked[np.flatnonzero(wrong)[0]])
            self._report_outside(ins, self.around.arena.describe(first, size), wrong)
            index = np.where(wrong, 0, index)
        if self.around.observers:
            self._show_access(ins, "global", size, index, wrong)
        return CheckedOffsets(index, wrong)

    def shared_index(
        self, address: Array, size: int, ins: Instruction
    ) -> CheckedOffsets:
        """Check addresses in a group's shared memory."""
        limit = self.around.shared_bytes
        return self._bounded(
            address, size, self.shared_base[self.rows], limit, "shared", ins
        )

    def private_index(
        self, address: Array, size: int, ins: Instruction
    ) -> CheckedOffsets:
        """Check addresses in a lane's private memory."""
        limit = self.around.private_bytes
        return self._bounded(
            address, size, self._private_base[self.rows], limit, "private", ins
        )

    def _bounded(
        self,
        address: Array,
        size: int,
        base: Array,
        limit: int,
        space: AddressSpace,
        ins: Instruction,
    ) -> CheckedOffsets:
        active = self.active()
        picked = self.pick(address, active).astype(np.int64)
        index = self.pick(base, active) + picked
        wrong = None
        if picked.size and (int(picked.min()) < 0 or int(picked.max()) + size > limit):
            wrong = self._find_wrong(picked, size, limit, space, ins)
            if wrong is not None:
                index = np.where(wrong, self.pick(base, active), index)
        if self.around.observers:
            self._show_access(ins, space, size, index, wrong)
        return CheckedOffsets(index, wrong)

    def _find_wrong(
        self,
        picked: Offsets,
        size: int,
        limit: int,
        space: AddressSpace,
        ins: Instruction,
    ) -> Mask | None:
        """Return and report which offsets are out of bounds; None: no offset is."""
        wrong = (picked < 0) | (picked + size > limit)
        if kind_of_access(ins.mnemonic).is_load:
            wrong = (picked < 0) | ~may_reach(picked, np.int64(limit), size)
        if not wrong.any():
            return None
        first = int(picked[np.flatnonzero(wrong)[0]])
        extent = counted(int(limit), "byte")
        what = f"{counted(size, 'byte')} at {first} of {extent} of {space} memory"
        self._report_outside(ins, what, wrong)
        return wrong

    # Observers.

    def _show_access(
        self,
        ins: Instruction,
        space: AddressSpace,
        size: int,
        index: Offsets,
        wrong: Mask | None,
    ) -> None:
        """Show the access of the active lanes, without those that are `wrong`, to observers."""
        active = self.active()
        if wrong is not None:
            active = np.array(self.mask)
            active[active] = ~wrong.reshape(-1)
            index = index[~wrong]
        kind = kind_of_access(ins.mnemonic)
        access = Access(
            ins, space, kind.is_store, kind.is_atomic, size, index.reshape(-1), active
        )
        for observer in self.around.observers:
            observer.access(self, access)

    def show_scalar_access(
        self, ins: Instruction, size: int, index: Offsets, wrong: Mask | None
    ) -> None:
        """Show a scalar load, index [wave], to observers, without the waves that are `wrong`."""
        active = np.zeros((self.count(), self.lanes), np.bool_)
        active[:, 0] = True if wrong is None else ~wrong
        access = Access(ins, "global", False, False, size, index[active[:, 0]], active)
        for observer in self.around.observers:
            observer.access(self, access)

    # Findings.

    def _report_outside(self, ins: Instruction, what: str, wrong: Mask) -> None:
        active = self.active()
        if active is None:
            lanes = wrong.reshape(-1, self.lanes)
        else:
            lanes = np.zeros((self.count(), self.lanes), np.bool_)
            lanes[active] = wrong
        self.report(OUT_OF_BOUNDS, ins, what, lanes)

    def report_undefined(self, ins: Instruction, what: str, where: Array) -> None:
        """Report that undefined bits reach `what`, in the waves or lanes `where`."""
        self.report(UNDEFINED, ins, f"{what} depends on bits that nothing wrote", where)

    def report(self, kind: str, ins: Instruction, what: str, where: Array) -> None:
        """Report a finding in the waves or lanes `where`: bool [wave] or [wave, lane]."""
        lanes = where if where.ndim == 2 else where[:, None] & self.existing[self.rows]
        wave, lane = np.argwhere(np.broadcast_to(lanes, (self.count(), self.lanes)))[0]
        number = int(np.arange(self.waves)[self.rows][wave])
        group, item = divmod(number, self.per_group)
        thread = item * self.lanes + int(lane)
        x, y, _ = self.around.block
        group_x, group_y, group_z = self.groups[group].tolist()
        self.around.findings.add(
            Finding(
                kind=kind,
                what=what,
                instruction=ins,
                place=self.around.assembly.symbol_of(ins),
                kernel=self.around.kernel,
                group=(group_x, group_y, group_z),
                item=(thread % x, thread // x % y, thread // (x * y)),
                wave=item,
                lane=int(lane),
                times=int(np.count_nonzero(lanes)),
            )
        )


# An instruction that is bound to its operands: it runs in `waves.rows`, in the lanes of EXEC.
Run: TypeAlias = Callable[[Waves], None]
