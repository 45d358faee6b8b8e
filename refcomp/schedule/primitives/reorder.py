"""reorder: loops change places."""

from __future__ import annotations

from typing import Any

from refcomp.schedule.stage import Provenance, Stage


def reorder(stage: Stage, provenance: Provenance, *axes: Any) -> None:
    """The loops `axes` take, in the order given, the places they hold together now.

    Loops not named stay where they are. Reduction and data-parallel loops may be mixed.
    """
    loops = [stage.leaf(axis, "reorder") for axis in axes]
    for k, loop in enumerate(loops):
        if any(loop is other for other in loops[:k]):
            stage.refuse(
                "reorder", loop.name, "it is named twice", "name each loop once"
            )
    places = [
        k
        for k, leaf in enumerate(stage.loops.leaves)
        if any(leaf is loop for loop in loops)
    ]
    for place, loop in zip(places, loops, strict=True):
        stage.loops.leaves[place] = loop
        stage.loops.provenance[loop] = stage.loops.provenance.get(loop, provenance)
