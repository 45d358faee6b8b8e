"""The parts of the check of an NVIDIA GPU; each runs in a process of its own and returns JSON.

A kernel that traps ends the context of its process, so no part relies on an earlier one. A part
raises if something is wrong, and the report has the error. A part that measures returns `rows`, as
`benchmarks/report.py` has them.

With the environment variable of `STAND_IN`, a recording takes the place of the GPU. It computes
nothing, so results are not compared then; `benchmarks.cuda.check` drops all its times.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import refcomp
from benchmarks.cuda.kernels import (
    BATCH,
    LAYERS,
    ConvolutionLayer,
    build_addition,
    build_convolution,
    build_product,
    build_product_of_halves,
)
from benchmarks.cuda.libraries import LAYOUTS, CuBlas, CuDnnConvolution, NotFound
from benchmarks.cuda.timing import Call, buffer_sets, interleave_events
from benchmarks.measure import figure_of
from benchmarks.operators import CASES, OperatorCase
from benchmarks.report import Bar, Row, Work, row_beside
from refcomp.foundation.errors import RefcompError
from refcomp.runtime.cuda.driver import CudaDriver
from refcomp.runtime.device import Device
from refcomp.runtime.module import Module
from refcomp.topi.contraction.dense import gemm, gemm_numpy
from refcomp.topi.convolution.conv2d import conv2d_nhwc, conv2d_nhwc_numpy

Report = dict[str, Any]
STAND_IN = "REFCOMP_GPU_CHECK_STAND_IN"
MIN_SHARE_OF_COPY = 0.92  # of the bandwidth of a copy
MIN_SHARE_OF_CUBLAS = 0.85
MIN_SHARE_OF_CUBLAS_F16 = 0.70
MAX_TIMES_CUDNN = 1.5
_BUILDERS = 8
_TILED: Sequence[OperatorCase] = (
    OperatorCase("gemm_tiled", ((256, 128), (128, 256)), gemm, gemm_numpy, tolerance=1e-4),
    OperatorCase(
        "conv2d_tiled",
        ((4, 8, 8, 32), (3, 3, 32, 64)),
        lambda x, w: conv2d_nhwc(x, w, padding=(1, 1, 1, 1)),
        lambda x, w: conv2d_nhwc_numpy(x, w, padding=(1, 1, 1, 1)),
        tolerance=1e-4,
    ),
)


def attempt(part: str, arguments: Report) -> Report:
    """Return the `report` of a part, or the text of its `failure`."""
    try:
        return {"report": PARTS[part](**arguments)}
    except Exception as error:  # whatever a part can raise is a finding
        return {"failure": f"{type(error).__name__}: {error}"}


def look() -> Report:
    """Report the driver, and the device if there is one."""
    _, driver = _gpu()
    if _is_stand_in():
        return {
            "exists": True,
            "driver": {},
            "device": {"name": "stand-in", "arch": driver.arch(0)},
        }
    found: Report = {"exists": driver.count() > 0, "driver": driver.library_details()}
    if found["exists"]:
        return found | {"device": asdict(driver.info(0))}
    return found | dict(zip(("why", "remedy"), driver.absence(), strict=True))


def build(archs: list[str]) -> Report:
    """Compile every kernel that is measured, and every operator, for each of `archs`."""
    start = time.perf_counter()
    for arch in archs:
        target = f"cuda -arch={arch}"
        build_addition(1 << 28, target)
        build_product(4096, target)
        build_product_of_halves(4096, target)
        _in_threads(lambda layer, target=target: build_convolution(layer, target), LAYERS)
        _in_threads(lambda case, target=target: _built(case, target), (*CASES, *_TILED))
    return {"archs": archs, "seconds": round(time.perf_counter() - start, 2)}


def operators() -> Report:
    """Compare each operator with numpy, by both kinds of schedules; report the largest errors."""
    gpu, driver = _gpu()
    target = f"cuda -arch={driver.arch(0)}"
    cases = (*CASES, *_TILED)
    modules = _in_threads(lambda case: _built(case, target), cases)
    worst = {
        case.name: _worst(case, module, gpu) for case, module in zip(cases, modules, strict=True)
    }
    return _judged(worst)


def _judged(worst: dict[str, float | str]) -> Report:
    """Return the largest errors; AssertionError if one is above its bound, or a case failed."""
    if _is_stand_in():
        return {"worst": "not compared: a stand-in computes nothing", "ran": [*worst]}
    wrong = [name for name, off in worst.items() if isinstance(off, str) or not off <= 1]
    if wrong:
        raise AssertionError(f"wrong: {', '.join(wrong)}; {worst}")
    return {"worst": worst}


def _built(case: OperatorCase, target: str) -> Module | str:
    try:
        return case.build(target, lambda result: refcomp.topi.schedule_cuda([result]))
    except RefcompError as error:
        return str(error)


def _worst(case: OperatorCase, module: Module | str, gpu: Device) -> float | str:
    """Return the largest error over its bound, or why the operator could not run."""
    if isinstance(module, str):
        return module
    try:
        return case.worst(case.run(module, gpu))
    except (RefcompError, MemoryError) as error:
        return str(error)


def _in_threads(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    with ThreadPoolExecutor(_BUILDERS) as pool:
        return list(pool.map(function, items))


def properties(seed: int, seconds: float) -> Report:
    """Run random schedules for about `seconds`; fail with the program of the first wrong one."""
    if _is_stand_in():
        return {"skipped": "a stand-in computes nothing"}
    # Slow to import, and hypothesis may be missing.
    from hypothesis import Phase  # noqa: PLC0415

    from tests.properties.fuzz import fuzz_round  # noqa: PLC0415

    until, ran, number = time.monotonic() + seconds, 0, seed
    while time.monotonic() < until:
        count, program = fuzz_round("nvidia", number, 10, (Phase.generate,))
        if program:
            raise AssertionError(f"after {ran} schedules:\n{program}")
        ran, number = ran + count, number + 1
    return {"ran": ran, "seed": seed}


def carried(folder: str) -> Report:
    """Run modules that were compiled beforehand, such as PTX of the target nvptx."""
    gpu, _ = _gpu()
    known = {case.name: case for case in (*CASES, *_TILED)}
    worst: dict[str, float | str] = {}
    for path in sorted(Path(folder).glob("*.refcomp")):
        try:
            module: Module | str = refcomp.load_module(path)
        except RefcompError as error:
            module = str(error)
        worst[path.stem] = _worst(known[path.stem.partition(".")[0]], module, gpu)
    return _judged(worst) if worst else {"skipped": f"no modules in {folder}"}


def addition(count: int, rounds: int, least_s: float) -> Report:
    """Measure C = A + B beside the driver's copy, per byte that is read or written."""
    gpu, driver = _gpu()
    size = 4 * count
    sets = buffer_sets(3 * size, driver.info(0).free_bytes)
    module = build_addition(count, f"cuda -arch={driver.arch(0)}")
    values = [_random(number, (count,)) for number in (1, 2)]
    buffers = [
        (*(refcomp.array(v, gpu) for v in values), refcomp.empty((count,), "float32", gpu))
        for _ in range(sets)
    ]
    module(*buffers[0])
    _compare("addition", buffers[0][2].asnumpy(), values[0] + values[1], 0.0)
    memory = [(driver.allocate(0, size), driver.allocate(0, size)) for _ in range(sets)]
    contenders = {
        "ours": [_bound(module, gpu, three) for three in buffers],
        "copy": [lambda a=a, b=b: driver.copy(0, a, 0, b, size) for a, b in memory],
    }
    taken = interleave_events(driver, contenders, rounds, least_s)
    # A copy of `size` bytes moves 2 * size, the addition 3 * size.
    copies = [seconds * 3 / 2 for seconds in taken["copy"]]
    row = row_beside(
        "cuda addition",
        f"{count} f32",
        taken["ours"],
        "cuMemcpyDtoD, for as many bytes",
        copies,
        work=Work(3 * size / 1e9, "GB"),
        bar=Bar(1 / MIN_SHARE_OF_COPY, of="ratio"),
    )
    return {"rows": [asdict(row)], "sets": sets}


