"""The script that times a lane instruction of PTX beside AMD's."""

import json

import pytest

from benchmarks.emulator import lane_rates
from benchmarks.emulator.lane_rates import ARCH, TARGETS, LaneRate, main, measure


@pytest.mark.rocm
@pytest.mark.nvcc
def test_all_gpus_are_timed_on_the_same_product():
    rows = measure(32, 1, is_watched=True, rounds=1)
    assert [row.target for row in rows] == [ARCH, *TARGETS]
    assert rows[0].ratio == 1 and all(row.ns > 0 for row in rows)
    # At least a multiplication and an addition for each.
    assert all(row.lane_instructions > 2 * 32**3 for row in rows)
    assert "product of 32 x 32, 1 x 1 a thread, checked" in str(rows[1])


@pytest.mark.parametrize(("ratio", "code"), [(1.5, 0), (1.6, 1)])
def test_rows_are_kept_and_slow_ones_fail(monkeypatch, tmp_path, ratio, code):
    row = LaneRate("case", "nvptx -code=ptx", 1000, 0.5, ratio)
    monkeypatch.setattr(lane_rates, "measure", lambda *_, **__: [row])
    monkeypatch.setattr(lane_rates, "describe_machine", lambda: {"cpu": "one"})
    path = tmp_path / "rates.json"
    assert main(["--json", str(path)]) == code
    found = json.loads(path.read_text())
    assert found["machine"] == {"cpu": "one"} and found["rows"][0]["ratio"] == ratio
