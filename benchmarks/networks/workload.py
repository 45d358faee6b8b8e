"""Networks from ONNX files: seconds to code and to the first result, kernels, peak memory.

The networks are the light models of the package `onnx` with seeded weights (`light_models`). Each
run is a fresh process, and imports do not count. *Cold* has an empty compile cache, and counts
reading and compiling; for one network TVM does the same. *Cached* counts reading, compiling, and
the executor with its first run, beside ONNX Runtime's session with its first run.

All contenders' results are compared before anything is timed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.fresh import call_fresh
from benchmarks.light_models import names, save
from benchmarks.measure import figure_of, rotated
from benchmarks.networks.contenders import run_onnxruntime, run_refcomp, run_tvm
from benchmarks.report import Bar, Row, row_beside

_HELD = "resnet50"  # the network with bars, and with TVM beside it
_QUICK = (_HELD, "squeezenet")
_COLD, _CACHED, _PEAK = Bar(1.0, "ratio"), Bar(3.0, "ratio"), Bar(3.0)
_TO_CODE = ("read", "compile")
_TO_RESULT = (*_TO_CODE, "session", "machine code", "run")
# The largest difference of two results, in standard deviations of the network's outputs.
_DIFFERENCE = 1e-3

Run = dict[str, Any]  # what a function of `contenders` returns


@dataclass(frozen=True, slots=True)
class NetworkRuns:
    """The runs of one network: of each contender one a round. TVM may be missing."""

    network: str
    weight_bytes: int
    runs: Mapping[str, Sequence[Run]]  # cold, cached, onnxruntime, TVM
    without_tvm: str = ""  # why TVM is missing

    def seconds(self, contender: str, *stages: str) -> list[float]:
        """Return for each round the sum of these stages, as far as the contender has them."""
        return [sum(run["seconds"].get(s, 0.0) for s in stages) for run in self.runs[contender]]


def measure(is_quick: bool) -> list[Row]:
    """Return the rows of each network that the frontend reads, then how many it reads."""
    if find_spec("onnxruntime") is None:
        raise RuntimeError("onnxruntime is not installed: pip install 'refcomp[bench]'")
    rows: list[Row] = []
    unread: dict[str, str] = {}
    chosen = _QUICK if is_quick else (_HELD, *(name for name in names() if name != _HELD))
    for name in chosen:
        rounds = 1 if is_quick else 7 if name == _HELD else 3
        measured = measure_network(name, rounds, beside_tvm=name == _HELD)
        if isinstance(measured, str):
            unread[name] = measured
        else:
            rows += rows_of(measured)
    return [*rows, _readable_row(len(chosen), unread)]


def measure_network(name: str, rounds: int, beside_tvm: bool) -> NetworkRuns | str:
    """Return the runs of a network, or why the frontend cannot read it."""
    with tempfile.TemporaryDirectory(prefix="refcomp-bench-") as folder:
        made = call_fresh(save, name=name, folder=folder)
        path, cache = made["path"], f"{folder}/cache"
        contenders = {
            "cold": partial(_run_cold, path),
            "cached": partial(_run_with_cache, path, cache),
            "onnxruntime": partial(call_fresh, run_onnxruntime, path=path),
        }
        first = contenders["cached"]()
        if "unread" in first:
            return str(first["unread"])
        without_tvm = _why_without_tvm(path, first) if beside_tvm else "not asked for"
        if not without_tvm:
            contenders["TVM"] = partial(call_fresh, run_tvm, path=path)
        for other in ("cached", "onnxruntime"):
            _assert_equal(first, contenders[other]())
        runs: dict[str, list[Run]] = {contender: [] for contender in contenders}
        for turn in range(rounds):
            for contender in rotated(list(contenders), turn):
                runs[contender].append(contenders[contender]())
        return NetworkRuns(name, made["weight_bytes"], runs, without_tvm)


def _run_cold(path: str) -> Run:
    with tempfile.TemporaryDirectory(prefix="refcomp-bench-") as cache:
        return _run_with_cache(path, cache)


def _run_with_cache(path: str, cache: str) -> Run:
    run: Run = call_fresh(run_refcomp, path=path, environment={"REFCOMP_CACHE_DIR": cache})
    return run


def _why_without_tvm(path: str, first: Run) -> str:
    """Return why TVM cannot run the model; '' if it can. Raises if its result is another one."""
    if find_spec("tvm") is None:
        return "TVM is not installed: pip install 'refcomp[peers]'"
    try:
        theirs = call_fresh(run_tvm, path=path)
    except RuntimeError as error:
        return f"TVM cannot run the model: {str(error).splitlines()[0]}"
    _assert_equal(first, theirs)
    return ""


def _assert_equal(ours: Run, theirs: Run) -> None:
    wanted = np.array(theirs["result"])
    np.testing.assert_allclose(ours["result"], wanted, rtol=0, atol=_DIFFERENCE * wanted.std())


def rows_of(measured: NetworkRuns) -> list[Row]:
    """Return the rows of one network. Only one network is held to bars."""
    is_held = measured.network == _HELD
    rows = _rows_beside_tvm(measured) if is_held else [_cold_row(measured)]
    rows.append(
        row_beside(
            "networks",
            f"{measured.network}, cached, file to first result",
            measured.seconds("cached", *_TO_RESULT),
            "onnxruntime",
            measured.seconds("onnxruntime", *_TO_RESULT),
            bar=_CACHED if is_held else None,
            note=_stages_of(measured, "cached", "onnxruntime"),
        )
    )
    cold = measured.runs["cold"]
    later = figure_of([run["peak with run"] / measured.weight_bytes for run in cold]).median
    peaks = [run["peak"] / measured.weight_bytes for run in cold]
    rows.append(
        Row(
            "networks",
            f"{measured.network}, peak memory beside its weights",
            figure_of(peaks),
            bar=_PEAK if is_held else None,
            unit="",
            note=f"weights of {measured.weight_bytes / 1e6:.1f} MB; with the first run {later:.2f}",
        )
    )
    distinct, kernels = ([float(cold[-1][count])] for count in ("distinct", "kernels"))
    case = f"{measured.network}, distinct kernels"
    return [*rows, row_beside("networks", case, distinct, "kernels", kernels, unit="")]


def _cold_row(measured: NetworkRuns) -> Row:
    case = f"{measured.network}, cold, file to code"
    note = _stages_of(measured, "cold")
    return Row("networks", case, figure_of(measured.seconds("cold", *_TO_CODE)), note=note)


def _rows_beside_tvm(measured: NetworkRuns) -> list[Row]:
    if measured.without_tvm:
        return [replace(_cold_row(measured), bar=_COLD, note=measured.without_tvm)]
    peer = f"TVM {version('apache-tvm')}"
    cases = {
        "cold, file to code": (_TO_CODE, _COLD, _stages_of(measured, "cold", "TVM")),
        "cold, file to first result": (_TO_RESULT, None, ""),
        "imports, which no other row counts": (("import",), None, ""),
    }
    return [
        row_beside(
            "networks",
            f"{measured.network}, {case}",
            measured.seconds("cold", *stages),
            peer,
            measured.seconds("TVM", *stages),
            bar=bar,
            note=note,
        )
        for case, (stages, bar, note) in cases.items()
    ]


def _stages_of(measured: NetworkRuns, *contenders: str) -> str:
    """Return the median seconds of each stage as one line."""
    parts = []
    for contender in contenders:
        stages = measured.runs[contender][0]["seconds"]
        medians = [f"{s} {figure_of(measured.seconds(contender, s)).median:.2f}" for s in stages]
        parts.append(f"{contender}: {', '.join(medians)}")
    return f"seconds {'; '.join(parts)}"


def _readable_row(count: int, unread: Mapping[str, str]) -> Row:
    """Return the row of how many networks the frontend reads, which names the others."""
    case = f"light models that the frontend reads, of {count}"
    reasons = "; ".join(f"{name}: {' '.join(why.split())}" for name, why in unread.items())
    note = f"unread are {reasons}" if reasons else ""
    return Row("networks", case, figure_of([count - len(unread)]), unit="", note=note)
