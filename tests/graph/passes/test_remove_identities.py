"""remove_identities: what goes, what stays, and that nothing else changes."""

import pytest
from hypothesis import given

from refcomp.graph.passes.remove_identities import remove_identities
from refcomp.graph.verify import verify_graph
from tests.strategies.graphs import assert_equivalent, make_graph, networks, operators_of


def test_identities_between_nodes_go() -> None:
    def build(builder, x):
        activated = builder.node("relu", [x])
        same = builder.node("identity", [builder.node("identity", [activated])])
        return builder.node("add", [same, activated])

    graph = make_graph(build)
    changed = remove_identities(graph)
    assert operators_of(changed) == ["relu", "add"]
    assert_equivalent(graph, changed)


def test_an_input_does_not_become_an_output() -> None:
    graph = make_graph(lambda b, x: b.node("identity", [x]))
    assert remove_identities(graph) is graph


@pytest.mark.search
@given(networks())
def test_meaning_is_kept(graph):
    changed = remove_identities(graph)
    verify_graph(changed)
    assert_equivalent(graph, changed)
