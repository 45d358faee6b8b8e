#!/usr/bin/env python3
"""Training: a network learns handwritten digits from scratch, by compiled kernels only.

It is trained by SGD with momentum, then by Adam. Look at the text of a step: the forward pass, the
adjoints from the loss back to the first weights, then the update of each parameter.

Needs LLVM's tools. With an argument, such as losses.png, matplotlib draws the losses there. Exit
code: 1 when fewer than 97 % of the held-out images are classified rightly.
"""

import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import refcomp as rc

DATA = Path(__file__).resolve().parents[1] / "data" / "digits"
BATCH, EPOCHS, LEAST_ACCURACY = 64, 15, 0.97
CHANNELS = ((1, 16), (16, 32), (32, 32))  # of each convolution: in, out
PADDING = {"padding": (1, 1, 1, 1)}
Arrays = dict[str, np.ndarray]


def first_values() -> tuple[Arrays, Arrays]:
    """Return the parameters and the running statistics before training."""
    random = np.random.default_rng(0)
    parameters, statistics = Arrays(), Arrays()
    for number, (given, made) in enumerate(CHANNELS, 1):
        scale = np.sqrt(2 / (9 * given))  # K. He et al., 2015: keeps the variance of the data
        parameters[f"weight{number}"] = scale * random.standard_normal((made, given, 3, 3))
        parameters[f"gamma{number}"] = np.ones(made)
        parameters[f"beta{number}"] = np.zeros(made)
        statistics[f"mean{number}"] = np.zeros(made)
        statistics[f"variance{number}"] = np.ones(made)
    parameters["weight"] = random.standard_normal((10, made)) / np.sqrt(made)
    parameters["bias"] = np.zeros(10)
    for arrays in (parameters, statistics):
        arrays.update((name, array.astype("float32")) for name, array in arrays.items())
    return parameters, statistics


def begin_network(batch: int, values: Arrays, trains: bool) -> Any:
    """Return a builder, the logits, and the running statistics after this batch."""
    builder = rc.graph.GraphBuilder("digits")
    hidden = builder.input("image", "float32", (batch, 1, 8, 8))
    given = {name: builder.input(name, "float32", a.shape) for name, a in values.items()}
    moved = []
    for k in range(1, 4):
        hidden = builder.node("conv2d", [hidden, given[f"weight{k}"]], PADDING, f"conv{k}")
        names = [f"{name}{k}" for name in ("gamma", "beta", "mean", "variance")]
        inputs = [hidden, *(given[name] for name in names)]
        if trains:
            names = ("norm", "running_mean", "running_variance", "batch_mean", "batch_variance")
            names = [f"{name}{k}" for name in names]
            hidden, mean, variance, *_ = builder.nodes("batch_norm_train", inputs, {}, names)
            moved += [mean, variance]
        else:
            hidden = builder.node("batch_norm", inputs, {}, f"norm{k}")
        hidden = builder.node("relu", [hidden], name=f"relu{k}")
        if k == 2:
            windows = {"kernel": (2, 2), "strides": (2, 2)}
            hidden = builder.node("max_pool2d", [hidden], windows, "pool")
    hidden = builder.node("flatten", [builder.node("global_avg_pool2d", [hidden])], name="features")
    inputs = [hidden, given["weight"], given["bias"]]
    return builder, builder.node("dense", inputs, name="logits"), moved


def make_trainer(optimizer: Any) -> rc.graph.Trainer:
    """Return a trainer of the network, with its first values."""
    parameters, statistics = first_values()
    builder, logits, moved = begin_network(BATCH, parameters | statistics, trains=True)
    label = builder.input("label", "int64", (BATCH,))
    model = builder.finish([builder.node("cross_entropy", [logits, label], name="loss"), *moved])
    carry = {name: f"running_{name}" for name in statistics}
    return rc.graph.Trainer(model, optimizer, parameters, carry, statistics)


def accuracy(values: Arrays) -> float:
    """Return the part of the held-out images that is classified rightly."""
    with np.load(DATA / "digits_test.npz") as file:
        images, labels = file["image"], file["label"]
    parameters, statistics = first_values()
    learned = {name: values[name] for name in parameters | statistics}
    builder, logits, _ = begin_network(len(images), learned, trains=False)
    executor = rc.GraphExecutor(rc.compile_graph(builder.finish([logits])))
    (found,) = executor.run({"image": images, **learned})
    return float((found.asnumpy().argmax(axis=1) == labels).mean())


def train(trainer: rc.graph.Trainer, rate: float) -> list[float]:
    """Return the mean loss of each epoch of training. The rate rises, then falls to 0."""
    with np.load(DATA / "digits_train.npz") as file:
        images = (file["image"] / 16).astype("float32")
        labels = file["label"].astype("int64")
    random = np.random.default_rng(1)
    batches, losses = len(images) // BATCH, []
    for _ in range(EPOCHS):
        order = random.permutation(len(images))[: batches * BATCH].reshape(batches, BATCH)
        found = []
        for batch in order:
            part = trainer.steps / (EPOCHS * batches)
            now = rate * min(1, 4 * part + 0.01) * (1 + np.cos(np.pi * part)) / 2
            found.append(trainer.step({"image": images[batch], "label": labels[batch]}, now)[0])
        losses.append(float(np.mean(found)))
    return losses


def save_chart(path: str, losses: dict[str, list[float]]) -> None:
    """Draw the losses of both optimizers to a file, if a path is given and matplotlib installed."""
    if not path or find_spec("matplotlib") is None:
        print('for a picture: pip install "refcomp[pictures]", and name a file')
        return
    from matplotlib.figure import Figure  # noqa: PLC0415

    axes = Figure().subplots()
    for name, one in losses.items():
        axes.semilogy(one, label=name)
    axes.set(xlabel="epoch", ylabel="cross entropy")
    axes.legend()
    axes.figure.savefig(path)


def main(chart: str = "") -> int:
    """Train by both optimizers; return the exit code."""
    rc.runtime.set_thread_count(1)  # kernels of less than 1 ms gain little from more
    losses, is_right = {}, True
    sgd, adam = rc.graph.Sgd(momentum=0.9, weight_decay=1e-4), rc.graph.Adam()
    for optimizer, rate in ((sgd, 0.1), (adam, 0.01)):
        name = type(optimizer).__name__
        trainer = make_trainer(optimizer)
        if not losses:
            print(f"A training step by {name}:\n\n{trainer.graph}\n")
        start = time.perf_counter()
        losses[name] = train(trainer, rate)
        seconds = time.perf_counter() - start
        share = accuracy(trainer.values())
        for epoch, loss in enumerate(losses[name], 1):
            print(f"epoch {epoch:2}  loss {loss:.4f}  {'#' * round(20 * loss)}")
        print(f"{name}: {trainer.steps} steps in {seconds:.1f} s, accuracy {share:.2%}\n")
        is_right &= share >= LEAST_ACCURACY
    save_chart(chart, losses)
    return int(not is_right)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
