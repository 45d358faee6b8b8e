"""Runs of kernels by the interpreter and by translated code, compared to the bit."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from refcomp.driver.host_tools import kernel_tools
from refcomp.emulator.limits import Limits
from refcomp.emulator.ptx.execution.launch import PtxReport
from refcomp.emulator.ptx.run import EmulatedNvidiaGpu
from refcomp.emulator.ptx.translation.engine import TranslationCounts

AT_ONCE = replace(kernel_tools(), hot=0)


@dataclass(frozen=True)
class Both:
    """The outcome of both runs, which was the same."""

    report: PtxReport
    counts: TranslationCounts
    arguments: list[Any]  # after the runs


def run_both(text, arguments, grid=1, block=32, kernel="k", *, is_watched=True, **options):
    """Run a kernel by the interpreter and by translated code; compare arrays and findings."""
    limits = Limits(steps=options.pop("steps", 10**6), seconds=60.0)
    extents = [e if isinstance(e, tuple) else (e, 1, 1) for e in (grid, block)]
    found = []
    for tools in (None, AT_ONCE):
        gpu = EmulatedNvidiaGpu(size=16 << 20, is_watched=is_watched, tools=tools)
        loaded = gpu.load(text)
        given = copy.deepcopy(arguments)
        for old, new in zip(arguments, given, strict=True):
            if isinstance(old, np.ndarray):
                new.flags.writeable = old.flags.writeable
        report = gpu.run(loaded, kernel, *extents, given, limits=limits, **options)
        found.append((loaded, given, report))
    (_, expected, usual), (loaded, actual, report) = found
    assert list(map(str, report.findings)) == list(map(str, usual.findings))
    for ours, theirs in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
    return Both(report, loaded.runner.counts, actual)
