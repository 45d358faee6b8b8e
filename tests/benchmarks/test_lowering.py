"""The programs whose compilation is timed: they mean what they say, and their curve is told."""

import hashlib
import io
import json
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest

import refcomp
from benchmarks.fresh import ROOT, run_python
from benchmarks.lowering import earlier
from benchmarks.lowering.corners import describe_corners
from benchmarks.lowering.earlier import BEFORE, measure_beside
from benchmarks.lowering.workload import (
    chain_of_stages,
    compile_described,
    compile_to_text,
    curve_of,
    unrolled_bodies,
)
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import PARALLEL, VECTORIZED, For
from refcomp.te.operation import ComputeOp


def corners(image):
    """The response by slices."""
    height, width = image.shape

    def at(array, y, x):
        return array[y : y + array.shape[0] - 2, x : x + array.shape[1] - 2]

    ix = sum(w * (at(image, k, 2) - at(image, k, 0)) for k, w in enumerate((1, 2, 1)))
    iy = sum(w * (at(image, 2, k) - at(image, 0, k)) for k, w in enumerate((1, 2, 1)))
    xx, xy, yy = (
        sum(at(product, k // 3, k % 3) for k in range(9)) for product in (ix * ix, ix * iy, iy * iy)
    )
    assert xx.shape == (height - 4, width - 4)
    return xx * yy - xy * xy - 0.04 * (xx + yy) * (xx + yy)


@pytest.mark.search
def test_the_pipeline_computes_corners_in_nine_stages():
    schedule, args = describe_corners(39, 23)
    assert sum(isinstance(stage.op, ComputeOp) for stage in schedule.stages) == 9
    loops = [node for node in walk(refcomp.lower(schedule, args).body) if isinstance(node, For)]
    assert sum(loop.kind == PARALLEL for loop in loops) == 1
    assert sum(loop.kind == VECTORIZED for loop in loops) == 9
    image = np.random.default_rng(0).integers(-2, 3, (39, 23)).astype(np.float32)
    response = np.zeros((35, 19), np.float32)
    refcomp.build(schedule, args, "interp")(image, response)
    np.testing.assert_array_equal(response, corners(image))


@pytest.mark.parametrize("describe", [chain_of_stages, unrolled_bodies])
def test_programs_of_the_curve_have_as_many_statements(describe):
    small, large = (compile_described(describe, size).count("  store ") for size in (4, 12))
    assert (small, large) == (4, 12)


@pytest.mark.search
def test_the_pipeline_is_compiled_to_vectors():
    assert "<16 x float>" in compile_to_text(*describe_corners(64, 64))


def test_the_curve_is_told_in_one_line():
    told = curve_of({10: 0.02, 1000: 1.5})
    assert told == "milliseconds a statement: 2.00 at 10, 1.50 at 1,000"


def test_a_program_is_timed_in_the_tree_that_is_given():
    """The digest is that of the text, so it shows whether two trees print the same."""
    script = str(ROOT / "benchmarks" / "lowering" / "compile_seconds.py")
    printed = run_python([script, "stages", "12", "1"], {"PYTHONPATH": str(ROOT)})
    run = json.loads(printed)
    assert set(run) == {"seconds", "digest", "from"}
    assert run["seconds"] > 0
    assert Path(run["from"]) == ROOT / "refcomp" / "__init__.py"
    with refcomp.build_options(contract=True):
        text = compile_described(chain_of_stages, 12)
    assert run["digest"] == hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def archived(monkeypatch):
    """Let git write an archive with one file, and list the commands."""
    commands = []

    def write_archive(command, **options):
        commands.append(command)
        with tarfile.open(command[command.index("-o") + 1], "w") as archive:
            file = tarfile.TarInfo("refcomp/__init__.py")
            archive.addfile(file, io.BytesIO())

    monkeypatch.setattr(earlier.subprocess, "run", write_archive)
    return commands


def answer_with(monkeypatch, seconds):
    """Answer for each tree: `seconds` of the present one and of the other, and its own digest."""

    def run_python(arguments, environment):
        tree = Path(environment["PYTHONPATH"])
        assert (tree / "refcomp" / "__init__.py").exists()
        answer = {"seconds": seconds[tree != ROOT], "digest": "", "from": str(tree / "refcomp")}
        if "product" in arguments:
            answer["digest"] = str(tree)
        return json.dumps(answer)

    monkeypatch.setattr(earlier, "run_python", run_python)


def test_programs_are_compiled_beside_the_commit(monkeypatch, archived):
    answer_with(monkeypatch, (1.0, 4.0))
    rows = measure_beside(is_quick=False)
    assert [(row.case, row.note) for row in rows] == [
        ("stages, 10,000 statements, beside an earlier commit", ""),
        ("unrolled, 10,000 statements, beside an earlier commit", ""),
        ("product, beside an earlier commit", "the texts of the two differ"),
        ("pipeline of nine stages, beside an earlier commit", ""),
    ]
    assert {(row.peer, row.ratio.median, row.is_met) for row in rows} == {
        ("commit 0e662e03", 0.25, True)
    }
    assert [row.bar and row.bar.at_most for row in rows] == [0.33, 0.33, None, None]
    (command,) = archived
    assert command[-1] == BEFORE and "archive" in command
    answer_with(monkeypatch, (2.0, 4.0))
    assert [row.is_met for row in measure_beside(True)] == [False, False, True, True]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FileNotFoundError("no git"), "no git"),
        (
            subprocess.CalledProcessError(128, "git", stderr="fatal: not a tree\n"),
            "fatal: not a tree",
        ),
    ],
)
def test_a_clone_without_the_commit_is_told(monkeypatch, error, said):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr(earlier.subprocess, "run", fail)
    answer_with(monkeypatch, (1.0, None))
    rows = measure_beside(is_quick=True)
    (note,) = {row.note for row in rows}
    assert note == f"no commit 0e662e03: {said}; a shallow clone: git fetch --unshallow"
    assert [row.is_met for row in rows] == [False, False, True, True]


@pytest.mark.tools
def test_a_folder_without_a_history_lacks_the_commit(monkeypatch, tmp_path):
    answer_with(monkeypatch, (1.0, None))
    rows = measure_beside(True, clone=tmp_path)
    assert all(row.theirs is None and "no commit" in row.note for row in rows)


def test_another_refcomp_than_the_commits_is_not_timed(monkeypatch, archived):
    answer = json.dumps({"seconds": 1.0, "digest": "", "from": "/elsewhere/refcomp/__init__.py"})
    monkeypatch.setattr(earlier, "run_python", lambda arguments, environment: answer)
    with pytest.raises(RuntimeError, match="was to be timed, not /elsewhere/refcomp"):
        measure_beside(is_quick=True)
