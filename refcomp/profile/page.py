"""A profile as one HTML page: schedule, loop IR, LLVM IR and machine code side by side.

The page holds all that it needs and asks nothing of any network; its own policy forbids it to.
Texts come from users, models and code objects: Jinja escapes each of them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from refcomp.errors import UserError
from refcomp.profile.listing import LOOP_IR, Line
from refcomp.profile.report import Report
from refcomp.profile.tables import (
    WORDS,
    Table,
    classes_table,
    estimate_table,
    global_table,
    kernels_table,
    shared_table,
)
from refcomp.resources import templates_dir


def page_of(reports: Sequence[Report], title: str = "profile") -> str:
    """The page of some kernels, as HTML text."""
    import jinja2  # noqa: PLC0415  (20 ms that a program which makes no page does not pay)

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    text = (templates_dir() / "html" / "profile.j2").read_text(encoding="utf-8")
    kernels = [_kernel(report) for report in reports]
    names = ", ".join(dict.fromkeys(report.counts.name for report in reports))
    table = _table(kernels_table(reports)) if len(reports) > 1 else None
    given = {"title": title, "names": names, "kernels": kernels, "table": table}
    return environment.from_string(text).render(given)


def write_page(path: str | os.PathLike[str], reports: Sequence[Report]) -> None:
    """Writes the page to a file. UserError when that fails."""
    text = page_of(reports)
    try:
        Path(path).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UserError(f"{os.fspath(path)} cannot be written", why=error.strerror) from error


def _kernel(report: Report) -> Mapping[str, Any]:
    """What the template is given."""
    accesses = [_table(table) for table in (global_table(report), shared_table(report))]
    estimate = estimate_table(report)
    return {
        "report": report,
        "counts": report.counts,
        "classes": _table(classes_table(report)),
        "accesses": [table for table in accesses if table["rows"]],
        "estimate": _table(estimate) if estimate else None,
        "resources": report.resources,
        "advice": report.advice,
        "panes": [(name, _rows(name, lines)) for name, lines in report.listing.texts.items()],
    }


def _table(table: Table) -> Mapping[str, Any]:
    """Numbers as readers like them."""
    are_words = [name in WORDS for name in table.columns]
    rows = [
        {
            "cells": list(zip(map(_cell, row.cells), are_words, strict=True)),
            "line": row.line or "",
            "kernel": row.kernel,
        }
        for row in table.rows
    ]
    columns = list(zip(table.columns, are_words, strict=True))
    return {"title": table.title, "columns": columns, "rows": rows}


def _cell(cell: object) -> str:
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def _rows(name: str, lines: Sequence[Line]) -> list[Mapping[str, Any]]:
    most = max((line.waves or 0 for line in lines), default=0) or 1
    return [
        {
            "number": line.links[0] if name == LOOP_IR and line.links else "",
            "text": line.text,
            "links": " ".join(map(str, line.links)),
            "waves": "" if line.waves is None else f"{line.waves:,}",
            "part": f"{(line.waves or 0) / most:.3f}",
            "note": line.note,
        }
        for line in lines
    ]
