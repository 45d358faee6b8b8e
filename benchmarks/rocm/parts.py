"""The parts of the check of an AMD GPU; each runs in a process of its own and returns JSON.

A GPU that meets bad code may end the process, so no part relies on an earlier one. A part raises if
something is wrong, and the report has the error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
from hypothesis import Phase

import refcomp
from benchmarks.measure import figure_of
from benchmarks.operators import CASES, OperatorCase
from benchmarks.rocm.product import RocBlas, build_product, peak_flops
from refcomp.driver.amd_resources import resources_of
from refcomp.foundation.errors import RefcompError
from refcomp.runtime.device import Device
from refcomp.runtime.hip.driver import HipDriver
from refcomp.runtime.timing import time_evaluator
from tests.properties.fuzz import fuzz_round

Report = dict[str, Any]
_COPIED = 256 << 20


def attempt(part: str, arguments: Report) -> Report:
    """Return the `report` of a part, or the text of its `failure`."""
    try:
        return {"report": globals()[part](**arguments)}
    except Exception as error:  # whatever a part can raise is a finding
        return {"failure": f"{type(error).__name__}: {error}"}


def look(gpus: list[str]) -> Report:
    """Report the driver, and the device if there is one."""
    gpu, driver = _gpu()
    found: Report = {"exists": gpu.exist, "driver": driver.library_details()}
    if gpu.exist:
        info = driver.info(0)
        return found | {"device": asdict(info), "peak_flops": peak_flops(info)}
    return found | dict(zip(("why", "remedy"), driver.absence(), strict=True))


def build(gpus: list[str]) -> Report:
    """Build every operator and the product for each of `gpus`; report seconds and resources."""
    return {arch: _build_for(f"rocm -mcpu={arch}") for arch in gpus}


def _build_for(target: str) -> Report:
    start = time.perf_counter()
    kernels = sum(len(case.build(target).imported_modules[0].kernel_names) for case in CASES)
    took = resources_of(build_product(256, target).imported_modules[0].code)
    seconds = time.perf_counter() - start
    return {"kernels": kernels, "seconds": seconds, "product": [asdict(one) for one in took]}


def move() -> Report:
    """Memory and streams: what goes to the GPU comes back, by every way there is."""
    gpu, driver = _gpu()
    rng = np.random.default_rng(3)
    values = rng.integers(0, 256, 1 << 20, np.uint8)
    ways = {
        "there and back": lambda: refcomp.array(values, gpu).asnumpy(),
        "on the device": lambda: refcomp.array(values, gpu).copyto(gpu).asnumpy(),
        "by streams": lambda: _by_streams(driver, values),
    }
    wrong = [way for way, result in ways.items() if not np.array_equal(result(), values)]
    filled = np.zeros(100, np.uint8)
    memory = driver.allocate(0, 100)
    driver.fill(0, memory, 0xA5, 100)
    driver.download(0, memory, filled)
    wrong += [] if (filled == 0xA5).all() else ["filled"]
    return _refuse(wrong, {"ways": [*ways, "filled"]})


def _by_streams(driver: HipDriver, values: Any) -> Any:
    """Up in one stream, down in another that waits for it."""
    up, down = driver.stream(0), driver.stream(0)
    there, back = driver.pinned(0, values.shape, np.uint8), driver.pinned(0, values.shape, np.uint8)
    there[:] = values
    memory = driver.allocate(0, values.nbytes)
    up.upload(there, memory)
    down.wait(up.record())
    down.download(memory, back)
    down.sync()
    return back.copy()


def operators() -> Report:
    """Compare each operator with numpy; report its largest error over its bound."""
    gpu, driver = _gpu()
    target = f"rocm -mcpu={driver.arch(0)}"
    worst = {case.name: _worst(case, target, gpu) for case in CASES}
    wrong = [name for name, off in worst.items() if isinstance(off, str) or not off <= 1]
    return _refuse(wrong, {"worst": worst})


def _worst(case: OperatorCase, target: str, gpu: Device) -> float | str:
    """Return the largest error over its bound, or why the operator could not run.

    An operator that cannot run must not keep the others from running.
    """
    try:
        return case.worst(case.run(case.build(target), gpu))
    except (RefcompError, MemoryError) as error:
        return str(error)


def properties(seed: int, count: int) -> Report:
    """Random schedules; the program of the first one whose result is not numpy's.

    It is not made smaller: whoever has the program can do that.
    """
    ran, program = fuzz_round("rocm", seed, count, (Phase.generate,))
    if program:
        raise AssertionError(f"after {ran} schedules:\n{program}")
    return {"ran": ran, "seed": seed}


def figures(sizes: list[int], rounds: int) -> Report:
    """Measure copies, memory and products of matrices, by the GPU's own clock."""
    gpu, driver = _gpu()
    peak = peak_flops(driver.info(0))
    products = {str(n): _product(n, gpu, rounds, peak) for n in sizes}
    return {"memory": _memory(driver, rounds), "products": products}


