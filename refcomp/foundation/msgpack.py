"""Reads MessagePack, the form of the metadata in AMD's code objects, from bytes nobody vouches for.

Ensures: values of Python's own types only, no more of them than there are bytes, and no recursion
deeper than `_DEEPEST`. Refuses, by ValueError, what ends too early or has bytes left over,
extension types, and maps whose keys are no texts or come twice.
Format: https://github.com/msgpack/msgpack/blob/master/spec.md
"""

import struct
from typing import Any

_DEEPEST = 32
_NUMBERS = {
    **{0xCA: ">f", 0xCB: ">d"},
    **{0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q"},
    **{0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"},
}
# The length follows in so many bytes.
_BINS = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I"}
_TEXTS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
_ARRAYS = {0xDC: ">H", 0xDD: ">I"}
_MAPS = {0xDE: ">H", 0xDF: ">I"}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def read_msgpack(data: bytes) -> Any:
    """The value that `data` holds, whole."""
    reader = _Reader(data)
    value = reader.value(0)
    if reader.position != len(data):
        raise ValueError(f"{len(data) - reader.position} bytes are left over")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self.position = data, 0

    def value(self, depth: int) -> Any:
        """The value that begins here."""
        if depth > _DEEPEST:
            raise ValueError(f"values are nested deeper than {_DEEPEST}")
        code = self._take(1)[0]
        if code in _CONSTANTS:
            return _CONSTANTS[code]
        if code in _NUMBERS:
            return self._number(_NUMBERS[code])
        is_small = code < 0xC0 or code >= 0xE0
        return self._small(code, depth) if is_small else self._sized(code, depth)

    def _small(self, code: int, depth: int) -> Any:
        """What a single byte says, with the kind and the length in its bits."""
        if code < 0x80 or code >= 0xE0:
            return code if code < 0x80 else code - 0x100
        if code >= 0xA0:
            return self._text(code & 0x1F)
        if code >= 0x90:
            return self._array(code & 0x0F, depth)
        return self._map(code & 0x0F, depth)

    def _sized(self, code: int, depth: int) -> Any:
        if code in _TEXTS:
            return self._text(self._number(_TEXTS[code]))
        if code in _BINS:
            return self._take(self._number(_BINS[code]))
        if code in _ARRAYS:
            return self._array(self._number(_ARRAYS[code]), depth)
        if code in _MAPS:
            return self._map(self._number(_MAPS[code]), depth)
        raise ValueError(f"no value begins with the byte {code:#x}")

    def _take(self, count: int) -> bytes:
        piece = self._data[self.position : self.position + count]
        if len(piece) < count:
            raise ValueError("the data end within a value")
        self.position += count
        return piece

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _text(self, size: int) -> str:
        return self._take(size).decode()

    def _require(self, count: int) -> None:
        # Each item takes a byte at least: a huge count is no reason to begin.
        if count > len(self._data) - self.position:
            raise ValueError(f"{count} items are announced, but not there")

    def _array(self, count: int, depth: int) -> list[Any]:
        self._require(count)
        return [self.value(depth + 1) for _ in range(count)]

    def _map(self, count: int, depth: int) -> dict[str, Any]:
        self._require(2 * count)
        result: dict[str, Any] = {}
        for _ in range(count):
            key = self.value(depth + 1)
            if not isinstance(key, str) or key in result:
                raise ValueError(f"{key!r} cannot be a key here")
            result[key] = self.value(depth + 1)
        return result
