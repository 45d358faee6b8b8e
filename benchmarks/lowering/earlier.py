"""The same programs compiled by an earlier commit of refcomp, in turns with the present files.

Each compilation is a process of its own. The commit's files come from the clone's history into a
temporary folder; the clone itself stays as it is.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.fresh import ROOT, run_python
from benchmarks.measure import figure_of, rotated
from benchmarks.report import Bar, Row, row_beside
from benchmarks.unpack import unpack

# 2026-11-23, "Tell users and readers about CUDA and NVPTX": the last commit before work on the
# compiler's own speed.
BEFORE = "0e662e03fcc6d210713a8817bc90a0a30873e6c2"
_SCRIPT = Path(__file__).with_name("compile_seconds.py")
_PRESENT = "present"
_THIRD = Bar(0.33, "ratio")
_STATEMENTS, _FEW_STATEMENTS = 10_000, 300
_PRODUCT, _HEIGHT = 1024, 1080  # as in the rows without the commit

Run = dict[str, Any]  # what `compile_seconds` prints


def measure_beside(is_quick: bool, commit: str = BEFORE, clone: Path = ROOT) -> list[Row]:
    """Return a row for each program, beside the commit. If the clone lacks it, the rows say so."""
    size = _FEW_STATEMENTS if is_quick else _STATEMENTS
    # The arguments of `compile_seconds`, and the bar.
    cases: dict[str, tuple[list[str], Bar | None]] = {
        f"stages, {size:,} statements": (["stages", str(size), "1"], _THIRD),
        f"unrolled, {size:,} statements": (["unrolled", str(size), "1"], _THIRD),
        "product": (["product", str(_PRODUCT), "5"], None),
        "pipeline of nine stages": (["pipeline", str(_HEIGHT), "5"], None),
    }
    with _earlier_files(commit, clone) as (earlier, why):
        trees = {_PRESENT: ROOT} | ({commit: earlier} if earlier else {})
        return [
            _row(case, _runs(trees, arguments, 1 if is_quick else 3), commit, bar, why)
            for case, (arguments, bar) in cases.items()
        ]


@contextmanager
def _earlier_files(commit: str, clone: Path) -> Iterator[tuple[Path | None, str]]:
    """Yield a folder with the files of the commit and ''; or None and why there is none."""
    with tempfile.TemporaryDirectory(prefix="refcomp-bench-") as folder:
        packed, files = Path(folder, "files.tar"), Path(folder, "files")
        command = ["git", "-C", str(clone), "archive", "-o", str(packed), commit]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
        except (OSError, subprocess.CalledProcessError) as error:
            said = str(getattr(error, "stderr", "") or error).strip()
            yield None, f"no commit {commit[:8]}: {said}; a shallow clone: git fetch --unshallow"
            return
        unpack(packed, files)
        yield files, ""


def _runs(trees: Mapping[str, Path], arguments: Sequence[str], rounds: int) -> dict[str, list[Run]]:
    """Return the runs of each tree, one a round, in turns."""
    runs: dict[str, list[Run]] = {tree: [] for tree in trees}
    for turn in range(rounds):
        for tree in rotated(list(trees), turn):
            runs[tree].append(_run(trees[tree], arguments))
    return runs


def _run(tree: Path, arguments: Sequence[str]) -> Run:
    printed = run_python([str(_SCRIPT), *arguments], {"PYTHONPATH": str(tree)})
    run: Run = json.loads(printed)
    if not Path(run["from"]).is_relative_to(tree):
        raise RuntimeError(f"the refcomp of {tree} was to be timed, not {run['from']}")
    return run


def _row(
    case: str, runs: Mapping[str, Sequence[Run]], commit: str, bar: Bar | None, why: str
) -> Row:
    seconds = {tree: [run["seconds"] for run in made] for tree, made in runs.items()}
    title = f"{case}, beside an earlier commit"
    if commit not in runs:
        return Row("lowering", title, figure_of(seconds[_PRESENT]), bar=bar, note=why)
    digests = {run["digest"] for made in runs.values() for run in made}
    note = "" if len(digests) == 1 else "the texts of the two differ"
    peer, theirs = f"commit {commit[:8]}", seconds[commit]
    return row_beside("lowering", title, seconds[_PRESENT], peer, theirs, bar=bar, note=note)
