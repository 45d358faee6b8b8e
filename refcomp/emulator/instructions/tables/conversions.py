"""Vector instructions that convert and compare.

A float becomes an integer by rounding towards zero. A number that does not fit becomes the nearest
that does, and NaN becomes 0.
"""

from __future__ import annotations

import numpy as np

from refcomp.emulator.instructions.exact import quiet
from refcomp.emulator.instructions.operation import Function, Semantics, operation
from refcomp.emulator.instructions.small_floats import from_bytes, to_bytes
from refcomp.emulator.machine.arrays import NUMPY, Array, join


def to_integer(value: Array, kind: str) -> Array:
    """Return a float as an integer of type `kind`."""
    limits = np.iinfo(NUMPY[kind])
    wide = np.trunc(
        np.nan_to_num(
            np.asarray(value, np.float64), nan=0.0, posinf=1e300, neginf=-1e300
        )
    )
    clipped = np.clip(wide, float(limits.min), float(limits.max))
    return clipped.astype(np.int64).astype(NUMPY[kind])


def _to(kind: str) -> Function:
    if kind == "f16":
        return to_half
    if kind[0] == "f":
        # numpy converts the bits of halves itself, and keeps signalling NaNs.
        return lambda a: quiet(np.asarray(a).astype(NUMPY[kind]))
    return lambda a: to_integer(a, kind)


def _octet(number: int) -> Function:
    shift = np.uint32(8 * number)
    return lambda a: ((np.asarray(a) >> shift) & np.uint32(255)).astype(np.float32)


def _octet_spread(number: int) -> Function:
    """Return the spread of `_octet`: only that byte matters."""
    field = np.uint32(255 << 8 * number)
    return lambda s, a: np.where(s & field != 0, np.uint32(0xFFFFFFFF), np.uint32(0))


def pack(low: Array, high: Array) -> Array:
    """Return two numbers of 16 bits in one register."""
    parts = [np.asarray(part).view(np.uint16).astype(np.uint32) for part in (low, high)]
    return parts[0] | parts[1] << np.uint32(16)


def to_half(value: Array) -> Array:
    """Return a number as f16, to nearest even; signalling NaNs become quiet ones."""
    value = np.asarray(value)
    # The quiet bit must be set before most of the payload is cut off.
    return (quiet(value) if value.dtype.kind == "f" else value).astype(np.float16)


def pack_halves(low: Array, high: Array) -> Array:
    """Return two f16 in one register, quiet: LLVM does not use v_pack_b32_f16 to move bits."""
    return pack(quiet(low), quiet(high))


def to_half_towards_zero(value: Array) -> Array:
    """Return f32 as f16, rounded towards zero; a number that is too large becomes the largest."""
    value = np.asarray(value)
    near = to_half(value)
    beyond = np.abs(near.astype(np.float32)) > np.abs(value)
    return np.where(beyond, np.nextafter(near, np.float16(0)), near)


def _normal(kind: str, low: float) -> Function:
    """Return what maps numbers from `low` to 1 to integers, 1 to the largest one."""
    most = float(np.iinfo(NUMPY[kind]).max)

    def one(value: Array) -> Array:
        clipped = np.clip(np.nan_to_num(np.asarray(value, np.float64)), low, 1.0)
        return np.rint(clipped * most).astype(NUMPY[kind])

    return one


def _normalised(kind: str, low: float) -> Function:
    one = _normal(kind, low)
    return lambda a, b: pack(one(a), one(b))


_PAIRS = (
    *(
        "f32_i32",
        "f32_u32",
        "i32_f32",
        "u32_f32",
        "f16_f32",
        "f32_f16",
        "f64_f32",
        "f32_f64",
    ),
    *(
        "f64_i32",
        "f64_u32",
        "i32_f64",
        "u32_f64",
        "u16_f16",
        "i16_f16",
        "f16_u16",
        "f16_i16",
    ),
)


def _conversions() -> dict[str, Semantics]:
    rows = {}
    for pair in _PAIRS:
        to, of = pair.split("_")
        rows[f"v_cvt_{pair}"] = operation(f"{to} = {of}", _to(to))
    for number in range(4):
        rows[f"v_cvt_f32_ubyte{number}"] = operation(
            "f32 = u32", _octet(number), spread=_octet_spread(number)
        )
    return rows | {
        "v_cvt_flr_i32_f32": operation(
            "i32 = f32", lambda a: to_integer(np.floor(a), "i32")
        ),
        "v_cvt_rpi_i32_f32": operation(
            "i32 = f32",
            lambda a: to_integer(np.floor(np.asarray(a, np.float64) + 0.5), "i32"),
        ),
        "v_cvt_pkrtz_f16_f32": operation(
            "u32 = f32 f32",
            lambda a, b: pack(to_half_towards_zero(a), to_half_towards_zero(b)),
        ),
        "v_pack_b32_f16": operation(
            "u32 = f16 f16", pack_halves, spread=lambda s, t, a, b: pack(s, t)
        ),
        "v_cvt_pk_u16_u32": operation("u32 = u32 u32", _packed_by("u16")),
        "v_cvt_pk_i16_i32": operation("u32 = i32 i32", _packed_by("i16")),
        "v_cvt_pknorm_i16_f32": operation("u32 = f32 f32", _normalised("i16", -1.0)),
        "v_cvt_pknorm_u16_f32": operation("u32 = f32 f32", _normalised("u16", 0.0)),
        "v_cvt_pknorm_i16_f16": operation("u32 = f16 f16", _normalised("i16", -1.0)),
        "v_cvt_pknorm_u16_f16": operation("u32 = f16 f16", _normalised("u16", 0.0)),
        "v_cvt_norm_i16_f16": operation("i16 = f16", _normal("i16", -1.0)),
        "v_cvt_norm_u16_f16": operation("u16 = f16", _normal("u16", 0.0)),
        "v_cvt_off_f32_i4": operation("f32 = u32", _sixteenths),
        "v_sat_pk_u8_i16": operation("u32 = u32", _saturated_bytes),
        **_small_conversions(),
    }


