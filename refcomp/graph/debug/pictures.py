"""Pictures of profiles and of memory plans, as PNG files. Needs the optional package matplotlib."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from refcomp.foundation.errors import UserError
from refcomp.graph.debug.memory import MemoryMap
from refcomp.graph.debug.roofline import MEMORY, NetworkProfile, NodeProfile

_COLOURS = {MEMORY: "tab:orange"}
_OTHER_COLOUR = "tab:blue"
_MAX_BARS = 30  # nodes that are drawn; the others are one bar
_Figure = Any  # matplotlib carries no types


def save_profile(profile: NetworkProfile, path: str) -> None:
    """Draw a profile to a PNG file: the time of the slowest nodes, and the roofline.

    Args:
        profile: what `profile_network` returned.
        path: the file, which is replaced if it exists.

    Raises:
        UserError: matplotlib is not installed, or the file cannot be written.
    """
    _save(path, (12.0, 9.0), lambda figure: _draw_profile(figure, profile))


def save_memory(memory: MemoryMap, path: str) -> None:
    """Draw a memory plan to a PNG file: steps across, bytes up, a box for each value.

    Args:
        memory: what `map_memory` returned.
        path: the file, which is replaced if it exists.

    Raises:
        UserError: matplotlib is not installed, or the file cannot be written.
    """
    _save(path, (12.0, 6.0), lambda figure: _draw_memory(figure, memory))


def _save(
    path: str, inches: tuple[float, float], draw: Callable[[_Figure], None]
) -> None:
    try:
        # Not pyplot, which looks for a window system and keeps its figures.
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise UserError(
            "drawing a PNG file needs the package matplotlib, which is not installed",
            remedy='pip install "refcomp[pictures]"',
        ) from error
    figure = Figure(figsize=inches, layout="constrained")
    FigureCanvasAgg(figure)
    draw(figure)
    try:
        figure.savefig(path, format="png", dpi=100)
    except OSError as error:
        raise UserError(
            f"{path} cannot be written", why=error.strerror or str(error)
        ) from error


def _draw_profile(figure: _Figure, profile: NetworkProfile) -> None:
    bars, roof = figure.subplots(2, 1)
    slowest = sorted(profile.nodes, key=lambda node: -node.seconds)
    shown = slowest[:_MAX_BARS]
    names = [_label(node.name) for node in shown]
    times = [node.seconds * 1e3 for node in shown]
    if rest := slowest[_MAX_BARS:]:
        names.append(f"{len(rest)} others")
        times.append(sum(node.seconds for node in rest) * 1e3)
    colours = [_colour(node) for node in shown] + ["tab:grey"] * bool(rest)
    bars.bar(range(len(times)), times, color=colours)
    bars.set_xticks(range(len(times)), names, rotation=60, ha="right", fontsize=7)
    bars.set_ylabel("ms")
    bars.set_title("time of the slowest nodes (orange: bound by memory)")
    points = [node for node in profile.nodes if node.flops]
    roof.scatter(
        [(node.flops or 0) / node.bytes for node in points],
        [node.gflops for node in points],
        c=[_colour(node) for node in points],
        s=16,
    )
    if profile.peaks is not None:
        ridge = profile.peaks.gflops / profile.peaks.gbytes
        ends = [ridge / 1e3, ridge, ridge * 1e2]
        peaks = [end * profile.peaks.gbytes for end in ends]
        roof.plot(ends, [min(p, profile.peaks.gflops) for p in peaks], color="black")
    roof.set_xscale("log")
    roof.set_yscale("log")
    roof.set_xlabel("operations for each byte")
    roof.set_ylabel("10^9 operations a second")
    roof.set_title("roofline")


def _colour(node: NodeProfile) -> str:
    return _COLOURS.get(node.bound_by or "", _OTHER_COLOUR)


def _draw_memory(figure: _Figure, memory: MemoryMap) -> None:
    from matplotlib.patches import Rectangle  # noqa: PLC0415

    axes = figure.subplots()
    for number, box in enumerate(memory.boxes):
        corner = (box.first - 0.5, box.offset)
        width = box.last - box.first + 1
        colour = f"C{number % 10}"
        patch = Rectangle(corner, width, box.size, facecolor=colour, edgecolor="white")
        axes.add_patch(patch)
        if box.size > 0.05 * memory.peak:
            middle = (box.first - 0.5 + width / 2, box.offset + box.size / 2)
            axes.annotate(_label(box.name), middle, ha="center", va="center", size=6)
    axes.axhline(memory.least, linestyle="--", color="black", linewidth=1)
    axes.set_xlim(-1.5, memory.steps + 0.5)
    axes.set_ylim(0, memory.peak * 1.02 or 1)
    axes.set_xlabel("step (a kernel each; the inputs are there from -1 on)")
    axes.set_ylabel("bytes from the beginning of the block")
    axes.set_title(f"{memory.summary} (dashed: lower bound)")


def _label(name: str) -> str:
    """Return the end of a name, so that matplotlib draws it as it is."""
    text = "".join(c if c.isascii() and c.isprintable() else "?" for c in name)
    # A dollar sign begins a formula.
    return text[-24:].replace("$", "?")
