"""Choice: base of enumerations whose members are strings."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise


class Choice(StrEnum):
    """A string of a closed set.

    A member equals its string, has the same hash and prints the same. So programs, texts and files
    may use plain strings.
    """

    # Messages quote members as they quote the strings of users.
    __repr__ = str.__repr__

    @classmethod
    def parse(cls, value: object, what: str, where: str | None = None) -> Self:
        """Return the member that equals `value`, which messages call `what`.

        Raises UserError at `where`, with a suggestion, if there is none.
        """
        for member in cls:
            if member == value:
                return member
        remedy = advise(value, cls, f"use one of {', '.join(cls)}")
        raise UserError(f"{value!r} is not a {what}", where=where, remedy=remedy)
