#!/usr/bin/env python3
"""Runs of whole networks beside ONNX Runtime: seconds and peak memory, by threads and batch.

    benchmarks/run.py inference                                       all: some minutes
    benchmarks/inference/workload.py resnet50 vgg19 --threads 1       a part of it
    benchmarks/inference/workload.py --threads 1 2 --batches 1 --no-memory

The networks are the light models of the package `onnx` with seeded weights (`light_models`). Each
pair of a network and its batch is compiled once; then each number of threads is a fresh process, in
which both contenders take turns. Peaks of memory are those of fresh processes, each with one
contender that loads the model and runs it three times; imports do not count.

The script also has the options --json and --check of benchmarks/run.py. Its exit codes: 0 done, 1
with --check when a bar was missed or nothing could be measured, 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from benchmarks.fresh import call_fresh
from benchmarks.inference.contenders import peak_of, time_network
from benchmarks.light_models import names, save
from benchmarks.machine import describe_machine
from benchmarks.report import Bar, Row, Work, row_beside
from benchmarks.run import main as run_benchmarks

_HELD = "resnet50"
# At most so many times ONNX Runtime's time, for the held network, any other, and all on average.
_HELD_BAR, _ANY_BAR, _MEAN_BAR = (Bar(most, "ratio") for most in (0.95, 1.3, 1.0))
_PEAK_BAR = Bar(1.2, "ratio")
_QUICK = ("squeezenet",)


@dataclass(frozen=True, slots=True)
class Choice:
    """The part of the benchmark that runs."""

    models: Sequence[str]
    threads: Sequence[int]
    batches: Sequence[int]
    rounds: int = 9
    least_s: float = 0.2  # of each contender in each round
    has_memory: bool = True


@dataclass(frozen=True, slots=True)
class NetworkTimes:
    """The measurements of a network with one batch and one number of threads."""

    model: str
    batch: int
    threads: int
    seconds: Mapping[str, Sequence[float]]  # contender -> seconds of a run, one value a round
    # "refcomp", "onnxruntime", and "cold" for refcomp with an empty cache -> bytes; may be empty
    peaks: Mapping[str, int] = field(default_factory=dict)

    @property
    def case(self) -> str:
        """Return the words for the network in the table."""
        return _case_of(self.model, self.batch, self.threads)


def measure(is_quick: bool) -> list[Row]:
    """Return the rows of all light models, on one thread and on all cores, for 1 and 8 images."""
    threads = sorted({1, len(os.sched_getaffinity(0))})
    if is_quick:
        return measure_choice(Choice(_QUICK, threads, (1,), rounds=2, least_s=0.0))
    return measure_choice(Choice(names(), threads, (1, 8)))


def measure_choice(choice: Choice) -> list[Row]:
    """Return the rows of a part of the benchmark, and means over its models where there are more.

    Raises:
        RuntimeError: ONNX Runtime is not installed, or a contender failed.
    """
    if find_spec("onnxruntime") is None:
        raise RuntimeError("onnxruntime is not installed: pip install 'refcomp[bench]'")
    measured = [
        times
        for model in choice.models
        for batch in choice.batches
        for times in measure_network(model, batch, choice)
    ]
    return rows_of(measured)


def measure_network(model: str, batch: int, choice: Choice) -> Iterator[NetworkTimes]:
    """Yield what is measured of a network, for each number of threads."""
    with tempfile.TemporaryDirectory(prefix="refcomp-bench-") as folder:
        path = call_fresh(save, name=model, folder=folder, batch=batch)["path"]
        cache = {"REFCOMP_CACHE_DIR": f"{folder}/cache"}
        peak = partial(call_fresh, peak_of, path=path, environment=cache)
        cold = peak(contender="refcomp", threads=1, intra_op_threads=1)  # fills the cache
        for threads in choice.threads:
            seconds = call_fresh(
                time_network,
                threads=threads,
                environment=cache,
                path=path,
                intra_op_threads=threads,
                rounds=choice.rounds,
                least_s=choice.least_s,
            )
            peaks = {}
            if choice.has_memory:
                peaks = {
                    contender: peak(contender=contender, threads=threads, intra_op_threads=threads)
                    for contender in ("refcomp", "onnxruntime")
                }
                peaks["cold"] = cold
            yield NetworkTimes(model, batch, threads, seconds, peaks)


def rows_of(measured: Sequence[NetworkTimes]) -> list[Row]:
    """Return two rows of each measurement, then the means over the networks."""
    rows = []
    for times in measured:
        rows.append(_time_row(times))
        if times.peaks:
            rows.append(_peak_row(times))
    groups: dict[tuple[int, int], list[NetworkTimes]] = {}
    for times in measured:
        groups.setdefault((times.batch, times.threads), []).append(times)
    return rows + [_mean_row(group) for group in groups.values() if len(group) > 1]


def _time_row(times: NetworkTimes) -> Row:
    return row_beside(
        "inference",
        times.case,
        times.seconds["refcomp"],
        "onnxruntime",
        times.seconds["onnxruntime"],
        work=Work(times.batch, "images"),
        bar=_HELD_BAR if times.model == _HELD else _ANY_BAR,
    )


def _peak_row(times: NetworkTimes) -> Row:
    sizes = {contender: size / 1e6 for contender, size in times.peaks.items()}
    return row_beside(
        "inference",
        f"{times.case}, peak MB",
        [sizes["refcomp"]],
        "onnxruntime",
        [sizes["onnxruntime"]],
        unit="",
        bar=_PEAK_BAR,
        note=f"{sizes['cold']:.0f} MB where refcomp also compiles, with an empty cache",
    )


def _mean_row(group: Sequence[NetworkTimes]) -> Row:
    """Return the row of geometric means over the networks, formed within each round."""
    ours, theirs = (
        np.exp(np.log([times.seconds[contender] for times in group]).mean(axis=0)).tolist()
        for contender in ("refcomp", "onnxruntime")
    )
    case = _case_of(f"geometric mean of {len(group)}", group[0].batch, group[0].threads)
    return row_beside("inference", case, ours, "onnxruntime", theirs, bar=_MEAN_BAR)


def _case_of(name: str, batch: int, threads: int) -> str:
    return f"{name}, batch {batch}, {threads} thread{'s' * (threads > 1)}"


def main(argv: Sequence[str], machine: Callable[[], dict[str, Any]] = describe_machine) -> int:
    """Run the part of the benchmark that `argv` requests, and return the exit code."""
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description="Times networks beside ONNX Runtime.")
    parser.add_argument("models", nargs="*", help=f"of {', '.join(names())}; default all")
    add = partial(parser.add_argument, type=int, metavar="N", help="default: %(default)s")
    add("--threads", nargs="+", default=sorted({1, cores}))
    add("--batches", nargs="+", default=[1, 8])
    add("--rounds", default=9)
    parser.add_argument("--no-memory", action="store_true", help="leave out the peaks of memory")
    parser.add_argument("--json", metavar="FILE", help="as of benchmarks/run.py")
    parser.add_argument("--check", action="store_true", help="exit code 1 when a bar is missed")
    asked = parser.parse_args(argv)
    for name in asked.models:
        if name not in names():
            parser.error(f"no light model {name}; there are {', '.join(names())}")
    if min(*asked.threads, *asked.batches, asked.rounds) < 1:
        parser.error("threads, batches and rounds are numbers of at least 1")
    choice = Choice(
        models=asked.models or names(),
        threads=asked.threads,
        batches=asked.batches,
        rounds=asked.rounds,
        has_memory=not asked.no_memory,
    )
    workloads = {"inference": lambda _: measure_choice(choice)}
    options = ["--check"] * asked.check
    if asked.json:
        options += ["--json", asked.json]
    return run_benchmarks(["inference", *options], workloads, machine=machine)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
