#!/usr/bin/env python3
"""Explains where the time of a network goes: each layer beside the roofline of the core.

    benchmarks/inference/roofline.py resnet50                   writes three files: a minute
    benchmarks/inference/roofline.py vgg19 --threads 2 --folder /tmp

Files are NAME.md, a page with tables; NAME.svg, its picture; NAME.json, all numbers and the
machine. By default they go to the folder of this script. A layer is a kernel of the compiled
network. Its time is the least of many launches in runs of the whole network, so its weights come
from memory as in use. The roofline's peaks are measured by two kernels of refcomp
(`refcomp.graph.debug.measure_peaks`).

Exit codes: 0 done, 2 wrong arguments, or matplotlib is not installed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean
from textwrap import fill
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.light_models import names, save
from benchmarks.machine import describe_machine
from benchmarks.networks.contenders import image_of
from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from refcomp.graph.debug import (
    NetworkProfile,
    NodeProfile,
    Peaks,
    create,
    measure_peaks,
    profile_network,
)
from refcomp.graph.debug.tables import COLUMNS, facts_of, row_of, rows_of_totals
from refcomp.graph.graph import Graph
from refcomp.runtime.host.threads import set_thread_count, thread_count

_FOLDER = Path(__file__).resolve().parent
_RUNS = 10
_FARTHEST = 5  # layers that the page names
_WIDTH = 108  # of the page's sentences
_COLOURS = {"compute": "tab:blue", "memory": "tab:orange"}
_UNKNOWN, _ABOVE = "tab:grey", "#d9d9d9"


def profile_graph(graph: Graph, runs: int, peaks: Peaks) -> NetworkProfile:
    """Return the profile of a graph with one input.

    The time of a node is the least of `runs` runs, its mean the mean of these runs.
    """
    executor = create(graph, "llvm")
    (value,) = graph.inputs
    feeds = {value.name: image_of(value.shape)}
    profiles = [profile_network(executor, feeds, peaks) for _ in range(runs)]
    nodes = zip(*(profile.nodes for profile in profiles), strict=True)
    return NetworkProfile(tuple(map(_least_of, nodes)), peaks)


def _least_of(runs: Sequence[NodeProfile]) -> NodeProfile:
    """Return the profile of a node with the least time of some runs, and the mean of all."""
    least = min(runs, key=lambda node: node.seconds)
    return replace(least, mean=fmean(node.mean for node in runs))


def sentences_of(profile: NetworkProfile) -> list[str]:
    """Return what the profile says about the time of a network, in sentences with numbers."""
    known = [node for node in profile.nodes if node.least is not None]
    least = sum(_least(node) for node in known)
    sentences = [
        f"The roofline allows {_ms(least)} for these layers; they take {_ms(profile.seconds)}. "
        f"So {least / profile.seconds:.0%} of the time is explained by the peaks."
    ]
    for bound, peak in (("compute", "the core's multiply-adds"), ("memory", "memory")):
        nodes = [node for node in known if node.bound_by == bound]
        seconds = sum(node.seconds for node in nodes)
        if nodes:
            share = sum(map(_least, nodes)) / seconds
            sentences.append(
                f"Layers bound by {peak}: {len(nodes)}. Their time is {_ms(seconds)}, "
                f"{seconds / profile.seconds:.0%} of all. The roofline explains {share:.0%} of it."
            )
    above = sorted(known, key=lambda node: _least(node) - node.seconds)[:_FARTHEST]
    listed = ", ".join(f"`{node.name}` {_ms(node.seconds - _least(node))}" for node in above)
    sentences.append(f"The most time above the roofline is lost in {listed}.")
    return sentences


def page_of(network: str, profile: NetworkProfile, machine: Mapping[str, Any]) -> str:
    """Return the page of a network, in Markdown."""
    peaks = profile.peaks
    threads = "" if peaks is None else f" --threads {peaks.threads}"
    lines = [
        f"# Where the time of {network} goes",
        "",
        f"    benchmarks/inference/roofline.py {network}{threads}",
        "",
        f"Measured on {machine['cpu']}; the load was {machine['load']} before.",
        "",
        *(_item(sentence) for sentence in (*facts_of(profile), *sentences_of(profile))),
        "",
        f"![The time of each layer of {network}, and the roofline]({network}.svg)",
        "",
        "Above: the layers in their order. The coloured part of a bar is the time that the",
        "roofline allows: blue where multiply-adds bound it, orange where memory does. Below: each",
        "layer as a point, under the roofline. A layer that reads from caches may be above it.",
        "",
        "## By operator",
        "",
        *_table(rows_of_totals(profile)),
        "",
        "## By layer",
        "",
        *_table([row_of(profile, node) for node in profile.nodes]),
    ]
    return "\n".join(lines) + "\n"


def _item(sentence: str) -> str:
    return fill(sentence, _WIDTH, initial_indent="- ", subsequent_indent="  ")


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    texts = 2  # columns with words, before those with numbers
    rules = ["---"] * texts + ["---:"] * (len(COLUMNS) - texts)
    cells = (COLUMNS, rules, *([cell.replace("|", "\\|") for cell in row] for row in rows))
    return [f"| {' | '.join(row)} |" for row in cells]


def _least(node: NodeProfile) -> float:
    """Return the seconds that the roofline allows, at most those that were measured."""
    return min(node.least or 0.0, node.seconds)


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


def save_picture(path: Path, network: str, profile: NetworkProfile) -> None:
    """Draw the layers' times and the roofline to an SVG file, the same bytes for equal profiles.

    Raises UserError if matplotlib is not installed.
    """
    try:
        from matplotlib import rc_context  # noqa: PLC0415  optional
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        remedy = 'pip install "refcomp[pictures]"'
        raise UserError("the picture needs the package matplotlib", remedy=remedy) from error
    with rc_context({"svg.hashsalt": network}):
        figure = Figure(figsize=(12.0, 9.0), layout="constrained")
        bars, roof = figure.subplots(2, 1)
        _draw_bars(bars, network, profile)
        _draw_roof(roof, profile)
        figure.savefig(path, format="svg", metadata={"Date": None})


def _draw_bars(axes: Any, network: str, profile: NetworkProfile) -> None:
    places = range(len(profile.nodes))
    axes.bar(places, [node.seconds * 1e3 for node in profile.nodes], color=_ABOVE)
    axes.bar(
        places,
        [_least(node) * 1e3 for node in profile.nodes],
        color=[_COLOURS.get(node.bound_by or "", _UNKNOWN) for node in profile.nodes],
    )
    axes.set_xlabel("layer, in the order of the network")
    axes.set_ylabel("ms")
    axes.set_title(f"{network}: {_ms(profile.seconds)}; coloured: what the roofline allows")


def _draw_roof(axes: Any, profile: NetworkProfile) -> None:
    counted = [node for node in profile.nodes if node.flops]
    axes.scatter(
        [(node.flops or 0) / node.bytes for node in counted],
        [node.gflops for node in counted],
        c=[_COLOURS.get(node.bound_by or "", _UNKNOWN) for node in counted],
        s=16,
    )
    if profile.peaks is not None:
        ridge = profile.peaks.gflops / profile.peaks.gbytes
        ends = [ridge / 1e3, ridge, ridge * 1e2]
        heights = [min(end * profile.peaks.gbytes, profile.peaks.gflops) for end in ends]
        axes.plot(ends, heights, color="black")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("operations for each byte")
    axes.set_ylabel("GFLOP/s")


def write_files(
    folder: Path, network: str, profile: NetworkProfile, machine: Mapping[str, Any]
) -> list[Path]:
    """Write the picture, the page and the numbers of a network. Return the three paths."""
    paths = [folder / f"{network}.{ending}" for ending in ("svg", "md", "json")]
    picture, page, numbers = paths
    save_picture(picture, network, profile)
    page.write_text(page_of(network, profile, machine), encoding="utf-8")
    found = {"network": network, "machine": machine, **asdict(profile)}
    numbers.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return paths


def main(argv: Sequence[str]) -> int:
    """Profile the network that `argv` names, write its files, and return the exit code."""
    parser = argparse.ArgumentParser(description="Explains where the time of a network goes.")
    parser.add_argument("model", help=f"one of {', '.join(names())}")
    parser.add_argument("--threads", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--batch", type=int, default=1, help="images a run; default: %(default)s")
    parser.add_argument("--runs", type=int, default=_RUNS, help="default: %(default)s")
    parser.add_argument("--folder", type=Path, default=_FOLDER, help="default: %(default)s")
    asked = parser.parse_args(argv)
    if asked.model not in names():
        parser.error(f"no light model {asked.model}; there are {', '.join(names())}")
    if min(asked.threads, asked.batch, asked.runs) < 1:
        parser.error("threads, batch and runs are numbers of at least 1")
    if not asked.folder.is_dir():
        parser.error(f"there is no folder {asked.folder}")
    machine = describe_machine()
    before = thread_count()
    try:
        set_thread_count(asked.threads)
        with tempfile.TemporaryDirectory(prefix="refcomp-bench-") as folder:
            graph = from_onnx(save(asked.model, folder, asked.batch)["path"])
            profile = profile_graph(graph, asked.runs, measure_peaks())
        paths = write_files(asked.folder, asked.model, profile, machine)
    except UserError as error:
        parser.error(str(error))
    finally:
        set_thread_count(before)
    print("\n".join([*facts_of(profile), *sentences_of(profile)]))
    print(f"written to {', '.join(map(str, paths))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
