"""Hazards: errors of a kernel even where its results may be right.

Each hazard has an observer and can be switched on by itself. An observer reports nothing about a
kernel that follows the rules of its GPU and its language; `races.py` lists exceptions.

Limits. An observer sees one run: no other order of groups, and no branch that is not taken. Two
things are not checked: which lanes of a register a load still fills, and registers that are found
by an index. Refuses, by UserError, unknown names of hazards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

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

_INDEPENDENT: dict[str, Callable[[], Observer]] = {
    "wait-states": WaitStates,
    "barriers": Barriers,
    "alignment": Alignment,
    "read-only": ReadOnly,
}


def hazard_observers(wanted: bool | str | Iterable[str]) -> tuple[Observer, ...]:
    """Return the observers that check for hazards, in the order in which they must observe.

    Args:
        wanted: True for all of `HAZARDS`, False for none, else one name or several.

    Raises:
        UserError: a name is not in `HAZARDS`.
    """
    some = [wanted] if isinstance(wanted, str) else wanted or ()
    names = set(HAZARDS if some is True else some)
    unknown = names.difference(HAZARDS)
    if unknown:
        raise UserError(
            f"unknown hazard: {', '.join(sorted(unknown))}",
            remedy=f"choose from {', '.join(HAZARDS)}",
        )
    observers: list[Observer] = []
    waits = Waits(reports="waits" in names)
    if names & {"waits", "races"}:
        observers.append(waits)
    observers += [make() for name, make in _INDEPENDENT.items() if name in names]
    if "races" in names:
        observers.append(Races(waits))
    return tuple(observers)
