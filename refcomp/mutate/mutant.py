"""A wrong program that was made on purpose, and which ways to compare noticed it."""

from __future__ import annotations

from dataclasses import dataclass

TOLERANCES = (1e-2, 1e-3)
OURS = "ours"
POLICIES = (OURS, *(f"rtol {tolerance:.0e}" for tolerance in TOLERANCES))


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of what `stage` of `subject` made, or of what made it.

    `noticed`: which of POLICIES tell it from the right program; `told`: by what ours did.
    `equivalent`: why it is no wrong code, `refused`: why it is no code at all; '' where it is.
    `reason`: what is known of one that ours does not notice.
    """

    subject: str
    stage: str
    kind: str
    change: str
    noticed: frozenset[str]
    told: str = ""
    equivalent: str = ""
    refused: str = ""
    reason: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether it is a program, and another one."""
        return not self.equivalent and not self.refused

    def __str__(self) -> str:
        return f"{self.subject}, {self.stage}: {self.kind}: {self.change}"


MORE_DATA = "more data than ours compares tell it apart"
NO_DATA = "the same on many more data, few and special numbers among them"


def first_line(text: object) -> str:
    """The first line of what `text` prints; 'nothing' of nothing."""
    return (str(text).splitlines() or ["nothing"])[0].strip() or "nothing"
