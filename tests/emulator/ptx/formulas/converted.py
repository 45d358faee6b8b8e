"""cvt by the formulas of the ISA, one thread at a time."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

from refcomp.emulator.ptx.instructions.types import bits_of
from tests.emulator.ptx.formulas.floats import (
    MODES,
    finished,
    flushed,
    nan_of,
)
from tests.emulator.ptx.formulas.spelled import (
    ANY,
    ANY_NAN,
    Formula,
    Spelled,
    clamp,
    mask,
    number,
)
from tests.emulator.ptx.instructions.exact_floats import FORMATS, Format, rounded

_TF32 = Format(8, 10)
_SMALL = {"e4m3": (4, 3, 448), "e5m2": (5, 2, 57344)}
_INTEGER_MODES = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}


def conversion_formula(form: Spelled) -> Formula:
    """The formula of a cvt."""
    result, source = form.types
    if result in ("e4m3x2", "e5m2x2", "ue8m0x2"):
        return _pairs(form, lambda part, kind: _small(form, part, kind))
    if source in ("e4m3x2", "e5m2x2", "ue8m0x2"):
        return _wider_pairs(form)
    if result == "tf32":
        return lambda a: (_tf32(form, a),)
    if result.endswith("x2"):
        return _pairs(form, lambda part, kind: _narrowed(form, part, kind))
    if result in FORMATS:
        if source in FORMATS:
            return _between_floats(form)
        return lambda a: (_of_integer(form, a),)
    if source in FORMATS:
        return lambda a: (_to_integer(form, a),)
    return lambda a: (_resized(form, a),)


def _resized(form: Spelled, a: int) -> int:
    result, source = form.types
    value = number(a, source)
    return (clamp(value, result) if "sat" in form.words else value) & mask(result)


def _of_integer(form: Spelled, a: int) -> Any:
    result, source = form.types
    shape = FORMATS[result]
    bits = rounded(Fraction(number(a, source)), shape, form.word(*MODES))
    return finished(bits, form, shape, result)


def _to_integer(form: Spelled, a: int) -> int:
    result, source = form.types
    shape = FORMATS[source]
    if "ftz" in form.words:
        a = flushed(a, shape)
    if shape.is_nan(a):
        is_wide = 64 in (bits_of(result), bits_of(source))
        return 1 << bits_of(result) - 1 if is_wide else 0
    value = shape.value(a)
    if value is None:
        return clamp(-(1 << 99) if a & shape.sign else 1 << 99, result) & mask(result)
    whole = _INTEGER_MODES[form.word(*_INTEGER_MODES)](value)
    return clamp(whole, result) & mask(result)


def _between_floats(form: Spelled) -> Formula:
    result, source = form.types
    shape, before = FORMATS[result], FORMATS[source]
    mode = form.word(*MODES) or "rn"

    def compute(a: int) -> tuple[Any]:
        if "ftz" in form.words and source == "f32":
            a = flushed(a, before)
        bits = _rounded(form, a, source, result, mode)
        if "satfinite" in form.words and bits != ANY_NAN and shape.is_infinite(bits):
            bits -= 1
        words = form.words if result == "f32" else form.words - {"ftz"}
        return (finished(bits, Spelled("cvt", (), words), shape, result),)

    return compute


def _rounded(form: Spelled, a: int, source: str, result: str, mode: str) -> Any:
    shape, before = FORMATS[result], FORMATS[source]
    sign = shape.sign if a & before.sign else 0
    if before.is_nan(a):
        return ANY_NAN
    value = before.value(a)
    if value is None:
        return shape.infinity | sign
    whole = form.word(*_INTEGER_MODES)
    if whole:
        value = Fraction(_INTEGER_MODES[whole](value))
    return rounded(value, shape, mode, negative_zero=bool(sign))


def _narrowed(form: Spelled, part: int, kind: str) -> Any:
    """An f32 as f16 or bf16."""
    shape = FORMATS[kind]
    bits = _rounded(form, part, "f32", kind, form.word("rn", "rz"))
    if "satfinite" in form.words and bits != ANY_NAN and shape.is_infinite(bits):
        bits -= 1
    return finished(bits, Spelled("cvt", (), form.words), shape, kind)


def _pairs(form: Spelled, convert: Any) -> Formula:
    """Two f32, of which the first is the upper part, or a packed pair."""
    result, source = form.types
    kind, width = result.removesuffix("x2"), bits_of(result) // 2

    def compute(*values: int) -> tuple[Any]:
        parts = (values[1], values[0]) if len(values) == 2 else _unpacked(values[0], source)
        low, high = (convert(part, kind) for part in parts)
        return (ANY,) if ANY in (low, high) else (low | high << width,)

    return compute


def _unpacked(word: int, kind: str) -> tuple[int, int]:
    width = bits_of(kind) // 2
    return word & (1 << width) - 1, word >> width


@cache
def small_values(kind: str) -> dict[int, Fraction]:
    """The finite numbers of a type of 8 bits, by their bits without the sign."""
    exponent, mantissa, most = _SMALL[kind]
    shape = Format(exponent, mantissa)
    found = {}
    for code in range(128):
        power = max(code >> mantissa, 1) - shape.bias - mantissa
        units = code & (1 << mantissa) - 1 | bool(code >> mantissa) << mantissa
        found[code] = units * Fraction(2) ** power
    return {code: value for code, value in found.items() if value <= most}


def _small(form: Spelled, part: int, kind: str) -> Any:
    source = form.types[1].removesuffix("x2")
    shape = FORMATS[source]
    value = shape.value(part)
    if kind == "ue8m0":
        return _power_of_two(form, part, source)
    if shape.is_nan(part):
        return 0x7F
    sign = 0x80 if part & shape.sign else 0
    if sign and "relu" in form.words:
        return 0
    codes = small_values(kind)
    if value is None:
        return sign | max(codes)
    size = abs(value)
    # Of two that are equally near the one whose last bit is 0.
    nearest = min(codes, key=lambda code: (abs(codes[code] - size), code & 1))
    return sign | nearest


def _power_of_two(form: Spelled, part: int, source: str) -> Any:
    shape = FORMATS[source]
    value = shape.value(part)
    if shape.is_nan(part):
        return 0xFF
    if part & shape.sign:
        return ANY
    most = 0xFE if "satfinite" in form.words else 0xFF
    if value is None:
        return most
    powers = [Fraction(2) ** (code - 127) for code in range(255)]
    if "rp" in form.words:
        return next((code for code in range(255) if powers[code] >= value), most)
    return max((code for code in range(255) if powers[code] <= value), default=0)


def _wider_pairs(form: Spelled) -> Formula:
    result, source = (kind.removesuffix("x2") for kind in form.types)
    shape = FORMATS[result]

    def convert(code: int) -> int:
        if source == "ue8m0":
            value = None if code == 0xFF else Fraction(2) ** (code - 127)
        else:
            value = _small_value(code, source)
        sign = code & 0x80 and source != "ue8m0"
        if value == "inf":
            return (
                0 if sign and "relu" in form.words else shape.infinity | (shape.sign * bool(sign))
            )
        if value is None:
            return shape.plain_nan
        bits = rounded(-value if sign else value, shape, "rn", negative_zero=bool(sign))
        return 0 if bits & shape.sign and "relu" in form.words else bits

    def compute(word: int) -> tuple[int]:
        return (convert(word & 0xFF) | convert(word >> 8) << 16,)

    return compute


def _small_value(code: int, kind: str) -> Any:
    if kind == "e5m2" and code & 0x7F == 0x7C:
        return "inf"
    return small_values(kind).get(code & 0x7F)


def _tf32(form: Spelled, a: int) -> int:
    if FORMATS["f32"].is_nan(a):
        return nan_of("f32")  # type: ignore[no-any-return]
    value = FORMATS["f32"].value(a)
    sign = a >> 31
    if value is None:
        bits = _TF32.infinity | _TF32.sign * sign
    else:
        bits = rounded(value, _TF32, form.word("rna", "rn", "rz"), negative_zero=bool(sign))
    if "satfinite" in form.words and _TF32.is_infinite(bits):
        bits -= 1
    if sign and "relu" in form.words:
        return 0
    return bits << 13
