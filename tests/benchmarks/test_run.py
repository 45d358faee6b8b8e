"""The benchmark runner on workloads with given times: its table, its JSON, its exit codes."""

import json
import os
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks.fresh import call_fresh
from benchmarks.machine import cpu_model
from benchmarks.measure import Figure, figure_of, interleave, ratio_of
from benchmarks.report import Bar, Missing, Row, Work, is_kept, row_beside
from benchmarks.run import WORKLOADS, main

MACHINE = {"cpu": "A processor (family 1, model 2)", "cores": 2, "versions": {"python": "3.11"}}
FIGURE_KEYS = {"median", "low", "high", "rounds"}


def given_times(is_quick: bool) -> list[Row]:
    rounds = 1 if is_quick else 2
    kept = row_beside(
        "sleep",
        "short",
        [0.002, 0.004][:rounds],
        "nap",
        [0.001, 0.001][:rounds],
        work=Work(0.03, "GB"),
        bar=Bar(5.0, of="ratio"),
        note="not a real figure",
    )
    return [kept, Row("sleep", "growth", figure_of([1.05]), bar=Bar(1.2), unit="")]


def too_slow(is_quick: bool) -> list[Row]:
    return [Row("slow", "build", figure_of([0.3]), bar=Bar(0.2))]


def broken(is_quick: bool) -> list[Row]:
    raise RuntimeError("no tool was found\nsought in [/usr/bin]")


FAKES = {"sleep": given_times, "slow": too_slow, "broken": broken}


def run(tmp_path: Path, *argv: str) -> tuple[int, str, Any]:
    text = StringIO()
    file = tmp_path / "made" / "results.json"
    screen = Console(file=text, width=200)
    code = main([*argv, "--json", str(file)], FAKES, screen, lambda: MACHINE)
    return code, text.getvalue(), json.loads(file.read_text())


def line_with(text: str, *words: str) -> str:
    return next(line for line in text.splitlines() if all(word in line for word in words))


def test_the_table_shows_times_rates_ratios_and_bars(tmp_path: Path) -> None:
    _, text, _ = run(tmp_path)
    short = line_with(text, "sleep", "short")
    for shown in ("3 ms", "2.5 ms - 3.5 ms", "10.0 GB/s", "nap 1 ms", "3.00", "2.50 - 3.50"):
        assert shown in short
    assert "ratio <= 5 met" in short
    assert "<= 1.2 met" in line_with(text, "growth")
    assert "<= 200 ms missed" in line_with(text, "slow", "build")
    assert "sleep short: not a real figure" in text
    assert "A processor (family 1, model 2), 2 cores" in text


def test_a_workload_that_fails_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    _, text, results = run(tmp_path, "broken", "sleep")
    assert "RuntimeError: no tool was found" in line_with(text, "broken", "missed")
    assert "broken: sought in [/usr/bin]" in text
    assert results["missing"] == [{"workload": "broken", "why": "RuntimeError: no tool was found"}]
    assert [row["case"] for row in results["rows"]] == ["short", "growth"]


def test_the_json_holds_every_figure(tmp_path: Path) -> None:
    _, _, results = run(tmp_path, "sleep")
    assert set(results) == {"format", "quick", "machine", "rows", "missing"}
    assert (results["format"], results["quick"], results["machine"]) == (1, False, MACHINE)
    short, growth = results["rows"]
    assert {"workload", "case", "ours", "peer", "theirs", "ratio", "work", "bar"} <= set(short)
    for name in ("ours", "theirs", "ratio"):
        assert set(short[name]) == FIGURE_KEYS
    assert short["ours"]["median"] == pytest.approx(0.003)
    assert short["ratio"]["median"] == pytest.approx(3.0)
    assert short["bar"] == {"at_most": 5.0, "of": "ratio"}
    assert (short["is_met"], short["unit"], growth["unit"]) == (True, "s", "")
    assert growth["theirs"] is None


def test_quick_reaches_the_workload_and_the_json(tmp_path: Path) -> None:
    _, _, results = run(tmp_path, "sleep", "--quick")
    assert results["quick"] is True
    assert results["rows"][0]["ours"]["rounds"] == 1


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["sleep", "--check"], 0),
        (["slow", "--check"], 1),
        (["sleep", "broken", "--check"], 1),
        (["slow", "broken"], 0),
    ],
)
def test_only_check_turns_a_missed_bar_into_an_exit_code(
    tmp_path: Path, argv: list[str], code: int
) -> None:
    assert run(tmp_path, *argv)[0] == code


def test_an_unknown_workload_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refusal:
        main(["slep"], FAKES)
    assert refusal.value.code == 2
    message = "no workload slep; did you mean sleep? there are sleep, slow, broken"
    assert message in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["banana"], FAKES)
    assert "no workload banana; there are sleep, slow, broken" in capsys.readouterr().err


def test_a_ratio_bar_without_a_ratio_is_missed() -> None:
    row = Row("sleep", "alone", figure_of([0.1]), bar=Bar(5.0, of="ratio"))
    assert not is_kept([row])
    assert is_kept([Row("sleep", "alone", figure_of([0.1]))])
    assert not is_kept([Missing("sleep", "not here")])


def test_figures_are_medians_with_quartiles() -> None:
    assert figure_of([5.0, 1.0, 2.0, 4.0, 3.0]) == Figure(3.0, 2.0, 4.0, 5)
    assert ratio_of([2.0, 9.0, 8.0], [1.0, 3.0, 2.0]).median == 3.0


def test_contenders_take_turns_and_each_is_first_once() -> None:
    calls: list[str] = []
    contenders = {name: (lambda name=name: calls.append(name)) for name in "abc"}
    seconds = interleave(contenders, rounds=3)
    assert {name: len(times) for name, times in seconds.items()} == {"a": 3, "b": 3, "c": 3}
    assert "".join(calls).endswith("abcbcacab")


def test_a_turn_after_a_rest_begins_with_a_call_that_does_not_count() -> None:
    calls: list[str] = []
    interleave({"a": lambda: calls.append("a")}, rounds=2, rest_s=1e-6)
    assert len(calls) == 2 + 2 * 2  # to find the number of calls, then two a round


def test_time_is_read_off_the_clock_that_is_given():
    ticks = iter(range(100))
    assert interleave({"a": lambda: None}, rounds=2, clock=lambda: next(ticks))["a"] == [1, 1]


def test_a_fresh_process_reports_why_it_failed() -> None:
    with pytest.raises(RuntimeError, match="unexpected keyword argument 'wrong'"):
        call_fresh(os.getenv, wrong=1)


def test_a_fresh_process_returns_a_result_and_has_so_many_threads() -> None:
    assert call_fresh(os.getenv, threads=3, key="OMP_NUM_THREADS") == "3"


def test_the_processor_is_named_without_the_host(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("model name : Zen\ncpu family\t: 26\nmodel\t: 2\n\nmodel name : other\n")
    assert cpu_model(info) == "Zen (family 26, model 2)"
    assert cpu_model(tmp_path / "absent") != ""


def test_every_workload_has_its_folder() -> None:
    folder = Path(__file__).parents[2] / "benchmarks"
    assert {path.parent.name for path in folder.glob("*/workload.py")} == set(WORKLOADS)
