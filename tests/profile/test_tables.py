"""The rows of a profile's tables, and how kernels are told side by side."""

from dataclasses import replace

from refcomp.emulator.observers.counting import InstructionCounts, KernelCounts, MemoryTraffic
from refcomp.profile.report import report_of
from refcomp.profile.tables import (
    classes_table,
    estimate_table,
    global_table,
    kernels_table,
    lines_table,
    shared_table,
)
from tests.emulator.snippets import instruction


def _report(name="k", gpu="gfx942", launches=1, rows=()):
    counts = KernelCounts(name, gpu, 64, 128, launches=launches, groups=4 * launches)
    for number, (text, waves, source, access) in enumerate(rows):
        one = replace(instruction(text), number=number, source=source)
        counts.by_number[number] = InstructionCounts(one, waves, 64 * waves, access)
    return report_of(counts)


_FMA = "v_fma_f32 v0, v1, v2, v3"


def _accesses():
    load = MemoryTraffic("global", 4, False, False, 10, 640, 2560, transactions=40, least=20)
    read = MemoryTraffic("shared", 4, False, False, 20, 1280, 5120, clocks=80, conflicts=40)
    rows = (
        (_FMA, 30, "kernels.ir:7", None),
        ("global_load_dword v0, v[2:3], off", 10, "kernels.ir:7", load),
        ("ds_read_b32 v0, v1", 20, "", read),
    )
    return _report(rows=rows)


def test_the_longest_bar_is_of_the_largest_count_and_of_the_limit():
    report = _accesses()
    classes = classes_table(report).rows
    assert max(row.bar for row in classes) == 1.0
    assert [row.bar for row in classes if row.cells[1] == 10] == [10 / 30]
    limits = {row.cells[2]: row.bar for row in estimate_table(report).rows}
    assert limits["the limit"] == 1.0


def test_each_table_tells_the_greatest_first_but_for_classes():
    report = _accesses()
    assert [row.cells for row in classes_table(report).rows] == [
        ("VALU FMA", 30, "50.0%"),
        ("LDS", 20, "33.3%"),
        ("global memory", 10, "16.7%"),
    ]
    # Without loop IR lines are those that the code object names.
    assert [row.cells for row in lines_table(report).rows] == [
        ("", 40, "66.7%", "kernels.ir:7"),
        ("", 20, "33.3%", "(not known)"),
    ]
    for table in (classes_table(report), lines_table(report), global_table(report)):
        assert all(len(row.cells) == len(table.columns) for row in table.rows)


def test_accesses_tell_what_they_cost_and_their_lines():
    (load,), (read,) = (table(_accesses()).rows for table in (global_table, shared_table))
    text = "global_load_dword v0, v[2:3], off"
    assert load.cells == ("7", text, 10, 2560, 40, "4.0", 20, "50%") and load.line == 7
    assert read.cells == ("", "ds_read_b32 v0, v1", 20, 5120, 80, 40) and read.line == 0
    assert "segments of 128 bytes" in global_table(_accesses()).title


def test_an_estimate_is_called_one():
    table = estimate_table(_report(rows=((_FMA, 30, "", None),)))
    assert table.title == "estimate for one launch on MI300X, not a time that was measured"
    assert [row.cells[0] for row in table.rows if row.cells[2] == "the limit"] == ["VALU"]
    assert estimate_table(_report(gpu="gfx000")) is None


def test_kernels_stand_by_what_all_their_launches_cost():
    often = _report("often", launches=10, rows=((_FMA, 300_000, "", None),))
    once = _report("once", rows=((_FMA, 100_000, "", None), ("s_nop 0", 7, "", None)))
    table = kernels_table([once, often])
    assert [(row.cells[:4], row.kernel) for row in table.rows] == [
        (("often", 10, 300_000, 64 * 300_000), 2),
        (("once", 1, 100_007, 64 * 100_000), 1),
        (("all", 11, 400_007, 64 * 400_000), 0),
    ]
    assert [row.cells[5] for row in table.rows] == ["75.0%", "25.0%", "100.0%"]
    assert [row.cells[6] for row in table.rows] == ["VALU", "VALU", ""]
    times = [float(row.cells[4]) for row in table.rows]
    bound = often.bound
    assert times[0] == round(1e6 * 10 * bound.seconds["VALU"], 2)
    assert abs(times[0] + times[1] - times[2]) < 0.02
    assert "estimate" in table.title


def test_kernels_of_which_no_card_is_known_stand_by_their_instructions():
    rows = ((_FMA, 30, "", None),)
    table = kernels_table(
        [_report("few", "gfx000", rows=rows), _report("more", "gfx000", rows=2 * rows)]
    )
    assert [row.cells[0] for row in table.rows] == ["more", "few", "all"]
    assert [row.cells[4:6] for row in table.rows] == [("", "66.7%"), ("", "33.3%"), ("", "100.0%")]
    assert "estimate" not in table.title