def product(n: int, rounds: int, least_s: float) -> Report:
    """Measure C = A B for matrices of f32, beside cuBLAS without TF32."""
    return _product(n, rounds, least_s, "float32", MIN_SHARE_OF_CUBLAS)


def product_f16(n: int, rounds: int, least_s: float) -> Report:
    """Measure C = A B for matrices of f16 with sums in f32 on tensor cores, beside cuBLAS."""
    return _product(n, rounds, least_s, "float16", MIN_SHARE_OF_CUBLAS_F16)


def _product(n: int, rounds: int, least_s: float, dtype: str, share: float) -> Report:
    gpu, driver = _gpu()
    sets = buffer_sets(12 * n * n, driver.info(0).free_bytes)
    build_it = build_product if dtype == "float32" else build_product_of_halves
    module = build_it(n, f"cuda -arch={driver.arch(0)}")
    operands = [_random(number, (n, n)).astype(dtype) for number in (1, 2)]
    buffers = [
        (*(refcomp.array(v, gpu) for v in operands), refcomp.empty((n, n), "float32", gpu))
        for _ in range(sets)
    ]
    module(*buffers[0])
    ours = buffers[0][2].asnumpy()
    some = np.random.default_rng(3).integers(0, n, 32)
    wanted = operands[0][some].astype(np.float64) @ operands[1].astype(np.float64)
    # Rounding of sums of n products, each at most 1. Tensor cores may truncate.
    tolerance = 1e-3 if dtype == "float32" else 1e-2
    _compare("product", ours[some], wanted, tolerance)
    contenders = {"ours": [_bound(module, gpu, three) for three in buffers]}
    found = _library(CuBlas, driver)
    if not isinstance(found, str):
        multiply = found.product if dtype == "float32" else found.product_of_halves
        contenders["peer"] = [
            _in_context(driver, multiply, n, *(array.address for array in three))
            for three in buffers
        ]
        contenders["peer"][0]()
        _compare("cuBLAS", buffers[0][2].asnumpy(), ours, 2 * tolerance)
    taken = interleave_events(driver, contenders, rounds, least_s)
    row = _row(
        *(f"cuda product {dtype}", f"{n} x {n} x {n}", taken, "cuBLAS", found),
        Work(2e-12 * n**3, "Tflop"),
        Bar(1 / share, of="ratio"),
    )
    return {"rows": [asdict(row)], "sets": sets, "peer": getattr(found, "version", found)}


