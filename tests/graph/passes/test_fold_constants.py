"""fold_constants: what needs no input is computed once."""

import weakref
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given

import refcomp.graph.passes.fold_constants as folding
from refcomp.graph.constants import aligned
from refcomp.graph.parser import parse_graph
from refcomp.graph.passes.choose_layout import choose_layout
from refcomp.graph.passes.fold_constants import fold_constants
from refcomp.graph.verify import verify_graph
from tests.graph.passes.docstring_examples import assert_docstring_holds
from tests.strategies.graphs import assert_equivalent, make_graph, networks, operators_of
from tests.strategies.operands import floats


def test_chains_of_constants_become_one() -> None:
    weight = floats(0, 3, 4)

    def build(builder, x):
        packed = builder.node("transpose", [builder.constant("w", weight)], {"axes": (1, 0)})
        doubled = builder.node("add", [packed, packed], name="doubled")
        return builder.node("gemm", [x, doubled])

    graph = make_graph(build, ("N", 4))
    changed = fold_constants(graph)
    assert operators_of(changed) == ["gemm"]
    ((value, array),) = changed.constants.items()
    assert value.name == "doubled"
    np.testing.assert_array_equal(array, weight.T + weight.T)
    assert_equivalent(graph, changed)


def test_an_output_may_be_constant() -> None:
    def build(builder, x):
        constant = builder.node("relu", [builder.constant("c", floats(1, 4))])
        return [constant, builder.node("relu", [x])]

    graph = make_graph(build, ("N", 4))
    changed = fold_constants(graph)
    verify_graph(changed)
    assert changed.outputs[0] in changed.constants
    assert_equivalent(graph, changed)


def test_what_is_costly_is_not_computed_here() -> None:
    def build(builder, x):
        pixel = builder.constant("p", floats(0, 1, 1, 1, 1))
        how = {"kernel": (1 << 20, 1 << 20), "padding": (1 << 19,) * 4}
        column = builder.constant("c", floats(0, 1 << 14, 1))
        row = builder.constant("r", floats(0, 1 << 13))
        return [
            builder.node("relu", [x]),
            builder.node("avg_pool2d", [pixel], how),
            builder.node("add", [column, row]),
        ]

    graph = make_graph(build)
    assert fold_constants(graph) is graph


def test_large_results_are_computed_if_as_much_is_read(monkeypatch) -> None:
    monkeypatch.setattr(folding, "_MAX_ELEMENTS", 10)

    def build(builder, x):
        weight = builder.constant("w", floats(0, 3, 4))
        packed = builder.node("transpose", [weight], {"axes": (1, 0)})
        row = builder.constant("r", floats(1, 4))
        grown = builder.node("add", [builder.constant("c", floats(2, 3, 1)), row], name="grown")
        return [builder.node("gemm", [x, packed]), builder.node("relu", [grown])]

    changed = fold_constants(make_graph(build, (3, 4)))
    # 12 elements are made of 12, or of 7.
    assert operators_of(changed) == ["add", "gemm", "relu"]


def test_layouts_of_large_weights_are_computed(monkeypatch) -> None:
    monkeypatch.setattr(folding, "_MAX_ELEMENTS", 10)

    def build(builder, x):
        matrix = builder.constant("m", floats(0, 3, 5))
        columns = builder.node("pad", [matrix], {"pad_before": (0, 0), "pad_after": (0, 3)})
        panels = builder.node("reshape", [columns], {"shape": (3, 2, 4)})
        kernel = builder.constant("k", floats(1, 1, 1, 3, 3, 2, 2))
        weight = builder.node("conv2d_nchwc_winograd_weight", [kernel])
        border = {"pad_before": (3, 0), "pad_after": (3, 0)}
        return [
            builder.node("relu", [x]),
            builder.node("transpose", [panels], {"axes": (1, 0, 2)}),
            weight,
            builder.node("pad", [matrix], border, "thrice"),
        ]

    changed = fold_constants(make_graph(build, (3, 4)))
    assert [node.outputs[0].name for node in changed.nodes if node.operator == "pad"] == ["thrice"]
    assert sorted(operators_of(changed)) == ["pad", "relu"]


