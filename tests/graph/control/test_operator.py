"""The record of a control operator, and how a run names the node that fails."""

import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.control.operator import ControlOperator, NodeParts, run_control
from refcomp.graph.parser import parse_graph


def refuse(call: object) -> list[object]:
    raise UserError("no", remedy="never")


NOTHING = ControlOperator("nothing", inputs=("a",), rule=lambda node: [], run=refuse, subgraphs=1)


def test_inputs_attributes_and_subgraphs_are_checked() -> None:
    with pytest.raises(UserError, match="nothing cannot be applied to 0 inputs"):
        NOTHING.types(NodeParts([], {}, []))
    with pytest.raises(UserError, match="nothing has no attribute 'x'"):
        NOTHING.types(NodeParts(["v"], {"x": 1}, []))
    with pytest.raises(UserError, match="(?s)nothing has 0 subgraphs.*give it 1"):
        NOTHING.types(NodeParts(["v"], {}, []))


def test_a_failing_run_names_the_node() -> None:
    (node,) = parse_graph('graph g() -> () { "a b": bool[] = optional_has_element() }').nodes
    with pytest.raises(UserError) as caught:
        run_control(NOTHING, node, None, [])
    assert caught.value.where == 'node "a b"'
