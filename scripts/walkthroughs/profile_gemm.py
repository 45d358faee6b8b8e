#!/usr/bin/env python3
"""Profiles of a naive and a tiled product of matrices, for a card that this machine does not have.

    profile_gemm.py [PAGE.html]

Each runs on an emulated GPU, which counts what every instruction does. The counts are exact; what
they mean on a card is an estimate. Read them from top to bottom. Does the kernel multiply and add,
or do other things? Does memory move what was requested? Do lanes wait for banks of shared memory?
Which part of the card is the limit, and how far is it from the peak? PAGE.html shows it line by
line. Needs LLVM and its lld, but no GPU. Exit code: 1 when a result is wrong.
"""

import sys

import numpy as np
from tiled_gemm_rocm import describe, schedule_tiles

import refcomp as rc
from refcomp.profile import report_of, write_page

N = 256
TAGS = ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")


def schedule_naive(A, B, C):
    """Let a thread compute each element of C from global memory alone."""
    s = rc.create_schedule(C)
    for axis, tag in zip(s[C].tile(*C.op.axis, 4, 64), TAGS, strict=True):
        s[C].bind(axis, rc.thread_axis(tag))
    return s


def profile(make_schedule, name):
    """Return the report on one call of the product, and whether its result is right."""
    A, B, C = describe(N)
    schedule = make_schedule(A, B, C)
    with rc.build_options(contract=True):
        module = rc.build(schedule, [A, B, C], "rocm -mcpu=gfx942", name=name)
    counts = rc.Profile()
    gpu = rc.rocm_emulator("gfx942", profile=counts)
    random = np.random.default_rng(0)
    a, b = (random.integers(-4, 5, (N, N)).astype(np.float32) for _ in "AB")
    c = rc.array(np.zeros((N, N), np.float32), gpu)
    module(rc.array(a, gpu), rc.array(b, gpu), c)
    report = report_of(counts.kernels[0], module, schedule, card="MI300X")
    return report, bool((c.asnumpy() == a.T @ b).all())


def tell(name, report):
    """Print the numbers to look at first."""
    counts, bound = report.counts, report.bound
    by_class = dict(report.classes())
    vectors = by_class["VALU FMA"] + by_class["other VALU"]
    moved = sum(one.access.transactions for one in counts.accesses("global"))
    shared = [one.access for one in counts.accesses("shared")]
    clocks, waiting = (sum(getattr(a, n) for a in shared) for n in ("clocks", "conflicts"))
    print(f"== {name} ==")
    print(f"multiply-adds                    {counts.fmas} (N * N * N is {N**3})")
    print(f"of vector instructions           {by_class['VALU FMA'] / vectors:.0%} multiply and add")
    print(f"transactions of global memory    {moved} of {counts.segment} bytes")
    asked = f"{report.efficiency:.0%} (each lane that asks for a byte counts)"
    print(f"of the bytes moved, asked for    {asked}")
    print(f"clocks of shared memory          {clocks}, {waiting} of them for bank conflicts")
    print(f"waves a SIMD at a time           {report.resources.waves} (estimate)")
    times = ", ".join(f"{n} {unit_time(bound, n):.0f}" for n in bound.seconds)
    print(f"microseconds of compute units    {times}: the limit is {bound.limit} (estimate)")
    for advice in report.advice:
        print(f"- {advice.what}\n  what to do: {advice.remedy}")


def unit_time(bound, limit):
    """Return the microseconds of one compute unit alone: this N is too small for all of them."""
    return 1e6 * bound.seconds[limit] * bound.units


def main() -> int:
    """Profile both; return the exit code."""
    reports = []
    for name, make_schedule in (("naive", schedule_naive), ("tiled", schedule_tiles)):
        report, is_right = profile(make_schedule, name)
        tell(name, report)
        reports.append(report)
        if not is_right:
            print("the result is wrong")
            return 1
    naive, tiled = (unit_time(report.bound, report.bound.limit) for report in reports)
    print(f"by the estimate the tiled one takes {tiled / naive:.0%} of the naive one's time")
    if len(sys.argv) > 1:
        write_page(sys.argv[1], reports)
    return 0


if __name__ == "__main__":
    sys.exit(main())
