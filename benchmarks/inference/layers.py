#!/usr/bin/env python3
"""Holds each layer of a network to its bound: its error over the largest legal error.

    benchmarks/inference/layers.py resnet50 vgg19      the worst layers of two networks
    benchmarks/inference/layers.py                     of all nine light models: some minutes
    benchmarks/inference/layers.py resnet50 --all      a line for each layer

A layer is a kernel of the compiled network. It is judged on the arrays that it read: the reference
is computed from these in f64, and the bound follows from the te compute of its operators
(`refcomp.graph.debug`). A ratio above 1 is an error of the compiler.

Exit codes: 0 each layer keeps its bound, 1 a layer does not, 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.light_models import names, save
from benchmarks.networks.contenders import image_of
from refcomp.frontend.onnx import from_onnx
from refcomp.graph.debug import NodeComparison, compare_nodes, create
from refcomp.graph.graph import Graph

_WORST = 5  # layers of a network that are shown


@dataclass(frozen=True, slots=True)
class LayerErrors:
    """The errors of all layers of a network, in the order of the nodes."""

    network: str
    layers: Sequence[NodeComparison]

    @property
    def wrong(self) -> int:
        """Return the number of layers with an element that leaves its bound."""
        return sum(layer.wrong > 0 for layer in self.layers)

    @property
    def worst(self) -> float:
        """Return the largest error over its bound; 0 of a network without layers."""
        return max((layer.ratio for layer in self.layers), default=0.0)

    def __str__(self) -> str:
        elements = sum(layer.elements for layer in self.layers)
        undecidable = sum(layer.undecidable for layer in self.layers)
        return (
            f"{self.network}: {len(self.layers)} layers with {elements} elements, "
            f"{self.wrong} wrong; largest error {self.worst:.2f} of its bound; "
            f"{undecidable} elements that no bound decides"
        )


def errors_of(network: str, graph: Graph, target: str = "llvm") -> LayerErrors:
    """Return the errors of all layers of a graph with one input, for a random image."""
    executor = create(graph, target)
    (value,) = graph.inputs
    executor.run({value.name: image_of(value.shape)})
    return LayerErrors(network, list(compare_nodes(executor)))


def errors_of_model(network: str, batch: int = 1) -> LayerErrors:
    """Return the errors of all layers of a light model with seeded weights."""
    with tempfile.TemporaryDirectory(prefix="refcomp-bench-") as folder:
        graph = from_onnx(save(network, folder, batch)["path"])
        return errors_of(network, graph)


def table_of(errors: LayerErrors, count: int | None = _WORST) -> Table:
    """Return the table of the worst `count` layers; None for all layers, in their order."""
    layers = errors.layers
    if count is not None:
        layers = sorted(layers, key=lambda layer: -layer.ratio)[:count]
    table = Table()
    for heading in ("layer", "operators"):
        table.add_column(heading, overflow="fold")
    for heading in ("elements", "wrong", "undecidable", "error / bound"):
        table.add_column(heading, justify="right")
    for layer in layers:
        counts = (layer.elements, layer.wrong, layer.undecidable)
        ratio = f"{layer.ratio:.3f}"
        table.add_row(escape(layer.name), layer.operator, *map(str, counts), ratio)
    return table


def main(argv: Sequence[str], console: Console | None = None) -> int:
    """Judge the networks that `argv` requests, and return the exit code."""
    parser = argparse.ArgumentParser(description="Holds each layer of networks to its bound.")
    parser.add_argument("models", nargs="*", help=f"of {', '.join(names())}; default all")
    parser.add_argument("--batch", type=int, default=1, help="images a run; default: %(default)s")
    parser.add_argument("--all", action="store_true", help="a line for each layer")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all findings to it")
    asked = parser.parse_args(argv)
    for name in asked.models:
        if name not in names():
            parser.error(f"no light model {name}; there are {', '.join(names())}")
    if asked.batch < 1:
        parser.error(f"a batch has one image at least, not {asked.batch}")
    screen = console or Console(width=None if sys.stdout.isatty() else 140)
    found = []
    for name in asked.models or names():
        found.append(errors_of_model(name, asked.batch))
        screen.print(table_of(found[-1], None if asked.all else _WORST))
        screen.print(str(found[-1]), markup=False, highlight=False)
    if asked.json is not None:
        findings = {one.network: [asdict(layer) for layer in one.layers] for one in found}
        asked.json.write_text(json.dumps(findings, indent=1) + "\n", encoding="utf-8")
    return int(any(one.wrong for one in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
