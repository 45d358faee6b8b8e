"""Take the weights out of the bytes of an ONNX model, before protobuf parses the rest.

Protobuf copies every field when it parses, and again when Python reads it. Weights are nearly all
bytes of a model. So they are used where they lie in the file, and only the rest is parsed.

A message of protobuf is a sequence of fields. A field begins with a varint: its number times 8,
plus its wire type. A field of wire type 2 goes on with its length, a varint, and so many bytes.

Ensures: what is damaged, unusual or small stays in the rest, so that protobuf alone judges it.

Source: Protocol Buffers, "Encoding"; ONNX, onnx.proto.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from refcomp.foundation.mapped_files import MappedFile

# Bytes. A view of a smaller array would save little, and keep the whole file in memory.
MIN_BYTES = 1 << 16
# Of a model: far more than any has. Damaged bytes may look like a million fields of two bytes.
MAX_FIELDS = 1 << 18

_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5  # wire types
_GRAPH = 7  # of a ModelProto
_INITIALIZER = 5  # of a GraphProto
_RAW_DATA = 9  # of a TensorProto
# A TensorProto of dims, data_type, name, raw_data and doc_string. With others, such as the place in
# another file, raw_data may mean something else.
_PLAIN_FIELDS = frozenset({1, 2, 8, 9, 12})


class TakenWeights(NamedTuple):
    """A model in two parts."""

    rest: bytes  # the model without the weights that were taken
    # number of an initializer of the graph -> its elements, a part of the model's bytes
    taken: dict[int, memoryview]


def take_weights(data: bytes | MappedFile) -> TakenWeights:
    """Return the weights of a model, and the model without them."""
    reader = _WeightReader(data)
    try:
        pieces = reader.without_weights()
    except _NotUnderstoodError:
        return TakenWeights(bytes(data), {})
    if not reader.taken:
        return TakenWeights(bytes(data), {})
    return TakenWeights(b"".join(pieces), reader.taken)


class _NotUnderstoodError(Exception):
    """The bytes are damaged, or of a form that is not worth reading here."""


class _Field(NamedTuple):
    """The place of a field in the bytes."""

    number: int
    wire_type: int
    start: int  # of the key
    content: int  # behind the key, and the length if it has one
    end: int


# Parts of a message, in order.
_Pieces = list[memoryview | bytes]


class _WeightReader:
    """A reader of one model. `taken` holds the weights so far."""

    def __init__(self, data: bytes | MappedFile) -> None:
        self.data = data
        self.view = memoryview(data)
        self.taken: dict[int, memoryview] = {}
        self._initializers = 0
        self._fields_left = MAX_FIELDS

    def without_weights(self) -> _Pieces:
        return self._rewritten(0, len(self.data), _GRAPH, self._graph)

    def _graph(self, start: int, end: int) -> _Pieces:
        return self._rewritten(start, end, _INITIALIZER, self._initializer)

    def _initializer(self, start: int, end: int) -> _Pieces:
        number = self._initializers
        self._initializers += 1
        fields = list(self._fields(start, end))
        # Of a field that occurs again, the last one counts.
        raw = [field for field in fields if field.number == _RAW_DATA][-1:]
        is_plain = all(field.number in _PLAIN_FIELDS for field in fields)
        if not raw or raw[0].wire_type != _BYTES or not is_plain:
            return [self.view[start:end]]
        elements = self.view[raw[0].content : raw[0].end]
        if len(elements) < MIN_BYTES:
            return [self.view[start:end]]
        self.taken[number] = elements
        kept = (field for field in fields if field.number != _RAW_DATA)
        return [self.view[field.start : field.end] for field in kept]

    def _rewritten(
        self, start: int, end: int, number: int, rewrite: Callable[[int, int], _Pieces]
    ) -> _Pieces:
        """Return a message in which `rewrite` replaces the contents of the fields `number`."""
        pieces: _Pieces = []
        for field in self._fields(start, end):
            if field.number != number or field.wire_type != _BYTES:
                pieces.append(self.view[field.start : field.end])
                continue
            content = rewrite(field.content, field.end)
            size = sum(map(len, content))
            pieces += (_varint(number << 3 | _BYTES), _varint(size), *content)
        return pieces

    def _fields(self, start: int, end: int) -> Iterator[_Field]:
        at = start
        while at < end:
            self._fields_left -= 1
            if self._fields_left < 0:
                raise _NotUnderstoodError
            key, content = self._read_varint(at)
            wire_type = key & 7
            if wire_type == _VARINT:
                _, stop = self._read_varint(content)
            elif wire_type == _BYTES:
                size, content = self._read_varint(content)
                stop = content + size
            elif wire_type == _EIGHT_BYTES:
                stop = content + 8
            elif wire_type == _FOUR_BYTES:
                stop = content + 4
            else:
                raise _NotUnderstoodError
            if stop > end:
                raise _NotUnderstoodError
            yield _Field(key >> 3, wire_type, at, content, stop)
            at = stop

    def _read_varint(self, at: int) -> tuple[int, int]:
        """Return a number, and the place behind it. Each byte has 7 bits, the lowest first."""
        value = 0
        for place, byte in enumerate(self.data[at : at + 10]):
            value |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return value, at + place + 1
        raise _NotUnderstoodError


def _varint(value: int) -> bytes:
    """Return a number as a varint."""
    pieces = bytearray()
    while value >= 0x80:
        pieces.append(value & 0x7F | 0x80)
        value >>= 7
    pieces.append(value)
    return bytes(pieces)
