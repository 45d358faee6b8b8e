"""Profiles of kernels that ran emulated: their cost on a card, its causes, and advice.

`refcomp.emulator.observers.counting` counts, and this room interprets the counts. Counts are exact.
An estimate follows from public figures of a card. It ignores latencies and the driver. Of caches it
assumes only that each segment of memory is read once.

Reading order:

- multiprocessor.py, cards.py: figures of cards
- limit.py, amd_clocks.py, nvidia_clocks.py, bound.py: the estimate
- listing.py: lines of schedule, loop IR, LLVM IR and machine code or PTX that belong together
- facts.py: accesses by kind, and their loops
- occupancy.py: waves that a SIMD holds, and warps that a multiprocessor holds
- advice.py: what to change in the schedule
- report.py: the report on a kernel, which combines all of these
- tables.py: the rows of its tables
- layers.py: the layers of a network
- text.py: tables for a terminal
- page.py: a page for a browser

Example::

    >>> profile = rc.Profile()
    >>> A = rc.placeholder((64,), name="A")
    >>> B = rc.compute((64,), lambda i: A[i] + 1.0, name="B")
    >>> s = rc.create_schedule(B)
    >>> s[B].bind(B.op.axis[0], rc.thread_axis("threadIdx.x"))
    >>> module = rc.build(s, [A, B], target="rocm -mcpu=gfx942", name="increment")
    >>> gpu = rc.rocm_emulator("gfx942", profile=profile)
    >>> module(rc.array(np.ones(64, "float32"), gpu), rc.empty(64, device=gpu))
    >>> report = rc.profile.report_of(profile.kernels[0], module, s)
    >>> print(rc.profile.report_to_text(report))
    kernel increment_kernel0 on gfx942: 1 launch, 1 group, 1 wave of 64; ...
    instructions of waves, by class
    ...
"""

from refcomp.profile.cards import CARDS, Card
from refcomp.profile.page import write_page
from refcomp.profile.report import ProfileReport, report_of
from refcomp.profile.text import report_to_text, reports_to_text

__all__ = [
    "CARDS",
    "Card",
    "ProfileReport",
    "report_of",
    "report_to_text",
    "reports_to_text",
    "write_page",
]
