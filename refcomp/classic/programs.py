"""The programs of MIGRATION.md: differences, refusals, and tutorials in both systems.

differences.toml, refusals.toml and tutorials.toml hold them. Tests run each program.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from refcomp.foundation.records import record

_FOLDER = Path(__file__).parent


@record
class ChangedMeaning:
    """A name whose meaning differs from the classic system.

    Attributes:
        text: a description of the difference.
        program: Python with `rc` and `np` that shows the difference.
    """

    text: str
    program: str


@record
class Refusal:
    """A program that the classic system accepted, and refcomp refuses.

    Attributes:
        title: a heading.
        program: Python with `rc` and `np`, whose last line is refused.
        error: the name of the exception.
        what: the first line of the message.
        why: the reason in the message; may be empty.
        remedy: the advice in the message; may be empty.
        prevents: the wrong answer or crash of the classic system.
    """

    title: str
    program: str
    error: str
    what: str
    why: str
    remedy: str
    prevents: str


@record
class TutorialStep:
    """A part of a tutorial.

    Attributes:
        text: a description of the part, and of the differences.
        classic: this part of the classic program.
        refcomp: this part of the program for refcomp.
    """

    text: str
    classic: str
    refcomp: str


@record
class Tutorial:
    """A classic tutorial and its port.

    Attributes:
        title: a heading.
        text: a description of the program.
        marks: the tools that its programs need, as pytest marks of refcomp's tests.
        steps: the parts of both programs, in order.
    """

    title: str
    text: str
    marks: tuple[str, ...]
    steps: tuple[TutorialStep, ...]

    @property
    def classic(self) -> str:
        """Return the classic program."""
        return "\n".join(step.classic for step in self.steps)

    @property
    def refcomp(self) -> str:
        """Return the program for refcomp."""
        return "\n".join(step.refcomp for step in self.steps)


@cache
def read_differences() -> tuple[ChangedMeaning, ...]:
    """Return the names whose meaning differs."""
    return tuple(
        ChangedMeaning(**fields) for fields in _read("differences")["difference"]
    )


@cache
def read_refusals() -> tuple[Refusal, ...]:
    """Return the programs that refcomp refuses."""
    return tuple(Refusal(**fields) for fields in _read("refusals")["refusal"])


@cache
def read_tutorials() -> tuple[Tutorial, ...]:
    """Return the ported tutorials."""
    return tuple(
        Tutorial(
            title=fields["title"],
            text=fields["text"].strip(),
            marks=tuple(fields["marks"]),
            steps=tuple(TutorialStep(**step) for step in fields["step"]),
        )
        for fields in _read("tutorials")["tutorial"]
    )


def _read(name: str) -> dict[str, Any]:
    path = _FOLDER / f"{name}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))
