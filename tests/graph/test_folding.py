"""A builder that computes small constants at once, and renames values."""

import numpy as np

from refcomp.graph.folding import MAX_FOLDED, FoldingBuilder


def test_nodes_of_small_constants_become_constants() -> None:
    builder = FoldingBuilder("g")
    a = builder.constant("a", np.array([1, 2], "int64"))
    total = builder.node("add", [a, a])
    first, last = builder.nodes("split", [total], {"axis": 0, "sizes": (1, 1)})
    elements = builder.elements(last)
    assert elements is not None
    assert elements.tolist() == [4]
    assert not elements.flags.writeable
    graph = builder.finish([first])
    assert graph.nodes == ()
    assert graph.constants[first].tolist() == [2]


def test_large_ones_inputs_and_symbols_stay_nodes() -> None:
    builder = FoldingBuilder("g")
    x = builder.input("x", "float32", ("N",))
    large = builder.constant("large", np.zeros(MAX_FOLDED + 1, "float32"))
    small = builder.constant("small", np.zeros(1, "float32"))
    made = [
        builder.node("relu", [large]),
        builder.node("add", [x, small]),
        builder.node("broadcast_to", [small], {"shape": (MAX_FOLDED + 1,)}),
    ]
    assert all(builder.elements(value) is None for value in made)
    assert len(builder.finish(made).nodes) == 3
    assert builder.elements(x) is None


def test_control_operators_and_macros_are_not_folded() -> None:
    builder = FoldingBuilder("g")
    a = builder.constant("a", np.array([1], "int64"))
    made = [
        builder.node("sequence_construct", [a]),
        builder.node("family.Name", [a], dtype="int64"),
    ]
    assert len(builder.finish(made).nodes) == 2


def test_a_value_is_renamed_before_anything_reads_it() -> None:
    builder = FoldingBuilder("g")
    x = builder.input("x", "float32", (2,))
    y = builder.rename(builder.node("relu", [x]), "y")
    assert str(y) == "y: f32[2]"
    z = builder.node("relu", [y])
    assert builder.rename(y, "other") is y  # z reads it
    assert builder.rename(z, "y") is z  # the name is taken
    assert builder.rename(x, "input") is x
    assert [node.name for node in builder.finish([z]).nodes] == ["y", "relu"]


def test_floats_that_are_made_from_nothing_are_for_kernels() -> None:
    builder = FoldingBuilder("g")
    window = builder.node("hann_window", [], {"size": 4})
    counted = builder.node("arange", [], {"stop": 3.0, "dtype": "int64"})
    assert builder.elements(window) is None
    assert builder.elements(counted) is not None
    assert [node.operator for node in builder.finish([window, counted]).nodes] == ["hann_window"]
