"""Read the weights of safetensors files and of PyTorch's older files, without unpickling.

A pickle is a program, which may call any function of Python. `read_torch` takes its instructions
one by one from `pickletools.genops`, which runs none, and follows only those that build data. A
call of a function becomes a record of its name and arguments; one such record is a tensor.

Both readers check sizes before they allocate, and refuse what they do not expect.
"""

from __future__ import annotations

import json
import math
import pickletools
from dataclasses import dataclass
from io import BytesIO
from typing import Any, NoReturn

import numpy as np

from refcomp.foundation.errors import UserError

Array = np.ndarray[Any, Any]

_SAFETENSORS = {"F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32}
_STORAGES = {"torch FloatStorage": np.float32, "torch LongStorage": np.int64}
_MAX_HEADER = 1 << 24  # bytes
_MAGIC = 0x1950A86A20F9469CFC6C  # of torch.save


def read_safetensors(data: bytes) -> dict[str, Array]:
    """Return the tensors of a safetensors file by their names, as views of `data`.

    Raises UserError if the file is damaged.

    Source: https://github.com/huggingface/safetensors, section Format.
    """
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(len(data) - 8, _MAX_HEADER):
        _refuse("safetensors", f"its header would have {length} bytes")
    try:
        header = json.loads(data[8 : 8 + length])
        entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
        body = memoryview(data)[8 + length :]
        return {name: _tensor(name, entry, body) for name, entry in entries.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            "this is not a safetensors file", why=f"its header is damaged: {error}"
        ) from error


def _tensor(name: str, entry: Any, body: memoryview) -> Array:
    dtype = np.dtype(_SAFETENSORS[entry["dtype"]])
    shape = tuple(entry["shape"])
    begin, end = entry["data_offsets"]
    size = math.prod(shape) * dtype.itemsize
    is_legal = all(isinstance(n, int) and n >= 0 for n in (*shape, begin, end))
    if not is_legal or end - begin != size or end > len(body):
        _refuse("safetensors", f"{name!r} does not fit: {shape} at {begin}..{end}")
    return np.frombuffer(body[begin:end], dtype).reshape(shape)


def read_torch(data: bytes) -> dict[str, Array]:
    """Return the tensors of a file of `torch.save` before version 1.6, a `state_dict`.

    Such a file has five pickles (a magic number, a version, sizes of types, the dictionary, the
    keys of the storages), then each storage: the number of its elements as i64, and the elements.

    Raises UserError if the file is damaged, or holds more than dense tensors of f32 and i64.

    Source: PyTorch, torch/serialization.py, `_legacy_save`.
    """
    stream = BytesIO(data)
    try:
        magic, _, _, state, keys = (_follow(stream) for _ in range(5))
    except (ValueError, IndexError, TypeError, KeyError, AttributeError) as error:
        raise UserError("this is not a file of PyTorch", why=str(error)) from error
    if magic != _MAGIC or not isinstance(state, dict) or not isinstance(keys, list):
        _refuse("PyTorch", "it has another magic number, or holds no dictionary")
    tensors = {name: _as_tensor(name, value) for name, value in state.items()}
    dtypes = {tensor.key: tensor.dtype for tensor in tensors.values()}
    storages = {key: _read_storage(stream, key, dtypes) for key in keys}
    return {name: tensor.view(name, storages) for name, tensor in tensors.items()}


@dataclass(frozen=True, slots=True)
class _Call:
    """A function that the pickle would call, and the arguments."""

    function: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Tensor:
    key: str  # of the storage
    dtype: np.dtype[Any]
    offset: int  # in elements
    shape: tuple[int, ...]

    def view(self, name: str, storages: dict[str, Array]) -> Array:
        count = math.prod(self.shape)
        storage = storages.get(self.key)
        if storage is None or self.offset + count > storage.size:
            _refuse("PyTorch", f"{name!r} does not fit into its storage")
        return storage[self.offset : self.offset + count].reshape(self.shape)


def _as_tensor(name: str, value: Any) -> _Tensor:
    """Check that a value of the dictionary is a dense tensor, in row-major order."""
    match value:
        case _Call(
            "torch._utils _rebuild_tensor_v2",
            (
                _Call("storage", ("storage", _Call("name", (str(kind),)), str(key), "cpu", *_)),
                int(offset),
                tuple(shape),
                tuple(strides),
                *_,
            ),
        ) if kind in _STORAGES and all(isinstance(extent, int) for extent in shape):
            dense = tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))
            if offset >= 0 and min(shape, default=1) > 0 and strides == dense:
                return _Tensor(key, np.dtype(_STORAGES[kind]), offset, shape)
    _refuse("PyTorch", f"{name!r} is not a dense tensor of f32 or i64")


