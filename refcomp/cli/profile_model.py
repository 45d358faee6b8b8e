"""`refcomp profile`: measures the nodes of a model beside the peaks of the machine."""

from __future__ import annotations

from dataclasses import asdict
from typing import TypedDict

import click

from refcomp.cli.arrays import Filling
from refcomp.cli.digest import JsonNumber, to_json
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
from refcomp.cli.outcomes import ILLEGAL, NO_TOOLCHAIN, UNSUPPORTED, printable
from refcomp.cli.streams import note, progress, write_json
from refcomp.cli.verdicts import columns_to_text
from refcomp.foundation.target import Target, kind_of
from refcomp.frontend.onnx import from_onnx
from refcomp.graph.debug.executor import create
from refcomp.graph.debug.page import save_page
from refcomp.graph.debug.peaks import measure_peaks
from refcomp.graph.debug.pictures import save_profile
from refcomp.graph.debug.roofline import (
    NetworkProfile,
    NodeProfile,
    check_times,
    profile_network,
)
from refcomp.graph.debug.tables import COLUMNS, facts_of, row_of, rows_of_totals
from refcomp.graph.tracing import trace_graph
from refcomp.runtime.arrays.npz import read_npz
from refcomp.runtime.device import cpu


class NodeTimes(TypedDict):
    """The profile of a node, or of all nodes with the same operators."""

    node: str  # the name; of a total, the number of nodes
    operator: str  # those of a fused node, joined by +
    min_s: JsonNumber  # of a launch; of a total, the sum, as the next one
    mean_s: JsonNumber
    share: JsonNumber  # of the time of all nodes, from 0 to 1
    multiply_adds: int | None  # null if it cannot be counted, as the next one
    flop: int | None  # a multiply-add counts as two
    bytes: int
    gflop_per_s: JsonNumber | None
    gb_per_s: JsonNumber
    bound_by: str | None  # compute or memory
    of_roof: JsonNumber | None  # least time by the roofline model / time


class ProfileOfNetwork(TypedDict):
    """The report of `refcomp profile`, as JSON."""

    target: str
    repeat: int  # launches of each kernel
    peaks: dict[str, JsonNumber] | None  # gflops, gbytes (10^9 a second) and threads
    nodes: list[NodeTimes]
    operators: list[NodeTimes]  # totals, the longest time first


@click.command(
    "profile",
    epilog=errors_and_examples(
        {
            NO_TOOLCHAIN: "a tool of the target is missing",
            ILLEGAL: "the model or an input is illegal, the device is emulated, or\n"
            "matplotlib is not installed",
            UNSUPPORTED: "the model has an operator that refcomp does not know",
        },
        "refcomp profile digits.onnx",
        "refcomp profile digits.onnx --symbol N=64 --repeat 20 --html page.html",
    ),
)
@click.argument("model", metavar="MODEL.onnx")
@inputs_option
@target_option()
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="How many launches of each kernel are measured. The least time counts.",
)
@click.option(
    "--unfused",
    is_flag=True,
    help="Compile each node to a kernel of its own. By default kernels are fused as by "
    "`refcomp run`.",
)
@click.option(
    "--png", metavar="FILE", help="Also draw the profile to a PNG file, by matplotlib."
)
@click.option(
    "--html", metavar="FILE", help="Also write a self-contained page for a browser."
)
@fill_mode_option
@seed_option
@symbol_option
@json_option
def command(
    model: str,
    inputs: str | None,
    target: Target,
    repeat: int,
    unfused: bool,
    png: str | None,
    html: str | None,
    fill_mode: str,
    seed: int,
    symbols: tuple[tuple[str, int], ...],
    as_json: bool,
) -> None:
    """Measure the nodes of a model beside the machine's peaks.

    MODEL.onnx is compiled for TARGET, and run node by node. The table has the time of each node,
    its operations on floats (FLOP, counted in its definition) and the bytes of its inputs, outputs
    and constants, each once.

    The peaks of this machine are measured, too. A node is bound by memory or by compute, whichever
    takes longer at its peak; "of roof" is that least time in per cent of its time. It exceeds 100%
    if bytes come from a cache.

    A second table has the totals of each operator.
    """
    with progress(f"reading {model}") as change_text:
        graph = from_onnx(model)
        filling = Filling(fill_mode, seed, dict(symbols))
        feeds = feeds_of(graph, read_npz(inputs), filling)
        graph = trace_graph(graph, feeds)
        feeds = inputs_of(graph, feeds)
        change_text(f"compiling {len(graph.nodes)} nodes for {target}")
        executor = create(graph, target, unfused=unfused, repeat=repeat)
        check_times(executor)
        peaks = None
        if kind_of(target).device == cpu().kind:
            change_text("measuring the machine")
            peaks = measure_peaks(target)
    # Outside of `progress`, whose animation would be measured, too.
    profile = profile_network(executor, feeds, peaks)
    if as_json:
        write_json(_report(profile, target, repeat))
    else:
        nodes = [row_of(profile, node) for node in profile.nodes]
        totals = rows_of_totals(profile)
        tables = (columns_to_text([COLUMNS, *rows]) for rows in (nodes, totals))
        click.echo(printable("\n\n".join([*tables, "\n".join(facts_of(profile))])))
    if png is not None:
        save_profile(profile, png)
        note(f"wrote {png}")
    if html is not None:
        save_page(profile, html, f"profile of {model}")
        note(f"wrote {html}")


def _report(profile: NetworkProfile, target: Target, repeat: int) -> ProfileOfNetwork:
    return {
        "target": str(target),
        "repeat": repeat,
        "peaks": None if profile.peaks is None else asdict(profile.peaks),
        "nodes": [_times(profile, node) for node in profile.nodes],
        "operators": [_times(profile, total) for total in profile.by_operator()],
    }


def _times(profile: NetworkProfile, node: NodeProfile) -> NodeTimes:
    return {
        "node": node.name,
        "operator": node.operator,
        "min_s": to_json(node.seconds),
        "mean_s": to_json(node.mean),
        "share": to_json(profile.share(node)),
        "multiply_adds": node.multiply_adds,
        "flop": node.flops,
        "bytes": node.bytes,
        "gflop_per_s": None if node.gflops is None else to_json(node.gflops),
        "gb_per_s": to_json(node.gbytes),
        "bound_by": node.bound_by,
        "of_roof": None if node.of_roof is None else to_json(node.of_roof),
    }
