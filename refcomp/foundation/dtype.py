"""Data types: a kind, a width in bits, and a number of vector lanes.

Loop IR spells them `i32 u8 f16 bf16 f32 f64 bool`, and vectors `f32x8`. The long names of numpy and
TVM (`float32`, `int8`, `bfloat16`, `float32x8`) are understood too.
"""

from dataclasses import field
from functools import cache, lru_cache
from operator import index
from typing import TYPE_CHECKING, Any, Literal, cast
from weakref import WeakValueDictionary

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise

if TYPE_CHECKING:
    import numpy.typing as npt
from refcomp.foundation.records import record

Kind = Literal["int", "uint", "float", "bfloat", "bool", "handle", "string"]

_SHORT_KINDS: dict[Kind, str] = {"int": "i", "uint": "u", "float": "f", "bfloat": "bf"}
_KINDS: dict[str, Kind] = {
    spelling: kind for kind, short in _SHORT_KINDS.items() for spelling in (short, kind)
}
_WIDTHS: dict[Kind, tuple[int, ...]] = {
    "int": (8, 16, 32, 64),
    "uint": (8, 16, 32, 64),
    "float": (16, 32, 64),
    "bfloat": (16,),
}
# Names of scalar types, long and short.
_SCALARS: dict[str, tuple[Kind, int]] = {
    f"{spelling}{bits}": (kind, bits)
    for spelling, kind in _KINDS.items()
    for bits in _WIDTHS[kind]
}
_SCALARS["bool"] = ("bool", 1)
# The types that exist, by their fields.
_KNOWN: WeakValueDictionary[tuple[Kind, int, int], "DType"] = WeakValueDictionary()


def _key(kind: Kind, bits: int, lanes: int) -> tuple[Kind, int, int]:
    """Return the fields of a type as plain values."""
    try:
        if isinstance(kind, str):
            return kind, index(bits), index(lanes)
    except TypeError:
        pass
    raise UserError(
        f"no dtype has the kind {kind!r}, {bits!r} bits and {lanes!r} lanes",
        remedy='pass a kind and two integers, such as DType("float", 32, lanes=4)',
    )


