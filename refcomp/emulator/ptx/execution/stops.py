"""Reports of threads that stopped at different places, that wait for others, or that never end."""

from __future__ import annotations

import numpy as np

from refcomp.emulator.code.findings import BARRIER, ENDLESS
from refcomp.emulator.limits import Watchdog
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.ptx.execution.calls import ThreadCalls
from refcomp.emulator.ptx.execution.program import BoundProgram
from refcomp.emulator.ptx.execution.progress import ENDED, WAITS, ThreadProgress
from refcomp.emulator.ptx.machine.threads import WARP, BlockThreads
from refcomp.emulator.ptx.text.module import PtxInstruction
from refcomp.foundation.counted import counted

_MAX_PLACES = 8  # instructions that a finding lists


class StopReports:
    """Reports on the threads of some blocks, as findings of the launch."""

    def __init__(
        self,
        threads: BlockThreads,
        program: BoundProgram,
        progress: ThreadProgress,
        calls: ThreadCalls,
    ) -> None:
        self._threads = threads
        self._program = program
        self._progress = progress
        self._calls = calls

    def check_warps(self, numbers: Array) -> None:
        """Report threads of one warp that wait at different instructions."""
        warps = numbers // WARP
        places = self._progress.pc[numbers]
        starts = np.flatnonzero(np.diff(warps, prepend=-1))
        low = np.minimum.reduceat(places, starts)
        high = np.maximum.reduceat(places, starts)
        differ = np.flatnonzero(low != high)
        if not len(differ):
            return
        first = starts[differ[0]]
        lines = sorted(
            {
                self._program.instruction(int(one) - 1).line
                for one in places[warps == warps[first]]
            }
        )
        text = ", ".join(map(str, lines))
        self._report_at(
            BARRIER,
            self._program.instruction(int(places[first]) - 1),
            f"threads of a warp wait at different barriers, in the lines {text}",
            numbers[first : first + 1],
        )

    def report_stuck(self, numbers: Array, places: str) -> None:
        """Report threads that wait at a barrier at which the others never arrive.

        Args:
            numbers: the numbers of all threads that wait.
            places: a text on the barriers at which the threads of the first block wait.
        """
        block = int(self._threads.block_of[numbers[0]])
        per_block = self._threads.per_block
        mine = slice(block * per_block, (block + 1) * per_block)
        ended = int(
            (self._progress.state[mine] == ENDED).sum()
            - (~self._threads.exists[mine]).sum()
        )
        self._report_at(
            BARRIER,
            self._program.instruction(int(self._progress.pc[numbers[0]]) - 1),
            f"a barrier waits forever: {places} of the block, {ended} have ended",
            numbers[:1],
        )

    def report_gathering(self, numbers: Array) -> None:
        """Report threads that wait for others of their warp, which never arrive."""
        first = numbers[:1]
        instruction = self._program.instruction(int(self._progress.pc[first[0]]))
        self._report_at(
            BARRIER,
            instruction,
            "threads of a warp that the member mask names never come to this instruction",
            numbers[self._progress.pc[numbers] == self._progress.pc[first[0]]],
        )

    def report_endless(self, watchdog: Watchdog) -> None:
        """Report the number of threads that have not ended, and the instructions where they are."""
        alive = np.flatnonzero(self._progress.state != ENDED)
        waits = (self._progress.state == WAITS).astype(np.int64)
        places = self._progress.pc - waits
        found, counts = np.unique(places[alive], return_counts=True)
        order = np.argsort(-counts, kind="stable")
        running = counted(len(alive), "thread")
        lines = [f"{watchdog.overrun()}; {running} still running"]
        for number, count in zip(
            found[order][:_MAX_PLACES], counts[order], strict=False
        ):
            instruction = self._program.instruction(int(number))
            place = f"line {instruction.line}: {instruction.text}"
            lines.append(f"{counted(count, 'thread')} at {place}")
        if len(found) > _MAX_PLACES:
            others = counted(len(found) - _MAX_PLACES, "other instruction")
            lines.append(f"... and at {others}")
        lines.append(
            "a loop may never end, or wait for threads that cannot run; if the kernel is only "
            "slow, raise the limit (max_steps, max_seconds)"
        )
        place = found[order][0]
        here = alive[places[alive] == place]
        self._report_at(
            ENDLESS,
            self._program.instruction(int(place)),
            "\n    ".join(lines),
            here[:1],
        )

    def report_counts(
        self, instruction: PtxInstruction, numbers: Array, count: int, other: int
    ) -> None:
        """Report threads that name a different count at a barrier from the threads before them."""
        what = (
            f"a barrier is for {count} threads here, and for {other} where others wait"
        )
        self._report_at(BARRIER, instruction, what, numbers)

    def _report_at(
        self, kind: str, instruction: PtxInstruction, what: str, numbers: Array
    ) -> None:
        """Report a finding of the threads of these numbers."""
        threads = self._threads
        first = numbers[0]
        waits = self._progress.state[first] == WAITS  # behind the instruction
        owner = self._program.owner(int(self._progress.pc[first]) - int(waits))
        before = threads.at, threads.lanes, getattr(threads, "frame", None)
        threads.at = threads.lanes = numbers
        threads.frame = self._calls.frame(int(self._progress.depth[first]), owner)
        threads.report(kind, instruction, what, np.ones(len(numbers), np.bool_))
        threads.at, threads.lanes = before[:2]
        if before[2] is not None:
            threads.frame = before[2]
