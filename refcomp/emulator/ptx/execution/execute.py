"""Execution of threads: those with the smallest program counter run first, so that they meet again.

A thread runs, waits at a barrier, waits for others of its warp, or has ended. Threads at the same
instruction run together, those in the deepest calls first. Threads that wait at a barrier go on
when no thread of their block runs. Where time is divided into slices, no thread starves
(`emulator.execution.slices`). If no thread ends for longer than limits allow, that is a finding.

Source: NVIDIA, "Parallel Thread Execution ISA", sections "Control Flow Instructions" and "Parallel
Synchronization and Communication Instructions".
"""

from __future__ import annotations

import numpy as np

from refcomp.emulator.code.findings import BARRIER, ENDLESS
from refcomp.emulator.execution.slices import Slices
from refcomp.emulator.limits import Watchdog
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.ptx.execution.barriers import BlockBarriers
from refcomp.emulator.ptx.execution.operands import SourceOperand, source
from refcomp.emulator.ptx.execution.program import (
    BoundBlock,
    BoundFunction,
    BoundProgram,
    predicate_of,
)
from refcomp.emulator.ptx.execution.together import members_of
from refcomp.emulator.ptx.machine.threads import WARP, BlockThreads, CallFrame
from refcomp.emulator.ptx.text.module import (
    LabelName,
    Operand,
    PtxInstruction,
    SymbolAddress,
    Vector,
)
from refcomp.foundation.errors import Unsupported, UserError

