"""Cold builds for AMD GPUs, which need not be there: one kernel, a large one, and many at once."""

from __future__ import annotations

import runpy
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import refcomp
from benchmarks.fresh import ROOT
from benchmarks.measure import seconds_per_call
from refcomp.building import build
from refcomp.runtime.module import Module
from refcomp.schedule.schedule import create_schedule

_GROUP, _MANY = 64, 50
_SCRIPT = ROOT / "scripts" / "walkthroughs" / "tiled_gemm_rocm.py"


def add_times() -> list[float]:
    """Return the seconds of two builds: of a vector add, and of another one."""
    return [seconds_per_call(partial(build_add, name, "rocm")) for name in ("add", "plus")]


def product_times() -> list[float]:
    """Return the seconds of two builds: of a tiled product of matrices, and of another one."""
    compile_kernel = runpy.run_path(str(_SCRIPT))["compile_kernel"]
    return [
        seconds_per_call(partial(compile_kernel, "rocm -mcpu=gfx942", n=n)) for n in (1024, 2048)
    ]


def many_times() -> list[float]:
    """Return the seconds of building many kernels one by one, and as many others by two threads."""
    build_add("first", "rocm")
    with ThreadPoolExecutor(2) as pool:
        return [
            seconds_per_call(lambda: [build_add(f"a{k}", "rocm", k) for k in range(1, _MANY + 1)]),
            seconds_per_call(lambda: [*pool.map(_build_other, range(1, _MANY + 1))]),
        ]


def _build_other(number: int) -> Module:
    return build_add(f"b{number}", "rocm", number)


def build_add(name: str, target: str, more: int = 0) -> Module:
    """a + b, and `more` to make it another one."""
    n = refcomp.var("n")
    a, b = (refcomp.placeholder((n,), name=letter) for letter in "AB")
    c = refcomp.compute(
        (n,), lambda i: a[i] + b[i] + float(more) if more else a[i] + b[i], name="C"
    )
    schedule = create_schedule(c)
    group, item = schedule[c].split(c.op.axis[0], factor=_GROUP)
    schedule[c].bind(group, refcomp.thread_axis("blockIdx.x"))
    schedule[c].bind(item, refcomp.thread_axis("threadIdx.x"))
    module: Module = build(schedule, [a, b, c], target, name=name)
    return module