def _sixteenths(value: Array) -> Array:
    """Return four bits with a sign, in sixteenths."""
    low = (np.asarray(value) & np.uint32(15)).astype(np.int32)
    return ((low ^ 8) - 8).astype(np.float32) / np.float32(16)


def _saturated_bytes(value: Array) -> Array:
    """Return two 16-bit numbers as two bytes, saturated."""
    halves = [
        (np.asarray(value) >> s).astype(np.uint16).view(np.int16) for s in _HALVES
    ]
    low, high = (np.clip(half, 0, 255).astype(np.uint32) for half in halves)
    return low | high << np.uint32(8)


_HALVES = (np.uint32(0), np.uint32(16))


def _small_conversions() -> dict[str, Semantics]:
    rows = {}
    for kind in ("fp8", "bf8"):
        rows[f"v_cvt_f32_{kind}"] = operation("f32 = u32", _from_byte(kind))
        rows[f"v_cvt_pk_f32_{kind}"] = operation("p32 = u32", _from_two_bytes(kind))
        rows[f"v_cvt_pk_{kind}_f32"] = operation(
            "u16 = f32 f32", _to_two(kind), keeps_high=True
        )
    return rows


def _from_byte(kind: str) -> Function:
    return lambda a: from_bytes(np.asarray(a) & np.uint32(255), kind)


def _from_two_bytes(kind: str) -> Function:
    one = _from_byte(kind)
    return lambda a: join(
        *(one(np.asarray(a) >> np.uint32(s)).view(np.uint32) for s in (0, 8))
    )


def _to_two(kind: str) -> Function:
    def packed(a: Array, b: Array) -> Array:
        low, high = np.broadcast_arrays(to_bytes(a, kind), to_bytes(b, kind))
        both: Array = low | high << np.uint32(8)
        return both.astype(np.uint16)

    return packed


def _packed_by(kind: str) -> Function:
    limits = np.iinfo(NUMPY[kind])

    def narrow(value: Array) -> Array:
        clipped: Array = np.clip(np.asarray(value), limits.min, limits.max)
        return clipped.astype(NUMPY[kind])

    return lambda a, b: pack(narrow(a), narrow(b))


# Comparisons: `o` ordered (no NaN), `u` unordered; `n..` the negation, true for NaN.
_INTEGER_COMPARISONS: dict[str, Function] = {
    "lt": np.less,
    "eq": np.equal,
    "le": np.less_equal,
    "gt": np.greater,
    "ne": np.not_equal,
    "ge": np.greater_equal,
}
_FLOAT_COMPARISONS: dict[str, Function] = {
    **{name: f for name, f in _INTEGER_COMPARISONS.items() if name != "ne"},
    "lg": lambda a, b: (a < b) | (a > b),
    "o": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
}


def _never(a: Array, b: Array) -> Array:
    return np.zeros(np.broadcast(a, b).shape, np.bool_)


def _always(a: Array, b: Array) -> Array:
    return ~_never(a, b)


def _negated(
    function: Function,
) -> Function:
    return lambda a, b: ~function(a, b)


def _comparisons() -> dict[str, Semantics]:
    rows = {}
    for kind in ("i16", "u16", "i32", "u32", "i64", "u64"):
        for name, function in _INTEGER_COMPARISONS.items():
            rows[f"v_cmp_{name}_{kind}"] = operation(f"mask = {kind} {kind}", function)
    for kind in ("f16", "f32", "f64"):
        for name, function in _FLOAT_COMPARISONS.items():
            negated = "neq" if name == "eq" else "u" if name == "o" else f"n{name}"
            rows[f"v_cmp_{name}_{kind}"] = operation(f"mask = {kind} {kind}", function)
            signature = f"mask = {kind} {kind}"
            rows[f"v_cmp_{negated}_{kind}"] = operation(signature, _negated(function))
    for kind in ("i16", "u16", "i32", "u32", "i64", "u64", "f16", "f32", "f64"):
        signature = f"mask = {kind} {kind}"
        always = "tru" if kind[0] == "f" else "t"
        rows[f"v_cmp_f_{kind}"] = operation(signature, _never)
        rows[f"v_cmp_{always}_{kind}"] = operation(signature, _always)
    return rows


VECTOR_CONVERSIONS: dict[str, Semantics] = _conversions() | _comparisons()
