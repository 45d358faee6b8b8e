"""Checks that every family of rules shares: differences, PyTorch, and that rules are used."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

import refcomp as rc
from refcomp.graph.graph import Graph
from refcomp.topi.draws import Draws
from refcomp.topi.operator import find_operator
from tests.graph.gradients.differences import by_place, compare, graph_of
from tests.graph.gradients.torch_cases import check_torch

SEEDS = range(6)


def check_differences(name: str) -> None:
    """AssertionError unless gradients agree with central differences, of several samples."""
    found = [compare(name, seed) for seed in SEEDS]
    faults = [fault for one in found for fault in one.faults]
    assert not faults, "\n".join(faults)
    assert by_place(found), f"{name}: no element was compared"


def check_torch_cases(operators: Collection[str], least: int) -> None:
    """AssertionError unless at least so many cases agree with PyTorch."""
    assert check_torch(list(operators)) >= least


def check_types(name: str) -> None:
    """AssertionError unless gradients of samples in all float dtypes have the types of inputs."""
    for seed in SEEDS:
        sample = find_operator(name).sample(Draws(seed))
        graph, _ = graph_of(name, sample)
        inputs = [value for value in graph.inputs if value.dtype.is_float]
        if not inputs:
            continue
        slopes = rc.graph.gradient(graph, head=graph.outputs[0].name)
        gradients = slopes.outputs[len(graph.outputs) :]
        assert [(v.dtype, v.shape) for v in gradients] == [(v.dtype, v.shape) for v in inputs]


def operators_behind(graph: Graph) -> list[str]:
    """Return the operators of a gradient's nodes, in order."""
    return [node.operator for node in graph.nodes]


def slopes_of(
    operator: str,
    feeds: Mapping[str, np.ndarray],
    attributes: Mapping[str, object] | None = None,
    head: np.ndarray | None = None,
) -> tuple[Graph, list[np.ndarray]]:
    """Return the gradient of one node by all its floats, and the elements of these gradients.

    Args:
        operator: the operator of the node.
        feeds: the operands in order, by name.
        attributes: of the node.
        head: of the first output; ones by default.
    """
    builder = rc.graph.GraphBuilder(operator)
    inputs = [builder.input(name, a.dtype, a.shape) for name, a in feeds.items()]
    outputs = builder.nodes(operator, inputs, attributes or {}, ["y"])
    graph = builder.finish(outputs)
    slopes = rc.graph.gradient(graph, head="y")
    shape = outputs[0].shape
    weights = np.ones(shape, outputs[0].dtype.dtype) if head is None else head
    with np.errstate(all="ignore"):
        found = rc.graph.evaluate_graph(slopes, {**feeds, "y_head": weights})
    return slopes, found[len(outputs) :]
