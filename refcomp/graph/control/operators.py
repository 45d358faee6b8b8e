"""The table of control operators, by name."""

from __future__ import annotations

from refcomp.graph.control.batched import BATCHED_SCAN
from refcomp.graph.control.branches import IF
from refcomp.graph.control.images import IMAGE_OPERATORS
from refcomp.graph.control.labels import LABEL_OPERATORS
from refcomp.graph.control.loops import LOOP, SCAN
from refcomp.graph.control.maps import MAP_OPERATORS
from refcomp.graph.control.operator import ControlOperator
from refcomp.graph.control.optionals import OPTIONAL_OPERATORS
from refcomp.graph.control.sequences import SEQUENCE_OPERATORS
from refcomp.graph.control.string_casts import STRING_CASTS
from refcomp.graph.control.strings import STRING_OPERATORS

CONTROL_OPERATORS = {
    operator.name: operator
    for operator in (
        IF,
        LOOP,
        SCAN,
        BATCHED_SCAN,
        *SEQUENCE_OPERATORS,
        *OPTIONAL_OPERATORS,
        *STRING_OPERATORS,
        *STRING_CASTS,
        *IMAGE_OPERATORS,
        *LABEL_OPERATORS,
        *MAP_OPERATORS,
    )
}


def find_control(name: str) -> ControlOperator | None:
    """Return the control operator `name`; None if another kind of operator has the name."""
    return CONTROL_OPERATORS.get(name)
