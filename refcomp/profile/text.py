"""A profile as tables for a terminal or a file.

Exact counts come first. Each estimate is labelled as an estimate. Names come from code objects and
users, so nothing in them is interpreted as markup or as a command to the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from typing import TYPE_CHECKING

from refcomp.driver.nvidia_resources import NvidiaResources
from refcomp.foundation.counted import counted
from refcomp.profile.layers import LayerReport, advice_on, layers_table
from refcomp.profile.report import ProfileReport
from refcomp.profile.tables import (
    KERNEL,
    WORDS,
    Table,
    classes_table,
    estimate_table,
    global_table,
    kernels_table,
    lines_table,
    shared_table,
)

if TYPE_CHECKING:
    from rich.table import Table as Grid

_MAX_ROWS = 12
_USUAL_WIDTH = 100  # columns


def reports_to_text(reports: Sequence[ProfileReport], width: int = _USUAL_WIDTH) -> str:
    """Return the text of all kernels of a run: the report on each, and a table of several.

    Without kernels it is "no kernel ran".

    Args:
        reports: the reports, one for each kernel.
        width: the length of a line, in columns.

    Example::

        >>> profile = rc.Profile()
        >>> A = rc.placeholder((64,), name="A")
        >>> B = rc.compute((64,), lambda i: A[i] + 1.0, name="B")
        >>> s = rc.create_schedule(B)
        >>> s[B].bind(B.op.axis[0], rc.thread_axis("threadIdx.x"))
        >>> module = rc.build(s, [A, B], target="rocm -mcpu=gfx942", name="increment")
        >>> gpu = rc.rocm_emulator("gfx942", profile=profile)
        >>> module(rc.array(np.ones(64, "float32"), gpu), rc.empty(64, device=gpu))
        >>> report = rc.profile.report_of(profile.kernels[0], module, s)
        >>> print(rc.profile.reports_to_text([report, report]))
        kernel increment_kernel0 on gfx942: 1 launch, 1 group, 1 wave of 64; ...
    """
    texts = [report_to_text(report, width) for report in reports] or ["no kernel ran\n"]
    if len(reports) > 1:
        texts.append(kernels_to_text(reports, width))
    return "\n".join(texts)


def kernels_to_text(reports: Sequence[ProfileReport], width: int = _USUAL_WIDTH) -> str:
    """Return the table of all kernels of a run, which compares them.

    Args:
        reports: the reports, one for each kernel.
        width: the length of a line, in columns.
    """
    table = kernels_table(reports)
    return _printed(_table(table, width, len(table.rows)), width)


def layers_to_text(
    layers: Sequence[LayerReport],
    reports: Sequence[ProfileReport],
    width: int = _USUAL_WIDTH,
) -> str:
    """Return the table of the layers of a network, and advice on those with the longest times.

    Args:
        layers: the result of `layers_of`.
        reports: the reports on all kernels of the network.
        width: the length of a line, in columns.
    """
    table = layers_table(layers, reports)
    parts = [*_table(table, width, len(table.rows))]
    if found := advice_on(layers):
        parts.append("what to change first:")
    for layer, advice in found:
        parts.append(printable(f"{layer}: {advice.what}"))
        parts.append(printable(f"  what to do: {advice.remedy}"))
    return _printed(parts, width)


def report_to_text(report: ProfileReport, width: int = _USUAL_WIDTH) -> str:
    """Return the text of a report: its tables, the estimate and the advice.

    Args:
        report: the result of `report_of`.
        width: the length of a line, in columns.

    Example::

        >>> profile = rc.Profile()
        >>> A = rc.placeholder((64,), name="A")
        >>> B = rc.compute((64,), lambda i: A[i] + 1.0, name="B")
        >>> s = rc.create_schedule(B)
        >>> s[B].bind(B.op.axis[0], rc.thread_axis("threadIdx.x"))
        >>> module = rc.build(s, [A, B], target="rocm -mcpu=gfx942", name="increment")
        >>> gpu = rc.rocm_emulator("gfx942", profile=profile)
        >>> module(rc.array(np.ones(64, "float32"), gpu), rc.empty(64, device=gpu))
        >>> report = rc.profile.report_of(profile.kernels[0], module, s)
        >>> print(rc.profile.report_to_text(report, width=80))
        kernel increment_kernel0 on gfx942: 1 launch, 1 group, 1 wave of 64; ...
    """
    parts: list[str | Grid] = [
        f"{_head(report)}\n",
        *_table(classes_table(report), width),
    ]
    if inner := report.counts.inner_loop():
        classes = ", ".join(f"{count} {kind}" for kind, count in inner.items())
        parts.append(f"what ran most often, the inner loop if there is one: {classes}")
        if report.counts.fmas:
            part = f"{report.useful_part:.0%}"
            parts.append(f"{part} of its vector instructions multiply and add")
        parts.append("")
    for table in (lines_table(report), global_table(report), shared_table(report)):
        parts += _table(table, width)
    parts += _resources(report)
    if estimate := estimate_table(report):
        parts += _table(estimate, width)
    parts.append(_advice(report))
    return _printed(parts, width)


def _printed(parts: Iterable[str | Grid], width: int) -> str:
    from rich.console import Console  # noqa: PLC0415  (40 ms that a pipe does not pay)

    file = StringIO()
    console = Console(
        file=file, width=width, markup=False, highlight=False, emoji=False
    )
    for part in parts:
        console.print(part)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def printable(text: str) -> str:
    """Return `text` without characters that control a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _head(report: ProfileReport) -> str:
    counts = report.counts
    words = counts.isa.words
    cores = atomics = ""
    if counts.matrix_part:
        cores = f", {counts.matrix_part:.0%} of them by {counts.isa.matrix}"
    if counts.atomic_updates:
        atomics = f"; {counted(counts.atomic_updates, 'atomic update')}"
    launches = counted(counts.launches, "launch")
    groups = counted(counts.groups, words.group)
    waves = counted(counts.waves, words.wave)
    return printable(
        f"kernel {counts.name} on {counts.mcpu}: {launches}, {groups}, "
        f"{waves} of {counts.wave_lanes}; {counted(counts.fmas, 'multiply-add')}"
        f"{cores}{atomics}; {counts.active_lanes:.1%} of the lanes active; "
        f"{counted(counts.read, 'byte')} of memory read, {counts.written} written, "
        f"{report.efficiency:.0%} of what was moved asked for"
    )


