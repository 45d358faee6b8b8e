"""Symbols, evaluated by the numpy meaning of their graphs; their inferred types are checked."""

import numpy as np

import refcomp as rc
from refcomp.foundation.dtype import to_numpy


def run(net: rc.sym.Symbol, *arrays: np.ndarray) -> list[np.ndarray]:
    """Return the outputs of `net` for the arrays of its variables, in order.

    The shapes and dtypes that the symbol infers must be those of the results.
    """
    names = net.list_input_names()
    feeds = dict(zip(names, arrays, strict=True))
    shapes = {name: array.shape for name, array in feeds.items()}
    dtypes = {name: array.dtype.name for name, array in feeds.items()}
    graph = net.to_graph(shapes, dtypes)
    made = rc.graph.evaluate_graph(graph, feeds)
    _, inferred = net.infer_dtype(**dtypes)
    assert [array.dtype.name for array in made] == inferred
    outputs = [(to_numpy(value.dtype).name, value.shape) for value in graph.outputs]
    assert outputs == [(array.dtype.name, array.shape) for array in made]
    # What is saved means the same.
    again = rc.sym.load_json(net.json())
    assert str(again.to_graph(shapes, dtypes)) == str(graph)
    return made


def one(net: rc.sym.Symbol, *arrays: np.ndarray) -> np.ndarray:
    """Return the only output of `net` (see `run`)."""
    (made,) = run(net, *arrays)
    return made


def numbers(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """Return whole and half numbers from -4 to 4, which sums keep exactly."""
    draws = np.random.default_rng(seed).integers(-8, 9, shape)
    return (draws / 2).astype(dtype) if dtype.startswith("float") else draws.astype(dtype)


def positive(*shape: int, seed: int = 0) -> np.ndarray:
    """Return floats from 0.25 to 4."""
    return np.random.default_rng(seed).uniform(0.25, 4, shape).astype("float32")
