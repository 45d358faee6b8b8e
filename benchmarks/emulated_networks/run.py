"""Run whole networks through an AMD GPU's machine code, or through PTX, without the GPU.

    python -m benchmarks.emulated_networks.run squeezenet resnet50
    python -m benchmarks.emulated_networks.run squeezenet --arch gfx1100 --hazards
    python -m benchmarks.emulated_networks.run resnet50 --arch sm_90     # PTX by LLVM's backend
    python -m benchmarks.emulated_networks.run --arch gfx942 --arch gfx1100 --json FILE    # all
    python -m benchmarks.emulated_networks.run --table FILE     # these rows, in Markdown

The networks are the light models of the package `onnx` with seeded weights, batch 1. Each network
is compiled once, with multiply-adds fused. It runs unchecked, with the usual checks, and with
`--hazards` also with the checks for all hazards. A finding ends the row, but not the benchmark.
Then each node is compared within derived bounds with ONNX Runtime, on the inputs that ONNX Runtime
had. On AMD GPUs, an additional interpreted run counts instructions.

CPU seconds are those of this process and of the tools that it starts. So other load on the machine
hardly matters. Each run begins with a new device, which decodes the kernels and translates their
hot code again. Only the cache is kept: machine code of kernels, its disassembly, and translated
code. Set REFCOMP_CACHE_DIR to an empty folder to measure without them.

The exit code is 1 if a node leaves its bound, a kernel has a finding or cannot be compiled, and 2
for wrong arguments.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks import light_models
from benchmarks.machine import describe_machine
from refcomp.driver.cuda_emulator import cuda_emulator
from refcomp.driver.devices import rocm_emulator
from refcomp.emulator.observers.counting import Profile
from refcomp.foundation.errors import RefcompError
from refcomp.foundation.options import build_options
from refcomp.frontend.onnx import from_onnx
from refcomp.frontend.onnx.peer import run_onnx_runtime
from refcomp.graph import DebugExecutor, trace_graph
from refcomp.graph.compile import GraphModule, compile_graph
from refcomp.graph.debug import Peer, compare_nodes
from refcomp.graph.debug.comparing import Cause, NodeComparison
from refcomp.graph.executor import GraphExecutor
from refcomp.profile.layers import useful_part
from refcomp.profile.report import ProfileReport, report_of
from refcomp.runtime.device import Device, HostArray

ARCHITECTURES = ("gfx942", "gfx90a", "gfx1100", "sm_90")
_LAYERS = ("conv", "gemm", "matmul", "dense")


@dataclass(frozen=True, slots=True)
class NetworkRow:
    """The results of one network on one GPU."""

    network: str
    arch: str
    compile_cpu_s: float  # about 0 if the code was in the cache
    unchecked_cpu_s: float
    checked_cpu_s: float
    hazards_cpu_s: float | None  # None: not run with the checks for all hazards
    # The share of multiply-adds among the vector instructions, from 0 to 1; None for PTX.
    useful: float | None
    useful_of_layers: float | None  # the same share in convolutions and products only
    estimate_s: float | None  # the least time by an estimate for `card`; None without a card
    card: str
    error: float  # the largest error of a node, divided by its derived bound; wrong above 1
    nodes: int  # the number of nodes that were compared
    wrong: tuple[str, ...]  # nodes that exceed their bounds

    def __str__(self) -> str:
        hazards = "" if self.hazards_cpu_s is None else f", {self.hazards_cpu_s:.1f} with hazards"
        estimate = useful = ""
        if self.useful is not None and self.useful_of_layers is not None:
            useful = (
                f"; multiply-adds: {self.useful:.0%} of the vector instructions, "
                f"{self.useful_of_layers:.0%} in layers"
            )
        if self.estimate_s is not None:
            estimate = f"; estimate for {self.card}: {1e6 * self.estimate_s:.0f} us at least"
        return (
            f"{self.network:14} {self.arch:8} CPU s: {self.unchecked_cpu_s:.1f} unchecked, "
            f"{self.checked_cpu_s:.1f} checked{hazards}{useful}; error / bound: "
            f"{self.error:.2g} of {self.nodes} nodes, {len(self.wrong)} wrong{estimate}"
        )


def measure(name: str, model: bytes, arch: str, *, hazards: bool = False) -> NetworkRow:
    """Run a network on an emulated GPU, and compare its nodes.

    Args:
        name: the network's name in the result.
        model: the bytes of an ONNX model whose inputs have constant shapes.
        arch: one of ARCHITECTURES.
        hazards: also run it looking for all hazards.

    Raises:
        RefcompError: a kernel has a finding, or cannot be compiled.
    """
    feeds = feeds_of(model)
    start = _cpu_seconds()
    with build_options(contract=True):
        graph = trace_graph(from_onnx(model), feeds)
        module = compile_graph(graph, target_of(arch))
    compiled = _cpu_seconds() - start
    unchecked = _seconds(module, device_of(arch, is_watched=False), feeds)
    checked = _seconds(module, device_of(arch), feeds)
    with_hazards = None
    if hazards:
        with_hazards = _seconds(module, device_of(arch, hazards=True), feeds)
    # On the checked device, whose code is translated by now: an observed device interprets.
    executor = DebugExecutor(module, device_of(arch))
    executor.run(feeds)
    peer = Peer("ONNX Runtime", run_onnx_runtime(model, dict(feeds)), graph)
    found = list(compare_nodes(executor, peer))
    error, wrong = errors_of(found)
    reports = [] if is_nvidia(arch) else _reports(module, arch, feeds)
    layers = [one for one in reports if any(word in one.counts.name for word in _LAYERS)]
    return NetworkRow(
        network=name,
        arch=arch,
        compile_cpu_s=compiled,
        unchecked_cpu_s=unchecked,
        checked_cpu_s=checked,
        hazards_cpu_s=with_hazards,
        useful=useful_part(reports) if reports else None,
        useful_of_layers=useful_part(layers) if reports else None,
        estimate_s=_estimate(reports) if reports else None,
        card=next((one.bound.card.name for one in reports if one.bound), ""),
        error=error,
        nodes=len(found),
        wrong=wrong,
    )


def is_nvidia(arch: str) -> bool:
    """Return True for a GPU that runs PTX."""
    return arch.startswith("sm_")


def target_of(arch: str) -> str:
    """Return the target that makes code of a GPU."""
    return f"nvptx -code=ptx -arch={arch}" if is_nvidia(arch) else f"rocm -mcpu={arch}"


def device_of(arch: str, *, is_watched: bool = True, hazards: bool = False) -> Device:
    """Return an emulated GPU."""
    make = cuda_emulator if is_nvidia(arch) else rocm_emulator
    return make(arch, is_watched=is_watched, hazards=hazards)


def _reports(module: GraphModule, arch: str, feeds: dict[str, HostArray]) -> list[ProfileReport]:
    """Run a network once more, and return the counts of each kernel."""
    profile = Profile()
    GraphExecutor(module, rocm_emulator(arch, is_watched=False, profile=profile)).run(feeds)
    return [report_of(counts) for counts in profile.kernels]


def errors_of(found: Iterable[NodeComparison]) -> tuple[float, tuple[str, ...]]:
    """Return the largest error of a node by its bound, and the names of the wrong nodes.

    Nodes where only the peer is wrong do not count. The error is 0 without nodes.
    """
    ours = [one for one in found if one.cause is not Cause.PEER]
    error = max((one.ratio for one in ours), default=0.0)
    return error, tuple(one.name for one in ours if one.wrong)


def feeds_of(model: bytes) -> dict[str, HostArray]:
    """Return random inputs for a model, the same ones in each run."""
    random = np.random.default_rng(0)
    graph = from_onnx(model)
    shapes = {value.name: [int(str(dim)) for dim in value.shape] for value in graph.inputs}
    return {name: random.random(shape, np.float32) for name, shape in shapes.items()}


def _seconds(module: GraphModule, device: Device, feeds: dict[str, HostArray]) -> float:
    """Return the CPU seconds of the first run on a device, translation included."""
    executor = GraphExecutor(module, device)
    start = _cpu_seconds()
    executor.run(feeds)
    return _cpu_seconds() - start


def _cpu_seconds() -> float:
    """Return the CPU seconds of this process, and of those that it started and that have ended."""
    times = os.times()
    return process_time() + times.children_user + times.children_system


def _estimate(reports: Sequence[ProfileReport]) -> float | None:
    total = 0.0
    for report in reports:
        if report.bound is None:
            return None
        total += report.bound.seconds[report.bound.limit] * report.counts.launches
    return total


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the networks that the command line names; return the exit code."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = light_models.names()
    models = f"of {', '.join(known)}; default: all"
    parser.add_argument("models", nargs="*", metavar="MODEL", help=models)
    parser.add_argument(
        "--arch",
        choices=ARCHITECTURES,
        action="append",
        help="the GPU, gfx942 by default; may be repeated",
    )
    parser.add_argument("--hazards", action="store_true", help="also look for all hazards")
    parser.add_argument("--json", type=Path, metavar="FILE", help="add the rows to this file")
    parser.add_argument("--table", type=Path, metavar="FILE", help="only print rows of this file")
    given = parser.parse_args(arguments)
    for name in given.models:
        if name not in known:
            parser.error(f"no light model {name}; there are {', '.join(known)}")
    if given.table is not None and not given.table.is_file():
        parser.error(f"no file {given.table}")
    try:  # before networks run for minutes
        rows = read_rows(given.table or given.json)
    except ValueError as error:
        parser.error(str(error))
    if given.table is not None:
        print(table_of(rows))
        return 0
    machine = describe_machine()
    is_right = True
    for name in given.models or known:
        model = light_models.make(name).SerializeToString()
        for arch in given.arch or ARCHITECTURES[:1]:
            try:
                row = measure(name, model, arch, hazards=given.hazards)
            except RefcompError as error:  # a finding, or a kernel that cannot be compiled
                print(f"{name:14} {arch:8} {error}", flush=True)
                is_right = False
                continue
            print(row, flush=True)
            is_right &= not row.wrong
            if given.json is not None:
                save(given.json, row, machine)
    return int(not is_right)


def table_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows of a JSON file as a Markdown table."""
    columns = (
        "network",
        "GPU",
        "compile",
        "unchecked",
        "checked",
        "hazards",
        "multiply-adds",
        "in layers",
        "error / bound",
        "estimate",
    )
    lines = [columns, tuple("---" for _ in columns)]
    for row in rows:
        seconds = [row[f"{stage}_cpu_s"] for stage in ("compile", "unchecked", "checked")]
        hazards = row["hazards_cpu_s"]
        estimate = row["estimate_s"]
        parts = [row[name] for name in ("useful", "useful_of_layers")]
        wrong = f" ({len(row['wrong'])} wrong)" if row["wrong"] else ""
        cells = (
            row["network"],
            row["arch"],
            *(f"{one:.1f}" for one in seconds),
            "" if hazards is None else f"{hazards:.1f}",
            *("" if one is None else f"{one:.0%}" for one in parts),
            f"{row['error']:.2g}{wrong}",
            "" if estimate is None else f"{1e6 * estimate:.0f} us, {row['card']}",
        )
        lines.append(cells)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def read_rows(path: Path | None) -> list[dict[str, Any]]:
    """Return the rows of a file that `save` wrote; none if there is no file yet.

    Raises:
        ValueError: the file has other contents.
    """
    if path is None or not path.exists():
        return []
    names = {field.name for field in fields(NetworkRow)}
    try:
        rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["rows"]
        is_known = all(names <= set(row) for row in rows)
    except (ValueError, LookupError, TypeError):
        is_known = False
    if not is_known:
        raise ValueError(f"{path} has no rows of emulated networks")
    return rows


def save(path: Path, row: NetworkRow, machine: Mapping[str, Any]) -> None:
    """Write a row to a JSON file, in place of an earlier one of the same network and GPU.

    Each row has its machine, since the rows of a file may be measured at different times.
    """
    kept = [
        one for one in read_rows(path) if (one["network"], one["arch"]) != (row.network, row.arch)
    ]
    kept.append({**asdict(row), "machine": machine})
    kept.sort(key=lambda one: (one["network"], one["arch"]))
    path.write_text(json.dumps({"rows": kept}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
