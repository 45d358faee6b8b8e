"""Lines of a user's sources, as error messages quote them.

    --> my_schedule.py:12
     |     s[C].split(i, factor=0)
     |     ^^^^^^^^^^^^^^^^^^^^^^^

A source is a Python file, a cell of a notebook, loop-IR text, a toolchain file or a command line.
Nodes of te, of schedules and of the loop IR store `file:line` only, since programs make thousands
of them. A message reads the line when it is printed, through linecache, which also knows notebooks.
"""

from __future__ import annotations

import linecache
from itertools import islice
from types import CodeType, TracebackType

from refcomp.foundation.records import record

_MAX_SHOWN = 120  # columns of a line
_MARGIN = "   |     "


@record
class Snippet:
    """A line of a source, with a mark below the part that matters."""

    place: str  # `file:line` or `file:line:column`; '' if it is not known
    label: str = ""  # the part that the line plays, such as `declared here`
    text: str | None = None  # the line; None to read it from the file of `place`
    # The first marked column and the one after the last, in characters from 0; None marks all.
    columns: tuple[int, int] | None = None

    def render(self, mark: str) -> list[str]:
        """Return the lines of a message: the place, the line, and `mark` below it.

        Returns the place only if the line cannot be read, as for `python -c`.
        """
        text = _read_line(self.place) if self.text is None else self.text
        if not text.strip():
            label = f" ({self.label})" if self.label else ""
            return [f"  --> {self.place}{label}"]
        indentation = len(text) - len(text.lstrip())
        start, end = self.columns or (indentation, len(text.rstrip()))
        start = min(max(start, indentation), len(text))
        # A part that is far to the right is shown with as much before it as after it.
        first = max(indentation, start - _MAX_SHOWN // 2)
        last = min(first + _MAX_SHOWN, len(text.rstrip()))
        before = _printable(text[first:start])
        count = max(1, _width(_printable(text[start : min(end, last)])))
        marked = f"{' ' * _width(before)}{mark * count} {self.label}".rstrip()
        return [
            f"  --> {self.place}",
            f"{_MARGIN}{_printable(text[first:last])}".rstrip(),
            f"{_MARGIN}{marked}",
        ]


def _read_line(place: str) -> str:
    file, _, number = place.rpartition(":")
    if not number.isdecimal():
        return ""
    linecache.checkcache(file)
    return linecache.getline(file, int(number)).rstrip("\n")


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def _width(text: str) -> int:
    """Return the number of terminal cells of `text`; Chinese characters have two."""
    import unicodedata  # noqa: PLC0415  (for messages of errors only)

    narrow = sum(not unicodedata.combining(c) for c in text)
    return narrow + sum(unicodedata.east_asian_width(c) in "FW" for c in text)


def call_in(entry: TracebackType) -> Snippet:
    """Return the call that a frame was in, with the columns of the very call."""
    code = entry.tb_frame.f_code
    place = f"{code.co_filename}:{entry.tb_lineno}"
    return Snippet(place, columns=_columns(code, entry))


def _columns(code: CodeType, entry: TracebackType) -> tuple[int, int] | None:
    """Return the columns of the instruction at `entry` in its first line, in characters."""
    instructions = islice(code.co_positions(), entry.tb_lasti // 2, None)
    line, last_line, start, end = next(instructions, (None, None, None, None))
    if line != entry.tb_lineno or start is None or end is None:
        return None
    text = _read_line(f"{code.co_filename}:{line}").encode()
    if last_line != line:  # the call goes on in the next line
        end = len(text)
    # Python counts bytes of UTF-8.
    before = len(text[:start].decode(errors="replace"))
    return before, before + len(text[start:end].decode(errors="replace"))