def convolution(layers: list[int], batch: int, rounds: int, least_s: float) -> Report:
    """Measure 3 x 3 convolutions of ResNet-50 beside the faster layout of cuDNN without TF32."""
    rows, peers = [], {}
    for number in layers:
        row, peer = _convolution(LAYERS[number], batch, rounds, least_s)
        rows.append(asdict(row))
        peers[LAYERS[number].title] = peer
    return {"rows": rows, "peers": peers}


def _convolution(
    layer: ConvolutionLayer, batch: int, rounds: int, least_s: float
) -> tuple[Row, str]:
    gpu, driver = _gpu()
    shape = (batch, layer.size, layer.size, layer.channels)
    module = build_convolution(layer, f"cuda -arch={driver.arch(0)}", batch)
    x = _random(1, shape)
    w = _random(2, (3, 3, layer.channels, layer.channels))
    sets = buffer_sets(2 * x.nbytes, driver.info(0).free_bytes)
    weights = refcomp.array(w, gpu)
    buffers = [
        (refcomp.array(x, gpu), weights, refcomp.empty(shape, "float32", gpu)) for _ in range(sets)
    ]
    module(*buffers[0])
    _compare(layer.title, buffers[0][2].asnumpy()[:1], _one_image(x, w), 1e-3)
    contenders = {"ours": [_bound(module, gpu, three) for three in buffers]}
    found = _library(lambda: _fastest_layout(layer, batch), driver)
    if not isinstance(found, str):
        # The layouts of data and weights are cuDNN's; its time does not depend on the values.
        room = driver.allocate(0, found.workspace_bytes)
        contenders["peer"] = [
            _in_context(driver, found.run, *(a.address for a in three), room.address)
            for three in buffers
        ]
    taken = interleave_events(driver, contenders, rounds, least_s)
    row = _row(
        *("cuda convolution f32", layer.title, taken, "cuDNN", found),
        Work(layer.gflop / 1e3 * batch / BATCH, "Tflop"),
        Bar(MAX_TIMES_CUDNN, of="ratio"),
    )
    peer = found if isinstance(found, str) else f"algorithm {found.algorithm}"
    return row, peer


