"""Suggestions for a name that is not known."""

from collections.abc import Iterable

_MAX_SHOWN = 3


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "did you mean ...?" with the nearest of `known`; '' if none is near."""
    import difflib  # noqa: PLC0415  (for messages of errors only)

    by_lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), by_lower, _MAX_SHOWN)
    if name.lower() in by_lower:  # only the case is wrong
        near = [name.lower()]
    names = [by_lower[each] for each in near]
    if not names:
        return ""
    *first, last = names
    listed = f"{', '.join(first)} or {last}" if first else last
    return f"did you mean {listed}?"


def advise(name: object, known: Iterable[str], remedy: str) -> str:
    """Return `remedy`, after the nearest of `known` if `name` is a wrong text near one of them."""
    listed = list(known)
    if not isinstance(name, str) or name in listed:
        return remedy
    return f"{did_you_mean(name, listed)} {remedy}".lstrip()
