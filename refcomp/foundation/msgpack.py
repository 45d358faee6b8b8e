"""A reader of MessagePack, the format of the metadata in AMD's code objects.

The bytes come from files that nobody has checked, so the reader is written by hand. It runs no code
from the file, allocates no more than the file's size, and does not recurse without end.

Ensures: values of Python's own types only, not more values than bytes, and no recursion deeper than
`_MAX_DEPTH`. Refuses, with ValueError: data that end too early or have bytes left over, extension
types, and maps with a key that is not a text or occurs twice.
Format: https://github.com/msgpack/msgpack/blob/master/spec.md
"""

import struct

MsgpackValue = (
    bool
    | int
    | float
    | str
    | bytes
    | list["MsgpackValue"]
    | dict[str, "MsgpackValue"]
    | None
)

_MAX_DEPTH = 32
# The first byte of a number -> the struct format of the bytes that follow.
_NUMBERS = {
    **{0xCA: ">f", 0xCB: ">d"},
    **{0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q"},
    **{0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"},
}
# The first byte of other values -> bytes of their length, which follows, big-endian.
_BINS = {0xC4: 1, 0xC5: 2, 0xC6: 4}
_TEXTS = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_ARRAYS = {0xDC: 2, 0xDD: 4}
_MAPS = {0xDE: 2, 0xDF: 4}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def read_msgpack(data: bytes) -> MsgpackValue:
    """Return the one value that `data` holds. ValueError."""
    reader = _Reader(data)
    value = reader.value(0)
    if reader.position != len(data):
        raise ValueError(f"{len(data) - reader.position} bytes are left over")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def value(self, depth: int) -> MsgpackValue:
        """Read the value at `position`, which is inside of `depth` others."""
        if depth > _MAX_DEPTH:
            raise ValueError(f"values are nested deeper than {_MAX_DEPTH}")
        code = self._take(1)[0]
        if code in _CONSTANTS:
            return _CONSTANTS[code]
        if code in _NUMBERS:
            form = _NUMBERS[code]
            number: int | float
            (number,) = struct.unpack(form, self._take(struct.calcsize(form)))
            return number
        is_small = code < 0xC0 or code >= 0xE0
        return self._small(code, depth) if is_small else self._sized(code, depth)

    def _small(self, code: int, depth: int) -> MsgpackValue:
        # The byte `code` holds the kind and also the length, or the number itself.
        if code < 0x80 or code >= 0xE0:
            return code if code < 0x80 else code - 0x100
        if code >= 0xA0:
            return self._text(code & 0x1F)
        if code >= 0x90:
            return self._array(code & 0x0F, depth)
        return self._map(code & 0x0F, depth)

    def _sized(self, code: int, depth: int) -> MsgpackValue:
        if code in _TEXTS:
            return self._text(self._length(_TEXTS[code]))
        if code in _BINS:
            return self._take(self._length(_BINS[code]))
        if code in _ARRAYS:
            return self._array(self._length(_ARRAYS[code]), depth)
        if code in _MAPS:
            return self._map(self._length(_MAPS[code]), depth)
        raise ValueError(f"no value begins with the byte {code:#x}")

    def _take(self, count: int) -> bytes:
        piece = self._data[self.position : self.position + count]
        if len(piece) < count:
            raise ValueError("the data end within a value")
        self.position += count
        return piece

    def _length(self, size: int) -> int:
        return int.from_bytes(self._take(size), "big")

    def _text(self, size: int) -> str:
        return self._take(size).decode()

    def _require(self, count: int) -> None:
        # Each item takes at least one byte. So a count that is too large is found before
        # anything is allocated for it.
        if count > len(self._data) - self.position:
            raise ValueError(f"{count} items are announced, but not there")

    def _array(self, count: int, depth: int) -> list[MsgpackValue]:
        self._require(count)
        return [self.value(depth + 1) for _ in range(count)]

    def _map(self, count: int, depth: int) -> dict[str, MsgpackValue]:
        self._require(2 * count)
        result: dict[str, MsgpackValue] = {}
        for _ in range(count):
            key = self.value(depth + 1)
            if not isinstance(key, str) or key in result:
                raise ValueError(f"{key!r} cannot be a key here")
            result[key] = self.value(depth + 1)
        return result