def _fastest_layout(layer: ConvolutionLayer, batch: int) -> CuDnnConvolution:
    made = {name: CuDnnConvolution(name, batch, layer.size, layer.channels) for name in LAYOUTS}
    return min(made.values(), key=lambda one: one.find())


def _one_image(x: Any, w: Any) -> Any:
    return conv2d_nhwc_numpy(x[:1], w, padding=(1, 1, 1, 1))


def _row(
    workload: str,
    case: str,
    taken: dict[str, list[float]],
    peer: str,
    found: Any,
    work: Work,
    bar: Bar,
) -> Row:
    """Return the row of a measurement, without a ratio and bar if there was no library."""
    if isinstance(found, str):
        return Row(workload, case, figure_of(taken["ours"]), work=work, note=found)
    return row_beside(workload, case, taken["ours"], peer, taken["peer"], work=work, bar=bar)


def _library(make: Callable[[], Any], driver: CudaDriver) -> Any:
    """Return what `make` returns, or why it is not there."""
    if _is_stand_in():
        return "not called: a stand-in has no libraries"
    try:
        with driver.open(0).use("opening a library"):
            return make()
    except NotFound as error:
        return str(error)


def _in_context(driver: CudaDriver, function: Callable[..., None], *arguments: Any) -> Call:
    context = driver.open(0)

    def call() -> None:
        with context.use("a call of a library"):
            function(*arguments)

    return call


def _bound(module: Module, gpu: Device, arguments: Sequence[Any]) -> Call:
    return module.entry.on(gpu).bind(*arguments)


def _random(number: int, shape: tuple[int, ...]) -> Any:
    values = np.random.default_rng(number).random(shape, np.float32)
    return values * np.float32(2) - np.float32(1)


def _compare(name: str, found: Any, wanted: Any, tolerance: float) -> None:
    """Raise AssertionError if an element is off by more than `tolerance`, or is NaN."""
    if _is_stand_in():
        return
    off = float(np.abs(found - wanted).max(initial=0.0))
    assert off <= tolerance, f"{name}: off by {off}, at most {tolerance} expected"


def _is_stand_in() -> bool:
    return os.environ.get(STAND_IN, "0") == "1"


def _gpu() -> tuple[Device, CudaDriver]:
    if _is_stand_in():
        from tests.runtime.cuda.recording_pycuda import (  # noqa: PLC0415  only in a dry run
            RecordingPycuda,
            driver_of,
        )

        driver = driver_of(RecordingPycuda())
        return Device("stand-in", 0, driver), driver
    gpu = refcomp.cuda(0)
    found: Any = gpu.driver
    return gpu, found


_PARTS = (look, build, operators, addition, product, product_f16, convolution, carried, properties)
PARTS: dict[str, Callable[..., Report]] = {part.__name__: part for part in _PARTS}
