"""The registry of classic operators."""

import re
from pathlib import Path

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.dtype import as_dtype
from refcomp.foundation.errors import UserError
from refcomp.graph.symbol.operator import (
    FAMILIES,
    NodeMaker,
    find_symbol_operator,
    known_operators,
)


def test_every_public_operator_is_registered() -> None:
    functions = {name for name in rc.sym.__all__ if name[0].islower() or name[0] == "_"}
    functions -= {"load", "load_json"}
    assert functions <= set(known_operators())
    assert len(functions) >= 110


def test_every_operator_is_compared_with_numpy() -> None:
    folder = Path(__file__).parent
    families = [path for path in folder.glob("test_*.py") if path.stem[5:] in FAMILIES]
    assert len(families) == len(FAMILIES)
    text = "\n".join(path.read_text(encoding="utf-8") for path in families)
    words = set(re.findall(r"\w+", text))
    # Families that are tested in one loop: `elemwise_add` by its prefix and `add`.
    words |= {f"{prefix}_{word}" for prefix in ("elemwise", "broadcast") for word in words}
    operators = {operator.name for operator in known_operators().values()}
    assert operators - words == set()


def test_alias_means_the_same_operator() -> None:
    assert find_symbol_operator("__add_symbol__") is find_symbol_operator("broadcast_add")
    assert find_symbol_operator("fill").name == "full"


def test_unknown_operator_has_near_names() -> None:
    with pytest.raises(
        UserError,
        match=r"unknown operator 'conv2'(.|\n)*node 3(.|\n)*did you mean conv2d(.|\n)*class",
    ):
        find_symbol_operator("conv2", "node 3")
    with pytest.raises(UserError, match=r"unknown operator 'xxx.{57}\.\.\.'"):
        find_symbol_operator("x" * 10**6)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (
            {"unit": 3},
            r"dense has no attribute 'unit'(.|\n)*did you mean units\? attributes: units",
        ),
        ({}, r"dense lacks the attribute units(.|\n)*give units: an integer"),
        ({"units": "3x"}, r"the attribute units of dense is '3x'(.|\n)*give an integer"),
        ({"units": "3" * 999}, r"units of dense is '3{59}\.\.\.\n"),
        ({"units": 3, "use_bias": 2}, r"use_bias of dense is 2(.|\n)*give True or False"),
    ],
)
def test_wrong_attributes_are_refused(attributes: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        rc.sym.dense(rc.sym.Variable("x"), name="fc", **attributes)
    assert caught.value.where == "dense node 'fc'"


def test_inputs_depend_on_attributes() -> None:
    dense = find_symbol_operator("dense")
    assert dense.input_names({"use_bias": True}) == ("data", "weight", "bias")
    assert dense.input_names({"use_bias": False}) == ("data", "weight")


def test_nodes_of_one_application_have_its_name() -> None:
    builder = rc.graph.GraphBuilder("net")
    x = builder.input("x", "int32", (2,))
    make = NodeMaker(builder, "n")
    doubled = make.step("add", [x, x])
    (part,) = make.steps("split", [doubled], {"axis": 0, "sizes": (2,)})
    places = make.constant("places", np.arange(2, dtype="int32"))
    total = make.step("add", [part, places])
    last = make.last("multiply", [total, make.scalar(3, as_dtype("int32"))])
    (other,) = make.last_of_several("split", [last], {"axis": 0, "sizes": (2,)}, 1)
    assert [value.name for value in (doubled, part, places, total, last, other)] == [
        *("n.add", "n.split", "n.places", "n.add.1", "n", "n_output0")
    ]
