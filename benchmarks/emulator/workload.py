"""The emulated AMD GPU: products of matrices, a small launch, the digit network, and decoding.

A lane instruction is one instruction, executed by one lane. Hot code is translated to code of this
host before anything is timed. The peer is numpy: a multiplication and an addition of as many
elements. A checked run also looks for bits that nothing wrote; every run finds accesses out of
bounds. Products and launches are timed in seconds of the processor, since one thread computes them
and never waits.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable

import numpy as np

import refcomp
from benchmarks.emulator.kernels import (
    Ready,
    ReadyPtx,
    build_product,
    code_of,
    product,
    vector_add,
)
from benchmarks.fresh import ROOT
from benchmarks.measure import figure_of, interleave, seconds_per_call
from benchmarks.report import Bar, Row, Work, row_beside
from refcomp.emulator import ARCHITECTURES
from refcomp.emulator.code.assembly import read_assembly
from refcomp.foundation.artifacts import Binary
from refcomp.foundation.cache import Cache
from refcomp.frontend.onnx import from_onnx
from refcomp.graph.compile import compile_graph
from refcomp.graph.executor import GraphExecutor
from refcomp.toolchain import disassemble

_ARCH, _NARROW = "gfx942", "gfx1100"  # waves of 64 lanes, and of 32
_NAME, _PEER = "emulator", "numpy, as many elements"
_TILE = (256, 64)  # waves and lanes that run together
# Lane instructions in a second; seconds.
_UNCHECKED, _CHECKED, _PRODUCT, _LAUNCH, _DIGITS = 1.0e9, 0.4e9, 0.5, 5e-3, 10.0
_WARM_RUNS = 3  # after which hot code is translated
_BESIDE = Bar(1.5, of="ratio")
_IMAGES = 64
_FOLDER = ROOT / "scripts" / "data" / "digits"


def measure(is_quick: bool) -> list[Row]:
    """Return all rows. The result of each kernel is compared with numpy's first."""
    rounds = 3 if is_quick else 15
    rows = [
        _rate_row(product(128, 1, _ARCH, is_watched=False), "unchecked", rounds, _UNCHECKED),
        _rate_row(product(128, 1, _ARCH, is_watched=True), "checked", rounds, _CHECKED),
        _product_row("", product(512, 4, _ARCH, is_watched=False), rounds // 2, Bar(_PRODUCT)),
        _product_row(
            ", fused", product(512, 4, _ARCH, is_watched=False, is_fused=True), rounds // 2
        ),
    ]
    if _NARROW in ARCHITECTURES:
        rows.append(_narrow_row(rounds))
    digits = _digits_row(2 if is_quick else 5)
    return [*rows, _launch_row(4 * rounds), digits, _decoding_row(rounds)]


def _rate_row(ready: Ready, checks: str, rounds: int, least: float) -> Row:
    """Measure the product of 256 waves. The bar is `least` lane instructions a second."""
    lanes = lane_instructions(ready)
    ours, theirs = _beside_numpy(ready, lanes, rounds)
    work, bar = Work(1e-6 * lanes, "M lane instructions"), Bar(lanes / least)
    case = f"product of 128 x 128 by 256 waves, {checks}"
    return row_beside(_NAME, case, ours, _PEER, theirs, work=work, bar=bar)


def _product_row(kind: str, ready: Ready, rounds: int, bar: Bar | None = None) -> Row:
    """Measure the product of 512 x 512. Hot code does a fused multiply-add by `llvm.fma`."""
    lanes = lane_instructions(ready)
    ours, theirs = _beside_numpy(ready, lanes, rounds)
    work = Work(1e-6 * lanes, "M lane instructions")
    case = f"product of 512 x 512, 4 x 4 a thread, unchecked{kind}"
    return row_beside(_NAME, case, ours, _PEER, theirs, work=work, bar=bar)


def _narrow_row(rounds: int) -> Row:
    """Measure the seconds of a lane instruction in waves of 32 lanes. The peer: waves of 64."""
    both = {arch: product(128, 1, arch, is_watched=False) for arch in (_NARROW, _ARCH)}
    lanes = {arch: lane_instructions(ready) for arch, ready in both.items()}
    runs = {arch: ready.run for arch, ready in both.items()}
    times = interleave(runs, rounds=rounds, clock=time.process_time)
    each = {arch: [s / lanes[arch] for s in times[arch]] for arch in both}
    case = f"a lane instruction of a product, {_NARROW}"
    return row_beside(_NAME, case, each[_NARROW], _ARCH, each[_ARCH], bar=_BESIDE)


def lane_instructions(ready: Ready | ReadyPtx) -> int:
    """Count the lane instructions of a run, after comparing its result with numpy's.

    Hot code is translated afterwards.
    """
    for _ in range(_WARM_RUNS):
        report = ready.run()
    if report.findings:
        raise AssertionError(f"found: {report.findings[0]}")
    a, b, c = ready.arrays
    expected = a @ b if a.ndim == 2 else a + b
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)
    return report.steps * ready.lanes