# Equal types are one object: every node is asked for its type, so that comparing and hashing a type
# must be fast.
@record(init=False, eq=False, weakref_slot=True)
class DType:
    """A data type: a kind, a width in bits, and a number of vector lanes.

    The loop IR spells the scalar types i8 to i64, u8 to u64, f16, f32, f64, bf16 and bool. A vector
    has its lanes behind an x: `f32x8`. Long names such as `"float32"` are accepted everywhere.

    Args:
        kind: `"int"`, `"uint"`, `"float"`, `"bfloat"` or `"bool"`. `"handle"` and `"string"` exist
            for arguments of calls.
        bits: the width of one lane; 1 for a bool, which takes a byte in memory.
        lanes: the number of lanes; 1 for a scalar.

    Example::

        >>> t = rc.DType("int", 8)
        >>> str(t), t.bytes, t.min_value, t.max_value, t.dtype
        ('i8', 1, -128, 127, dtype('int8'))
        >>> vector = t.with_lanes(4)
        >>> str(vector), vector.element == t, vector.is_int, vector.is_float, vector.is_bool
        ('i8x4', True, True, False, False)
        >>> t == "int8", t == "i8", "uint8" == t
        (True, True, False)
    """

    kind: Kind
    bits: int  # of one lane; 1 for a bool, which takes a byte in memory
    lanes: int = 1
    # Derived from `kind`, and stored for the same reason.
    is_float: bool = field(init=False, repr=False)  # f16, f32, f64 and bf16
    is_int: bool = field(init=False, repr=False)  # signed and unsigned, not bool
    is_bool: bool = field(init=False, repr=False)  # scalar or vector

    def __new__(cls, kind: Kind, bits: int, lanes: int = 1) -> "DType":
        """Return the only object with these fields; raise UserError if they cannot be fields."""
        key = _key(kind, bits, lanes)
        known = _KNOWN.get(key)
        if known is not None:
            return known
        made = object.__new__(cls)
        for name, value in zip(("kind", "bits", "lanes"), key, strict=True):
            object.__setattr__(made, name, value)
        object.__setattr__(made, "is_float", kind in ("float", "bfloat"))
        object.__setattr__(made, "is_int", kind in ("int", "uint"))
        object.__setattr__(made, "is_bool", kind == "bool")
        # Two threads may both come here; both must leave with one object.
        return _KNOWN.setdefault(key, made)

    def __reduce__(self) -> tuple[object, ...]:
        # So that a copy is the same object.
        return DType, (self.kind, self.bits, self.lanes)

    def __eq__(self, other: object) -> bool:
        """Return True for the same type, or for a text that names it: `A.dtype == "float32"`.

        A numpy dtype compares itself with a type.
        """
        if self is other:
            return True
        if isinstance(other, str):
            return find_dtype(other) is self
        return NotImplemented

    # Not that of a text: a type has several names.
    __hash__ = object.__hash__

    def __str__(self) -> str:
        vector = "" if self.lanes == 1 else f"x{self.lanes}"
        if self.kind in _SHORT_KINDS:
            return f"{_SHORT_KINDS[self.kind]}{self.bits}{vector}"
        return f"{self.kind}{vector}"

    @property
    def bytes(self) -> int:
        """Bytes of one lane in memory; a bool takes one."""
        return max(1, self.bits // 8)

    @property
    def dtype(self) -> "np.dtype[np.generic]":
        """The numpy dtype. Its name lets numpy accept a DType wherever it accepts a dtype."""
        return to_numpy(self)

    @property
    def element(self) -> "DType":
        """The same type with one lane."""
        return self if self.lanes == 1 else DType(self.kind, self.bits)

    def with_lanes(self, lanes: int) -> "DType":
        """Return the type with the same element and another number of lanes.

        Args:
            lanes: the number of lanes, at least 1.
        """
        return self if lanes == self.lanes else DType(self.kind, self.bits, lanes)

    @property
    def min_value(self) -> int:
        """The least value of an integer type."""
        return -(1 << (self.bits - 1)) if self.kind == "int" else 0

    @property
    def max_value(self) -> int:
        """The greatest value of an integer type (1 for bool)."""
        value_bits = self.bits - 1 if self.kind == "int" else self.bits
        return (1 << value_bits) - 1


BOOL = DType("bool", 1)
I32 = DType("int", 32)
I64 = DType("int", 64)
U64 = DType("uint", 64)
F32 = DType("float", 32)
F64 = DType("float", 64)
STRING = DType("string", 0)
HANDLE = DType("handle", 64)

SCALAR_DTYPES: tuple[DType, ...] = (
    BOOL,
    *(DType(kind, bits) for kind, widths in _WIDTHS.items() for bits in widths),
)


# Bounded, because parsers of programs ask for each name that a user chose.
@lru_cache(maxsize=4096)
def find_dtype(text: str) -> DType | None:
    """Return the DType that `text` names; None if it names none."""
    scalar, x, lanes = text.partition("x")
    if scalar not in _SCALARS:
        return None
    kind, bits = _SCALARS[scalar]
    if not x:
        return DType(kind, bits)
    is_number = lanes.isascii() and lanes.isdigit() and not lanes.startswith("0")
    return DType(kind, bits, int(lanes)) if is_number else None


def _unknown(text: str) -> UserError:
    scalars = " ".join(map(str, SCALAR_DTYPES))
    known = (f"{kind}{bits}" for kind in _KINDS for bits in _WIDTHS[_KINDS[kind]])
    remedy = f"use one of {scalars}, vectors as f32x8"
    return UserError(f"unknown dtype {text!r}", remedy=advise(text, known, remedy))


def as_dtype(value: object) -> DType:
    """Return the DType that a text or a numpy dtype means.

    Args:
        value: a `DType`, a text such as `"f32"`, `"float32"` or `"float32x4"`, or what numpy
            accepts as a dtype.

    Raises:
        UserError: refcomp does not have the type, such as complex numbers or dates; or the value
            has a dtype, as an array does, but is not one.

    Example::

        >>> str(rc.as_dtype("float32x4")), str(rc.as_dtype(np.uint8)), str(rc.as_dtype("bfloat16"))
        ('f32x4', 'u8', 'bf16')
        >>> rc.as_dtype("complex64")
        Traceback (most recent call last):
            ...
        refcomp.foundation.errors.UserError: unknown dtype 'complex64'...
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, str):
        found = find_dtype(value)
        if found is None:
            raise _unknown(value)
        return found
    if value is None:
        raise UserError(
            "None is given as a dtype", remedy='pass one, such as "float32"'
        )
    if hasattr(value, "dtype") and not isinstance(value, type):
        raise UserError(
            f"a {type(value).__name__} is given as a dtype",
            why="it has a dtype, but is not a dtype itself",
            remedy="pass its dtype: x.dtype",
        )
    try:
        return _from_numpy(np.dtype(cast("npt.DTypeLike", value)))
    except (TypeError, ValueError) as error:
        raise _unknown(str(value)) from error


# Cached, because numpy makes the name anew each time, which would dominate a small call.
@cache
def _from_numpy(dtype: np.dtype[np.generic]) -> DType:
    return as_dtype(dtype.name)


@cache
def to_numpy(dtype: DType) -> np.dtype[Any]:
    """Return the numpy dtype of one lane in memory; bf16 comes from package ml_dtypes.

    Strings are objects.
    """
    if dtype == STRING:
        return np.dtype(object)
    if dtype.kind == "bfloat":
        import ml_dtypes  # noqa: PLC0415 (imported only if bfloat16 is in use)

        bfloat16: type[np.generic] = ml_dtypes.bfloat16
        return np.dtype(bfloat16)
    if dtype.is_bool:
        return np.dtype(np.bool_)
    return np.dtype(f"{dtype.kind}{dtype.bits}")
