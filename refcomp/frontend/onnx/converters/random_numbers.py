"""Random numbers: distributions, and Dropout.

All numbers come from topi's counter-based generator (Threefry). A seed gives the same numbers on
each target and in each run. A node without a seed gets one from its output's name. So nodes differ
from each other, and each run gives the same numbers.
"""

from __future__ import annotations

import zlib

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.element_types import element_type
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import Convert, converter
from refcomp.graph.graph import Value

# refcomp's operator, and its parameters: ONNX's name -> refcomp's.
_NORMAL = ("random_normal", {"mean": "mean", "scale": "scale"})
_UNIFORM = ("random_uniform", {"low": "low", "high": "high"})
_Distribution = tuple[str, dict[str, str]]


def _key(node: OnnxNode) -> Value:
    """Return the key of a node's numbers."""
    seed = node.attributes.get("seed")
    if seed is None:
        number = zlib.crc32(node.outputs[0].encode())
    elif isinstance(seed, float):
        # Its bits: seeds that differ give keys that differ.
        number = int(np.float32(seed).view(np.uint32))
    else:
        number = int(seed) % 2**64
    return node.make("threefry_key", [], seed=number)


def _drawn(
    node: OnnxNode, distribution: _Distribution, shape: tuple[int, ...], code: int
) -> Value:
    operator, names = distribution
    kind = element_type(code, "its output").storage
    if not kind.is_float:
        raise UserError(
            f"its output has the dtype {kind}",
            why="random numbers are floats",
            remedy="set its attribute dtype to a type of floats",
        )
    if any(extent < 0 for extent in shape):
        raise UserError(
            f"its shape is {list(shape)}", remedy="give extents that are not negative"
        )
    parameters = {name: node.attributes[key] for key, name in names.items()}
    return node.make(operator, [_key(node)], shape=shape, dtype=str(kind), **parameters)


def _of_shape(distribution: _Distribution) -> Convert:
    def convert(node: OnnxNode) -> Value:
        shape = node.attributes["shape"]
        return _drawn(node, distribution, shape, int(node.attributes["dtype"]))

    return convert


def _like(distribution: _Distribution) -> Convert:
    def convert(node: OnnxNode) -> Value:
        data = node.required(0)
        code = int(node.attributes.get("dtype", 0)) or node.element_type(data)
        return _drawn(node, distribution, node.extents(data), code)

    return convert


converter("RandomNormal")(_of_shape(_NORMAL))
converter("RandomNormalLike")(_like(_NORMAL))
converter("RandomUniform")(_of_shape(_UNIFORM))
converter("RandomUniformLike")(_like(_UNIFORM))


@converter("Bernoulli")
def bernoulli(node: OnnxNode) -> Value:
    """Convert Bernoulli of any version."""
    data = node.required(0)
    code = int(node.attributes.get("dtype", 0)) or node.element_type(data)
    kind = element_type(code, "its output").storage
    return node.make("bernoulli", [_key(node), data], dtype=str(kind))


@converter("Multinomial")
def multinomial(node: OnnxNode) -> Value:
    """Convert Multinomial of any version."""
    data = node.required(0)
    if len(data.shape) != 2:
        raise UserError(f"its input is {data}, not a matrix")
    node.extents(data)
    code = int(node.attributes["dtype"])
    kind = element_type(code, "its output").storage
    return node.make(
        "multinomial",
        [_key(node), data],
        sample_size=node.attributes["sample_size"],
        dtype=str(kind),
    )


@converter("Dropout")
def legacy_dropout(node: OnnxNode) -> list[Value]:
    """Convert Dropout before version 7: it drops elements unless `is_test` is set."""
    data = node.required(0)
    if node.attributes["is_test"]:
        return [data, node.make("ones_like", [data])]
    made, mask = _dropped(node, data, node.attributes["ratio"])
    return [made, node.cast(mask, data.dtype)]


@converter("Dropout", since=7)
def dropout_in_inference(node: OnnxNode) -> list[Value]:
    """Convert Dropout of versions 7 to 11, which only copies its input."""
    data = node.required(0)
    mask = node.make("ones_like", [data])
    return [data, mask if node.version < 10 else node.cast(mask, "bool")]


@converter("Dropout", since=12)
def dropout(node: OnnxNode) -> list[Value]:
    """Convert Dropout, which copies its input unless `training_mode` is true."""
    data = node.required(0)
    mode = node.input(2)
    ratio = node.input(1)
    if mode is not None and node.number(mode, "training_mode"):
        rate = 0.5 if ratio is None else node.number(ratio, "ratio")
        if rate != 0:
            return list(_dropped(node, data, rate))
    return [data, node.cast(node.make("ones_like", [data]), "bool")]


def _dropped(node: OnnxNode, data: Value, rate: float) -> tuple[Value, ...]:
    if not 0 <= rate < 1:
        raise UserError(
            f"its ratio is {rate}",
            remedy="give a ratio that is at least 0, and below 1",
        )
    return node.make_all("dropout", [_key(node), data], rate=rate)