def test_nothing_constant_stays() -> None:
    graph = make_graph(lambda b, x: b.node("relu", [x]))
    assert fold_constants(graph) is graph


@pytest.mark.search
@given(networks())
def test_packed_weights_are_equal(graph):
    laid_out = choose_layout(graph)
    changed = fold_constants(laid_out)
    verify_graph(changed)
    assert_equivalent(laid_out, changed)


def test_the_docstring_holds() -> None:
    passing = import_module("refcomp.graph.passes.fold_constants")
    assert_docstring_holds(passing, fold_constants)


def test_floats_that_are_made_from_nothing_stay_nodes() -> None:
    square = parse_graph("graph g() -> (e) { e: f32[2, 2] = eye() {n=2} }")
    assert fold_constants(square) is square
    count = parse_graph('graph g() -> (n) { n: i64[3] = arange() {dtype="int64", stop=3.0} }')
    assert fold_constants(count).nodes == ()


def test_constants_that_are_padded_and_joined_are_folded() -> None:
    def build(builder, x):
        weight = builder.constant("w", floats(0, 2, 3))
        padded = builder.node("pad", [weight], {"pad_before": (0, 0), "pad_after": (1, 0)})
        return builder.node("add", [x, builder.node("concatenate", [padded, weight], {"axis": 0})])

    folded = fold_constants(make_graph(build, (5, 3)))
    assert operators_of(folded) == ["add"]


def test_a_chain_of_layouts_is_one_copy(monkeypatch) -> None:
    kernel = floats(0, 8, 4, 3, 3)
    layouts = {"src_layout": "OIHW", "dst_layout": "OIHW4i8o"}
    copied = []

    def record(elements):
        copied.append(elements)
        return aligned(elements)

    monkeypatch.setattr(folding, "aligned", record)

    def build(builder, x):
        weight = builder.constant("w", kernel, copy=False)
        flat = builder.node("reshape", [weight], {"shape": (8, 4, 9)})
        turned = builder.node("transpose", [flat], {"axes": (0, 1, 2)})
        square = builder.node("reshape", [turned], {"shape": (8, 4, 3, 3)})
        return builder.node(
            "conv2d_nchwc", [x, builder.node("layout_transform", [square], layouts)]
        )

    changed = fold_constants(make_graph(build, (1, 1, 3, 3, 4)))
    (view,) = copied
    assert np.shares_memory(view, kernel)
    (packed,) = changed.constants.values()
    np.testing.assert_array_equal(packed[0, 0, 1, 2, 3], kernel[:, 3, 1, 2])


def test_results_are_dropped_behind_their_last_reader(monkeypatch) -> None:
    alive = []
    computed: list[weakref.ref] = []

    def compute(node, known):
        results = compute_node(node, known)
        alive.append(sum(one() is not None for one in computed))
        computed.extend(weakref.ref(one) for one in results)
        return results

    compute_node = folding._compute
    monkeypatch.setattr(folding, "_compute", compute)

    def build(builder, x):
        value = builder.constant("w", floats(0, 4))
        for _ in range(4):
            value = builder.node("exp", [value])
        return builder.node("add", [x, builder.node("add", [value, value])])

    assert operators_of(fold_constants(make_graph(build, (4,)))) == ["add"]
    # The last one is still read when the next one is made.
    assert alive == [0, 1, 1, 1, 1]


def test_results_with_other_readers_stay() -> None:
    def build(builder, x):
        first = builder.node("exp", [builder.constant("w", floats(0, 4))], name="first")
        second = builder.node("relu", [first], name="second")
        return [builder.node("add", [x, first]), second, builder.node("multiply", [x, second])]

    graph = make_graph(build, (4,))
    changed = fold_constants(graph)
    assert [value.name for value in changed.constants] == ["first", "second"]
    verify_graph(changed)
    assert_equivalent(graph, changed)
