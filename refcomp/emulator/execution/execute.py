"""Running waves: those with the smallest program counter first, so that they meet again.

A wave runs, waits at a barrier, or has ended. Waves at the same instruction run together. When none
runs, all that wait at barriers go on; when others run for long, groups do that wait as a whole.
Where no wave ends for longer than limits allow, that is a finding, which says where all waves are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from refcomp.emulator.code.assembly import EXEC, IEEE_MODE, VCC, Instruction
from refcomp.emulator.code.findings import BARRIER, ENDLESS
from refcomp.emulator.execution.program import BasicBlock, DecodedProgram
from refcomp.emulator.execution.slices import Slices
from refcomp.emulator.limits import Watchdog
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.registers import SCC
from refcomp.emulator.machine.sources import scalar_source
from refcomp.emulator.machine.waves import Waves
from refcomp.foundation.errors import UserError

_RUNS, _WAITS, _ENDED = 0, 1, 2
_ALL = slice(None)
_MAX_PLACES = 8  # of waves that are listed


class _Overrun(Exception):
    """A limit was passed."""


class Execution:
    """One batch of waves on its way through a program; `steps` counts instructions of waves.
    `is_given_up` once a limit was passed."""

    def __init__(
        self, waves: Waves, program: DecodedProgram, entry: int, watchdog: Watchdog
    ) -> None:
        self.waves, self.program, self.steps = waves, program, 0
        self.is_given_up = False
        self._watchdog = watchdog
        self.pc = np.full(waves.waves, entry)
        self.state = np.full(waves.waves, _RUNS, np.int8)
        self.is_observed = bool(waves.around.observers)
        self._has = waves.registers
        self._slices = Slices(waves.waves)

    def run(self) -> None:
        """Run until all waves have ended, or a limit is passed."""
        try:
            with np.errstate(all="ignore"):
                while self._select():
                    self._run_selected()
        except _Overrun:
            self.is_given_up = True
            self._report_endless()

    def _select(self) -> bool:
        """Picks the waves that run next; False when all have ended."""
        running = self.state == _RUNS
        if self._slices.left <= 0 or not running.any():
            self._release(self._slices.have_waited() if running.any() else ~running)
            running = self.state == _RUNS
            if not running.any():
                return False
            if self._slices.left <= 0:
                if self._watchdog.is_late():
                    raise _Overrun
                self._slices.begin(running)
        picked = self._slices.among(running)
        chosen = picked & (self.pc == self.pc[picked].min())
        modes = self.waves.modes
        if modes is not None:
            chosen &= modes == modes[chosen][0]
        self._slices.note(chosen)
        self.waves.select(_ALL if chosen.all() else np.flatnonzero(chosen))
        self.is_alone = bool((chosen == picked).all())
        return True

    def _release(self, may_go: Array) -> None:
        """Groups of which no wave runs and all that wait may go on do so; they must wait at the
        same barrier."""
        state = self.state.reshape(-1, self.waves.per_group)
        stays = (state == _RUNS) | ((state == _WAITS) & ~may_go.reshape(state.shape))
        by_group = (state == _WAITS) & ~stays.any(axis=1, keepdims=True)
        waiting = by_group.reshape(-1)
        if not waiting.any():
            return
        places = self.pc.reshape(by_group.shape)
        last = np.where(by_group, places, -1).max(axis=1)
        parted = (by_group & (places != last[:, None])).any(axis=1)
        for group in np.flatnonzero(parted):
            self._report_barriers(int(group), np.unique(places[group][by_group[group]]))
        self.state[waiting] = _RUNS
        for observer in self.waves.around.observers:
            observer.barrier(self.waves, np.flatnonzero(waiting))

    def _report_barriers(self, group: int, places: Array) -> None:
        wave = group * self.waves.per_group
        at = np.flatnonzero(self.pc[wave : wave + self.waves.per_group] == places[-1])[
            0
        ]
        self.waves.select(np.array([wave + at]))
        barrier = self.program.assembly.instruction(int(places[-1]) - 1)
        told = f"waves of a group wait at {len(places)} different barriers"
        self.waves.report(BARRIER, barrier, told, np.array([True]))

    def _run_selected(self) -> None:
        """Blocks, as long as these waves stay together and no others run."""
        waves, rows = self.waves, self.waves.rows
        number = int(self.pc[rows][0])
        while True:
            block = self.program.block(number, self.is_observed, self._mode())
            needs = block.registers
            if (
                needs.vectors > self._has.vectors
                or needs.accumulators > self._has.accumulators
            ):
                self._refuse_registers(block, number)
            for run in block.runs:
                run(waves)
            self._count(block, number)
            following = self._next(block)
            self._slices.left -= 1
            if isinstance(following, int) and self._stay_together() and following >= 0:
                number = following
                continue
            if not isinstance(following, int) or following >= 0:
                self.pc[rows] = following
            return

    def _refuse_registers(self, block: BasicBlock, number: int) -> None:
        own, accumulators = block.registers
        has = f"{self._has.vectors} vector registers and {self._has.accumulators} accumulators"
        raise UserError(
            f"the kernel {self.waves.around.kernel} uses registers that it does not have",
            where=f"what follows {self.program.assembly.instruction(number)}",
            why=f"it has {has}, and names {own} and {accumulators}",
            remedy="have its descriptor ask for all registers; or the code object is damaged",
        )

    def _mode(self) -> int:
        """How the waves that run round, all of them."""
        modes = self.waves.modes
        return IEEE_MODE if modes is None else int(modes[self.waves.rows][0])

    def _stay_together(self) -> bool:
        """Whether no others run in this slice, and these still round in the same way."""
        modes = self.waves.modes
        return (
            self.is_alone
            and self._slices.left > 0
            and (modes is None or bool((modes[self.waves.rows] == self._mode()).all()))
        )

    def _count(self, block: BasicBlock, number: int) -> None:
        steps = block.count * self.waves.count()
        self.steps += steps
        if self._watchdog.count(steps):
            self.pc[self.waves.rows] = number
            raise _Overrun

    def _report_endless(self) -> None:
        """Report how many waves have not ended, and at which instructions they are."""
        alive = np.flatnonzero(self.state != _ENDED)
        # A wave that waits has its barrier behind it.
        places = self.pc - (self.state == _WAITS)
        numbers, counts = np.unique(places[alive], return_counts=True)
        by_count = np.argsort(-counts, kind="stable")
        lines = [
            self._waves_at(int(numbers[n]), alive[places[alive] == numbers[n]])
            for n in by_count
        ]
        if len(lines) > _MAX_PLACES:
            lines[_MAX_PLACES:] = [
                f"... and at {len(lines) - _MAX_PLACES} other instructions"
            ]
        remedy = "a loop may never end, or wait for waves that cannot run; if the kernel is only"
        limits = "raise the limit (max_steps, max_seconds)"
        what = (
            f"{self._watchdog.overrun()}; {len(alive)} of {self.waves.waves} still run"
        )
        first = int(alive[places[alive] == numbers[by_count[0]]][0])
        self.waves.select(np.array([first]))
        lane = np.zeros((1, self.waves.lanes), np.bool_)
        lane[0, 0] = True
        instruction = self.program.assembly.instruction(int(places[first]))
        told = "\n    ".join([what, *lines, f"{remedy} slow, {limits}"])
        self.waves.report(ENDLESS, instruction, told, lane)

    def _waves_at(self, number: int, rows: Array) -> str:
        """Describe waves at one instruction: how many, where it is, and who is the first."""
        instruction = self.program.assembly.instruction(number)
        group, wave = divmod(int(rows[0]), self.waves.per_group)
        x, y, z = map(int, self.waves.groups[group])
        count = "1 wave" if len(rows) == 1 else f"{len(rows)} waves"
        place = self.program.assembly.symbol_of(instruction)
        first = "it is" if len(rows) == 1 else "the first is"
        return f"{count} at {place}: {instruction}; {first} wave {wave} of group ({x}, {y}, {z})"

    def _next(self, block: BasicBlock) -> Any:
        """The number of the next instruction: one for all waves, or an array; -1: they stop."""
        end = block.end
        if end is None:
            return block.next
        if end.mnemonic == "s_endpgm":
            self.state[self.waves.rows] = _ENDED
            self._watchdog.restart()
            return -1
        if end.mnemonic == "s_barrier":
            self.state[self.waves.rows] = _WAITS
            self.pc[self.waves.rows] = block.next
            return -1
        if end.mnemonic == "s_branch":
            return block.target
        if end.mnemonic in ("s_setpc_b64", "s_swappc_b64"):
            return self._jump(end)
        if end.mnemonic == "s_trap":
            raise UserError(
                f"the kernel {self.waves.around.kernel} stopped by a trap",
                where=str(end),
                why="a check of its own failed, or it came to what its author holds unreachable",
                remedy="see what leads there; in HIP and OpenCL it is __builtin_trap or an assert",
            )
        return self._branch(end, block)

    def _branch(self, end: Instruction, block: BasicBlock) -> Any:
        condition = end.mnemonic.removeprefix("s_cbranch_")
        taken = self._taken(condition, end)
        if taken.all():
            return block.target
        return np.where(taken, block.target, block.next) if taken.any() else block.next

    def _taken(self, condition: str, end: Instruction) -> Array:
        waves = self.waves
        if condition.startswith("scc"):
            self._check_scc(end)
            found: Array = waves.values.scc[waves.rows]
            return found if condition == "scc1" else ~found
        index = VCC if condition.startswith("vcc") else EXEC
        self._check_mask(index, end)
        is_zero = waves.values.scalar(index, waves.mask_bits, waves.rows) == 0
        return is_zero if condition in ("vccz", "execz") else ~is_zero

    def _check_scc(self, end: Instruction) -> None:
        waves = self.waves
        if SCC in waves.dirty and waves.shadow is not None:
            undefined = waves.shadow.scc[waves.rows]
            if undefined.any():
                waves.report_undefined(end, "a branch", undefined)

    def _check_mask(self, index: int, end: Instruction) -> None:
        """A mask is 0 or not whatever its undefined bits are, if one of the others is 1."""
        waves = self.waves
        if waves.shadow is None or waves.dirty.isdisjoint((index, index + 1)):
            return
        shadow = waves.shadow.scalar(index, waves.mask_bits, waves.rows)
        value = waves.values.scalar(index, waves.mask_bits, waves.rows)
        undefined = (shadow != 0) & (value & ~shadow == 0)
        if undefined.any():
            waves.report_undefined(end, "a branch", undefined)

    def _jump(self, end: Instruction) -> Any:
        waves = self.waves
        source = scalar_source(end.operands[-1], "u64")
        addresses = np.array(source.value(waves))
        if not waves.dirty.isdisjoint(source.numbers) and source.shadow(waves).any():
            waves.report_undefined(
                end, "where a jump leads to", source.shadow(waves) != 0
            )
        if end.mnemonic == "s_swappc_b64":
            after = waves.around.base + end.address + end.size
            result = end.operands[0].index
            waves.write_scalar(result, "u64", np.full(waves.count(), after, np.uint64))
            waves.define((result, result + 1))
        found = {int(a): self._number_at(int(a), end) for a in np.unique(addresses)}
        if len(found) == 1:
            return next(iter(found.values()))
        return np.array([found[int(address)] for address in addresses])

    def _number_at(self, address: int, end: Instruction) -> int:
        number = self.program.assembly.number_at(address - self.waves.around.base)
        if number is None:
            raise UserError(
                f"a jump to {address:#x}, where no instruction is", where=str(end)
            )
        return number
