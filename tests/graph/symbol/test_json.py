"""The classic JSON form, and what is refused in hostile files."""

import json
import re

import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.graph.symbol import json as form
from refcomp.graph.symbol.json import document_from_json, entries_from_json, entries_to_json

TEXT = rc.sym.dense(rc.sym.Variable("x"), units=2, name="fc").json()


def changed(**fields: object) -> str:
    """Return TEXT with other fields of the document."""
    return json.dumps({**json.loads(TEXT), **fields})


def with_node(number: int, **fields: object) -> str:
    """Return TEXT with other fields of one node."""
    document = json.loads(TEXT)
    document["nodes"][number].update(fields)
    return json.dumps(document)


def test_form_is_that_of_nnvm() -> None:
    assert json.loads(TEXT) == {
        "nodes": [
            {"op": "null", "name": "x", "inputs": []},
            {"op": "null", "name": "fc_weight", "inputs": []},
            {"op": "null", "name": "fc_bias", "inputs": []},
            {
                "op": "dense",
                "name": "fc",
                "attrs": {"units": "2", "use_bias": "True"},
                "inputs": [[0, 0, 0], [1, 0, 0], [2, 0, 0]],
            },
        ],
        "arg_nodes": [0, 1, 2],
        "heads": [[3, 0, 0]],
        "node_row_ptr": [0, 1, 2, 3, 4],
    }


def test_hidden_outputs_are_counted_as_in_nnvm() -> None:
    x = rc.sym.Variable("x")
    net = rc.sym.relu(rc.sym.dropout(rc.sym.batch_norm(x, name="b")))
    rows = json.loads(net.json())["node_row_ptr"]
    assert rows == [0, 1, 2, 3, 4, 5, 8, 10, 11]
    assert rc.sym.load_json(net.json()).json() == net.json()


def test_several_outputs_are_kept() -> None:
    parts = rc.sym.split(rc.sym.Variable("x"), indices_or_sections=3, name="s")
    net = rc.sym.Group([parts[2], parts[0] + parts[1]])
    assert json.loads(net.json())["heads"] == [[1, 2, 0], [2, 0, 0]]
    assert entries_to_json(entries_from_json(net.json(), "text")) == net.json()


@pytest.mark.parametrize("key", ["attr", "param"])
def test_old_files_have_other_keys(key: str) -> None:
    document = json.loads(TEXT)
    document["nodes"][3][key] = document["nodes"][3].pop("attrs")
    document["nodes"][3]["inputs"] = [[0, 0], [1, 0], [2, 0]]
    document["attrs"] = {"nnvm_version": ["int", 800]}
    del document["node_row_ptr"], document["arg_nodes"]
    assert rc.sym.load_json(json.dumps(document)).json() == TEXT


def test_notes_of_variables_and_nodes_are_kept() -> None:
    x = rc.sym.Variable("x", shape=(1, 2), init="zeros")
    net = rc.sym.relu(x, name="r", attr={"__stage__": "1"})
    assert rc.sym.load_json(net.json()).attr_dict() == {
        "x": {"__shape__": "(1, 2)", "__init__": "zeros"},
        "r": {"__stage__": "1"},
    }


