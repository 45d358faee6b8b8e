"""Element-by-element work on f32 beside numpy, one thread each: memory speed, and maths.

GB/s counts each byte that the computation must read or write once. numpy gets its outputs given
(`out=`) and needs one pass over memory per operator, where refcomp fuses them. Lengths are symbolic
for refcomp, so that each of its vectors is masked against a tail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import refcomp
from benchmarks.fresh import call_fresh
from benchmarks.measure import interleave
from benchmarks.report import Row, Work, row_beside

_LANES = 16
_SIZES = {"L2": 1 << 16, "DRAM": 1 << 24}

Arrays = tuple[np.ndarray[Any, Any], ...]


def _numpy_fused(x: Any, y: Any, z: Any) -> None:
    np.multiply(x, 2.0, out=z)
    np.add(z, y, out=z)
    np.maximum(z, 0.0, out=z)


# Case -> (refcomp's computation, numpy's, the number of arrays that it touches, of three).
CASES: dict[str, tuple[Callable[[Any, Any], Any], Callable[..., object], int]] = {
    "a + b": (lambda a, b: a + b, lambda x, y, z: np.add(x, y, out=z), 3),
    "max(2 a + b, 0)": (lambda a, b: refcomp.maximum(a * 2.0 + b, 0.0), _numpy_fused, 3),
    "exp(a)": (lambda a, b: refcomp.exp(a), lambda x, y, z: np.exp(x, out=z), 2),
}


def measure(is_quick: bool) -> list[Row]:
    """Return a row for each case and size."""
    rows = []
    for place, size in _SIZES.items():
        for case, (_, _, arrays) in CASES.items():
            times = call_fresh(time_case, threads=1, case=case, size=size, is_quick=is_quick)
            work = Work(4e-9 * arrays * size, "GB")
            title = f"{case}, {place}"
            rows.append(
                row_beside(
                    "elementwise", title, times["refcomp"], "numpy", times["numpy"], work=work
                )
            )
    return rows


def time_case(case: str, size: int, is_quick: bool) -> dict[str, list[float]]:
    """Return the seconds per call of refcomp and of its peer, after comparing their results."""
    element, by_numpy, arrays = CASES[case]
    function = _build(element, arrays).entry
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(size, dtype=np.float32) for _ in range(2))
    ours, theirs = np.zeros(size, np.float32), np.zeros(size, np.float32)
    call = function.bind(*((x, y, ours) if arrays == 3 else (x, ours)))
    call()
    by_numpy(x, y, theirs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    # Both write the same memory from here on: in DRAM, the address changes times by some 30 %.
    return interleave(
        {"refcomp": call, "numpy": lambda: by_numpy(x, y, ours)},
        rounds=3 if is_quick else 15,
        least_s=0.01 if is_quick else 0.1,
    )


def _build(element: Callable[[Any, Any], Any], arrays: int) -> refcomp.runtime.Module:
    n = refcomp.var("n")
    a, b = (refcomp.placeholder((n,), name=letter) for letter in "AB")
    c = refcomp.compute((n,), lambda i: element(a[i], b[i]), name="C")
    schedule = refcomp.create_schedule(c)
    _, inner = schedule[c].split(c.op.axis[0], factor=_LANES)
    schedule[c].vectorize(inner)
    return refcomp.build(schedule, [a, b, c] if arrays == 3 else [a, c], "llvm", name="elementwise")
