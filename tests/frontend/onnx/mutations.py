"""Damage ONNX models: bits, fields, shapes, types, attributes, names, and data in other files."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import onnx
from google.protobuf.message import Message
from onnx import TensorProto

EXTREMES = (0, -1, 1, 2, 3, 7, 1 << 31, (1 << 31) - 1, 1 << 40, (1 << 63) - 1, -(1 << 63))
FLOATS = (0.0, -0.0, -1.0, 1e-45, 3e38, float("inf"), float("-inf"), float("nan"))
TEXTS = ("", "x", "NOTSET", "linear", "\0", "a\nb", "{{ x }}", "\u202e", "y" * 300)
PATHS = ("../../etc/passwd", "/etc/passwd", "", ".", "data\0", "x" * 5000, "absent", "a/../../b")
OPERATORS = sorted({s.name for s in onnx.defs.get_all_schemas() if not s.domain})


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Return a model with one to four faults. Most of them still parse."""
    if rng.random() < 0.25:
        return _mutated_bytes(content, rng)
    model = onnx.ModelProto.FromString(content)
    for _ in range(rng.randint(1, 4)):
        mutate = rng.choice(_MUTATIONS)
        try:
            mutate(model, rng)
        except (ValueError, TypeError, IndexError):
            continue  # the field does not take the value, or there is no such field
    made = model.SerializeToString()
    return _mutated_bytes(made, rng) if rng.random() < 0.05 else made


