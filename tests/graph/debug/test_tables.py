"""Rows of profiles."""

from dataclasses import replace

from refcomp.graph.debug.tables import COLUMNS, facts_of, row_of, rows_of_totals
from tests.graph.debug.profiles import PEAKS, profile


def test_a_row_has_a_cell_for_each_column() -> None:
    given = profile()
    rows = [row_of(given, node) for node in given.nodes]
    assert {len(row) for row in rows} == {len(COLUMNS)}
    assert rows[0] == (
        *("a", "matmul", "2.000", "50.0%", "100.000"),
        *("1.000", "50.00", "0.50", "compute", "50%"),
    )
    assert rows[3][4:] == ("-", "0.000", "-", "0.00", "-", "-")


def test_totals_count_their_nodes() -> None:
    assert [row[0] for row in rows_of_totals(profile())] == ["2 nodes", "1 node", "1 node"]


def test_facts_name_the_peaks_if_they_are_known() -> None:
    facts = facts_of(profile())
    assert facts[0] == "4 nodes take 4.000 ms together"
    assert facts[1].startswith("75,000,000 multiply-adds; 150,000,000 operations")
    assert facts[2].endswith("2 threads: 100.0 GFLOP/s of f32, 10.0 GB/s")
    alone = replace(profile(), peaks=replace(PEAKS, threads=1))
    assert " of this machine, 1 thread: " in facts_of(alone)[2]
    assert len(facts_of(replace(profile(), peaks=None))) == 2
