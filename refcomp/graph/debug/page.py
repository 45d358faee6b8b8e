"""The profile of a network as one HTML page with inline SVG.

The page is self-contained: its content security policy forbids scripts and every network request.
Names come from models, and Jinja escapes each of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from refcomp.foundation.errors import UserError
from refcomp.foundation.resources import templates_dir
from refcomp.graph.debug.roofline import NetworkProfile, NodeProfile
from refcomp.graph.debug.tables import COLUMNS, facts_of, row_of, rows_of_totals

_WIDTH, _BARS_HEIGHT = 900.0, 190.0
_LEFT, _BOTTOM = 40.0, 300.0  # the origin of the roofline, in the units of the picture

_Shape = Mapping[str, object]  # what the template needs of a bar, a point or a tick


def page_of_network(profile: NetworkProfile, title: str) -> str:
    """Return the page as HTML text."""
    import jinja2  # noqa: PLC0415  (20 ms that a program which makes no page does not pay)

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    path = templates_dir() / "html" / "network_profile.j2"
    template = environment.from_string(path.read_text(encoding="utf-8"))
    plot = _Roofline(profile)
    return template.render(
        title=title,
        facts=facts_of(profile),
        bars=_bars(profile),
        points=plot.points(),
        roof=plot.roof(),
        ticks=plot.ticks(),
        columns=COLUMNS,
        totals=rows_of_totals(profile),
        nodes=[row_of(profile, node) for node in profile.nodes],
    )


def save_page(profile: NetworkProfile, path: str, title: str) -> None:
    """Write the page to a file, which is replaced if it exists.

    Raises:
        UserError: the file cannot be written.
    """
    text = page_of_network(profile, title)
    try:
        Path(path).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UserError(f"{path} cannot be written", why=error.strerror) from error


def _bars(profile: NetworkProfile) -> list[_Shape]:
    longest = max((node.seconds for node in profile.nodes), default=0.0) or 1.0
    width = _WIDTH / max(1, len(profile.nodes))
    bars: list[_Shape] = []
    for number, node in enumerate(profile.nodes):
        height = _BARS_HEIGHT * node.seconds / longest
        bar = {
            "kind": _kind(node),
            "x": f"{number * width:.2f}",
            "y": f"{_BARS_HEIGHT + 9 - height:.2f}",
            "width": f"{0.9 * width:.2f}",
            "height": f"{height:.2f}",
            "label": _label(node),
        }
        bars.append(bar)
    return bars


def _kind(node: NodeProfile) -> str:
    return node.bound_by or "unknown"


def _label(node: NodeProfile) -> str:
    return f"{node.name} ({node.operator}): {node.seconds * 1e3:.3f} ms"


class _Roofline:
    """A picture with logarithmic scales: operations a second over operations for each byte."""

    def __init__(self, profile: NetworkProfile) -> None:
        self._nodes = [node for node in profile.nodes if node.flops and node.seconds]
        self._peaks = profile.peaks
        across = [_intensity(node) for node in self._nodes] or [1.0]
        up = [node.gflops or 1.0 for node in self._nodes] or [1.0]
        if self._peaks is not None:
            across.append(self._peaks.gflops / self._peaks.gbytes)
            up.append(self._peaks.gflops)
        self._across = _decades(across)
        self._up = _decades(up)

    def points(self) -> list[_Shape]:
        """Return a point for each node that computes something."""
        return [
            {
                "kind": _kind(node),
                "x": f"{self._x(_intensity(node)):.2f}",
                "y": f"{self._y(node.gflops or 1.0):.2f}",
                "label": _label(node),
            }
            for node in self._nodes
        ]

    def roof(self) -> str:
        """Return the path of the roofline; empty without peaks."""
        if self._peaks is None:
            return ""
        ridge = self._peaks.gflops / self._peaks.gbytes
        # Where the slope meets the lower or the left edge.
        first = max(10.0 ** self._across[0], 10.0 ** self._up[0] / self._peaks.gbytes)
        begin = f"M{self._x(first):.2f} {self._y(first * self._peaks.gbytes):.2f}"
        corner = f"L{self._x(ridge):.2f} {self._y(self._peaks.gflops):.2f}"
        return f"{begin} {corner} L{_WIDTH:.2f} {self._y(self._peaks.gflops):.2f}"

    def ticks(self) -> list[_Shape]:
        """Return a label for each power of ten."""
        ticks: list[_Shape] = []
        for power in range(self._across[0], self._across[1] + 1):
            x = f"{self._x(10.0**power):.2f}"
            ticks.append({"x": x, "y": "316", "label": f"{10.0**power:g}"})
        for power in range(self._up[0], self._up[1] + 1):
            y = f"{self._y(10.0**power):.2f}"
            ticks.append({"x": "0", "y": y, "label": f"{10.0**power:g}"})
        return ticks

    def _x(self, number: float) -> float:
        begin, end = self._across
        return _LEFT + (_WIDTH - _LEFT) * (math.log10(number) - begin) / (end - begin)

    def _y(self, number: float) -> float:
        begin, end = self._up
        return _BOTTOM - _BOTTOM * (math.log10(number) - begin) / (end - begin)


def _intensity(node: NodeProfile) -> float:
    return (node.flops or 0) / node.bytes


def _decades(numbers: Sequence[float]) -> tuple[int, int]:
    """Return the powers of ten below and above all numbers."""
    logarithms = [math.log10(number) for number in numbers]
    begin = math.floor(min(logarithms))
    return begin, max(begin + 1, math.ceil(max(logarithms)))
