"""A profile as one HTML page: schedule, loop IR, LLVM IR and machine code side by side.

The page is self-contained: its content security policy forbids every network request. Texts come
from users, models and code objects, and Jinja escapes each of them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from refcomp.driver.amd_resources import AmdResources
from refcomp.driver.nvidia_resources import NvidiaResources
from refcomp.foundation.errors import UserError
from refcomp.foundation.resources import templates_dir
from refcomp.profile.layers import LayerReport, advice_on, layers_table
from refcomp.profile.listing import LOOP_IR, Line
from refcomp.profile.report import ProfileReport
from refcomp.profile.tables import (
    WORDS,
    Table,
    classes_table,
    estimate_table,
    global_table,
    kernels_table,
    shared_table,
)


def page_of(
    reports: Sequence[ProfileReport],
    title: str = "profile",
    layers: Sequence[LayerReport] = (),
) -> str:
    """Return the page of some kernels, and of the layers of a network, as HTML text."""
    import jinja2  # noqa: PLC0415  (20 ms that a program which makes no page does not pay)

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    text = (templates_dir() / "html" / "profile.j2").read_text(encoding="utf-8")
    kernels = [_kernel(report) for report in reports]
    names = ", ".join(dict.fromkeys(report.counts.name for report in reports))
    table = _table(kernels_table(reports)) if len(reports) > 1 else None
    given = {
        "title": title,
        "names": names,
        "kernels": kernels,
        "table": table,
        "layers": _table(layers_table(layers, reports)) if layers else None,
        "advice": advice_on(layers),
    }
    return environment.from_string(text).render(given)


def write_page(
    path: str | os.PathLike[str],
    reports: Sequence[ProfileReport],
    layers: Sequence[LayerReport] = (),
    *,
    title: str = "profile",
) -> None:
    """Write reports to a file, as a page for a browser.

    Args:
        path: the file, which is replaced if it exists.
        reports: the reports, one for each kernel.
        layers: the layers of a network: the result of `refcomp.profile.layers.layers_of`.
        title: the heading of the page.

    Raises:
        UserError: the file cannot be written.

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
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     page = Path(folder, "increment.html")
        ...     rc.profile.write_page(page, [report])
        ...     "increment_kernel0" in page.read_text(encoding="utf-8")
        True
    """
    text = page_of(reports, title, layers)
    try:
        Path(path).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UserError(
            f"{os.fspath(path)} cannot be written", why=error.strerror
        ) from error


def _kernel(report: ProfileReport) -> Mapping[str, object]:
    """Return the template's view of one kernel."""
    accesses = (global_table(report), shared_table(report))
    estimate = estimate_table(report)
    texts = report.listing.texts
    return {
        "report": report,
        "counts": report.counts,
        "facts": list(_facts(report)),
        "classes": _table(classes_table(report)),
        "accesses": [_table(table) for table in accesses if table.rows],
        "estimate": _table(estimate) if estimate else None,
        "advice": report.advice,
        "panes": [_pane(name, lines) for name, lines in texts.items()],
    }


def _facts(report: ProfileReport) -> Iterator[tuple[str, str, bool]]:
    """Yield a row for each figure of a kernel: label, value, and True if it is an estimate."""
    counts = report.counts
    words = counts.isa.words
    yield "launches", f"{counts.launches:,}", False
    yield f"{words.group}s", f"{counts.groups:,}", False
    yield f"{words.wave}s of {counts.wave_lanes} lanes", f"{counts.waves:,}", False
    yield f"grid, in {words.group}s", " x ".join(map(str, counts.grid)), False
    yield f"threads of a {words.group}", " x ".join(map(str, counts.block)), False
    yield "active lanes", f"{counts.active_lanes:.1%}", False
    yield "multiply-adds", f"{counts.fmas:,}", False
    yield (
        "multiply-adds among vector instructions, inner loop",
        f"{report.useful_part:.0%}",
        False,
    )
    yield "bytes of memory read", f"{counts.read:,}", False
    yield "bytes of memory written", f"{counts.written:,}", False
    yield "bytes that lanes use for each byte moved", f"{report.efficiency:.0%}", False
    if counts.matrix_part:
        share = f"{counts.matrix_part:.0%}"
        yield f"multiply-adds by {counts.isa.matrix}", share, False
    if counts.atomic_updates:
        yield "atomic updates", f"{counts.atomic_updates:,}", False
    resources = report.resources
    if isinstance(resources, NvidiaResources):
        yield from _nvidia_facts(resources)
    elif resources is not None:
        yield from _amd_facts(resources)
    elif words.code == "PTX":
        yield "registers and occupancy", report.lack, False


