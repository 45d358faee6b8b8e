"""Time a lane instruction of PTX beside one of AMD's machine code, on emulated GPUs, in one run.

    python -m benchmarks.emulator.lane_rates
    python -m benchmarks.emulator.lane_rates --rounds 31 --json FILE

The kernels are the product of matrices of `benchmarks.emulator.kernels`, for gfx942 and as PTX by
both targets that make it. Hot code is translated before the timed runs. Times are processor times,
since one thread runs and never waits. The result of each kernel is compared with numpy's first. The
exit code is 1 if a median of PTX is above 1.5 times that of gfx942.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from benchmarks.emulator.kernels import Ready, ReadyPtx, product, ptx_product
from benchmarks.emulator.workload import lane_instructions
from benchmarks.machine import describe_machine
from benchmarks.measure import interleave

ARCH = "gfx942"
TARGETS = ("nvptx -code=ptx", "cuda -code=ptx")
MAX_RATIO = 1.5
_SIZES = ((128, 1), (256, 4))  # rows of a matrix, elements of a thread in each direction
_LEAST_S = 0.02  # the least time of a turn, in seconds: much longer than a tick of the clock


@dataclass(frozen=True, slots=True)
class LaneRate:
    """The time of a lane instruction of one kernel on one emulated GPU.

    Attributes:
        case: the name of the kernel, with a note if undefined bits are checked.
        target: the target that made the code.
        lane_instructions: the number of lane instructions of a run.
        ns: the processor time of a lane instruction in ns, the median of all rounds.
        ratio: `ns` divided by that of gfx942.
    """

    case: str
    target: str
    lane_instructions: int
    ns: float
    ratio: float

    def __str__(self) -> str:
        return (
            f"{self.case:44} {self.target:16} {self.ns:6.3f} ns, {1 / self.ns:5.2f} G lane "
            f"instructions a second, {self.ratio:.2f} times {ARCH}"
        )


def measure(n: int, each: int, *, is_watched: bool, rounds: int) -> list[LaneRate]:
    """Time a product of n x n matrices on all GPUs, in turns."""
    ready: dict[str, Ready | ReadyPtx] = {ARCH: product(n, each, ARCH, is_watched=is_watched)}
    for target in TARGETS:
        ready[target] = ptx_product(n, each, target, is_watched=is_watched)
    lanes = {name: lane_instructions(one) for name, one in ready.items()}
    times = interleave(
        {name: one.run for name, one in ready.items()},
        rounds=rounds,
        least_s=_LEAST_S,
        clock=time.process_time,
    )
    ns = {name: 1e9 * median(times[name]) / lanes[name] for name in ready}
    checks = "checked" if is_watched else "unchecked"
    case = f"product of {n} x {n}, {each} x {each} a thread, {checks}"
    return [LaneRate(case, name, lanes[name], ns[name], ns[name] / ns[ARCH]) for name in ready]


def main(arguments: Sequence[str] | None = None) -> int:
    """Time all cases; return the exit code."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15, help="turns of each kernel")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows to this file")
    given = parser.parse_args(arguments)
    machine = describe_machine()
    rows: list[LaneRate] = []
    for n, each in _SIZES:
        for is_watched in (False, True):
            found = measure(n, each, is_watched=is_watched, rounds=given.rounds)
            rows += found
            for row in found:
                print(row, flush=True)
    if given.json is not None:
        kept = {"machine": machine, "rows": [asdict(row) for row in rows]}
        given.json.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return int(any(row.ratio > MAX_RATIO for row in rows))


if __name__ == "__main__":
    sys.exit(main())
