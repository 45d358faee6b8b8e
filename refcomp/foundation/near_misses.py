"""Suggestions for a name that is not known."""

import difflib
from collections.abc import Iterable

_MAX_SHOWN = 3


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "did you mean ...?" with the nearest of `known`; '' if none is near."""
    by_lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), by_lower, _MAX_SHOWN)
    names = [by_lower[each] for each in near]
    if not names:
        return ""
    *first, last = names
    listed = f"{', '.join(first)} or {last}" if first else last
    return f"did you mean {listed}?"
