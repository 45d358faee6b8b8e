"""The rates of several ways to do the same work: what is printed, and the chart."""

import sys
from pathlib import Path

import pytest
from PIL import Image

from benchmarks.rates import measure_rates, print_rates, save_chart, shape_asked_for
from refcomp.foundation.errors import UserError

RATES = {"peak": 100.0, "numpy": 50.0, "tiled": 94.6}


@pytest.mark.llvm
def test_rates_are_those_of_the_work_given_and_the_core_s_peak_is_among_them() -> None:
    calls = {"once": lambda: None, "again": lambda: None}
    rates = measure_rates(calls, 1.0, rounds=2)
    assert list(rates) == ["peak", "once", "again"]
    assert all(rate > 0 for rate in rates.values())


def test_each_rate_is_printed_with_its_share_of_the_peak(capsys: pytest.CaptureFixture) -> None:
    print_rates(RATES, {"tiled": "in registers"})
    assert capsys.readouterr().out.splitlines() == [
        "peak          100.0 GFLOP/s  100% of one core's peak",
        "numpy          50.0 GFLOP/s   50% of one core's peak",
        "tiled          94.6 GFLOP/s   95% of one core's peak  in registers",
    ]


def test_long_names_end_before_their_bars(tmp_path: Path) -> None:
    path = tmp_path / "chart.png"
    save_chart(str(path), "shares", {"w" * 30: 10.0, "v": 5.0})
    with Image.open(path) as image:
        row = range(20 + 34, 20 + 34 * 2)
        bar = [
            x for y in row for x in range(image.width) if image.getpixel((x, y)) == (59, 110, 165)
        ]
        ink = [x for y in row for x in range(min(bar)) if image.getpixel((x, y)) == (34, 34, 34)]
    assert max(ink) < min(bar) - 5
    assert min(bar) > 200


def test_the_chart_has_a_bar_as_long_as_the_rate(tmp_path: Path) -> None:
    path = tmp_path / "chart.png"
    save_chart(str(path), "GFLOP/s", RATES)
    with Image.open(path) as image:
        assert image.format == "PNG"
        width, height = image.size
        rows = [range(20 + 34 * row, 20 + 34 * (row + 1)) for row in (1, 2, 3)]
        bars = [
            max(sum(image.getpixel((x, y)) == (59, 110, 165) for x in range(width)) for y in row)
            for row in rows
        ]
        assert height == 34 * 4 + 40
    assert [bar / bars[0] for bar in bars] == pytest.approx([1.0, 0.5, 0.946], abs=0.01)


def test_no_file_no_chart() -> None:
    save_chart("", "GFLOP/s", {})


def test_without_pillow_it_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(UserError, match=r"no chart without pillow(.|\n)*refcomp\[chart\]"):
        save_chart(str(tmp_path / "chart.png"), "GFLOP/s", RATES)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("argument", "shape"), [("512", (512, 512, 512)), ("7x8x9", (7, 8, 9)), ("1", (1, 1, 1))]
)
def test_a_size_is_one_number_or_three(argument: str, shape: tuple[int, ...]) -> None:
    assert shape_asked_for(argument) == shape


@pytest.mark.parametrize("argument", ["", "x", "5x6", "1x2x3x4", "-5", "4.0", "big", "²"])
def test_other_sizes_end_the_program_with_the_reason(argument: str) -> None:
    with pytest.raises(SystemExit, match=r"is not a size: give one number, or three as in"):
        shape_asked_for(argument)


def test_nothing_to_multiply_is_no_size() -> None:
    with pytest.raises(SystemExit, match="nothing to multiply in 5x0x5: each number must be 1"):
        shape_asked_for("5x0x5")