def _table(table: Table, width: int, max_rows: int = _MAX_ROWS) -> Iterator[str | Grid]:
    """Yield the title, the first rows, and the number of further rows. Without rows, nothing."""
    if not table.rows:
        return
    yield printable(table.title)
    yield _grid(table, width, max_rows)
    if len(table.rows) > max_rows:
        yield f"and {len(table.rows) - max_rows} more, which the page has\n"


def _grid(table: Table, width: int, max_rows: int) -> Grid:
    from rich.box import SIMPLE  # noqa: PLC0415  (as above)
    from rich.table import Table as Grid  # noqa: PLC0415

    columns = table.columns
    rows = table.rows[:max_rows]
    cells = [[printable(str(cell)) for cell in row.cells] for row in rows]
    numbers = 0  # the columns of the terminal that numbers take, with gaps
    grid = Grid(box=SIMPLE, pad_edge=False)
    for name, *column in zip(columns, *cells, strict=True):
        is_words = name in WORDS
        grid.add_column(name, justify="left" if is_words else "right", no_wrap=True)
        if not is_words:
            numbers += max(map(len, (name, *column))) + 3
    max_words = width - 8 - numbers
    for row in cells:
        # Numbers are never cut, words are.
        pairs = zip(columns, row, strict=True)
        grid.add_row(
            *(
                _cut(cell, max_words, name) if name in WORDS else cell
                for name, cell in pairs
            )
        )
    return grid


def _cut(text: str, length: int, column: str) -> str:
    """Return `text` cut to `length`. Names of kernels keep their ends, where they differ."""
    if len(text) <= length:
        return text
    kept = max(length - 3, 0)
    behind = kept // 2 if column == KERNEL else 0
    return f"{text[: kept - behind]}...{text[len(text) - behind :]}"


def _resources(report: ProfileReport) -> Iterator[str]:
    taken = report.resources
    if taken is None:
        if report.counts.isa.words.code == "PTX":
            yield f"registers and occupancy: {report.lack}\n"
        return
    if isinstance(taken, NvidiaResources):
        yield _nvidia_resources(taken)
        return
    vector = f"{taken.vgprs} of a lane"
    if taken.agprs:
        vector += f" ({taken.agprs} of them accumulators)"
    if taken.spilled_vgprs:
        vector += f", {taken.spilled_vgprs} spilled to memory"
    scalar = f"{taken.sgprs} of a wave"
    if taken.spilled_sgprs:
        scalar += f", {taken.spilled_sgprs} spilled to lanes"
    yield (
        f"registers: {vector}, {scalar}; {counted(taken.shared_bytes, 'byte')} of LDS; "
        f"estimate: waves of a SIMD at a time: {taken.waves}, limited by {taken.limit}\n"
    )


def _nvidia_resources(taken: NvidiaResources) -> str:
    registers = f"{taken.registers} of a thread"
    if taken.spill_store_bytes or taken.spill_load_bytes:
        registers += (
            f", {counted(taken.spill_store_bytes, 'byte')} spilled to memory, "
            f"{taken.spill_load_bytes} read again"
        )
    shared = f"{counted(taken.shared_bytes, 'byte')} of shared memory"
    if taken.dynamic_bytes:
        shared += f" and {taken.dynamic_bytes} that the launch adds"
    held = "not known for this GPU"
    if taken.warps is not None:
        blocks, warps = (
            counted(taken.blocks or 0, "block"),
            counted(taken.warps, "warp"),
        )
        held = f"{blocks}, {warps}, limited by {taken.limit}"
    return (
        f"registers: {registers}; {shared}; by ptxas for {taken.arch}; estimate: a "
        f"multiprocessor holds at a time: {held}\n"
    )


def _advice(report: ProfileReport) -> str:
    if not report.advice:
        return "nothing to advise"
    lines = ["what to change in the schedule:"]
    for advice in report.advice:
        lines.append(f"- {advice.what}")
        text = report.listing.loop_ir(advice.line) if advice.line else ""
        if text:
            lines.append(f"  at line {advice.line}: {text}")
        lines.append(f"  what to do: {advice.remedy}")
    return "\n".join(map(printable, lines))