def _read_storage(stream: BytesIO, key: object, dtypes: dict[str, np.dtype[Any]]) -> Array:
    if not isinstance(key, str) or key not in dtypes:
        _refuse("PyTorch", f"no tensor has the storage {key!r}")
    count = int.from_bytes(stream.read(8), "little")
    size = count * dtypes[key].itemsize
    content = stream.read(min(size, stream.getbuffer().nbytes))
    if len(content) != size or not size:
        _refuse("PyTorch", f"the storage {key!r} would have {count} elements")
    return np.frombuffer(content, dtypes[key])


_CONSTANTS = {
    "NEWTRUE": True,
    "NEWFALSE": False,
    "NONE": None,
}
_ARGUMENTS = {"BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE", "SHORT_BINSTRING"}
_IGNORED = {"PROTO", "BINPUT", "LONG_BINPUT", "FRAME", "MEMOIZE"}
_MARK = object()


def _follow(stream: BytesIO) -> Any:
    """Return the data that the next pickle in the stream builds, and calls as records."""
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    for opcode, argument, _ in pickletools.genops(stream):
        name = opcode.name
        if name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _ARGUMENTS:
            stack.append(argument)
        elif name == "STOP":
            return stack.pop()
        elif name not in _IGNORED:
            _build(name, argument, stack)
    raise ValueError("a pickle has no end")


def _build(name: str, argument: Any, stack: list[Any]) -> None:
    """Follow an instruction that makes a container or a record of what is on the stack."""
    match name:
        case "MARK":
            stack.append(_MARK)
        case "EMPTY_DICT":
            stack.append({})
        case "EMPTY_LIST":
            stack.append([])
        case "EMPTY_TUPLE":
            stack.append(())
        case "TUPLE":
            stack.append(tuple(_above_mark(stack)))
        case "TUPLE1" | "TUPLE2" | "TUPLE3":
            count = int(name[-1])
            stack[-count:] = [tuple(stack[-count:])]
        case "APPEND":
            item = stack.pop()
            stack[-1].append(item)
        case "APPENDS":
            items = _above_mark(stack)
            stack[-1].extend(items)
        case "SETITEMS":
            items = _above_mark(stack)
            stack[-1].update(zip(items[::2], items[1::2], strict=True))
        case "SETITEM":
            value, key = stack.pop(), stack.pop()
            stack[-1][key] = value
        case "GLOBAL":
            stack.append(_Call("name", (argument,)))
        case "BINPERSID":
            stack.append(_Call("storage", stack.pop()))
        case "REDUCE":
            arguments, function = stack.pop(), stack.pop()
            stack.append(_called(function, arguments))
        case "BUILD":
            stack.pop()  # attributes of the dictionary, such as versions
        case _:
            raise ValueError(f"a pickle has the instruction {name}")


def _called(function: _Call, arguments: tuple[Any, ...]) -> Any:
    (name,) = function.arguments
    return {} if name == "collections OrderedDict" else _Call(name, arguments)


def _above_mark(stack: list[Any]) -> list[Any]:
    """Remove and return what lies above the last mark, and remove the mark."""
    place = max(k for k, item in enumerate(stack) if item is _MARK)
    items = stack[place + 1 :]
    del stack[place:]
    return items


def _refuse(kind: str, why: str) -> NoReturn:
    raise UserError(f"this is not a {kind} file that can be read", why=why)
