"""The lines of users that messages quote, as tests compare them."""

from __future__ import annotations

import re

from refcomp.foundation.errors import RefcompError

# What a message says about one line of the test's own file, as a regular expression.
QUOTATION = r"  --> .+\.py:\d+\n   \|     .+\n   \|     +[-^]+( .+)?\n"


def quoted(error: RefcompError, label: str) -> str:
    """Return the line that the message quotes above `label`."""
    lines = str(error).splitlines()
    mark = re.compile(rf"   \| +[-^]+{re.escape(f' {label}' if label else '')}")
    marks = [number for number, line in enumerate(lines) if mark.fullmatch(line)]
    assert len(marks) == 1, str(error)
    return lines[marks[0] - 1].partition("|")[2].strip()


def quoted_call(error: RefcompError) -> str:
    """Return the columns that the whole message marks in the user's call of refcomp."""
    lines = error.message().splitlines()
    mark = next(n for n, line in enumerate(lines) if set(line) == set(" |^"))
    start = lines[mark].index("^")
    return lines[mark - 1][start : lines[mark].rindex("^") + 1]
