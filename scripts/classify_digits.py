#!/usr/bin/env python3
"""Classifies real handwritten digits by a trained network, compiled for this machine.

Without compiler tools a few images are interpreted. Exit code: 1 when the accuracy, or the
difference from the numpy oracle, is out of bounds.
"""

import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import refcomp as rc
from refcomp.foundation.cache import default_cache
from refcomp.graph.compile import compile_graph
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.executor import GraphExecutor

DATA = Path(__file__).resolve().parent / "data" / "digits"
LEAST_ACCURACY = 0.97
# Of probabilities: f32 sums of at most 288 products, in another order than the oracle's.
LARGEST_DIFFERENCE = 1e-5
SHADES, SHOWN, INTERPRETED = " ░▒▓█", 5, 2


def draw(images: Any, titles: list[str]) -> str:
    """Return images of 8 x 8 pixels in [0, 1] as text, side by side, each below its title."""
    shades = [[[SHADES[round(4 * pixel)] * 2 for pixel in row] for row in i[0]] for i in images]
    rows = ("  ".join("".join(image[k]) for image in shades) for k in range(8))
    return "\n".join(["  ".join(f"{title:16}" for title in titles), *rows, ""])


def compile_network(graph: Any) -> GraphExecutor:
    """Compile the network to machine code; print the seconds, and whether the cache had it."""
    before = set(default_cache().root.glob("entries/*/*"))
    start = time.perf_counter()
    executor = GraphExecutor(compile_graph(graph, "llvm"))
    seconds = time.perf_counter() - start
    is_cold = set(default_cache().root.glob("entries/*/*")) - before
    origin = "cold; it is in the cache now" if is_cold else "from the cache"
    print(f"compiled {len(graph.nodes)} nodes to machine code in {seconds:.2f} s ({origin})\n")
    return executor


def judge(executor: GraphExecutor, graph: Any, images: Any, labels: Any) -> bool:
    """Classify `images`, print how well, and return True if the result is within the bounds."""
    probability = executor.run(image=images)[0].numpy()
    found = probability.argmax(axis=1)
    titles = [f"{a}, truth {b}" for a, b in zip(found, labels, strict=True)]
    print(draw(images[:SHOWN], titles[:SHOWN]))
    accuracy = float((found == labels).mean())
    difference = float(np.abs(probability - evaluate_graph(graph, {"image": images})[0]).max())
    print(f"accuracy            {accuracy:.2%} of {len(labels)} (at least {LEAST_ACCURACY:.0%})")
    print(f"largest difference  {difference:.1e} from numpy (at most {LARGEST_DIFFERENCE:g})")
    return accuracy >= LEAST_ACCURACY and difference <= LARGEST_DIFFERENCE


def milliseconds(executor: GraphExecutor, images: Any, runs: int) -> float:
    """Return the median of `runs` runs per image. One more run before does not count."""
    times = [time.perf_counter()]
    for _ in range(runs + 1):
        executor.run(image=images)
        times.append(time.perf_counter())
    return float(np.median(np.diff(times)[1:])) * 1e3 / len(images)


def add_vectors() -> bool:
    """Add two vectors by the interpreter, which needs no package onnx."""
    a, b = rc.placeholder((4,), name="a"), rc.placeholder((4,), name="b")
    c = rc.compute((4,), lambda i: a[i] + b[i], name="c")
    x, y, z = np.arange(4, dtype="f"), np.ones(4, "f"), np.zeros(4, "f")
    rc.build(rc.create_schedule(c), [a, b, c], target="interp")(x, y, z)
    print(f"no model can be read without the package onnx: pip install onnx\n{x} + {y} = {z}")
    return bool((z == x + y).all())


def main(most: int | None = None) -> int:
    """Classify the test images, or the first `most` of them; return the exit code."""
    if find_spec("onnx") is None:
        return int(not add_vectors())
    graph = rc.from_onnx(DATA / "digits.onnx")
    with np.load(DATA / "digits_test.npz") as data:
        images, labels = data["image"][:most], data["label"][:most]
    try:
        executor = compile_network(graph)
    except rc.ToolchainError as error:
        print(f"{error}\nSo only {INTERPRETED} images, interpreted: some 10 s each\n", flush=True)
        executor = GraphExecutor(compile_graph(graph, "interp"))
        return int(not judge(executor, graph, images[:INTERPRETED], labels[:INTERPRETED]))
    is_right = judge(executor, graph, images, labels)
    batch, single = milliseconds(executor, images, 20), milliseconds(executor, images[:1], 200)
    print(f"time per image      {batch:.4f} ms in a batch of {len(images)}, {single:.4f} ms alone")
    return int(not is_right)


if __name__ == "__main__":
    sys.exit(main())
