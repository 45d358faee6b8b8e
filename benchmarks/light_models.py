#!/usr/bin/env python3
"""Makes runnable networks from the light models of the installed package `onnx`.

    benchmarks/light_models.py FOLDER               all of them: 1.4 GB
    benchmarks/light_models.py FOLDER resnet50      one
    benchmarks/light_models.py FOLDER --batch 8     for eight images a run

A light model is a well-known network whose weights are left out: most are a ConstantOfShape. Here
all weights become initializers with seeded values, which are scaled so that the outputs depend on
all of them. The operators are written as operator set 13 has them, and ONNX's checker reads the
result.

Exit codes: 0 done, 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx.backend.test
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, helper, numpy_helper

FOLDER = Path(onnx.backend.test.__file__).parent / "data" / "light"
OPSET, _IR_VERSION, _SEED = 13, 8, 0
# Attributes that operator set 13 does not have; none changes what inference computes.
_DROPPED = {("BatchNormalization", "spatial"), ("Dropout", "ratio")}
_LAYERS = ("Conv", "Gemm")
_FACTORS = {("BatchNormalization", 1), ("BatchNormalization", 4), ("Mul", 1)}  # scale, variance
_OFFSET = 0.2  # the largest bias, shift or mean; activations have about 1
# Factors of what a branch adds to the trunk of a residual network, and of the last layer's weights.
# With 1 the trunk's values grow with each block, and one class gets all probability.
_BRANCH, _LAST = 0.25, 0.05


class Reader(NamedTuple):
    """The node that reads a value, and as which of its inputs."""

    node: NodeProto
    place: int


def names() -> list[str]:
    """Return the names of the light models, such as `resnet50`."""
    return sorted(path.stem.removeprefix("light_") for path in FOLDER.glob("light_*.onnx"))


def make(name: str, batch: int = 1) -> onnx.ModelProto:
    """Return the network `name` with seeded weights, in operator set 13, for `batch` images."""
    model = onnx.load(FOLDER / f"light_{name}.onnx")
    graph = model.graph
    weights = _seeded_weights(graph)
    others = [tensor for tensor in graph.initializer if tensor.data_type != TensorProto.FLOAT]
    nodes = [node for node in graph.node if node.op_type != "ConstantOfShape"]
    axes = [tensor for node in nodes for tensor in _spell_for_opset(node)]
    _replace(graph.node, nodes)
    read = {name for node in nodes for name in node.input}
    tensors = [tensor for tensor in (*weights, *others, *axes) if tensor.name in read]
    _replace(graph.initializer, tensors)
    unknown = read - {tensor.name for tensor in tensors}
    _replace(graph.input, [value for value in graph.input if value.name in unknown])
    _set_batch(graph, batch)
    _replace(model.opset_import, [helper.make_opsetid("", OPSET)])
    model.ir_version = _IR_VERSION
    onnx.checker.check_model(model)
    return model


def save(name: str, folder: str, batch: int = 1) -> dict[str, Any]:
    """Write the network `name` to `folder`. Return the file's path and the bytes of its weights."""
    model = make(name, batch)
    path = Path(folder, f"{name}.onnx" if batch == 1 else f"{name}-batch{batch}.onnx")
    onnx.save(model, path)
    weights = [t for t in model.graph.initializer if t.data_type == TensorProto.FLOAT]
    size = sum(4 * math.prod(tensor.dims) for tensor in weights)
    return {"path": str(path), "weight_bytes": size}