def _beside_numpy(ready: Ready, elements: int, rounds: int) -> tuple[list[float], list[float]]:
    runs = {"ours": ready.run, "theirs": multiplications_and_additions(elements)}
    times = interleave(runs, rounds=rounds, clock=time.process_time)
    return times["ours"], times["theirs"]


def multiplications_and_additions(elements: int) -> Callable[[], None]:
    """Return a call that multiplies and adds `elements` floats in arrays of the emulator's size."""
    a, b, c, result = np.random.default_rng(1).uniform(-1, 1, (4, *_TILE)).astype(np.float32)

    def compute() -> None:
        for _ in range(elements // a.size):
            np.multiply(a, b, out=result)
            np.add(result, c, out=result)

    return compute


def _launch_row(rounds: int) -> Row:
    ready = vector_add(1024, _ARCH, is_watched=True)
    lane_instructions(ready)
    times = interleave({"ours": ready.run}, rounds=rounds, clock=time.process_time)["ours"]
    case = "a launch: vector add of 1,024 elements, checked"
    return Row(_NAME, case, figure_of(times), bar=Bar(_LAUNCH))


def _digits_row(rounds: int) -> Row:
    graph = from_onnx(str(_FOLDER / "digits.onnx"))
    images = np.load(_FOLDER / "digits_test.npz")["image"][:_IMAGES]
    here = GraphExecutor(compile_graph(graph, "llvm"))
    gpu = refcomp.rocm_emulator(_ARCH)
    there = GraphExecutor(compile_graph(graph, f"rocm -mcpu={_ARCH}"), gpu)
    results = [e.run(image=images)[0].asnumpy() for e in (here, there)]
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-5)
    runs = {"ours": lambda: there.run(image=images)}
    times = interleave(runs, rounds=rounds, clock=time.process_time)["ours"]
    case = f"digit network, {_IMAGES} images, checked"
    work = Work(_IMAGES, "images")
    return Row(_NAME, case, figure_of(times), work=work, bar=Bar(_DIGITS))


def _decoding_row(rounds: int) -> Row:
    """Measure the decoding of a code object with its text in the cache, beside without."""
    binary = Binary(code_of(build_product(512, 4, _ARCH)), "hsaco")
    warm: list[float] = []
    cold: list[float] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="refcomp-bench-") as folder:
            for seconds in (cold, warm):
                seconds.append(seconds_per_call(lambda at=folder: decode(binary, Cache(at))))
    case = "decoding a product's code, known already"
    return row_beside(_NAME, case, warm, "not known", cold)


def decode(binary: Binary, cache: Cache) -> int:
    """Return the number of instructions of a code object."""
    return len(read_assembly(disassemble(binary, cache=cache)))
