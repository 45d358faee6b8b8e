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
from refcomp.profile.listing import Line
from refcomp.profile.report import Report
from refcomp.resources import templates_dir


def page_of(reports: Sequence[Report], title: str = "profile") -> str:
    """The page of some kernels, as HTML text."""
    import jinja2  # noqa: PLC0415  (20 ms that a program which makes no page does not pay)

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    text = (templates_dir() / "html" / "profile.j2").read_text(encoding="utf-8")
    kernels = [_kernel(report) for report in reports]
    return environment.from_string(text).render(title=title, kernels=kernels)


def write_page(path: str | os.PathLike[str], reports: Sequence[Report]) -> None:
    """Writes the page to a file. UserError when that fails."""
    text = page_of(reports)
    try:
        Path(path).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UserError(f"{os.fspath(path)} cannot be written", why=error.strerror) from error


def _kernel(report: Report) -> Mapping[str, Any]:
    """What the template is given."""
    whole = sum(count for _, count in report.classes()) or 1
    return {
        "report": report,
        "counts": report.counts,
        "classes": [(kind, count, count / whole) for kind, count in report.classes()],
        "bound": report.bound,
        "resources": report.resources,
        "advice": report.advice,
        "panes": [(name, _rows(lines)) for name, lines in report.listing.texts.items()],
    }


def _rows(lines: Sequence[Line]) -> list[Mapping[str, Any]]:
    most = max((line.waves or 0 for line in lines), default=0) or 1
    return [
        {
            "text": line.text,
            "links": " ".join(map(str, line.links)),
            "waves": "" if line.waves is None else line.waves,
            "part": f"{(line.waves or 0) / most:.3f}",
            "note": line.note,
        }
        for line in lines
    ]
