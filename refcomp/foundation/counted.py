"""A number with the noun that it counts, for messages: `1 byte`, `2 bytes`, `3 accesses`."""

from __future__ import annotations

_HISSING = ("s", "x", "z", "ch", "sh")  # ends of nouns whose plural ends in -es


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return `number` with `noun`, in the plural unless it is 1.

    Args:
        number: how many there are.
        noun: what is counted, in the singular. Words may stand before it: "schedule step".
        plural: its plural, if it is not formed by -s or -es: "indices".
    """
    if number == 1:
        return f"1 {noun}"
    regular = f"{noun}es" if noun.endswith(_HISSING) else f"{noun}s"
    return f"{number} {plural or regular}"
