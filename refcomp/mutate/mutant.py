"""Mutants, the comparisons that may kill them, and the verdict on a mutant tried in a child."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypedDict, cast

import numpy as np
import numpy.typing as npt

from refcomp.mutate.child import Outcome

OURS = "ours"  # refcomp's own comparison with the interpreter
TOLERANCES = {"rtol 1e-02": 1e-2, "rtol 1e-03": 1e-3}  # relative ones, by name
COMPARISONS = (OURS, *TOLERANCES)

# The reasons why a mutant survives.
MORE_DATA = "more data than ours compares kill it"
NO_DATA = "the same on many more data, few and special numbers among them"

# The steps of a trial in a child.
COMPILES, RUNS = "compiles", "runs"


@dataclass(frozen=True, slots=True)
class Mutant:
    """One small change of a program, or of what makes it, and which comparisons it survives."""

    subject: str  # name of the program
    stage: str  # what made the changed code, or is changed itself
    operator: str  # name of the mutation operator
    change: str  # the text before and after
    killed_by: frozenset[str]  # of COMPARISONS
    symptom: str = ""  # the difference that our comparison found
    equivalent: str = ""  # why it is not wrong
    stillborn: str = ""  # why it is not a program at all
    reason: str = ""  # if our comparison does not kill it: MORE_DATA or NO_DATA

    @property
    def is_wrong(self) -> bool:
        """Return True if it is a program, and not an equivalent one."""
        return not self.equivalent and not self.stillborn

    def __str__(self) -> str:
        return f"{self.subject}, {self.stage}: {self.operator}: {self.change}"


class Change(Protocol):
    """A change by a mutation operator; `str(change)` describes it."""

    @property
    def operator(self) -> str:
        """Return the name of the mutation operator."""


class Message(TypedDict, total=False):
    """One report of a child on the mutant that it tries; a later message overrides."""

    step: str  # COMPILES or RUNS
    subject: str
    symptom: str
    killed_by: list[str]
    equivalent: str
    stillborn: str
    error: str  # an exception that ended the trial


def mutant_of(stage: str, change: Change, maker: str, outcome: Outcome) -> Mutant:
    """Return the mutant that a child has tried.

    A child that failed before any program ran has shown that `maker` fails on the change: the
    mutant is stillborn. A program that fails is killed by all comparisons.
    """
    found = Message(subject="all", step=COMPILES)
    for message in outcome.messages:
        found.update(cast(Message, message))
    symptom = found.get("symptom", "")
    killed_by = set(found.get("killed_by", ()))
    stillborn = found.get("stillborn", "")
    equivalent = found.get("equivalent", "")
    failure = outcome.failure or found.get("error", "")
    if failure and found["step"] == COMPILES:
        stillborn = f"{maker} fails ({failure.split(':')[0]})"
    elif failure:
        symptom = symptom or failure
        killed_by = set(COMPARISONS)
    if symptom:
        killed_by.add(OURS)
    survives = not symptom and not equivalent and not stillborn
    return Mutant(
        subject=found["subject"],
        stage=stage,
        operator=change.operator,
        change=str(change),
        killed_by=frozenset(killed_by),
        symptom=symptom,
        equivalent=equivalent,
        stillborn=stillborn,
        reason=MORE_DATA if survives else "",
    )


def tolerances_exceeded(
    pairs: Iterable[tuple[npt.ArrayLike, npt.ArrayLike]],
) -> set[str]:
    """Return the tolerances by which some pair (actual, expected) differs."""
    given = list(pairs)
    return {
        name
        for name, rtol in TOLERANCES.items()
        if not all(
            np.allclose(a, b, rtol=rtol, atol=0, equal_nan=True) for a, b in given
        )
    }


def first_line(text: object) -> str:
    """Return the first line of what `text` prints; 'nothing' if that is empty."""
    return (str(text).splitlines() or ["nothing"])[0].strip() or "nothing"
