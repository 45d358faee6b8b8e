"""Execution of waves: those with the smallest program counter run first, so that they meet again.

A wave runs, waits at a barrier, or has ended. Waves at the same instruction run together. Waves
that wait at a barrier go on when no wave of their group runs. They go on at once if no wave of the
batch runs, else at the end of a time slice. If no wave ends for longer than limits allow, that is a
finding, which lists where all waves are.
"""

from __future__ import annotations

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
from refcomp.foundation.counted import counted
from refcomp.foundation.errors import UserError

# States of a wave.
_RUNS = 0
_WAITS = 1
_ENDED = 2
_ALL = slice(None)
_MAX_PLACES = 8  # instructions that a finding lists


class _Overrun(Exception):
    """A limit was exceeded."""


class Execution:
    """The execution of one batch of waves from `entry` on (a number of an instruction)."""

    def __init__(
        self, waves: Waves, program: DecodedProgram, entry: int, watchdog: Watchdog
    ) -> None:
        self.waves = waves
        self.program = program
        self.steps = 0  # instructions of waves that ran
        self.is_given_up = False  # a limit was exceeded
        self._watchdog = watchdog
        self.pc = np.full(waves.waves, entry)  # numbers of instructions
        self.state = np.full(waves.waves, _RUNS, np.int8)
        self.is_observed = bool(waves.around.observers)
        self._has = waves.registers
        self._slices = Slices(waves.waves)

    def run(self) -> None:
        """Run until all waves have ended, or a limit is exceeded."""
        try:
            with np.errstate(all="ignore"):
                while self._select():
                    self._run_selected()
        except _Overrun:
            self.is_given_up = True
            self._report_endless()

    def _select(self) -> bool:
        """Select the waves that run next. Return False if all have ended."""
        running = self.state == _RUNS
        if self._slices.left <= 0 or not running.any():
            self._release(self._slices.starved() if running.any() else ~running)
            running = self.state == _RUNS
            if not running.any():
                return False
            if self._slices.left <= 0:
                if self._watchdog.is_late():
                    raise _Overrun
                self._slices.begin(running)
        picked = self._slices.runnable(running)
        chosen = picked & (self.pc == self.pc[picked].min())
        modes = self.waves.modes
        if modes is not None:
            chosen &= modes == modes[chosen][0]
        self._slices.record(chosen)
        self.waves.select(_ALL if chosen.all() else np.flatnonzero(chosen))
        self.is_alone = bool((chosen == picked).all())
        return True

    def _release(self, may_go: Array) -> None:
        """Release groups from a barrier if no wave runs and all that wait may go on.

        `may_go` is bool [waves]. Waves of a group that wait at different barriers are reported.
        """
        state = self.state.reshape(-1, self.waves.per_group)
        stays = (state == _RUNS) | ((state == _WAITS) & ~may_go.reshape(state.shape))
        by_group = (state == _WAITS) & ~stays.any(axis=1, keepdims=True)
        waiting = by_group.reshape(-1)
        if not waiting.any():
            return
        places = self.pc.reshape(by_group.shape)
        last = np.where(by_group, places, -1).max(axis=1)
        differ = (by_group & (places != last[:, None])).any(axis=1)
        for group in np.flatnonzero(differ):
            self._report_barriers(int(group), np.unique(places[group][by_group[group]]))
        self.state[waiting] = _RUNS
        for observer in self.waves.around.observers:
            observer.barrier(self.waves, np.flatnonzero(waiting))

    def _report_barriers(self, group: int, places: Array) -> None:
        first = group * self.waves.per_group
        in_group = self.pc[first : first + self.waves.per_group]
        wave = first + int(np.flatnonzero(in_group == places[-1])[0])
        self.waves.select(np.array([wave]))
        barrier = self.program.assembly.instruction(int(places[-1]) - 1)
        what = f"waves of a group wait at {len(places)} different barriers"
        self.waves.report(BARRIER, barrier, what, np.array([True]))

    def _run_selected(self) -> None:
        """Run blocks as long as the selected waves stay together and no others run."""
        waves = self.waves
        rows = waves.rows
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
        vectors = counted(self._has.vectors, "vector register")
        has = f"{vectors} and {counted(self._has.accumulators, 'accumulator')}"
        raise UserError(
            f"the kernel {self.waves.around.kernel} uses registers that it does not have",
            where=f"the block at {self.program.assembly.instruction(number)}",
            why=f"it has {has}, and names {own} and {accumulators}",
            remedy="have its descriptor ask for all registers; or the code object is damaged",
        )

    def _mode(self) -> int:
        """Return the MODE of the selected waves, which is the same for all."""
        modes = self.waves.modes
        return IEEE_MODE if modes is None else int(modes[self.waves.rows][0])

    def _stay_together(self) -> bool:
        """Return True if no other waves run in this slice, and the selected ones share a mode."""
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
        # The program counter of a wave that waits is behind its barrier.
        places = self.pc - (self.state == _WAITS)
        numbers, counts = np.unique(places[alive], return_counts=True)
        by_count = numbers[np.argsort(-counts, kind="stable")]
        lines = [
            f"{self._watchdog.overrun()}; {len(alive)} of {self.waves.waves} still run"
        ]
        for number in by_count[:_MAX_PLACES]:
            lines.append(self._waves_at(int(number), alive[places[alive] == number]))
        if len(by_count) > _MAX_PLACES:
            others = counted(len(by_count) - _MAX_PLACES, "other instruction")
            lines.append(f"... and at {others}")
        lines.append(
            "a loop may never end, or wait for waves that cannot run; if the kernel is only "
            "slow, raise the limit (max_steps, max_seconds)"
        )
        first = int(alive[places[alive] == by_count[0]][0])
        self.waves.select(np.array([first]))
        lane = np.zeros((1, self.waves.lanes), np.bool_)
        lane[0, 0] = True
        instruction = self.program.assembly.instruction(int(places[first]))
        self.waves.report(ENDLESS, instruction, "\n    ".join(lines), lane)

    def _waves_at(self, number: int, rows: Array) -> str:
        """Describe the waves at one instruction: how many, where, and the first of them."""
        instruction = self.program.assembly.instruction(number)
        group, wave = divmod(int(rows[0]), self.waves.per_group)
        x, y, z = map(int, self.waves.groups[group])
        count = counted(len(rows), "wave")
        place = self.program.assembly.symbol_of(instruction)
        first = "it is" if len(rows) == 1 else "the first is"
        return f"{count} at {place}: {instruction}; {first} wave {wave} of group ({x}, {y}, {z})"

    def _next(self, block: BasicBlock) -> int | Array:
        """Return the number of the next instruction, for all waves or for each (int [wave]).

        -1: the waves stop here.
        """
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
                why="an assertion of the kernel failed, or it reached code marked as unreachable",
                remedy="look for an assert or __builtin_trap in the HIP or OpenCL source",
            )
        return self._branch(end, block)

    def _branch(self, end: Instruction, block: BasicBlock) -> int | Array:
        condition = end.mnemonic.removeprefix("s_cbranch_")
        taken = self._taken(condition, end)
        if taken.all():
            return block.target
        return np.where(taken, block.target, block.next) if taken.any() else block.next

    def _taken(self, condition: str, end: Instruction) -> Array:
        waves = self.waves
        if condition.startswith("scc"):
            if SCC in waves.dirty and waves.shadow is not None:
                undefined = waves.shadow.scc[waves.rows]
                if undefined.any():
                    waves.report_undefined(end, "a branch", undefined)
            found: Array = waves.values.scc[waves.rows]
            return found if condition == "scc1" else ~found
        index = VCC if condition.startswith("vcc") else EXEC
        self._check_mask(index, end)
        is_zero: Array = waves.values.scalar(index, waves.mask_bits, waves.rows) == 0
        return is_zero if condition in ("vccz", "execz") else ~is_zero

    def _check_mask(self, index: int, end: Instruction) -> None:
        """Report a branch on a mask if its undefined bits decide whether the mask is 0.

        They do not if any defined bit is 1.
        """
        waves = self.waves
        if waves.shadow is None or waves.dirty.isdisjoint((index, index + 1)):
            return
        shadow = waves.shadow.scalar(index, waves.mask_bits, waves.rows)
        value = waves.values.scalar(index, waves.mask_bits, waves.rows)
        undefined = (shadow != 0) & (value & ~shadow == 0)
        if undefined.any():
            waves.report_undefined(end, "a branch", undefined)

    def _jump(self, end: Instruction) -> int | Array:
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
        wanted = np.atleast_1d(addresses).tolist()
        targets = {
            address: self._number_at(address, end) for address in sorted(set(wanted))
        }
        numbers = [targets[address] for address in wanted]
        return numbers[0] if len(targets) == 1 else np.array(numbers)

    def _number_at(self, address: int, end: Instruction) -> int:
        number = self.program.assembly.number_at(address - self.waves.around.base)
        if number is None:
            raise UserError(
                f"a jump leads to {address:#x}, where no instruction begins",
                where=str(end),
                remedy="check the address that the kernel computes",
            )
        return number
