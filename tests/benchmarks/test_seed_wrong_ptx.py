"""Mistakes are seeded in PTX, and the emulator finds them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.seed_wrong_ptx import (
    FINDING,
    MISTAKES,
    SAME,
    UNNOTICED,
    VALUE,
    compiled,
    main,
    only,
    outcomes,
    owners,
    seeds,
    share,
    table,
)

_RESULT = Path(__file__).parents[2] / "benchmarks" / "results" / "seeded-wrong-ptx.json"


def _wrong(mistake, line, before=""):
    return next(one for one in MISTAKES if one.name == mistake).wrong(line, before)


@pytest.mark.parametrize(
    ("mistake", "right", "wrong"),
    [
        ("deleted barrier", "\tbar.sync \t0;", ""),
        ("deleted barrier of a warp", "\tbar.warp.sync \t-1;", "// deleted"),
        ("deleted arrival", "\tbar.arrive 1, 64;", "// deleted"),
        ("deleted wait for copies", "\tcp.async.wait_group 1;", "// deleted"),
        ("other barrier", "\tbar.sync 1, 96;", "\tbar.sync 13, 96;"),
        (
            "barrier of fewer threads",
            "\tbar.arrive %r1, 96;",
            "{ .reg .b32 %few; sub.u32 %few, 96, 32; bar.arrive %r1, %few; }",
        ),
        ("dropped branch", "\t@%p1 bra \t$L1;", "// deleted"),
        ("next index", "\tld.shared.f32 \t%f1, [%r1];", "\tld.shared.f32 \t%f1, [%r1+4];"),
        (
            "next index",
            "\tst.global.v4.f32 \t[%rd1+-16], {%f1, %f2, %f3, %f4};",
            "\tst.global.v4.f32 \t[%rd1+0], {%f1, %f2, %f3, %f4};",
        ),
        ("next index", "\tld.param.u64 \t%rd1, [k_param_0];", None),
        ("doubled stride", "\tmul.wide.s32 \t%rd1, %r1, 4;", "\tmul.wide.s32 \t%rd1, %r1, 8;"),
    ],
)
def test_a_mistake_changes_a_line(mistake, right, wrong):
    assert _wrong(mistake, right) == wrong


def test_a_wait_for_a_phase_is_not_repeated():
    wait = "\tmbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2;"
    assert _wrong("deleted wait for a phase", "\t@!%p1 bra \t$L1;", wait) == "// deleted"
    assert _wrong("deleted wait for a phase", "\t@!%p1 bra \t$L1;", "\tbar.sync 0;") is None


def test_an_update_in_three_steps():
    wrong = _wrong("update that is not atomic", "\tatom.global.add.u32 \t%r1, [%rd1+4], 7;")
    assert wrong == (
        "\t{ .reg .u32 %old; .reg .u32 %new; ld.global.u32 %old, [%rd1+4]; "
        "add.u32 %new, %old, 7; st.global.u32 [%rd1+4], %new; mov.u32 %r1, %old; }"
    )


_TEXT = """.version 8.0
.visible .entry first(
)
{
\t{
\tbar.sync 0;
}
\tbar.sync 1;
}
.visible .entry second()
{
\tbar.sync 2;
}
"""


def test_lines_of_other_kernels_are_left_out():
    lines = _TEXT.splitlines()
    assert owners(lines) == ["", *["first"] * 8, *["second"] * 4]
    kept = only(_TEXT, "second")
    assert [line for line in kept if line] == [lines[0], *lines[9:]]
    assert [(mistake.name, number) for mistake, number, _ in seeds(kept, "second")] == [
        ("deleted barrier", 11)
    ]


@pytest.mark.nvcc
def test_mistakes_in_some_kernels_are_found():
    texts = {"cuda_kernels": compiled("cuda_kernels")}
    found = list(outcomes(["shuffled_sum", "stencil"], 1, 0, texts))
    counts = table(found)["all"]
    assert counts[FINDING] >= 4
    assert counts[UNNOTICED] == 0
    assert share(counts) == 1
    barrier = next(one for one in found if one.mistake == "deleted barrier")
    assert (barrier.found, "race" in barrier.kinds) == (FINDING, True)
    assert barrier.right == "bar.sync \t0;"


def test_the_kept_result_holds_what_is_promised():
    kept = json.loads(_RESULT.read_text())
    counts = kept["counts"]["all"]
    assert kept["share"] == round(share(counts), 4) >= 0.95
    assert sum(counts.values()) == len(kept["outcomes"]) >= 500
    assert {*kept["counts"]} == {"all", *(one.name for one in MISTAKES)}
    for mistake, each in kept["counts"].items():
        assert sum(each.values()) > 0, mistake
        if re.search("barrier|arrival|wait|atomic", mistake):
            # Each mistake between threads is a finding; no other check sees it by chance.
            assert (each[VALUE], each[UNNOTICED]) == (0, 0)
            assert each[FINDING] > 0
    assert {one["kernel"] for one in kept["outcomes"]} >= {"block_sum", "specialised_warps"}
    for one in kept["outcomes"]:
        assert bool(one["why"]) == (one["found"] == SAME)
        assert bool(one["kinds"]) == (one["found"] == FINDING)
        assert one["found"] in (FINDING, VALUE, UNNOTICED, SAME)


def test_the_script_runs_by_itself(tmp_path):
    script = _RESULT.parents[1] / "seed_wrong_ptx.py"
    assert os.access(script, os.X_OK)
    made = subprocess.run(
        [sys.executable, script, "--help"], cwd=tmp_path, env={}, capture_output=True, text=True
    )
    assert made.returncode == 0 and "--per-kernel" in made.stdout


def test_arguments_are_checked(capsys):
    with pytest.raises(SystemExit):
        main(["--per-kernel", "many"])
    assert "invalid int value" in capsys.readouterr().err