HOSTILE = {
    "truncated": (TEXT[:-20], "it is not JSON: "),
    "empty": ("", "it is not JSON"),
    "list": ("[]", r"it is \[\] instead of an object"),
    "deep": ("[" * 10**6, "it is not JSON"),
    "deep objects": ('{"nodes":' * 10**5, "it is not JSON"),
    "no nodes": ("{}", "its nodes are None instead of a list"),
    "nodes of another type": (changed(nodes=3), "its nodes are 3 instead of a list"),
    "number as node": (changed(nodes=[3]), "node 0(.|\n)*it is 3 instead of an object"),
    "no name": (with_node(0, name=None), "node 0(.|\n)*its name is None instead of a text"),
    "empty name": (with_node(0, name=""), "its name is '' instead of a text"),
    "huge name": (with_node(3, name="n" * 10**6, inputs=3), r"node 3 \('nnn.*\.\.\..*'\)"),
    "number as op": (with_node(3, op=7), r"node 3 \('fc'\)(.|\n)*its op is 7 instead of the name"),
    "unknown op": (with_node(3, op="dens"), r"unknown operator 'dens'(.|\n)*did you mean dense"),
    "inputs of another type": (with_node(3, inputs={}), "its inputs are {} instead of a list"),
    "too few inputs": (
        with_node(3, inputs=[[0, 0, 0]]),
        r"dense takes 3 inputs \(data, weight, bias\), but the node has 1",
    ),
    "variable with inputs": (with_node(2, inputs=[[0, 0, 0]]), "it is a variable, but has inputs"),
    "reference to itself": (
        with_node(3, inputs=[[3, 0, 0]] * 3),
        "it refers to node 3, but only nodes 0 to 2 come before",
    ),
    "forward reference": (with_node(1, op="relu", inputs=[[3, 0, 0]]), "it refers to node 3, but"),
    "negative reference": (with_node(3, inputs=[[-1, 0, 0]] * 3), "it refers to node -1, but"),
    "huge reference": (with_node(3, inputs=[[10**30, 0, 0]] * 3), "it refers to node 10000"),
    "missing output": (
        with_node(3, inputs=[[0, 1, 0]] * 3),
        "it refers to output 1 of variable 'x', which has 1",
    ),
    "text as reference": (with_node(3, inputs=["0"] * 3), r"it refers to '0' instead of \[node, o"),
    "True as reference": (
        with_node(3, inputs=[[True, 0, 0]] * 3),
        r"it refers to \[True, 0, 0\] i",
    ),
    "short reference": (with_node(3, inputs=[[0]] * 3), r"it refers to \[0\] instead of"),
    "attributes of another type": (with_node(3, attrs=[]), r"its attrs are \[\] instead of an obj"),
    "number as attribute": (
        with_node(3, attrs={"units": 2}),
        "its attribute 'units' is 2, not a t",
    ),
    "wrong attribute": (
        with_node(3, attrs={"units": "two"}),
        r"the attribute units of dense is 'two'(.|\n)*node 3 \('fc'\)(.|\n)*give an integer",
    ),
    "unknown attribute": (
        with_node(3, attrs={"units": "2", "bias": "1"}),
        "dense has no attribute 'bias'",
    ),
    "missing attribute": (with_node(3, attrs={}), "dense lacks the attribute units"),
    "two variables of one name": (with_node(1, name="x"), "another variable is named 'x'"),
    "no heads": (changed(heads=[]), "it has no heads"),
    "heads of another type": (changed(heads=None), "its heads are None instead of a list"),
    "head out of range": (changed(heads=[[4, 0, 0]]), "heads(.|\n)*it refers to node 4, but"),
    "wrong arguments": (
        changed(arg_nodes=[0, 3]),
        r"its arg_nodes are \[0, 3\], but the variables",
    ),
    "wrong rows": (changed(node_row_ptr=[0]), r"its node_row_ptr is \[0\], but the outputs begin"),
    "control": (with_node(3, control_deps=[0]), "it has control_deps, which refcomp does not read"),
    "subgraphs": (with_node(3, subgraphs=[{}]), "it has subgraphs, which refcomp does not read"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_refused_in_words(name: str) -> None:
    text, message = HOSTILE[name]
    with pytest.raises(UserError, match=message) as caught:
        rc.sym.load_json(text)
    assert len(str(caught.value)) < 3000


def test_wrong_number_of_outputs_names_the_node() -> None:
    text = rc.sym.split(rc.sym.Variable("x"), indices_or_sections=2, name="s").json()
    text = text.replace('"indices_or_sections": "2"', '"indices_or_sections": "0"')
    with pytest.raises(UserError, match=r"split cannot make 0 parts\n(.|\n)*node 1 \('s'\)"):
        rc.sym.load_json(text)


def test_variadic_node_needs_an_input() -> None:
    text = rc.sym.elemwise_sum(rc.sym.Variable("x"), name="s").json()
    document = json.loads(text)
    document["nodes"][1]["inputs"] = []
    with pytest.raises(UserError, match="elemwise_sum takes at least one input"):
        rc.sym.load_json(json.dumps(document))


def test_huge_texts_and_counts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form, "MAX_JSON", 50)
    with pytest.raises(UserError, match=rf"it has {len(TEXT)} characters; at most 50 are read"):
        rc.sym.load_json(TEXT)
    monkeypatch.undo()
    monkeypatch.setattr(form, "MAX_NODES", 3)
    with pytest.raises(UserError, match="it has 4 nodes; at most 3 are read"):
        rc.sym.load_json(TEXT)


def test_ten_thousand_layers_are_read() -> None:
    net = rc.sym.Variable("x")
    for _ in range(10_000):
        net = rc.sym.relu(net)
    assert len(rc.sym.load_json(net.json()).get_internals()) == 10_001


def test_text_is_needed() -> None:
    with pytest.raises(UserError, match="a bytes is not the JSON text of a symbol"):
        rc.sym.load_json(b"{}")
    assert document_from_json("{}", "file", "a graph") == {}


def test_any_damage_of_one_character_is_refused_or_harmless() -> None:
    for place in range(0, len(TEXT), 7):
        for other in '0"[x-':
            text = TEXT[:place] + other + TEXT[place + 1 :]
            try:
                rc.sym.load_json(text)
            except UserError as error:
                assert re.search(r"what to do", str(error))