# States of a thread.
_RUNS = 0
_WAITS = 1  # at a barrier
_GATHERS = 2  # for threads of its warp, at an instruction that they do together
_ENDED = 3
_MAX_DEPTH = 200  # of calls
_MAX_PLACES = 8  # instructions that a finding lists


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
        count = threads.count
        self._pc = np.full(count, kernel.begin)
        self._state = np.where(threads.exists, _RUNS, _ENDED).astype(np.int8)
        self._depth = np.zeros(count, np.int64)
        self._max_depth = 0
        self._returns: list[Array] = []  # by depth: where each thread goes on
        self._frames: dict[tuple[int, str], CallFrame] = {}
        self._slices = Slices(count)
        self._barriers = BlockBarriers(threads)
        self._chosen = self._state == _RUNS
        self._is_forced = (
            False  # threads go on without those of their warp that never come
        )
        self._members: dict[int, SourceOperand] = {}
        self._is_alone = False

    def run(self) -> None:
        """Run until all threads have ended, or a limit is exceeded."""
        try:
            with np.errstate(all="ignore"):
                while self._select():
                    self._run_selected()
        except _LimitExceeded:
            self.is_given_up = True
            self._report_endless()

    # Which threads run next.

    def _select(self) -> bool:
        """Select the threads that run next. Return False if all have ended."""
        running = self._state == _RUNS
        if self._slices.left <= 0 or not running.any():
            if not running.any():
                self._release()
            running = self._state == _RUNS
            if not running.any():
                return False
            if self._slices.left <= 0:
                if self._watchdog.is_late():
                    raise _LimitExceeded
                self._slices.begin(running)
        picked = self._slices.runnable(running)
        if self._max_depth:
            depths = self._depth[picked]
            picked = picked & (self._depth == depths.max())
        number = int(self._pc[picked].min())
        chosen = picked & (self._pc == number)
        gathering = (self._state == _GATHERS) & (self._pc == number)
        if gathering.any():
            gathering &= self._depth == self._depth[chosen][0]
            self._state[gathering] = _RUNS
            chosen |= gathering
        self._slices.record(chosen)
        self._choose(chosen)
        self._is_alone = bool((chosen == running).all())
        return True

    def _choose(self, chosen: Array) -> None:
        """Let the threads of `chosen` (bool [thread]) run."""
        threads = self.threads
        self._chosen = chosen
        is_all = bool((chosen | (self._state == _ENDED)).all())
        numbers = None if chosen.all() else np.flatnonzero(chosen)
        threads.lanes = numbers
        threads.at = None if is_all else numbers
        first = 0 if numbers is None else int(numbers[0])
        owner = self.program.owner(int(self._pc[first]))
        threads.frame = self._frame(int(self._depth[first]), owner)

    def _frame(self, depth: int, owner: BoundFunction) -> CallFrame:
        key = depth, owner.function.name
        found = self._frames.get(key)
        if found is None:
            threads = self.threads
            found = owner.unwritten_frame(
                threads.count, is_watched=threads.around.is_watched
            )
            self._frames[key] = found
        return found

    # How they run.

    def _run_selected(self) -> None:
        """Run blocks as long as the selected threads stay together and no others run."""
        threads = self.threads
        first = 0 if threads.lanes is None else int(threads.lanes[0])
        number = int(self._pc[first])
        warps = threads.count // WARP
        if threads.lanes is not None:
            warps = 1 + int(np.count_nonzero(np.diff(threads.lanes // WARP)))
        while True:
            block = self.program.block(number)
            if block.together and not self._gather(block, number):
                return
            for run in block.runs:
                run(threads)
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
            end.opcode == "ret" and not self._depth_of(numbers)
        ):
            self._state[numbers] = _ENDED
            self._watchdog.restart()
        elif end.opcode == "ret":
            self._return(numbers)
        elif end.opcode == "call":
            self._call(end, block, numbers)
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

    def _depth_of(self, numbers: Array) -> int:
        return int(self._depth[numbers[0]])

    def _target(self, operand: Operand | None, end: PtxInstruction) -> int:
        owner = self.program.functions[self.threads.frame.function]
        name = operand.name if isinstance(operand, LabelName) else str(operand)
        return owner.begin + owner.function.labels[name]

    def _branch_by_index(self, end: PtxInstruction, numbers: Array) -> None:
        owner = self.program.functions[self.threads.frame.function]
        index = source(end, end.operands[0], "u32", owner.registers)
        labels = owner.function.branch_targets[str(end.operands[1])]
        targets = np.array([owner.begin + owner.function.labels[one] for one in labels])
        value = self._of(index, numbers)
        if (value >= len(targets)).any():
            raise UserError(
                f"a branch of {self.threads.around.kernel} has no target {int(value.max())}",
                where=f"line {end.line}: {end.text}",
                why=f"the list has {len(targets)} labels",
                remedy="check the index that the kernel computes",
            )
        self._pc[numbers] = targets[value]

    def _of(self, one: SourceOperand, numbers: Array) -> Array:
        """Return the value of an operand for the threads of these numbers."""
        threads = self.threads
        before = threads.at, threads.lanes
        threads.at = threads.lanes = numbers
        value = np.broadcast_to(one.value(threads), len(numbers))
        threads.at, threads.lanes = before
        return value

    # Calls.

    def _call(self, end: PtxInstruction, block: BoundBlock, numbers: Array) -> None:
        threads = self.threads
        _, callee, arguments, _ = end.operands
        depth = self._depth_of(numbers)
        caller = self.program.functions[threads.frame.function]
        called = self._callee(end, callee, caller, numbers)
        if depth + 1 >= _MAX_DEPTH:
            raise UserError(
                f"the kernel {threads.around.kernel} calls functions {_MAX_DEPTH} deep",
                where=f"line {end.line}: {end.text}",
                why="each call takes local memory, of which a thread has little",
                remedy="check where the recursion ends",
            )
        frame = self._frame(depth + 1, called)
        for given, wanted in zip(
            _names(arguments), called.function.parameters, strict=True
        ):
            source_at = numbers * threads.frame.stride + caller.frame.offsets[given]
            target_at = numbers * frame.stride + called.frame.offsets[wanted.name]
            _copy(threads.frame, source_at, frame, target_at, wanted.bytes)
        while len(self._returns) <= depth:
            self._returns.append(np.zeros(threads.count, np.int64))
        self._returns[depth][numbers] = block.next
        threads.stack[numbers] += -(-caller.local.bytes // 16) * 16
        self._depth[numbers] = depth + 1
        self._max_depth = max(self._max_depth, depth + 1)
        self._pc[numbers] = called.begin

    def _callee(
        self,
        end: PtxInstruction,
        callee: Operand | None,
        caller: BoundFunction,
        numbers: Array,
    ) -> BoundFunction:
        name = callee.symbol if isinstance(callee, SymbolAddress) else ""
        if not name:
            one = source(end, callee, "u64", caller.registers)
            value = self._of(one, numbers)
            names = {
                self.threads.around.symbols.get(each): each
                for each in self.program.functions
            }
            found = names.get(int(value[0]))
            if found is None or (value != value[0]).any():
                raise Unsupported(
                    "calls of different functions by address at once are not emulated",
                    where=f"line {end.line}: {end.text}",
                    remedy="call the function by name",
                )
            name = found
        called = self.program.functions.get(name)
        if called is None or called.function.is_declaration:
            raise Unsupported(
                f"the function {name} has no body in the file",
                where=f"line {end.line}: {end.text}",
                why="functions of CUDA's runtime on devices, such as printf, are not emulated",
                remedy="leave the call out, or link the function into the file",
            )
        return called

    def _return(self, numbers: Array) -> None:
        threads = self.threads
        depth = self._depth_of(numbers)
        called = self.program.functions[threads.frame.function]
        back = self._returns[depth - 1][numbers]
        for place in np.unique(back):
            some = numbers[back == place]
            call = self.program.instruction(int(place) - 1)
            caller = self.program.owner(int(place) - 1)
            frame = self._frame(depth - 1, caller)
            for wanted, given in zip(
                _names(call.operands[0]), called.function.results, strict=True
            ):
                source_at = (
                    some * threads.frame.stride + called.frame.offsets[given.name]
                )
                target_at = some * frame.stride + caller.frame.offsets[wanted]
                _copy(threads.frame, source_at, frame, target_at, given.bytes)
            threads.stack[some] -= -(-caller.local.bytes // 16) * 16
        self._pc[numbers] = back
        self._depth[numbers] = depth - 1

    # BlockBarriers of blocks.

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
                observer.met(self.threads, numbers, is_warp=True)
            if taken is None:
                return block.next
            self._pc[numbers] = block.next
            return None
        if "red" in end.modifiers:
            raise Unsupported(
                "barriers that reduce a predicate are not emulated",
                where=f"line {end.line}: {end.text}",
                remedy="reduce by atomics in shared memory",
            )
        owner = self.program.functions[self.threads.frame.function]
        which = source(end, end.operands[0], "u32", owner.registers)
        barrier = self._of(which, numbers).astype(np.int64)
        expected = np.zeros(len(numbers), np.int64)
        if len(end.operands) > 1:
            count = source(end, end.operands[1], "u32", owner.registers)
            expected = self._of(count, numbers).astype(np.int64)
        self._pc[numbers] = block.next
        if "arrive" in end.modifiers:
            self._barriers.arrive(numbers, barrier)
            return None
        self._barriers.wait(numbers, barrier, expected)
        self._state[numbers] = _WAITS
        return None

    def _release(self) -> None:
        """Let threads go on that wait, where no thread runs any more."""
        waiting = self._state == _WAITS
        is_released = False
        for numbers in self._barriers.complete(waiting, self._state == _ENDED):
            is_released = True
            self._check_warps(numbers)
            self._state[numbers] = _RUNS
            for observer in self.threads.around.observers:
                observer.met(self.threads, numbers, is_warp=False)
        if is_released:
            return
        gathering = self._state == _GATHERS
        if gathering.any():
            self._report_gathering(np.flatnonzero(gathering))
            self._is_forced = True
            self._state[gathering] = _RUNS
        elif waiting.any():
            self._report_stuck(np.flatnonzero(waiting))
            self._state[waiting] = _ENDED
            self.is_given_up = True

    def _check_warps(self, numbers: Array) -> None:
        """Report threads of one warp that wait at different instructions."""
        warps = numbers // WARP
        places = self._pc[numbers]
        starts = np.flatnonzero(np.diff(warps, prepend=-1))
        low = np.minimum.reduceat(places, starts)
        high = np.maximum.reduceat(places, starts)
        differ = np.flatnonzero(low != high)
        if not len(differ):
            return
        first = starts[differ[0]]
        lines = sorted(
            {
                self.program.instruction(int(one) - 1).line
                for one in places[warps == warps[first]]
            }
        )
        text = ", ".join(map(str, lines))
        self._report_at(
            BARRIER,
            self.program.instruction(int(places[first]) - 1),
            f"threads of a warp wait at different barriers, in the lines {text}",
            numbers[first : first + 1],
        )

    def _report_stuck(self, numbers: Array) -> None:
        """Report threads that wait at a barrier to which the others never come."""
        block = int(self.threads.block_of[numbers[0]])
        per_block = self.threads.per_block
        mine = slice(block * per_block, (block + 1) * per_block)
        waiting = numbers[self.threads.block_of[numbers] == block]
        ended = int(
            (self._state[mine] == _ENDED).sum() - (~self.threads.exists[mine]).sum()
        )
        places = self._barriers.describe(waiting)
        self._report_at(
            BARRIER,
            self.program.instruction(int(self._pc[waiting[0]]) - 1),
            f"a barrier waits forever: {places} of the block, {ended} have ended",
            waiting[:1],
        )

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
        mask = self._of(source(instruction, members, "u32", owner.registers), numbers)
        warps = numbers // WARP
        wanted = np.zeros(threads.count // WARP, np.uint32)
        np.bitwise_or.at(wanted, warps, mask)
        there = np.zeros_like(wanted)
        np.bitwise_or.at(
            there, warps, (np.uint32(1) << (numbers % WARP).astype(np.uint32))
        )
        alive = np.packbits(
            (self._state != _ENDED).reshape(-1, WARP), axis=1, bitorder="little"
        ).view(np.uint32)[:, 0]
        missing = (wanted & alive & ~there) != 0
        if not missing.any() or self._is_forced:
            self._is_forced = False
            return True
        # RunningWarps that lack threads wait as a whole. The others go on.
        is_late = self._chosen & np.repeat(missing, WARP)
        self._pc[is_late] = number
        self._state[is_late] = _GATHERS
        rest = self._chosen & ~is_late
        if not rest.any():
            return False
        self._pc[rest] = number
        self._choose(rest)
        self._is_alone = False
        return True

    def _report_gathering(self, numbers: Array) -> None:
        first = numbers[:1]
        instruction = self.program.instruction(int(self._pc[first[0]]))
        self._report_at(
            BARRIER,
            instruction,
            "threads of a warp that the member mask names never come to this instruction",
            numbers[self._pc[numbers] == self._pc[first[0]]],
        )

    # Reports.

    def _report_at(
        self, kind: str, instruction: PtxInstruction, what: str, numbers: Array
    ) -> None:
        """Report a finding of the threads of these numbers."""
        threads = self.threads
        owner = self.program.owner(int(self._pc[numbers[0]]) - 1)
        before = threads.at, threads.lanes, getattr(threads, "frame", None)
        threads.at = threads.lanes = numbers
        threads.frame = self._frame(int(self._depth[numbers[0]]), owner)
        threads.report(kind, instruction, what, np.ones(len(numbers), np.bool_))
        threads.at, threads.lanes = before[:2]
        if before[2] is not None:
            threads.frame = before[2]

    def _report_endless(self) -> None:
        """Report how many threads have not ended, and at which instructions they are."""
        alive = np.flatnonzero(self._state != _ENDED)
        waits = (self._state == _WAITS).astype(np.int64)
        places = self._pc - waits
        found, counts = np.unique(places[alive], return_counts=True)
        order = np.argsort(-counts, kind="stable")
        lines = [f"{self._watchdog.overrun()}; {len(alive)} threads still run"]
        for number, count in zip(
            found[order][:_MAX_PLACES], counts[order], strict=False
        ):
            instruction = self.program.instruction(int(number))
            lines.append(
                f"{count} threads at line {instruction.line}: {instruction.text}"
            )
        if len(found) > _MAX_PLACES:
            lines.append(f"... and at {len(found) - _MAX_PLACES} other instructions")
        lines.append(
            "a loop may never end, or wait for threads that cannot run; if the kernel is only "
            "slow, raise the limit (max_steps, max_seconds)"
        )
        place = found[order][0]
        here = alive[places[alive] == place]
        self._report_at(
            ENDLESS,
            self.program.instruction(int(place)),
            "\n    ".join(lines),
            here[:1],
        )


def _names(operand: Operand | None) -> list[str]:
    """Return the parameters that a call names."""
    if operand is None:
        return []
    parts = operand.parts if isinstance(operand, Vector) else (operand,)
    found = []
    for part in parts:
        if not isinstance(part, SymbolAddress):
            raise Unsupported(
                f"calls that pass {part} are not emulated",
                why="values are passed in .param variables",
                remedy="compile for sm_20 or later",
            )
        found.append(part.symbol)
    return found


def _copy(
    source: CallFrame, source_at: Array, target: CallFrame, target_at: Array, size: int
) -> None:
    """Copy parameters between frames, for some threads."""
    steps = np.arange(size)
    data = source.parameters.data[source_at[:, None] + steps]
    target.parameters.data[target_at[:, None] + steps] = data
    if source.parameters.known is not None and target.parameters.known is not None:
        known = source.parameters.known[source_at[:, None] + steps]
        target.parameters.known[target_at[:, None] + steps] = known
