"""Suggests known names that are near to an unknown one."""

import difflib
from collections.abc import Iterable

_MAX_SHOWN = 3


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question that names the nearest of `known`, or an empty text where none is near."""
    by_lower = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), by_lower, _MAX_SHOWN)
    names = [by_lower[one] for one in near]
    if not names:
        return ""
    *first, last = names
    listed = f"{', '.join(first)} or {last}" if first else last
    return f"did you mean {listed}?"
