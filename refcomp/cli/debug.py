"""`refcomp debug`: names the first node of a model whose output leaves its bound."""

from __future__ import annotations

from typing import TypedDict

import click

from refcomp.cli.arrays import Arrays, Filling
from refcomp.cli.digest import JsonNumber, number_to_text, to_json
from refcomp.cli.model_inputs import feeds_of, inputs_of
from refcomp.cli.options import (
    errors_and_examples,
    fill_mode_option,
    inputs_option,
    json_option,
    seed_option,
    symbol_option,
    target_option,
)
from refcomp.cli.outcomes import (
    FAILED,
    ILLEGAL,
    NO_TOOLCHAIN,
    UNSUPPORTED,
    printable,
)
from refcomp.cli.streams import progress, read_bytes, write_json
from refcomp.cli.verdicts import columns_to_text
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import did_you_mean
from refcomp.foundation.target import Target
from refcomp.frontend.onnx import from_onnx
from refcomp.frontend.onnx.peer import run_onnx_runtime
from refcomp.graph.compile import compile_nodes
from refcomp.graph.debug.comparing import Divergence, NodeComparison, find_divergence
from refcomp.graph.debug.executor import DebugExecutor, create
from refcomp.graph.debug.peer import Peer
from refcomp.graph.debug.recording import Recording, load_recording
from refcomp.graph.graph import Graph
from refcomp.graph.tracing import trace_graph
from refcomp.runtime.arrays.npz import read_npz

_EVALUATE = "evaluate"
_INTERP = "interp"
_ONNX_RUNTIME = "onnxruntime"
_AGAINST = (_EVALUATE, _INTERP, _ONNX_RUNTIME)
_COLUMNS = (
    "node",
    "operator",
    "elements",
    "error / bound",
    "wrong",
    "undecidable",
    "first wrong",
    "found",
    "expected",
    "allowed",
)


class WrongReport(TypedDict):
    """The first wrong element of an output."""

    index: list[int]
    found: JsonNumber
    expected: JsonNumber
    bound: JsonNumber  # the greatest difference that is legal


class NodeReport(TypedDict):
    """The comparison of one output of a node."""

    node: str  # the name of the output
    operator: str  # those of a fused node, joined by +
    elements: int
    wrong: int  # elements that leave their bound
    undecidable: int  # elements whose bound is too weak to decide
    error_over_bound: JsonNumber  # the greatest; above 1, the node is wrong
    first_wrong: WrongReport | None
    cause: str | None  # the side that is wrong
    against: str  # what it was compared with
    remark: str  # may be empty


class DebugReport(TypedDict):
    """The report of `refcomp debug`, as JSON."""

    verdict: str
    nodes: list[NodeReport]  # up to the first wrong one, unless --all is given
    first_wrong: NodeReport | None
    inside: NodeReport | None  # the wrong node inside of a fused one
    sizes: dict[str, int]  # symbol -> size in elements


@click.command(
    "debug",
    epilog=errors_and_examples(
        {
            FAILED: "the output of a node leaves its bound",
            NO_TOOLCHAIN: "a tool of the target is missing, or ONNX Runtime fails",
            ILLEGAL: "the model is illegal, or an array has another name, dtype or\n"
            "shape, or a package is not installed",
            UNSUPPORTED: "the model has an operator that refcomp does not know",
        },
        "refcomp debug digits.onnx",
        "refcomp debug digits.onnx -i images.npz --against onnxruntime",
        "refcomp debug digits.onnx --unfused --all -o recording.npz",
    ),
)
@click.argument("model", metavar="MODEL.onnx")
@inputs_option
@click.option(
    "--against",
    default=_EVALUATE,
    show_default=True,
    metavar="PEER",
    help="What to compare each node with: evaluate (the numpy meaning of its operator), interp "
    "(the interpreter of refcomp), onnxruntime, or an .npz file with arrays by the names of the "
    "model's values.",
)
@target_option()
@click.option(
    "--unfused",
    is_flag=True,
    help="Compile each node to a kernel of its own, so that every value is compared. By default "
    "kernels are fused as by `refcomp run`, and the wrong node inside of one is named, too.",
)
@click.option(
    "--all",
    "all_nodes",
    is_flag=True,
    help="Compare the nodes behind the first wrong one, too.",
)
@click.option(
    "-o",
    "--outputs",
    metavar="NPZ",
    help="The .npz file to write the outputs of all nodes and their times to, in seconds. "
    "--against reads it.",
)
@fill_mode_option
@seed_option
@symbol_option
@json_option
@click.pass_context
def command(
    context: click.Context,
    model: str,
    inputs: str | None,
    against: str,
    target: Target,
    unfused: bool,
    all_nodes: bool,
    outputs: str | None,
    fill_mode: str,
    seed: int,
    symbols: tuple[tuple[str, int], ...],
    as_json: bool,
) -> None:
    """Name the first node of a model whose output leaves its bound.

    MODEL.onnx is compiled for TARGET, and run node by node. Each node is judged on the arrays that
    it read itself, so that an error of an earlier node neither hides nor causes others. The bound
    is derived from the operators; no tolerance is involved.

    With another PEER than evaluate, each node is also run on the peer's arrays, and compared with
    what the peer computed from them. Both may round differently.

    The report is a table with a row for each node, and then the verdict. Sums in bounds may have
    any order.
    """
    with progress(f"reading {model}") as change_text:
        graph = from_onnx(model)
        recorded = _recording_of(against)
        filling = Filling(fill_mode, seed, dict(symbols))
        feeds = feeds_of(graph, read_npz(inputs), filling)
        graph = trace_graph(graph, feeds)
        feeds = inputs_of(graph, feeds)
        change_text(f"compiling {len(graph.nodes)} nodes for {target}")
        executor = create(graph, target, unfused=unfused)
        change_text("running")
        executor.run(feeds)
        change_text(f"comparing with {against}")
        peer = _peer(against, recorded, model, graph, executor, feeds)
        found = find_divergence(executor, peer, all_nodes=all_nodes)
    if outputs is not None:
        executor.save(outputs)
    if as_json:
        write_json(_report(found, executor.symbols))
    else:
        _print(found, executor.symbols)
    if found.first is not None:
        context.exit(FAILED)


