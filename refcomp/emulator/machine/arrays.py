"""The types that instructions compute with, as numpy arrays, and what joins and splits them.

A register holds 32 bits. `b32 u32 i32 f32` are those bits, `u16 i16 f16` the low 16 of them,
`b64 u64 i64 f64` two registers, the lower first. `mask32` and `mask64` are one bit for each lane of
a wave: a bool array [wave, lane], from or to one or two scalar registers; tables say `mask`, since
only the wave knows how many lanes it has. `p16` are two 16-bit numbers in a register, and `p32` two
32-bit ones in two registers: [..., 2].
"""

from typing import Any, NamedTuple

import numpy as np

# A numpy array. Its type follows from a name in `NUMPY`, which numpy's annotations cannot say.
Array = Any

NUMPY: dict[str, Any] = {
    **{"b32": np.uint32, "u32": np.uint32, "i32": np.int32, "f32": np.float32},
    **{"b64": np.uint64, "u64": np.uint64, "i64": np.int64, "f64": np.float64},
    **{"u16": np.uint16, "i16": np.int16, "f16": np.float16},
    **{"p16": np.uint32, "p32": np.uint64},
}
MASKS = {"mask32": 32, "mask64": 64}
_BITS: dict[str, int] = MASKS | {
    kind: 8 * np.dtype(t).itemsize for kind, t in NUMPY.items()
}


def mask_kind(lanes: int) -> str:
    """The type of a mask of that many lanes."""
    return f"mask{lanes}"


def bits_of(kind: str) -> int:
    """16, 32 or 64."""
    return _BITS[kind]


def registers_of(kind: str) -> int:
    """How many registers a value of that type takes."""
    return max(1, bits_of(kind) // 32)


def join(low: Array, high: Array) -> Array:
    """Two arrays of 32 bits as one of 64."""
    both = np.empty((*low.shape, 2), np.uint32)
    both[..., 0] = low
    both[..., 1] = high
    return both.view(np.uint64)[..., 0]


class DwordPair(NamedTuple):
    """64 bits as two registers hold them. A tuple, since results are split while kernels run."""

    # Bits 0 to 31, u32.
    low: Array
    # Bits 32 to 63, u32.
    high: Array


def split(value: Array) -> DwordPair:
    """The lower and the upper half of an array of 64 bits."""
    both = np.ascontiguousarray(value).view(np.uint32).reshape(*value.shape, 2)
    return DwordPair(both[..., 0], both[..., 1])


def mask_of(bits: Array) -> Array:
    """[wave] of as many bits as there are lanes -> bool [wave, lane]."""
    octets = np.ascontiguousarray(bits).view(np.uint8).reshape(-1, bits.itemsize)
    return np.unpackbits(octets, axis=1, bitorder="little").view(np.bool_)


def bits_of_mask(mask: Array) -> Array:
    """bool [wave, lane] -> [wave] of as many bits as there are lanes."""
    unsigned = np.uint64 if mask.shape[1] == 64 else np.uint32
    return np.packbits(mask, axis=1, bitorder="little").view(unsigned)[:, 0]


def as_bits(value: Array, kind: str) -> Array:
    """The same bits as an unsigned integer."""
    unsigned = {16: np.uint16, 32: np.uint32, 64: np.uint64}[bits_of(kind)]
    return np.asarray(value, NUMPY[kind]).view(unsigned)
