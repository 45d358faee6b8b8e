"""Reverse accumulation over the nodes of a graph.

The adjoint of a value says how much a small change of each of its elements changes the outputs,
weighted by their heads. It is the sum of what the nodes that read the value contribute. Nodes are
visited last to first, so that an adjoint is complete when its node is reached.

Requires a graph before `optimize`, whose nodes are operators of the registry with known shapes.
Ensures that the nodes of the graph stay, and that the gradients are nodes behind them.

Reference: A. Griewank and A. Walther, "Evaluating Derivatives", 2nd edition, 2008, chapter 3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.errors import RefcompError, UserError
from refcomp.foundation.near_misses import advise
from refcomp.graph.builder import GraphRewriter
from refcomp.graph.control.operators import find_control
from refcomp.graph.gradients.pullback import Adjoints, Numbers, Pullback
from refcomp.graph.gradients.rules import RULES
from refcomp.graph.gradients.table import (
    Differentiability,
    differentiability,
)
from refcomp.graph.gradients.vjp import STOP_GRADIENT, VJP
from refcomp.graph.graph import Graph, GraphNode, Value, spell
from refcomp.graph.infer import FUSED
from refcomp.graph.narrow import is_narrow
from refcomp.graph.rename import renamed
from refcomp.graph.verify import verify_graph
from refcomp.topi.operator import Attribute


def gradient(
    graph: Graph,
    wrt: str | Sequence[str] | None = None,
    head: str | Sequence[str] | None = None,
) -> Graph:
    """Return a graph with the outputs of a graph, and their gradients by inputs or constants.

    Before::

        graph net(x: f32[3], w: f32[3]) -> (loss) {
          product: f32[3] = multiply(x, w)
          loss: f32[] = sum(product)
        }

    After, with `wrt="w"`::

        graph net(x: f32[3], w: f32[3]) -> (loss, w_grad) {
          const loss_grad: f32[] = [1.0]
          product: f32[3] = multiply(x, w)
          loss: f32[] = sum(product)
          expand_dims: f32[1] = expand_dims(loss_grad) {axis=[0]}
          product_grad: f32[3] = broadcast_like(expand_dims, product)
          w_grad: f32[3] = multiply(product_grad, x)
        }

    Each operator has a rule, or `vjp` differentiates its te. The page
    `refcomp/graph/GRADIENTS.md` lists both, and the operators without a gradient. A value on which
    no output depends has the gradient 0. What `stop_gradient` returns counts as a constant. Kinks
    have one of their slopes. If a maximum is attained several times, each place has an equal
    part; in `max_pool2d`, the first place of a window has all.

    Args:
        graph: any graph, before `optimize`.
        wrt: the names of inputs and constants to differentiate by; None for all inputs of floats.
        head: the names of outputs that count, each weighted by an input `NAME_head` of its dtype
            and shape, which is added to the graph. None if the first output counts, which has one
            element.

    Returns:
        A graph with the outputs of `graph`, then a gradient for each name of `wrt`, of the dtype
        and shape of that value.

    Raises:
        UserError: a name is unknown, or does not hold floats. Or the first output has several
            elements and no head is given. Or a value reaches the outputs only through an operator
            without a gradient. The error names that node and the reason.
        Unsupported: te cannot differentiate an operator, for instance an extern.

    Source: JAX, jax.vjp; TVM, relax.transform.Gradient.

    Example::

        >>> builder = rc.graph.GraphBuilder("net")
        >>> x = builder.input("x", "float32", (2,))
        >>> net = builder.finish([builder.node("square", [x], name="y")])
        >>> slopes = rc.graph.gradient(net, head="y")
        >>> print(slopes)
        graph net(x: f32[2], y_head: f32[2]) -> (y, x_grad) {
          y: f32[2] = square(x)
          scale: f32[2] = scale(x) {factor=2.0}
          x_grad: f32[2] = multiply(y_head, scale)
        }
        >>> feeds = {"x": np.array([3, 4], "float32"), "y_head": np.array([1, 10], "float32")}
        >>> print(rc.graph.evaluate_graph(slopes, feeds)[1])
        [ 6. 80.]
    """
    verify_graph(graph)
    wanted = _wanted(graph, wrt)
    outputs = _weighted(graph, head)
    reverse = _Reverse(graph, wanted, outputs)
    reverse.seed(outputs, with_inputs=head is not None)
    for node in reversed(graph.nodes):
        reverse.visit(node)
    return reverse.finish(wanted)


def _names(given: str | Sequence[str] | None) -> list[str]:
    if given is None:
        return []
    return [given] if isinstance(given, str) else list(given)


def _wanted(graph: Graph, wrt: str | Sequence[str] | None) -> list[Value]:
    """Return the values to differentiate by."""
    known = {value.name: value for value in (*graph.inputs, *graph.constants)}
    if wrt is None:
        floats = [v for v in graph.inputs if v.is_tensor and v.dtype.is_float]
        if not floats:
            raise UserError(
                f"the graph {spell(graph.name)} has no input of floats",
                remedy="name constants of floats: gradient(graph, wrt=[...])",
            )
        return floats
    wanted = []
    for name in _names(wrt):
        if name not in known:
            raise UserError(
                f"the graph {spell(graph.name)} has no input or constant {name!r}",
                remedy=advise(name, known, f"it has {', '.join(map(spell, known))}"),
            )
        value = known[name]
        if not value.is_tensor or not value.dtype.is_float:
            raise UserError(
                f"{value} has no gradient",
                why="only tensors of floats have",
                remedy="differentiate by floats",
            )
        wanted.append(value)
    return wanted


def _weighted(graph: Graph, head: str | Sequence[str] | None) -> list[Value]:
    """Return the outputs that count."""
    if head is None:
        first = graph.outputs[0]
        _require_floats(first)
        if any(extent != 1 for extent in first.shape):
            raise UserError(
                f"the output {first} is not one number",
                why="gradients are those of a number, or of outputs that are weighted",
                remedy=f'reduce it, or give weights: gradient(graph, head="{first.name}")',
            )
        return [first]
    known = {value.name: value for value in graph.outputs}
    found = []
    for name in _names(head):
        if name not in known:
            raise UserError(
                f"the graph {spell(graph.name)} has no output {name!r}",
                remedy=advise(name, known, f"it has {', '.join(map(spell, known))}"),
            )
        _require_floats(known[name])
        found.append(known[name])
    return found


def _require_floats(output: Value) -> None:
    if not output.is_tensor or not output.dtype.is_float:
        raise UserError(
            f"the output {output} has no gradient",
            why="only tensors of floats have",
            remedy="let the first output be the loss, or name another one by head=",
        )


class _Reverse:
    """A graph under construction: the nodes of a graph, and the adjoints of its values."""

    def __init__(
        self, graph: Graph, wanted: Sequence[Value], outputs: Sequence[Value]
    ) -> None:
        self.graph = graph
        self.builder = GraphRewriter(graph)
        self.numbers = Numbers(self.builder)
        for node in graph.nodes:
            self.builder.copy(node)
        self.parts: dict[Value, list[Value]] = {}
        self.seeds: set[Value] = set()
        # Values that depend on a wanted one.
        self.active = set(wanted)
        # Values on which an output depends that counts.
        self.needed = set(outputs)
        for node in graph.nodes:
            if self.active & set(node.reads) and node.operator != STOP_GRADIENT:
                self.active.update(node.outputs)
        for node in reversed(graph.nodes):
            if self.needed & set(node.outputs) and node.operator != STOP_GRADIENT:
                self.needed.update(node.reads)

    def seed(self, outputs: Sequence[Value], with_inputs: bool) -> None:
        """Give the outputs their adjoints: inputs, or the number 1."""
        for output in outputs:
            if with_inputs:
                name = f"{output.name}_head"
                head = self.builder.input(name, output.dtype, output.shape)
            else:
                shape = tuple(1 for _ in output.shape)
                ones = np.ones(shape, to_numpy(output.dtype))
                head = self.builder.constant(f"{output.name}_grad", ones)
            self.seeds.add(head)
            self._add(output, head)

    def visit(self, node: GraphNode) -> None:
        """Add what a node contributes to the adjoints of its inputs."""
        if not any(
            value.dtype.is_float and value in self.active for value in node.reads
        ):
            return
        heads = tuple(self._total(value) for value in node.outputs)
        if all(head is None for head in heads):
            return
        _require_operator(node)
        entry = differentiability(node.operator)
        if entry.kind is Differentiability.ZERO:
            return
        if entry.kind is Differentiability.NONE:
            raise _refusal(node, entry.reason)
        try:
            adjoints = self._adjoints(node, heads)
        except RefcompError as error:
            error.where = error.where or f"gradient of node {spell(node.name)}"
            raise
        # A rule leaves out optional inputs at the end that are not given.
        for value, adjoint in zip(node.inputs, adjoints, strict=False):
            if value is None or adjoint is None or value not in self.active:
                continue
            self._add(value, adjoint)

    def _adjoints(
        self, node: GraphNode, heads: tuple[Value | None, ...]
    ) -> Sequence[Value | None]:
        rule = RULES.get(node.operator)
        if rule is not None:
            found = rule(Pullback(self.builder, self.numbers, node, heads))
            if found is not None:
                return found
        return self._by_vjp(node, heads)

    def _by_vjp(self, node: GraphNode, heads: Sequence[Value | None]) -> Adjoints:
        places = [
            place
            for place, value in enumerate(node.inputs)
            if value is not None and value in self.active and value.dtype.is_float
        ]
        adjoints: list[Value | None] = [None for _ in node.inputs]
        for number, head in enumerate(heads):
            if head is None or not places:
                continue
            attributes: dict[str, Attribute] = dict(node.attributes)
            attributes.update(of=node.operator, wrt=tuple(places), output=number)
            found = self.builder.nodes(VJP, [head, *node.inputs], attributes)
            for place, part in zip(places, found, strict=True):
                before = adjoints[place]
                adjoints[place] = (
                    part if before is None else self.builder.node("add", [before, part])
                )
        return adjoints

    def _add(self, value: Value, adjoint: Value) -> None:
        self.parts.setdefault(value, []).append(adjoint)

    def _total(self, value: Value) -> Value | None:
        """Return the sum of the contributions to the adjoint of a value; None if it has none."""
        parts = self.parts.get(value)
        if not parts:
            return None
        total = parts[0]
        for part in parts[1:]:
            total = self.builder.node("add", [total, part])
        self.parts[value] = [total]
        return total

    def finish(self, wanted: Sequence[Value]) -> Graph:
        """Return the graph; the values that are sums of adjoints are named for what they weigh."""
        gradients = [self._gradient(value) for value in wanted]
        made = self.builder.finish([*self.graph.outputs, *gradients])
        names = {parts[0]: value.name for value, parts in self.parts.items()}
        # Last, since one value may be the adjoint of several.
        for value, found in zip(wanted, gradients, strict=True):
            names[found] = value.name
        return renamed(made, {value: f"{name}_grad" for value, name in names.items()})

    def _gradient(self, value: Value) -> Value:
        total = self._total(value)
        if total is None:
            self._refuse_hidden(value)
            return self.builder.node("zeros_like", [value])
        # An output of a graph is made by a node.
        return self.builder.node("identity", [total]) if total in self.seeds else total

    def _refuse_hidden(self, value: Value) -> None:
        """Raise UserError if the outputs depend on a value, but through no differentiable node."""
        reached = {value}
        for node in self.graph.nodes:
            if not reached & set(node.reads) or not self.needed & set(node.outputs):
                continue
            if node.operator == STOP_GRADIENT:
                continue
            _require_operator(node)
            entry = differentiability(node.operator)
            if entry.kind is Differentiability.NONE:
                raise _refusal(node, entry.reason)
            reached.update(node.outputs)


def _require_operator(node: GraphNode) -> None:
    """Raise UserError for a node that is not an operator of the registry with known shapes."""
    if node.operator == FUSED:
        remedy = "take the gradient of the graph before optimize"
        raise _refusal(node, "it hides several nodes", remedy)
    is_staged = node.late or is_narrow(node) or not all(v.is_tensor for v in node.reads)
    if is_staged or find_control(node.operator) is not None:
        remedy = "take gradients of graphs of tensors, without control operators"
        raise _refusal(node, "only a run determines what it makes", remedy)


def _refusal(node: GraphNode, reason: str, remedy: str = "") -> UserError:
    return UserError(
        f"no gradient passes the node {spell(node.name)} ({node.operator})",
        why=reason,
        remedy=remedy or "leave the value out of wrt, or put stop_gradient before it",
    )
