"""The growth of the compiler's own time: lowering, passes and printing, without tools.

Programs of two shapes have 10 to 10,000 statements: a chain of stages with a loop each, and loops
that are unrolled into straight code. The growth is the exponent e of time ~ statements^e over the
two largest decades. It is 1 if the time is linear, and a note has the curve.

Two more programs have real schedules: the matrix product of `product` and the pipeline of
`corners`. The largest programs and these two are also compiled by an earlier commit (`earlier`).
All times are processor times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from time import process_time

import refcomp
from benchmarks.lowering.corners import describe_corners
from benchmarks.lowering.earlier import measure_beside
from benchmarks.lowering.product import describe_product
from benchmarks.measure import figure_of, interleave
from benchmarks.report import Bar, Row
from refcomp.codegen.llvm.module import print_llvm
from refcomp.driver.pipeline import run_passes
from refcomp.te.tensor import Tensor

_SIZES = (10, 100, 1000, 10000)
_GROWTH = Bar(1.15)
_PRODUCT, _SOON = (1024, 1024, 1024), Bar(0.1)
_IMAGE, _PIPELINE = (1080, 1920), Bar(0.2)
_LAYOUT = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
_LENGTH = 64
_COPIES = 250

Described = tuple[refcomp.Schedule, list[Tensor]]


def measure(is_quick: bool) -> list[Row]:
    """Return for each shape of program its times by size, then the exponent; then the others."""
    sizes = _SIZES[:-1] if is_quick else _SIZES
    rows = []
    for shape, describe in (("stages", chain_of_stages), ("unrolled", unrolled_bodies)):
        rows += _curve(shape, describe, sizes, rounds=1 if is_quick else 3)
    return [*rows, *_scheduled(rounds=3 if is_quick else 9), *measure_beside(is_quick)]


def _scheduled(rounds: int) -> list[Row]:
    """Measure the matrix product at the core's peak, and a pipeline with loops of all kinds."""
    programs = {"product": lambda: describe_product(*_PRODUCT)}
    programs["pipeline of nine stages"] = lambda: describe_corners(*_IMAGE)
    sizes, bars = (_PRODUCT, _IMAGE), (_SOON, _PIPELINE)
    with refcomp.build_options(contract=True):
        times = interleave(
            {case: lambda make=make: compile_to_text(*make()) for case, make in programs.items()},
            rounds=rounds,
            clock=process_time,
        )
    return [
        Row("lowering", f"{case}, {' x '.join(map(str, size))}", figure_of(times[case]), bar=bar)
        for case, size, bar in zip(programs, sizes, bars, strict=True)
    ]


def _curve(
    shape: str, describe: Callable[[int], Described], sizes: tuple[int, ...], rounds: int
) -> list[Row]:
    times = interleave(
        {str(size): partial(compile_described, describe, size) for size in sizes},
        rounds=rounds,
        clock=process_time,
    )
    rows = [
        Row("lowering", f"{shape}, {size:,} statements", figure_of(times[str(size)]))
        for size in sizes
    ]
    growth = [
        _exponent([(size, times[str(size)][k]) for size in sizes[-3:]]) for k in range(rounds)
    ]
    case = f"{shape}, exponent of growth"
    note = curve_of({size: figure_of(times[str(size)]).median for size in sizes})
    return [*rows, Row("lowering", case, figure_of(growth), bar=_GROWTH, unit="", note=note)]


def curve_of(seconds: Mapping[int, float]) -> str:
    """Return the curve in one line: the time of one statement, by the size of the program."""
    points = [f"{1e3 * s / size:.2f} at {size:,}" for size, s in seconds.items()]
    return f"milliseconds a statement: {', '.join(points)}"


def compile_described(describe: Callable[[int], Described], size: int) -> str:
    """Return the LLVM IR of the program that `describe` makes, with at least `size` stores."""
    text = compile_to_text(*describe(size))
    assert text.count("  store ") >= size
    return text


def compile_to_text(schedule: refcomp.Schedule, args: list[Tensor]) -> str:
    """Return the LLVM IR, which is all that refcomp makes before the first tool."""
    func = run_passes(refcomp.lower(schedule, args, "main"), "llvm")
    return print_llvm([func], triple="x86_64-pc-linux-gnu", layout=_LAYOUT, vector_bits=256).text


def chain_of_stages(count: int) -> Described:
    """Return `count` stages, each an output with one loop and one store, which reads the last."""
    tensors = [refcomp.placeholder((_LENGTH,), name="A")]
    for k in range(count):
        read = tensors[-1]
        tensors.append(
            refcomp.compute(
                (_LENGTH,), lambda i, read=read, k=k: read[i] * 2.0 + float(k), name=f"B{k}"
            )
        )
    return refcomp.create_schedule(tensors[1:]), tensors


def unrolled_bodies(count: int) -> Described:
    """Return stages of up to 250 elements whose loops are unrolled, with `count` stores in all."""
    length = min(count, _COPIES)
    args, outputs = [], []
    for k in range(count // length):
        a = refcomp.placeholder((length, 3), name=f"A{k}")
        c = refcomp.compute((length,), lambda i, a=a: a[i, 0] * a[i, 1] + a[i, 2], name=f"C{k}")
        args += [a, c]
        outputs.append(c)
    schedule = refcomp.create_schedule(outputs)
    for c in outputs:
        schedule[c].unroll(c.op.axis[0])
    return schedule, args


def _exponent(points: list[tuple[int, float]]) -> float:
    """Return the slope of the least-squares line through the points, both axes logarithmic."""
    xs = [math.log(size) for size, _ in points]
    ys = [math.log(seconds) for _, seconds in points]
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    covariance = sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True))
    return covariance / sum((x - x_mean) ** 2 for x in xs)
