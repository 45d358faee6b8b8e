"""A wrong program that was made on purpose, and which ways to compare noticed it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from refcomp.mutate.child import Outcome

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


# What a child that tries a mutant out tells as its step.
COMPILES, RUNS = "compiles", "runs"


class Change(Protocol):
    """What is edited; its text says how."""

    @property
    def kind(self) -> str:
        """What kind of edit it is."""


def mutant_of(stage: str, edit: Change, maker: str, outcome: Outcome) -> Mutant:
    """The mutant that a child has tried out: what it told, and how it ended. Where it ended before
    any program ran, there is none: `maker` fails."""
    found: dict[str, Any] = {
        "subject": "all",
        "step": COMPILES,
        "told": "",
        "noticed": (),
    }
    for message in outcome.told:
        found |= message
    told, noticed = found["told"], set(found["noticed"])
    refused, equivalent = found.get("refused", ""), found.get("equivalent", "")
    failure = outcome.ended or found.get("error", "")
    if failure and found["step"] == COMPILES:
        refused = f"{maker} fails ({failure.split(':')[0]})"
    elif failure:  # whoever runs it notices
        told, noticed = told or failure, set(POLICIES)
    noticed |= {OURS} if told else set()
    reason = "" if told or equivalent or refused else MORE_DATA
    return Mutant(
        found["subject"],
        stage,
        edit.kind,
        str(edit),
        frozenset(noticed),
        told,
        equivalent,
        refused,
        reason,
    )


def first_line(text: object) -> str:
    """The first line of what `text` prints; 'nothing' of nothing."""
    return (str(text).splitlines() or ["nothing"])[0].strip() or "nothing"
