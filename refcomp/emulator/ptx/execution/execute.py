"""Execution of threads: the smallest program counter runs first, so that threads reconverge.

A thread runs, waits at a barrier, waits for other threads of its warp, or has ended. Threads at the
same instruction run together, those in the deepest calls first. Threads that wait at a barrier go
on when no thread of their block runs. Time slices prevent starvation
(`emulator.execution.slices`). If no thread ends for longer than limits allow, that is a finding.

Source: NVIDIA, "Parallel Thread Execution ISA", sections "Control Flow Instructions" and "Parallel
Synchronization and Communication Instructions".
"""

from __future__ import annotations

import numpy as np

from refcomp.emulator.execution.slices import Slices
from refcomp.emulator.limits import Watchdog
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.ptx.execution.barriers import CLUSTER, BlockBarriers
from refcomp.emulator.ptx.execution.calls import ThreadCalls
from refcomp.emulator.ptx.execution.operands import result, source, value_for
from refcomp.emulator.ptx.execution.program import (
    BoundBlock,
    BoundFunction,
    BoundProgram,
    predicate_of,
)
from refcomp.emulator.ptx.execution.progress import (
    ENDED,
    GATHERS,
    RUNS,
    WAITS,
    LaunchStopped,
    ThreadProgress,
)
from refcomp.emulator.ptx.execution.stops import StopReports
from refcomp.emulator.ptx.execution.together import members_of
from refcomp.emulator.ptx.machine.threads import WARP, BlockThreads
from refcomp.emulator.ptx.text.module import (
    Immediate,
    LabelName,
    Operand,
    PtxInstruction,
)
from refcomp.foundation.counted import counted
from refcomp.foundation.errors import UserError


class _LimitExceeded(Exception):
    """A limit was exceeded."""