def _set_batch(graph: GraphProto, batch: int) -> None:
    """Write `batch` for the 1 that begins the shape of each input, output and reshaped value."""
    for value in (*graph.input, *graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = batch
    weights = {tensor.name: tensor for tensor in graph.initializer}
    reshapes = (node for node in graph.node if node.op_type == "Reshape")
    for name in {node.input[1] for node in reshapes if node.input[0] not in weights}:
        shape = numpy_helper.to_array(weights[name]).copy()
        shape[0] = batch
        weights[name].CopyFrom(numpy_helper.from_array(shape, name))


def _seeded_weights(graph: GraphProto) -> list[TensorProto]:
    """Return an initializer for each f32 constant. Its values suit the node that reads it."""
    given = {tensor.name: tensor for tensor in graph.initializer}
    shapes = {t.name: tuple(t.dims) for t in given.values() if t.data_type == TensorProto.FLOAT}
    for node in graph.node:
        if node.op_type == "ConstantOfShape":
            shapes[node.output[0]] = tuple(numpy_helper.to_array(given[node.input[0]]).tolist())
    readers = {name: Reader(n, k) for n in graph.node for k, name in enumerate(n.input)}
    summed = {name for node in graph.node if node.op_type == "Sum" for name in node.input}
    last = next(node for node in reversed(graph.node) if node.op_type in _LAYERS)
    rng = np.random.default_rng(_SEED)
    weights = []
    for name, shape in shapes.items():
        if name not in readers:
            continue
        reader = _reader(readers, name)
        low, high = _range(reader, shape)
        scale = 1.0
        if reader.node is last:
            scale = _LAST
        elif reader.place in (1, 2) and reader.node.output[0] in summed:
            scale = _BRANCH
        values = rng.random(shape, np.float32) * (high - low) + low
        weights.append(numpy_helper.from_array((scale * values).astype(np.float32), name))
    return weights


def _reader(readers: dict[str, Reader], name: str) -> Reader:
    """Return the reader of a value; of a value that is only reshaped, the reader of the result."""
    reader = readers[name]
    is_view = reader.node.op_type in ("Reshape", "Unsqueeze")
    return _reader(readers, reader.node.output[0]) if is_view else reader


def _range(reader: Reader, shape: tuple[int, ...]) -> tuple[float, float]:
    """Return bounds of values with which a layer's results are about as large as what it reads."""
    place = (reader.node.op_type, reader.place)
    if place in _FACTORS:
        return 0.8, 1.2
    bound = _OFFSET
    if reader.node.op_type in _LAYERS and reader.place == 1:
        # He et al. 2015: a variance of 2 / fan_in, since ReLU halves the mean square.
        bound = math.sqrt(6 / math.prod(shape[1:]))
    return -bound, bound


def _spell_for_opset(node: NodeProto) -> list[TensorProto]:
    """Write a node of operator set 9 as one of `OPSET`. Return the initializers that it needs."""
    axes = []
    attributes = [a for a in node.attribute if (node.op_type, a.name) not in _DROPPED]
    if node.op_type == "Sum" and len(node.input) == 2:
        node.op_type = "Add"  # which compilers know rather than a sum of any number
    elif node.op_type == "Dropout":
        del node.output[1:]  # the mask, whose dtype has changed
    elif node.op_type == "Softmax" and not attributes:
        # All axes from 1 on; behind axis 1, these models have only axes of one element.
        attributes.append(helper.make_attribute("axis", 1))
    elif node.op_type == "Unsqueeze":
        axes = [_axes_of(node, attributes.pop())]
        node.input.append(axes[0].name)
    _replace(node.attribute, attributes)
    return axes


def _axes_of(node: NodeProto, attribute: AttributeProto) -> TensorProto:
    return numpy_helper.from_array(np.array(attribute.ints, np.int64), f"{node.output[0]}_axes")


def _replace(field: Any, values: Sequence[Any]) -> None:
    """Set a repeated field of protobuf."""
    kept = list(values)
    del field[:]
    field.extend(kept)


def main(argv: Sequence[str]) -> int:
    """Write the networks that `argv` requests, and print the path of each."""
    parser = argparse.ArgumentParser(description="Writes networks with seeded weights.")
    parser.add_argument("folder", help="the folder for the files NAME.onnx; it must exist")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names())}")
    parser.add_argument("--batch", type=int, default=1, help="images a run; default: %(default)s")
    asked = parser.parse_args(argv)
    if asked.batch < 1:
        parser.error(f"a batch has one image at least, not {asked.batch}")
    for name in asked.names:
        if name not in names():
            parser.error(f"no light model {name}; there are {', '.join(names())}")
    for name in asked.names or names():
        made = save(name, asked.folder, asked.batch)
        print(f"{made['path']}: {made['weight_bytes'] / 1e6:.1f} MB of weights")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