def _recording_of(against: str) -> Recording | None:
    """Return the recording that `against` names. Raise UserError if it names nothing."""
    if against in _AGAINST:
        return None
    if not against.endswith(".npz"):
        raise UserError(
            f"{against!r} is not something to compare with",
            remedy=f"{did_you_mean(against, _AGAINST)} "
            f"--against takes {', '.join(_AGAINST)} or an .npz file".strip(),
        )
    return load_recording(against)


def _peer(
    against: str,
    recorded: Recording | None,
    model: str,
    graph: Graph,
    executor: DebugExecutor,
    feeds: Arrays,
) -> Peer | None:
    if recorded is not None:
        # Times are kept by recordings of refcomp alone, whose values are those of compiled graphs.
        return Peer(against, recorded.outputs, None if recorded.times else graph)
    if against == _ONNX_RUNTIME:
        return Peer("ONNX Runtime", run_onnx_runtime(read_bytes(model), feeds), graph)
    if against == _INTERP:
        other = DebugExecutor(compile_nodes(executor.module.graph, _INTERP))
        other.run(feeds)
        return Peer(_INTERP, other.recording().outputs)
    return None


def _report(found: Divergence, sizes: dict[str, int]) -> DebugReport:
    return {
        "verdict": str(found),
        "nodes": [_node_report(one) for one in found.findings],
        "first_wrong": None if found.first is None else _node_report(found.first),
        "inside": None if found.inside is None else _node_report(found.inside),
        "sizes": sizes,
    }


def _node_report(finding: NodeComparison) -> NodeReport:
    wrong = finding.first_wrong
    return {
        "node": finding.name,
        "operator": finding.operator,
        "elements": finding.elements,
        "wrong": finding.wrong,
        "undecidable": finding.undecidable,
        "error_over_bound": to_json(finding.ratio),
        "first_wrong": None
        if wrong is None
        else {
            "index": list(wrong.index),
            "found": to_json(wrong.found),
            "expected": to_json(wrong.expected),
            "bound": to_json(wrong.bound),
        },
        "cause": None if finding.cause is None else str(finding.cause),
        "against": finding.against,
        "remark": finding.remark,
    }


def _print(found: Divergence, sizes: dict[str, int]) -> None:
    rows = [_row(finding) for finding in found.findings]
    lines = [columns_to_text([_COLUMNS, *rows])] if rows else []
    if sizes:
        known = ", ".join(f"{name} = {size}" for name, size in sizes.items())
        lines.append(f"sizes: {known}")
    lines += [f"{one.name}: {one.remark}" for one in found.findings if one.remark]
    lines.append(f"verdict: {found}")
    click.echo(printable("\n".join(lines)))


def _row(finding: NodeComparison) -> tuple[str, ...]:
    wrong = finding.first_wrong
    element: tuple[str, ...] = ("-",) * 4
    if wrong is not None:
        found = number_to_text(wrong.found)
        expected = number_to_text(wrong.expected)
        if found == expected:  # six digits do not show the difference
            found = repr(wrong.found)
            expected = repr(wrong.expected)
        index = str(list(wrong.index))
        element = (index, found, expected, f"{wrong.bound:.3g}")
    return (
        finding.name,
        finding.operator,
        str(finding.elements),
        f"{finding.ratio:.3g}",
        str(finding.wrong),
        str(finding.undecidable),
        *element,
    )
