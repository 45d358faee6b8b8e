"""The rates of several ways to do the same work: measured in turns, printed, drawn as bars.

A rate is that of a way's best round, as others on the machine can only make a round slower.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from benchmarks.fma_peak import PEAK_GFLOP, bind_peak
from benchmarks.measure import Call, interleave
from refcomp.foundation.errors import UserError

PEAK = "peak"  # of one core, by `fma_peak`
_WIDTH, _ROW, _MARGIN, _NAMES, _NUMBERS = 900, 34, 20, 120, 90
_INK, _BAR, _GROUND = "#222222", "#3b6ea5", "#ffffff"


def measure_rates(calls: Mapping[str, Call], gflop: float, rounds: int) -> dict[str, float]:
    """GFLOP/s of the core at most, and of each of `calls`, which does `gflop` each time."""
    times = interleave({PEAK: bind_peak(), **calls}, rounds=rounds)
    work = dict.fromkeys(calls, gflop) | {PEAK: PEAK_GFLOP}
    return {name: work[name] / min(seconds) for name, seconds in times.items()}


def shape_asked_for(argument: str) -> tuple[int, int, int]:
    """n, m and k of an argument of a command line, 512 or 1000x1001x999; others end the program."""
    numbers = argument.split("x")
    if len(numbers) not in (1, 3) or not all(n.isascii() and n.isdecimal() for n in numbers):
        sys.exit(f"{argument!r} is not a size: give one number, or three as in 1000x1001x999")
    n, m, k = (int(number) for number in (numbers * 3)[:3])
    if not n * m * k:
        sys.exit(f"there is nothing to multiply in {argument}: each number must be 1 at least")
    return n, m, k


def print_rates(rates: Mapping[str, float], notes: Mapping[str, str]) -> None:
    """Print a line for each way: its rate, its share of one core's peak, and the note on it."""
    for name, rate in rates.items():
        share = f"{rate:7.1f} GFLOP/s {rate / rates[PEAK]:5.0%} of one core's peak"
        print(f"{name:12}{share}  {notes.get(name, '')}".rstrip())


def save_chart(path: str, title: str, rates: Mapping[str, float]) -> None:
    """Draw the rates as bars into a PNG file, if a path is given.

    Raises UserError if pillow is not installed.
    """
    if not path:
        return
    try:
        from PIL import Image, ImageDraw, ImageFont  # noqa: PLC0415  optional
    except ImportError as error:
        raise UserError("no chart without pillow", remedy="pip install refcomp[chart]") from error
    image = Image.new("RGB", (_WIDTH, _ROW * (len(rates) + 1) + 2 * _MARGIN), _GROUND)
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(18)
    draw.text((_MARGIN, _MARGIN), title, _INK, font)
    longest = max(draw.textlength(name, font) for name in rates)
    names = max(_NAMES, longest + 12)
    scale = (_WIDTH - 2 * _MARGIN - names - _NUMBERS) / max(rates.values())
    for row, (name, rate) in enumerate(rates.items(), 1):
        top, left = _MARGIN + row * _ROW, _MARGIN + names
        end = left + max(1.0, rate * scale)
        draw.text((_MARGIN, top), name, _INK, font)
        draw.rectangle((left, top + 2, end, top + _ROW - 10), _BAR)
        draw.text((end + 8, top), f"{rate:.1f}", _INK, font)
    image.save(path)
