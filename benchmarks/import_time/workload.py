"""The time of `import refcomp` in a process that has imported numpy already.

Each process is a fresh one, and numpy's own import stands beside it. The second case loads every
public name, which an import leaves until its first use.
"""

from __future__ import annotations

from benchmarks.fresh import run_python
from benchmarks.report import Bar, Row, row_beside

_CHILD = """
import time
start = time.perf_counter()
import numpy
middle = time.perf_counter()
import refcomp
{then}
print(middle - start, time.perf_counter() - middle)
"""
_CASES = {
    "import refcomp": "",
    "and load every public name": "[getattr(refcomp, name) for name in refcomp.__all__]",
}


def measure(is_quick: bool) -> list[Row]:
    """Return one row for each case. The bar is for the import alone."""
    rounds = 3 if is_quick else 15
    samples: dict[str, list[tuple[float, float]]] = {case: [] for case in _CASES}
    for _ in range(rounds):
        for case, then in _CASES.items():
            samples[case].append(_import_seconds(then))
    rows = []
    for case, pairs in samples.items():
        theirs, ours = zip(*pairs, strict=True)
        bar = Bar(0.2) if case == "import refcomp" else None
        rows.append(row_beside("import_time", case, ours, "import numpy", theirs, bar=bar))
    return rows


def _import_seconds(then: str) -> tuple[float, float]:
    """Return the seconds of importing numpy, and then refcomp, in a process of their own."""
    text = run_python(["-c", _CHILD.format(then=then)])
    numpy_s, refcomp_s = map(float, text.split())
    return numpy_s, refcomp_s