class ThreadExecution:
    """The execution of a kernel by the threads of some blocks."""

    def __init__(
        self,
        threads: BlockThreads,
        program: BoundProgram,
        kernel: BoundFunction,
        watchdog: Watchdog,
    ) -> None:
        self.threads = threads
        self.program = program
        self.steps = 0  # instructions that ran, each counted once for each warp
        self.is_given_up = False
        self._watchdog = watchdog
        self._progress = ThreadProgress(threads.exists, kernel.begin)
        # The arrays of `_progress`, under shorter names.
        self._pc = self._progress.pc
        self._state = self._progress.state
        self._calls = ThreadCalls(threads, program, self._progress)
        self._reports = StopReports(threads, program, self._progress, self._calls)
        self._slices = Slices(threads.count)
        self._barriers = BlockBarriers(threads)
        self._chosen = self._state == RUNS
        # True if threads are to go on without the members of their warp that never arrive.
        self._is_forced = False
        self._is_alone = False

    def run(self) -> None:
        """Run until all threads have ended, or a limit is exceeded."""
        try:
            with np.errstate(all="ignore"):
                while self._select():
                    self._run_selected()
        except _LimitExceeded:
            self.is_given_up = True
            self._reports.report_endless(self._watchdog)
        except LaunchStopped:
            self.is_given_up = True

    # Which threads run next.

    def _select(self) -> bool:
        """Select the threads that run next. Return False if all have ended."""
        running = self._state == RUNS
        if self._slices.left <= 0 or not running.any():
            if not running.any():
                self._release()
            running = self._state == RUNS
            if not running.any():
                return False
            if self._slices.left <= 0:
                if self._watchdog.is_late():
                    raise _LimitExceeded
                self._slices.begin(running)
        picked = self._slices.runnable(running)
        if self._calls.max_depth:
            depths = self._progress.depth[picked]
            picked = picked & (self._progress.depth == depths.max())
        number = int(self._pc[picked].min())
        chosen = picked & (self._pc == number)
        gathering = (self._state == GATHERS) & (self._pc == number)
        if gathering.any():
            gathering &= self._progress.depth == self._progress.depth[chosen][0]
            self._state[gathering] = RUNS
            chosen |= gathering
        self._slices.record(chosen)
        self._choose(chosen)
        self._is_alone = (
            bool((chosen == running).all()) and not (self._state == GATHERS).any()
        )
        return True

    def _choose(self, chosen: Array) -> None:
        """Let the threads of `chosen` (bool [thread]) run."""
        threads = self.threads
        self._chosen = chosen
        is_all = bool((chosen | (self._state == ENDED)).all())
        numbers = None if chosen.all() else np.flatnonzero(chosen)
        threads.lanes = numbers
        threads.at = None if is_all else numbers
        first = 0 if numbers is None else int(numbers[0])
        owner = self.program.owner(int(self._pc[first]))
        threads.frame = self._calls.frame(int(self._progress.depth[first]), owner)

    # How they run.

    def _run_selected(self) -> None:
        """Run blocks as long as the selected threads stay together and no others run."""
        threads = self.threads
        first = 0 if threads.lanes is None else int(threads.lanes[0])
        number = int(self._pc[first])
        warps = self._warps()
        while True:
            block = self.program.block(number)
            if block.together:
                if not self._gather(block, number):
                    return
                warps = self._warps()
            for run in block.runs:
                run(threads)
            for observer in threads.around.observers:
                observer.ran(threads, block.instructions, warps)
            self._count(block, number, warps)
            following = block.next if block.end is None else self._end(block)
            self._slices.left -= 1
            if following is None:
                return
            if self._is_alone and self._slices.left > 0:
                number = following
                continue
            self._pc[threads.numbers()] = following
            return

    def _warps(self) -> int:
        """Return the number of warps with a thread that runs."""
        threads = self.threads
        if threads.lanes is None:
            return threads.count // WARP
        return 1 + int(np.count_nonzero(np.diff(threads.lanes // WARP)))

    def _count(self, block: BoundBlock, number: int, warps: int) -> None:
        self.threads.steps += block.count
        steps = block.count * warps
        self.steps += steps
        if self._watchdog.count(steps):
            self._pc[self.threads.numbers()] = number
            raise _LimitExceeded

    def _end(self, block: BoundBlock) -> int | None:
        """Do the last instruction of a block.

        Return the number of the next instruction, or None if threads no longer run together.
        """
        end = block.end
        assert end is not None
        taken: Array | None = (
            None  # numbers of the threads that do it; None: all that run
        )
        if end.predicate is not None:
            threads = self.threads
            registers = self.program.functions[threads.frame.function].registers
            holds = predicate_of(threads, end, registers)
            if holds.ndim == 0 or holds.all():
                if not holds.all():
                    return block.next
            else:
                holds = threads.pick(holds)
                if not holds.any():
                    return block.next
                if not holds.all():
                    numbers = threads.numbers()
                    self._pc[numbers[~holds]] = block.next
                    taken = numbers[holds]
        return self._do(end, block, taken)

    def _do(
        self, end: PtxInstruction, block: BoundBlock, taken: Array | None
    ) -> int | None:
        numbers = self.threads.numbers() if taken is None else taken
        if end.opcode == "bra":
            target = self._target(end.operands[0], end)
            if taken is None:
                return target
            self._pc[numbers] = target
        elif end.opcode == "exit" or (
            end.opcode == "ret" and not self._progress.depth_of(numbers)
        ):
            self._state[numbers] = ENDED
            self._watchdog.restart()
        elif end.opcode == "ret":
            self._calls.leave(numbers)
        elif end.opcode == "call":
            self._calls.call(end, block.next, numbers)
        elif end.opcode == "brx":
            self._branch_by_index(end, numbers)
        elif end.opcode in ("bar", "barrier"):
            return self._wait(end, block, numbers, taken)
        else:
            raise UserError(
                f"the kernel {self.threads.around.kernel} stopped by a trap",
                where=f"line {end.line}: {end.text}",
                why="an assertion of the kernel failed, or it reached code that cannot be reached",
                remedy="look for an assert or __trap() in its source",
            )
        return None

    def _target(self, operand: Operand | None, end: PtxInstruction) -> int:
        owner = self.program.functions[self.threads.frame.function]
        name = operand.name if isinstance(operand, LabelName) else str(operand)
        return owner.begin + owner.function.labels[name]

    def _branch_by_index(self, end: PtxInstruction, numbers: Array) -> None:
        owner = self.program.functions[self.threads.frame.function]
        index = source(end, end.operands[0], "u32", owner.registers)
        labels = owner.function.branch_targets[str(end.operands[1])]
        targets = np.array([owner.begin + owner.function.labels[one] for one in labels])
        value = value_for(self.threads, end, index, numbers, "the index of a branch")
        if (value >= len(targets)).any():
            raise UserError(
                f"a branch of {self.threads.around.kernel} has no target {int(value.max())}",
                where=f"line {end.line}: {end.text}",
                why=f"the list has {counted(len(targets), 'label')}",
                remedy="check the index that the kernel computes",
            )
        self._pc[numbers] = targets[value]

    # Barriers of blocks.

    def _wait(
        self,
        end: PtxInstruction,
        block: BoundBlock,
        numbers: Array,
        taken: Array | None,
    ) -> int | None:
        """Let threads wait at a barrier, or only arrive there."""
        if "warp" in end.modifiers:  # __syncwarp: memory is in order anyway
            for observer in self.threads.around.observers:
                observer.synchronized(self.threads, numbers, is_warp=True)
            if taken is None:
                return block.next
            self._pc[numbers] = block.next
            return None
        owner = self.program.functions[self.threads.frame.function]
        if "cluster" in end.modifiers and "wait" not in end.modifiers:
            self._pc[numbers] = block.next  # all threads that arrive wait later
            return None
        operands = list(end.operands)
        if "cluster" in end.modifiers:
            operands = [Immediate("int", CLUSTER)]
        predicate = np.zeros(len(numbers), np.bool_)
        if "red" in end.modifiers:
            operands.pop(0)
            reduced = source(end, operands.pop(), "pred", owner.registers)
            predicate = value_for(
                self.threads, end, reduced, numbers, "a reduction of predicates"
            )
        which = source(end, operands[0], "u32", owner.registers)
        barrier = value_for(
            self.threads, end, which, numbers, "the number of a barrier"
        ).astype(np.int64)
        expected = np.zeros(len(numbers), np.int64)
        if len(operands) > 1:
            count = source(end, operands[1], "u32", owner.registers)
            expected = value_for(
                self.threads, end, count, numbers, "the count of a barrier"
            ).astype(np.int64)
        self._pc[numbers] = block.next
        self._check_barrier(end, numbers, barrier, expected)
        if "arrive" in end.modifiers:
            self._barriers.arrive(numbers, barrier)
            return None
        self._barriers.wait(numbers, barrier, expected, predicate)
        self._state[numbers] = WAITS
        return None

    def _check_barrier(
        self, end: PtxInstruction, numbers: Array, barrier: Array, expected: Array
    ) -> None:
        """Refuse a barrier that blocks do not have. Report counts that do not agree."""
        last = CLUSTER if "cluster" in end.modifiers else CLUSTER - 1
        if int(barrier.max()) > last or int(barrier.min()) < 0:
            raise UserError(
                f"the kernel {self.threads.around.kernel} names the barrier {int(barrier.max())}",
                where=f"line {end.line}: {end.text}",
                why=f"a block has {CLUSTER} barriers, from 0 on",
                remedy="check the number that the kernel computes",
            )
        other = self._barriers.other_count(numbers, barrier, expected)
        if other:
            self._reports.report_counts(end, numbers, int(expected[0]), other)

    def _write_reductions(self, numbers: Array) -> None:
        """Write the results of a barrier's reductions for the threads that waited there."""
        places = self._pc[numbers]
        for place in np.unique(places):
            end = self.program.instruction(int(place) - 1)
            if "red" not in end.modifiers:
                continue
            some = numbers[places == place]
            operation = next(
                one for one in ("popc", "and", "or") if one in end.modifiers
            )
            owner = self.program.owner(int(place) - 1)
            kind = "u32" if operation == "popc" else "pred"
            write = result(end, end.operands[0], kind, owner.registers)
            threads = self.threads
            threads.frame = self._calls.frame(int(self._progress.depth[some[0]]), owner)
            threads.at = threads.lanes = some
            write(threads, self._barriers.reduced(numbers, some, operation), None)

    def _release(self) -> None:
        """Let waiting threads go on, in blocks where no thread runs any more."""
        waiting = self._state == WAITS
        is_released = False
        for numbers in self._barriers.complete(waiting, self._state == ENDED):
            is_released = True
            self._reports.check_warps(numbers)
            self._write_reductions(numbers)
            self._state[numbers] = RUNS
        if is_released:
            return
        gathering = self._state == GATHERS
        if gathering.any():
            self._reports.report_gathering(np.flatnonzero(gathering))
            self._is_forced = True
            self._state[gathering] = RUNS
        elif waiting.any():
            numbers = np.flatnonzero(waiting)
            blocks = self.threads.block_of[numbers]
            places = self._barriers.describe(numbers[blocks == blocks[0]])
            self._reports.report_stuck(numbers, places)
            self._state[waiting] = ENDED
            self.is_given_up = True

    # Instructions that the threads of a warp do together.

    def _gather(self, block: BoundBlock, number: int) -> bool:
        """Let warps wait that lack threads which an instruction names.

        Return False if all that run wait now.
        """
        threads = self.threads
        instruction = block.first
        members = members_of(instruction)
        if members is None:
            return True
        owner = self.program.functions[threads.frame.function]
        numbers = threads.numbers()
        if instruction.predicate is not None:
            holds = np.broadcast_to(
                threads.pick(predicate_of(threads, instruction, owner.registers)),
                len(numbers),
            )
            numbers = numbers[holds]
            if not len(numbers):
                return True
        mask = value_for(
            threads,
            instruction,
            source(instruction, members, "u32", owner.registers),
            numbers,
            "a member mask",
        )
        warps = numbers // WARP
        wanted = np.zeros(threads.count // WARP, np.uint32)
        np.bitwise_or.at(wanted, warps, mask)
        there = np.zeros_like(wanted)
        np.bitwise_or.at(
            there, warps, (np.uint32(1) << (numbers % WARP).astype(np.uint32))
        )
        alive = np.packbits(
            (self._state != ENDED).reshape(-1, WARP), axis=1, bitorder="little"
        ).view(np.uint32)[:, 0]
        missing = (wanted & alive & ~there) != 0
        if not missing.any() or self._is_forced:
            self._is_forced = False
            return True
        # Warps that lack threads wait as a whole. The others go on.
        is_late = self._chosen & np.repeat(missing, WARP)
        self._pc[is_late] = number
        self._state[is_late] = GATHERS
        rest = self._chosen & ~is_late
        if not rest.any():
            return False
        self._pc[rest] = number
        self._choose(rest)
        self._is_alone = False
        return True