def _nvidia_facts(resources: NvidiaResources) -> Iterator[tuple[str, str, bool]]:
    yield "registers of a thread", str(resources.registers), False
    spilled = f"{resources.spill_store_bytes:,}"
    yield "bytes of registers spilled to memory", spilled, False
    yield "bytes of shared memory", f"{resources.shared_bytes:,}", False
    yield "bytes of it that the launch adds", f"{resources.dynamic_bytes or 0:,}", False
    if resources.warps is not None:
        held = f"blocks of a multiprocessor at a time, limited by {resources.limit}"
        yield held, str(resources.blocks), True
        yield "warps of these blocks", str(resources.warps), True


def _amd_facts(resources: AmdResources) -> Iterator[tuple[str, str, bool]]:
    yield "vector registers of a lane", str(resources.vgprs), False
    if resources.agprs:
        yield "accumulators among them", str(resources.agprs), False
    yield "scalar registers of a wave", str(resources.sgprs), False
    yield "bytes of LDS", f"{resources.shared_bytes:,}", False
    yield "vector registers spilled to memory", str(resources.spilled_vgprs), False
    yield "scalar registers spilled to lanes", str(resources.spilled_sgprs), False
    yield (
        f"waves of a SIMD at a time, limited by {resources.limit}",
        str(resources.waves),
        True,
    )


def _table(table: Table) -> Mapping[str, object]:
    """Return the template's view of a table, with thousands separators in numbers."""
    are_words = [name in WORDS for name in table.columns]
    rows = []
    for row in table.rows:
        cells = [f"{c:,}" if isinstance(c, int) else str(c) for c in row.cells]
        view = {
            "cells": list(zip(cells, are_words, strict=True)),
            "line": row.line or "",
            "kernel": row.kernel,
            "bar": f"{row.bar:.3f}",
        }
        rows.append(view)
    return {
        "title": table.title,
        "columns": list(zip(table.columns, are_words, strict=True)),
        "rows": rows,
        "has_bars": any(row.bar for row in table.rows),
    }


def _pane(
    name: str, lines: Sequence[Line]
) -> tuple[str, int, list[Mapping[str, object]]]:
    """Return the name of a text, the width of its counts in characters, and its lines."""
    max_waves = max((line.waves or 0 for line in lines), default=0)
    depths = _depths([line.text for line in lines])
    rows: list[Mapping[str, object]] = []
    for line, depth in zip(lines, depths, strict=True):
        row = {
            "number": line.links[0] if name == LOOP_IR and line.links else "",
            "text": line.text.lstrip(" "),
            "depth": depth,
            "links": " ".join(map(str, line.links)),
            "waves": "" if line.waves is None else f"{line.waves:,}",
            "part": f"{(line.waves or 0) / (max_waves or 1):.3f}",
            "note": line.note,
        }
        rows.append(row)
    return name, len(f"{max_waves:,}"), rows


def _depths(lines: Sequence[str]) -> list[int]:
    """Return the indentation of each line, which lets deep nests fit into a narrow pane.

    A block with a single statement is not indented. So the loops of a perfect nest have the same
    indentation.
    """
    openers: list[
        int
    ] = []  # the lines that open the blocks around the line, outermost first
    opener_of: list[int] = []  # line -> the line that opens its block; -1: none
    for number, line in enumerate(lines):
        indentation = _indentation(line)
        while openers and _indentation(lines[openers[-1]]) >= indentation:
            openers.pop()
        opener_of.append(openers[-1] if openers else -1)
        openers.append(number)
    is_closing = [line.lstrip().startswith("}") for line in lines]
    children = Counter(
        o for o, closing in zip(opener_of, is_closing, strict=True) if not closing
    )
    depths: list[int] = []
    for opener in opener_of:
        depths.append(0 if opener < 0 else depths[opener] + (children[opener] > 1))
    return depths


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
