"""Find the first kernel of a graph whose output leaves its bound.

Each kernel is judged on the very arrays that it read. So an error of an earlier kernel neither
hides the error of a later one nor causes a false alarm. The bound is that of a single kernel.

    alone         found = kernel(found inputs)    must lie in the bound of the node
    with a peer   found = kernel(peer's inputs)   must lie in the bound of the node,
                                                  and within both bounds of the peer's output

A peer is another computation of the same values: another backend, or a recording. Both sides may
round differently. So `found` may differ from the peer's output by the sum of both bounds, about
twice the bound. The bound of the peer decides which side is wrong.

A bound follows from the te compute of each operator. The numpy meaning has to lie in it, too. If
it does not, then the te compute is wrong.

If a kernel of fused nodes is wrong, its nodes are compiled and judged one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.graph.compile import compile_nodes
from refcomp.graph.debug.bounds import bound_values
from refcomp.graph.debug.executor import DebugExecutor
from refcomp.graph.debug.peer import Peer, Reading
from refcomp.graph.evaluate import evaluate_node
from refcomp.graph.graph import Array, GraphNode, Value, spell
from refcomp.graph.infer import FUSED
from refcomp.oracle.compare import (
    UNDECIDABLE,
    WRONG,
    Report,
    compare,
    judge_bounded,
    upper_f64,
)
from refcomp.oracle.floats.error_bounds import Bounded


class Cause(StrEnum):
    """The side that is wrong where an output leaves its bound."""

    KERNEL = "the kernel"  # compiled code contradicts the definition of the node
    COMPUTE = "the te compute"  # it contradicts the numpy meaning of the operator
    PEER = "the peer"  # it contradicts the definition, and the kernel does not
    CONVERSION = (
        "the conversion"  # the optimized node means something else than the model's
    )


@dataclass(frozen=True, slots=True)
class WrongElement:
    """The first element, in row-major order, that leaves its bound."""

    index: tuple[int, ...]
    found: float
    expected: float
    bound: float  # the greatest difference that is legal


@dataclass(frozen=True, slots=True)
class NodeComparison:
    """The comparison of one output of one node.

    Attributes:
        name: the name of the value.
        operator: the operator, or the operators of a fused node, joined by `+`.
        elements: the number of elements.
        wrong: how many of them leave the bound.
        undecidable: how many the bound is too weak for.
        ratio: the greatest difference, divided by its bound; above 1, it is wrong.
        first_wrong: the first wrong element; None if no element is wrong.
        cause: the side that is wrong; None if no element is wrong.
        against: what the output was compared with: `evaluate`, or the name of a peer.
        remark: why nothing could be decided, or why the peer was not asked; mostly empty.
    """

    name: str
    operator: str
    elements: int
    wrong: int
    undecidable: int
    ratio: float
    first_wrong: WrongElement | None
    cause: Cause | None
    against: str
    remark: str = ""


EVALUATE = "evaluate"


@dataclass(frozen=True, slots=True)
class Divergence:
    """The outcome of a search for the first wrong node.

    Attributes:
        findings: what was compared, in the order of the nodes.
        first: the finding of the first wrong node; None if no node is wrong.
        inside: the finding of the first wrong node inside of `first`, if `first` is fused and its
            nodes are wrong one by one, too.
    """

    findings: tuple[NodeComparison, ...]
    first: NodeComparison | None
    inside: NodeComparison | None = None

    def __str__(self) -> str:
        first = self.first
        if first is None:
            return f"no node of {len(self.findings)} leaves its bound"
        lines = [f"the first wrong node is {_named(first)}: {first.cause} is wrong"]
        if self.inside is not None:
            lines.append(f"inside of it, node {_named(self.inside)} is wrong")
        elif "+" in first.operator and first.cause is Cause.KERNEL:
            lines.append("each of its nodes is right by itself: fusing them went wrong")
        return "\n".join(lines)


def _named(finding: NodeComparison) -> str:
    return f"{spell(finding.name)} ({finding.operator})"


def find_divergence(
    executor: DebugExecutor, peer: Peer | None = None, *, all_nodes: bool = False
) -> Divergence:
    """Return the first node whose output leaves its bound.

    If it is fused, its nodes are compiled and judged one by one.

    Args:
        executor: an executor that has run.
        peer: other arrays to compare with; None for the numpy meaning of each node alone.
        all_nodes: True to compare the nodes behind the first wrong one, too.

    Raises:
        UserError: the executor has not run, no array of the peer is a value of the graph, or an
            array does not fit its value.

    Example::

        >>> builder = rc.graph.GraphBuilder("net")
        >>> x = builder.input("x", "float32", ("N",))
        >>> net = builder.finish([builder.node("exp", [x], name="y")])
        >>> executor = rc.graph.debug.create(net, "interp")
        >>> _ = executor.run(x=np.array([1, 2], "float32"))
        >>> print(rc.graph.debug.find_divergence(executor))
        no node of 1 leaves its bound
        >>> wrong = rc.graph.debug.Peer("mine", {"y": np.array([2.72, 7.39], "float32")})
        >>> print(rc.graph.debug.find_divergence(executor, wrong))
        the first wrong node is y (exp): the peer is wrong
    """
    findings: list[NodeComparison] = []
    first = None
    for finding in compare_nodes(executor, peer):
        findings.append(finding)
        if finding.wrong and first is None:
            first = finding
            if not all_nodes:
                break
    inside = None
    if first is not None and first.cause in (Cause.KERNEL, Cause.COMPUTE):
        inside = find_inside(executor, first.name, peer)
    return Divergence(tuple(findings), first, inside)


def compare_nodes(
    executor: DebugExecutor, peer: Peer | None = None
) -> Iterator[NodeComparison]:
    """Yield the finding of each output of each node, in the order of the nodes.

    Args:
        executor: an executor that has run.
        peer: other arrays to compare with; None for the numpy meaning of each node alone.

    Raises:
        UserError: as for `find_divergence`.

    Example::

        >>> builder = rc.graph.GraphBuilder("net")
        >>> x = builder.input("x", "float32", ("N",))
        >>> net = builder.finish([builder.node("exp", [x], name="y")])
        >>> executor = rc.graph.debug.create(net, "interp")
        >>> _ = executor.run(x=np.array([1, 2], "float32"))
        >>> (finding,) = rc.graph.debug.compare_nodes(executor)
        >>> finding.name, finding.wrong, finding.ratio < 1
        ('y', 0, True)
    """
    graph = executor.module.graph
    if graph.nodes and not executor.outputs:
        raise UserError(
            "there is nothing to compare",
            why="the graph has not been run",
            remedy="call run() first",
        )
    if peer is not None:
        peer = peer.with_inputs(executor.inputs)
        peer.check_names(graph)
    found: dict[Value, Array] = dict(graph.constants)
    for value in graph.inputs:
        found[value] = executor.inputs[value.name].asnumpy()
    for node in graph.nodes:
        for value in node.outputs:
            found[value] = executor.outputs[value.name].asnumpy()
        yield from _compare_node(executor, node, found, peer)


def find_inside(
    executor: DebugExecutor, name: str, peer: Peer | None = None
) -> NodeComparison | None:
    """Return the finding of the first wrong node inside of a fused node.

    The nodes are compiled one by one, and run on what the fused node read.

    Args:
        executor: an executor that has run.
        name: the name of an output of a node.
        peer: the peer on whose arrays the node was found wrong.

    Returns:
        None if the node is not fused, or if each of its nodes is right by itself. Then the fused
        kernel alone is wrong: its schedule, or the code that was made of it.
    """
    nodes = executor.module.graph.nodes
    node = next(n for n in nodes if name in (v.name for v in n.outputs))
    if node.operator != FUSED:
        return None
    (subgraph,) = node.subgraphs
    inputs = _inputs_of(executor, node)
    reading = None
    if peer is not None:
        peer = peer.with_inputs(executor.inputs)
        reading = peer.reading(node, executor.module.graph)
    if reading is not None:
        inputs |= {value: reading.arrays[value] for value in reading.inputs}
    module = compile_nodes(subgraph, executor.module.target)
    inner = DebugExecutor(module, executor.device)
    given = [inputs[value] for value in node.inputs if value is not None]
    inner.run({v.name: a for v, a in zip(subgraph.inputs, given, strict=True)})
    return next((one for one in compare_nodes(inner) if one.wrong), None)


def _inputs_of(executor: DebugExecutor, node: GraphNode) -> dict[Value, Array]:
    graph = executor.module.graph
    arrays: dict[Value, Array] = {}
    for value in node.reads:
        if value in graph.constants:
            arrays[value] = graph.constants[value]
        elif value in graph.inputs:
            arrays[value] = executor.inputs[value.name].asnumpy()
        else:
            arrays[value] = executor.outputs[value.name].asnumpy()
    return arrays


def _compare_node(
    executor: DebugExecutor,
    node: GraphNode,
    found: Mapping[Value, Array],
    peer: Peer | None,
) -> Iterator[NodeComparison]:
    """Yield the findings of one node; `found` holds what it read and made."""
    reading = None if peer is None else peer.reading(node, executor.module.graph)
    inputs = {value: found[value] for value in node.reads}
    outputs = [found[value] for value in node.outputs]
    if reading is not None:
        inputs |= {value: reading.arrays[value] for value in reading.inputs}
        given = {value.name: array for value, array in inputs.items()}
        outputs = [a.asnumpy() for a in executor.run_node(node.name, given)]
    against = EVALUATE if peer is None else peer.name
    remark = ""
    if peer is not None and reading is None:
        against = EVALUATE
        remark = f"{peer.name} does not have what the node reads or makes"
    blank = NodeComparison(
        name="",
        operator=operators_of(node),
        elements=0,
        wrong=0,
        undecidable=0,
        ratio=0.0,
        first_wrong=None,
        cause=None,
        against=against,
        remark=remark,
    )
    with np.errstate(all="ignore"):
        results = evaluate_node(node, inputs)
    meant = [_as_type(a, v) for a, v in zip(results, node.outputs, strict=True)]
    try:
        bounds = bound_values([node], inputs, node.outputs, executor.symbols)
    except Unsupported as error:
        # Such an operator has one right result, or none that is known.
        pairs = zip(meant, node.outputs, strict=True)
        bounds = [_exactly(array, value) for array, value in pairs]
        blank = replace(blank, remark=f"no bound is known: {error.what}")
    for place, value in enumerate(node.outputs):
        judged = _judge(outputs[place], bounds[place], meant[place])
        if judged.cause is None and reading is not None:
            judged = _judge_peer(
                outputs[place], bounds[place], reading, value, executor.symbols
            )
        yield _finding(replace(blank, name=value.name), judged)


@dataclass(frozen=True, slots=True)
class _Judged:
    """A comparison of one array with another, and the side that is wrong."""

    report: Report
    found: Array
    expected: Array
    bound: Array
    cause: Cause | None


def _judge(found: Array, bounded: Bounded, meant: Array) -> _Judged:
    """Judge an output by the bound of its node, and the bound by the meaning of the node."""
    # Where terms cancel, the bound is as valid: it only says nothing of the sign.
    bounded = replace(bounded, condition=np.ones(bounded.value.shape))
    if not judge_bounded(meant, bounded).agrees:
        # The bound lies about a wrong value. Only its width counts, about the meaning.
        bound = np.asarray(bounded.error, np.float64)
        report = compare(found, meant, bound)
        cause = None if report.agrees else Cause.COMPUTE
        return _Judged(report, found, meant, bound, cause)
    report = judge_bounded(found, bounded)
    cause = None if report.agrees else Cause.KERNEL
    return _Judged(report, found, bounded.nearest, bounded.error, cause)


def _judge_peer(
    found: Array,
    bounded: Bounded,
    reading: Reading,
    value: Value,
    symbols: Mapping[str, int],
) -> _Judged:
    """Judge an output that is right by itself against the output of a peer."""
    wanted = reading.arrays[value]
    peers = bounded
    if reading.nodes:
        of = reading.views[value].of
        (peers,) = bound_values(reading.nodes, reading.known, [of], symbols)
        peers = reading.turned(value, peers)
    with np.errstate(all="ignore"):
        bound = np.asarray(bounded.error + peers.error, np.float64)
    report = compare(found, wanted, bound)
    report = _with_undecidable(report, bounded, peers, found, wanted)
    if report.agrees:
        return _Judged(report, found, wanted, bound, None)
    is_legal = judge_bounded(wanted, peers).agrees
    cause = Cause.CONVERSION if is_legal else Cause.PEER
    return _Judged(report, found, wanted, bound, cause)


def _with_undecidable(
    report: Report, ours: Bounded, peers: Bounded, found: Array, wanted: Array
) -> Report:
    """Return the report, in which elements that rounding decides are undecidable."""
    vague = ours.doubtful | peers.doubtful | ours.allows(found) | peers.allows(wanted)
    verdicts = np.where(
        (report.verdicts == WRONG) & vague, UNDECIDABLE, report.verdicts
    )
    ratios = np.where(verdicts == UNDECIDABLE, 1.0, report.ratios)
    return replace(report, verdicts=verdicts, ratios=ratios)


def _finding(blank: NodeComparison, judged: _Judged) -> NodeComparison:
    report = judged.report
    ratios = report.ratios
    undecidable = report.verdicts == UNDECIDABLE
    first = None
    places = np.flatnonzero(report.verdicts == WRONG)
    if places.size:
        place = np.unravel_index(int(places[0]), report.verdicts.shape)
        index = tuple(map(int, place))
        first = WrongElement(
            index=index,
            found=float(judged.found[index]),
            expected=float(judged.expected[index]),
            bound=upper_f64(np.broadcast_to(judged.bound, ratios.shape)[index]),
        )
    decided = ratios[~undecidable]
    return replace(
        blank,
        elements=int(report.verdicts.size),
        wrong=int(places.size),
        undecidable=int(np.count_nonzero(undecidable)),
        ratio=float(decided.max()) if decided.size else 0.0,
        first_wrong=first,
        cause=judged.cause,
    )


def operators_of(node: GraphNode) -> str:
    """Return the operator of a node; those inside of a fused node, joined by `+`."""
    if node.operator != FUSED:
        return node.operator
    return "+".join(inner.operator for inner in node.subgraphs[0].nodes)


def _as_type(array: Any, value: Value) -> Array:
    return np.asarray(array).astype(to_numpy(value.dtype), copy=False)


def _exactly(array: Array, value: Value) -> Bounded:
    """Return that only `array` is legal."""
    is_float = value.dtype.is_float
    return Bounded(
        dtype=value.dtype,
        value=array.astype(np.longdouble) if is_float else array,
        error=np.zeros(array.shape),
        doubtful=np.zeros(array.shape, np.bool_),
        condition=np.ones(array.shape),
    )
