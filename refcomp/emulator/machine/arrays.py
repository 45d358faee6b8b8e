"""The types that instructions compute with, as numpy arrays, and how registers hold them.

A register holds 32 bits. A type is named by a string:

    b32 u32 i32 f32     the bits of one register
    u16 i16 f16         the low 16 bits of a register
    b64 u64 i64 f64     two registers, the lower half first
    p16, p32            a pair: two 16-bit numbers in one register, two 32-bit numbers in two
    mask32, mask64      one bit for each lane of a wave, in one or two scalar registers;
                        as an array, bool [wave, lane]

Tables of instructions say `mask`, since only the wave knows how many lanes it has.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

# An array whose dtype follows from the name of a type, which annotations cannot express. Operands
# that are constants are numpy scalars, which have the same operators and methods.
Array: TypeAlias = npt.NDArray[Any]
Mask: TypeAlias = npt.NDArray[np.bool_]
Words: TypeAlias = npt.NDArray[np.uint32]
Offsets: TypeAlias = npt.NDArray[np.int64]  # offsets in a memory, in bytes

# Name of a type -> the numpy type of its elements: called with a number, or given as a dtype.
NUMPY: dict[str, Any] = {
    "b32": np.uint32,
    "u32": np.uint32,
    "i32": np.int32,
    "f32": np.float32,
    "b64": np.uint64,
    "u64": np.uint64,
    "i64": np.int64,
    "f64": np.float64,
    "u16": np.uint16,
    "i16": np.int16,
    "f16": np.float16,
    "p16": np.uint32,
    "p32": np.uint64,
}
# The same as dtypes.
DTYPES: dict[str, np.dtype[Any]] = {kind: np.dtype(t) for kind, t in NUMPY.items()}
MASKS = {"mask32": 32, "mask64": 64}
# Bits of a number -> the numpy type of that width.
UNSIGNED: dict[int, Any] = {16: np.uint16, 32: np.uint32, 64: np.uint64}
_BITS = MASKS | {kind: 8 * dtype.itemsize for kind, dtype in DTYPES.items()}


def mask_kind(lanes: int) -> str:
    """Return the name of the type of a mask of so many lanes."""
    return f"mask{lanes}"


def bits_of(kind: str) -> int:
    """Return the width of a type: 16, 32 or 64."""
    return _BITS[kind]


def registers_of(kind: str) -> int:
    """Return how many registers a value of a type takes."""
    return max(1, bits_of(kind) // 32)


def join(low: Array, high: Array) -> npt.NDArray[np.uint64]:
    """Return two arrays of 32 bits as one of 64."""
    both = np.empty((*low.shape, 2), np.uint32)
    both[..., 0] = low
    both[..., 1] = high
    return both.view(np.uint64)[..., 0]


class DwordPair(NamedTuple):
    """64 bits as two registers hold them. A tuple, since results are split while kernels run."""

    low: Words  # bits 0 to 31
    high: Words  # bits 32 to 63


def split(value: Array) -> DwordPair:
    """Return the lower and the upper half of an array of 64 bits."""
    both = np.ascontiguousarray(value).view(np.uint32).reshape(*value.shape, 2)
    return DwordPair(both[..., 0], both[..., 1])


def mask_of(bits: Array) -> Mask:
    """Return integers [wave], of one bit for each lane, as bool [wave, lane]."""
    octets = np.ascontiguousarray(bits).view(np.uint8).reshape(-1, bits.itemsize)
    return np.unpackbits(octets, axis=1, bitorder="little").view(np.bool_)


def bits_of_mask(mask: Mask) -> Array:
    """Return bool [wave, lane] as integers [wave] of one bit for each lane."""
    unsigned = UNSIGNED[mask.shape[1]]
    bits: Array = np.packbits(mask, axis=1, bitorder="little").view(unsigned)
    return bits[:, 0]


def as_bits(value: npt.ArrayLike, kind: str) -> Array:
    """Return the bits of a value of type `kind` as an unsigned integer."""
    bits: Array = np.asarray(value, NUMPY[kind]).view(UNSIGNED[bits_of(kind)])
    return bits
