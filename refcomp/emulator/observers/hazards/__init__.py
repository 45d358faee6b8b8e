"""What is wrong with a kernel although its results may be right: hazards, each to be switched on.

Needs: a launch that is observed. Ensures: nothing is told of a kernel that keeps to the rules of
its GPU and its language (but see races.py). Refuses, by UserError, hazards of other names.
What one run does is what is seen: no other order of groups, no branch that is not taken. Not looked
for: which lanes of a register a load still fills, and registers that are found by an index.
"""

from __future__ import annotations

from collections.abc import Iterable

from refcomp.emulator.machine.observation import Observer
from refcomp.emulator.observers.hazards.alignment import Alignment
from refcomp.emulator.observers.hazards.barriers import Barriers
from refcomp.emulator.observers.hazards.races import Races
from refcomp.emulator.observers.hazards.read_only import ReadOnly
from refcomp.emulator.observers.hazards.wait_states import WaitStates
from refcomp.emulator.observers.hazards.waits import Waits
from refcomp.foundation.errors import UserError

HAZARDS = ("waits", "wait-states", "barriers", "alignment", "read-only", "races")

__all__ = ["HAZARDS", "hazard_observers"]


def hazard_observers(wanted: bool | str | Iterable[str]) -> tuple[Observer, ...]:
    """Who looks for all hazards, none, or some of `HAZARDS`. UserError."""
    some = [wanted] if isinstance(wanted, str) else wanted or ()
    names = set(HAZARDS if some is True else some)
    if unknown := names.difference(HAZARDS):
        told = ", ".join(sorted(unknown))
        raise UserError(
            f"there is no hazard {told}", remedy=f"use some of: {', '.join(HAZARDS)}"
        )
    waits = Waits(is_told="waits" in names)
    observers: list[Observer] = [waits] if names & {"waits", "races"} else []
    simple = {
        **{"wait-states": WaitStates, "barriers": Barriers},
        **{"alignment": Alignment, "read-only": ReadOnly},
    }
    observers += [make() for name, make in simple.items() if name in names]
    return (*observers, *([Races(waits)] if "races" in names else []))
