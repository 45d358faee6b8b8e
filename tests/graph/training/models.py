"""Small models that tests train."""

from __future__ import annotations

import numpy as np

import refcomp as rc
from refcomp.graph.graph import Graph


def weighted_sum(dtype: str = "float64", count: int = 3) -> Graph:
    """Return the graph of a loss whose gradient by the parameter `w` is the input `slope`."""
    builder = rc.graph.GraphBuilder("weighted")
    w = builder.input("w", dtype, (count,))
    slope = builder.input("slope", dtype, (count,))
    product = builder.node("multiply", [w, slope])
    return builder.finish([builder.node("sum", [product], name="loss")])


def small_network(
    batch: int | str = 8,
) -> tuple[Graph, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return a network with a convolution, batch norm, pooling and a layer, and its first values.

    The values are those of the parameters, and of the running statistics.
    """
    random = np.random.default_rng(0)
    parameters = {
        "weight": random.standard_normal((4, 1, 3, 3)).astype("float32"),
        "gamma": np.ones(4, "float32"),
        "beta": np.zeros(4, "float32"),
        "last": random.standard_normal((3, 4)).astype("float32"),
    }
    statistics = {"mean": np.zeros(4, "float32"), "variance": np.ones(4, "float32")}
    builder = rc.graph.GraphBuilder("small")
    image = builder.input("image", "float32", (batch, 1, 6, 6))
    label = builder.input("label", "int64", (batch,))
    given = {
        name: builder.input(name, "float32", a.shape)
        for name, a in (parameters | statistics).items()
    }
    hidden = builder.node("conv2d", [image, given["weight"]], {"padding": (1, 1, 1, 1)})
    inputs = [hidden, *(given[name] for name in ("gamma", "beta", "mean", "variance"))]
    names = ["normal", "running_mean", "running_variance"]
    normal, mean, variance, *_ = builder.nodes("batch_norm_train", inputs, {}, names)
    hidden = builder.node("relu", [normal])
    hidden = builder.node("max_pool2d", [hidden], {"kernel": (2, 2), "strides": (2, 2)})
    hidden = builder.node("flatten", [builder.node("global_avg_pool2d", [hidden])])
    logits = builder.node("dense", [hidden, given["last"]], name="logits")
    loss = builder.node("cross_entropy", [logits, label], name="loss")
    return builder.finish([loss, mean, variance, logits]), parameters, statistics


CARRY = {"mean": "running_mean", "variance": "running_variance"}


def small_batch(seed: int, batch: int = 8) -> dict[str, np.ndarray]:
    """Return random images and labels."""
    random = np.random.default_rng(seed)
    return {
        "image": random.standard_normal((batch, 1, 6, 6)).astype("float32"),
        "label": random.integers(0, 3, batch),
    }