def _mutated_bytes(content: bytes, rng: random.Random) -> bytes:
    data = bytearray(content)
    kind = rng.random()
    if kind < 0.2:
        del data[rng.randrange(len(data) + 1) :]
    elif kind < 0.4:
        start = rng.randrange(len(data))
        del data[start : start + rng.randint(1, 16)]
    elif kind < 0.5:
        start = rng.randrange(len(data))
        data[start:start] = rng.randbytes(rng.randint(1, 16))
    elif kind < 0.6:
        start = rng.randrange(len(data))
        piece = data[start : start + rng.randint(1, 64)]
        data[start:start] = piece
    else:
        for _ in range(rng.randint(1, 8)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def _messages(message: Message) -> Iterator[Message]:
    """Yield a message, and all messages in it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for one in [value] if isinstance(value, Message) else value:
            yield from _messages(one)


def _pick(model: Any, rng: random.Random, *kinds: str) -> Any:
    found = [one for one in _messages(model) if type(one).__name__ in kinds]
    return rng.choice(found)


def _change_any_field(model: Any, rng: random.Random) -> None:
    """Change a number, a text or a list of any message; or drop, or repeat, a part."""
    message = rng.choice(list(_messages(model)))
    field, value = rng.choice(message.ListFields())
    if rng.random() < 0.2 or isinstance(value, Message):
        message.ClearField(field.name)
    elif isinstance(value, int):
        setattr(message, field.name, rng.choice([*EXTREMES, value + 1, value - 1]))
    elif isinstance(value, float):
        setattr(message, field.name, rng.choice(FLOATS))
    elif isinstance(value, str):
        setattr(message, field.name, rng.choice(TEXTS))
    elif isinstance(value, bytes):
        setattr(message, field.name, value[: rng.randrange(len(value) + 1)] or b"\xff\0")
    else:
        _change_list(value, rng)


def _change_list(values: Any, rng: random.Random) -> None:
    place = rng.randrange(len(values))
    kind = rng.random()
    if kind < 0.25:
        del values[place]
    elif kind < 0.5:
        values.append(values[place])
    elif isinstance(values[place], bool | int):
        values[place] = rng.choice(EXTREMES)
    elif isinstance(values[place], float):
        values[place] = rng.choice(FLOATS)
    elif isinstance(values[place], str):
        values[place] = rng.choice(TEXTS)
    elif isinstance(values[place], bytes):
        values[place] = rng.randbytes(3)


def _change_shape(model: Any, rng: random.Random) -> None:
    message = _pick(model, rng, "TensorProto", "TensorShapeProto", "SparseTensorProto")
    if isinstance(message, onnx.TensorShapeProto):
        if rng.random() < 0.3 or not message.dim:
            message.dim.add(dim_value=rng.choice(EXTREMES))
        else:
            rng.choice(message.dim).dim_value = rng.choice(EXTREMES)
    elif rng.random() < 0.3 or not message.dims:
        message.dims.append(rng.choice(EXTREMES))
    else:
        message.dims[rng.randrange(len(message.dims))] = rng.choice(EXTREMES)


def _change_type(model: Any, rng: random.Random) -> None:
    message = _pick(model, rng, "TensorProto", "Tensor", "AttributeProto")
    code = rng.choice([*range(30), 77, -1])
    if isinstance(message, TensorProto):
        message.data_type = code
    elif isinstance(message, onnx.AttributeProto):
        message.type = rng.choice(range(15))
    else:
        message.elem_type = code


def _change_data(model: Any, rng: random.Random) -> None:
    tensor = _pick(model, rng, "TensorProto")
    kind = rng.random()
    if kind < 0.3:
        tensor.raw_data = tensor.raw_data[: rng.randrange(len(tensor.raw_data) + 1)]
    elif kind < 0.5:
        tensor.raw_data = rng.randbytes(max(len(tensor.raw_data), 1))
    elif kind < 0.6:
        tensor.float_data.append(1.0)
    else:
        tensor.data_location = TensorProto.EXTERNAL
        keys = rng.sample(["location", "offset", "length", "other"], rng.randint(1, 3))
        for key in keys:
            value = rng.choice(PATHS) if key == "location" else str(rng.choice(EXTREMES))
            tensor.external_data.add(key=key, value=value)


def _change_names(model: Any, rng: random.Random) -> None:
    """Let a node read or make a value of another name: cycles, repeats, absent ones."""
    nodes = [one for one in _messages(model) if isinstance(one, onnx.NodeProto)]
    names = [name for node in nodes for name in (*node.input, *node.output)] + ["", "absent"]
    node = rng.choice(nodes)
    side = node.input if rng.random() < 0.6 else node.output
    kind = rng.random()
    if kind < 0.6:
        side[rng.randrange(len(side))] = rng.choice(names)
    elif kind < 0.8:
        side.append(rng.choice(names))
    else:
        del side[rng.randrange(len(side))]


def _change_nodes(model: Any, rng: random.Random) -> None:
    graph = _pick(model, rng, "GraphProto", "FunctionProto")
    place = rng.randrange(len(graph.node))
    kind = rng.random()
    if kind < 0.4:
        graph.node[place].op_type = rng.choice(OPERATORS)
    elif kind < 0.6:
        graph.node.append(graph.node[place])
    elif kind < 0.8:
        del graph.node[place]
    elif kind < 0.9:
        graph.node[place].domain = rng.choice(["ai.onnx.ml", "own", "com.microsoft", "ai.onnx"])
    else:
        graph.node.reverse()


def _change_attribute(model: Any, rng: random.Random) -> None:
    attribute = _pick(model, rng, "AttributeProto")
    kind = rng.random()
    if kind < 0.4:
        attribute.i = rng.choice(EXTREMES)
    elif kind < 0.6:
        attribute.ints.append(rng.choice(EXTREMES))
    elif kind < 0.75:
        attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(EXTREMES)
    elif kind < 0.85:
        attribute.f = rng.choice(FLOATS)
    elif kind < 0.95:
        attribute.s = rng.choice(TEXTS).encode()
    else:
        attribute.ref_attr_name = rng.choice(["alpha", ""])


def _change_version(model: Any, rng: random.Random) -> None:
    entry = _pick(model, rng, "OperatorSetIdProto")
    entry.version = rng.choice([*range(1, 28), *EXTREMES])


def _add_attribute(model: Any, rng: random.Random) -> None:
    """Give a node an attribute that its schema declares."""
    node = _pick(model, rng, "NodeProto")
    try:
        declared = onnx.defs.get_schema(node.op_type, node.domain).attributes
    except Exception:  # onnx's own class
        return
    name = rng.choice(sorted(declared))
    kind = int(declared[name].type.value)
    made = node.attribute.add(name=name, type=kind)
    if kind == onnx.AttributeProto.INT:
        made.i = rng.choice(EXTREMES)
    elif kind == onnx.AttributeProto.INTS:
        made.ints.extend(rng.choices(EXTREMES, k=rng.randint(0, 4)))
    elif kind == onnx.AttributeProto.FLOAT:
        made.f = rng.choice(FLOATS)
    elif kind == onnx.AttributeProto.STRING:
        made.s = rng.choice(TEXTS).encode()


_MUTATIONS: tuple[Callable[[Any, random.Random], None], ...] = (
    _change_any_field,
    _change_any_field,
    _change_shape,
    _change_type,
    _change_data,
    _change_names,
    _change_nodes,
    _change_attribute,
    _add_attribute,
    _change_version,
)