def _memory(driver: HipDriver, rounds: int) -> Report:
    """GB/s: between host and GPU, pinned and not, and within the GPU (read and written)."""
    size = _COPIED
    first, second = driver.allocate(0, size), driver.allocate(0, size)
    plain, pinned = np.zeros(size, np.uint8), driver.pinned(0, (size,), np.uint8)
    ways: dict[str, tuple[Callable[[], None], int]] = {
        "to the GPU": (lambda: driver.upload(0, plain, first), size),
        "to the GPU, pinned": (lambda: driver.upload(0, pinned, first), size),
        "from the GPU, pinned": (lambda: driver.download(0, first, pinned), size),
        "on the GPU": (lambda: driver.copy(0, first, 0, second, size), 2 * size),
    }
    return {
        way: asdict(figure_of([moved / driver.seconds(0, copy) / 1e9 for _ in range(rounds)]))
        for way, (copy, moved) in ways.items()
    }


def _product(n: int, gpu: Device, rounds: int, peak: float | None) -> Report:
    """Tflop/s of ours and of rocBLAS, in turns, after their results were compared."""
    rng = np.random.default_rng(0)
    a, b = (refcomp.array(rng.uniform(-1, 1, (n, n)).astype(np.float32), gpu) for _ in "AB")
    ours, theirs = (refcomp.empty((n, n), "float32", gpu) for _ in "ab")
    driver: Any = gpu.driver
    module, work = build_product(n, f"rocm -mcpu={driver.arch(0)}"), 2e-12 * n**3
    module(a, b, ours)
    time_ours = time_evaluator(module.entry, gpu, 3, rounds, 20)(a, b, ours)
    rates = [work / seconds for seconds in time_ours.results]
    report: Report = {"Tflop/s": asdict(figure_of(rates))}
    if peak is not None:
        report["of the peak"] = float(np.median(rates)) * 1e12 / peak
    return report | _beside_rocblas((a, b, ours, theirs), gpu, rounds, work)


def _beside_rocblas(arrays: Any, gpu: Device, rounds: int, work: float) -> Report:
    a, b, ours, theirs = arrays
    try:
        library = RocBlas()
    except OSError as error:
        return {"rocBLAS": str(error)}
    driver: Any = gpu.driver
    library.product(a, b, theirs)
    off = np.abs(ours.asnumpy() - theirs.asnumpy()).max()
    times = [driver.seconds(0, lambda: library.product(a, b, theirs)) for _ in range(rounds)]
    library.close()
    figure = asdict(figure_of([work / seconds for seconds in times]))
    return {"rocBLAS Tflop/s": figure, "greatest difference": float(off)}


def emulated(arch: str) -> Report:
    """Compare the emulator with the card: report the elements whose bits differ, by operator."""
    gpu, _ = _gpu()
    try:
        other = refcomp.rocm_emulator(arch)
    except RefcompError as error:
        return {"skipped": str(error)}
    differing = {case.name: _differing(case, arch, gpu, other) for case in CASES}
    exact = {case.name for case in CASES if not case.tolerance}
    wrong = [name for name, found in differing.items() if found and name in exact]
    return _refuse(wrong, {"differing elements": differing})


def _differing(case: OperatorCase, arch: str, gpu: Device, other: Device) -> int | str:
    module = case.build(f"rocm -mcpu={arch}")
    try:
        card, emulator = (case.run(module, device) for device in (gpu, other))
    except RefcompError as error:
        return str(error)
    return int((card != emulator).sum())


def _refuse(wrong: list[str], report: Report) -> Report:
    if wrong:
        raise AssertionError(f"wrong: {', '.join(wrong)}; {report}")
    return report


def _gpu() -> tuple[Device, HipDriver]:
    gpu = refcomp.rocm(0)
    driver: Any = gpu.driver
    return gpu, driver


def plan(is_quick: bool, gpus: list[str], seed: int) -> Iterator[tuple[str, Report]]:
    """Yield the parts that need a card, in order, with their arguments."""
    count, sizes, rounds = (40, [1024], 3) if is_quick else (1000, [1024, 2048, 4096, 8192], 15)
    yield "move", {}
    yield "operators", {}
    yield "properties", {"seed": seed, "count": count}
    yield "figures", {"sizes": sizes, "rounds": rounds}
    yield "emulated", {"arch": gpus[0]}
