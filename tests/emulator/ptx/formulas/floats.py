"""Arithmetic of floats by the formulas of the ISA: exact fractions, rounded once.

Approximations are held to the error that the ISA documents.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tests.emulator.ptx.formulas.spelled import ANY, ANY_NAN, Formula, Spelled, Within
from tests.emulator.ptx.instructions.exact_floats import FORMATS, Format, root, rounded

MODES = ("rn", "rz", "rm", "rp")
APPROXIMATE = ("rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh", "div")
OPCODES = (
    "add sub mul fma mad div rcp sqrt rsqrt sin cos lg2 ex2 tanh min max abs neg copysign testp"
)


def float_formula(form: Spelled) -> Formula:
    """The formula of an instruction whose last type is one of floats."""
    kind = form.type.removesuffix("x2")
    if kind == form.type:
        return _of_kind(form, kind)
    inner = _of_kind(Spelled(form.opcode, (kind,), form.words), kind)

    def both(*words: int) -> tuple[Any, ...]:
        (low,) = inner(*(word & 0xFFFF for word in words))
        (high,) = inner(*(word >> 16 for word in words))
        if isinstance(low, int) and isinstance(high, int):
            return (low | high << 16,)
        return ((low, high),)

    return both


def _of_kind(form: Spelled, kind: str) -> Formula:
    shape = FORMATS[kind]
    if form.opcode in ("abs", "neg", "copysign"):
        return _of_sign(form, shape)
    if form.opcode == "testp":
        return _class_test(form, shape)
    if form.opcode in ("min", "max"):
        return _extreme(form, shape, kind)
    if "approx" in form.words or "full" in form.words:
        return _approximation(form, shape, kind)
    return _rounded_once(form, shape, kind)


def flushed(bits: int, shape: Format) -> int:
    """Zero of the same sign for a denormal."""
    size = bits & shape.sign - 1
    return bits & shape.sign if 0 < size < 1 << shape.mantissa else bits


def nan_of(kind: str) -> Any:
    """The NaN of a result; that of f64 is not specified."""
    return ANY_NAN if kind == "f64" else FORMATS[kind].plain_nan


def finished(bits: Any, form: Spelled, shape: Format, kind: str) -> Any:
    """The result after .ftz, .sat and .relu."""
    is_nan = bits == ANY_NAN or shape.is_nan(bits)
    if is_nan:
        return 0 if "sat" in form.words else nan_of(kind)
    if "ftz" in form.words:
        bits = flushed(bits, shape)
    if bits & shape.sign and not form.words.isdisjoint({"sat", "relu"}):
        return 0
    one = shape.bias << shape.mantissa
    return min(bits, one) if "sat" in form.words else bits


def sources(form: Spelled, shape: Format, values: tuple[int, ...]) -> list[int]:
    return [flushed(v, shape) if "ftz" in form.words else v for v in values]


def _rounded_once(form: Spelled, shape: Format, kind: str) -> Formula:
    mode = form.word(*MODES) or "rn"
    exact: dict[str, Callable[..., Any]] = {
        "add": _sum,
        "sub": lambda s, m, a, b: _sum(s, m, a, b ^ s.sign),
        "mul": _product,
        "fma": _fused,
        "mad": _fused,
        "div": _quotient,
        "rcp": lambda s, m, a: _quotient(s, m, s.bias << s.mantissa, a),
        "sqrt": _root,
    }
    compute = exact[form.opcode]

    def run(*values: int) -> tuple[Any]:
        given = sources(form, shape, values)
        if any(map(shape.is_nan, given)):
            return (finished(ANY_NAN, form, shape, kind),)
        return (finished(compute(shape, mode, *given), form, shape, kind),)

    return run


def _sum(s: Format, mode: str, a: int, b: int) -> Any:
    if s.is_infinite(a) or s.is_infinite(b):
        if s.is_infinite(a) and s.is_infinite(b):
            return a if a == b else ANY_NAN
        return a if s.is_infinite(a) else b
    return _exact_sum(s, mode, s.value(a), s.value(b), (a & s.sign, b & s.sign))


def _exact_sum(s: Format, mode: str, x: Any, y: Any, signs: tuple[int, int]) -> int:
    """The sum of two numbers. A sum of 0 is -0 if both signs are -, or one is and it is rm."""
    negative = all(signs) if signs[0] == signs[1] or x or y else mode == "rm"
    if (x or y) and x + y == 0:
        negative = mode == "rm"
    elif not x and not y:
        negative = all(signs) or (any(signs) and mode == "rm")
    return rounded(x + y, s, mode, negative_zero=bool(negative))


def _product(s: Format, mode: str, a: int, b: int) -> Any:
    sign = (a ^ b) & s.sign
    if s.is_infinite(a) or s.is_infinite(b):
        is_zero = not a & s.sign - 1 or not b & s.sign - 1
        return ANY_NAN if is_zero else s.infinity | sign
    x, y = s.value(a), s.value(b)
    assert x is not None and y is not None
    return rounded(x * y, s, mode, negative_zero=bool(sign))


def _fused(s: Format, mode: str, a: int, b: int, c: int) -> Any:
    sign = (a ^ b) & s.sign
    if s.is_infinite(a) or s.is_infinite(b):
        product = _product(s, mode, a, b)
        return product if product == ANY_NAN else _sum(s, mode, product, c)
    if s.is_infinite(c):
        return c
    x, y, z = s.value(a), s.value(b), s.value(c)
    assert x is not None and y is not None
    return _exact_sum(s, mode, x * y, z, (sign, c & s.sign))


def _quotient(s: Format, mode: str, a: int, b: int) -> Any:
    sign = (a ^ b) & s.sign
    if s.is_infinite(a):
        return ANY_NAN if s.is_infinite(b) else s.infinity | sign
    if s.is_infinite(b):
        return sign
    x, y = s.value(a), s.value(b)
    assert x is not None and y is not None
    if y == 0:
        return s.infinity | sign if x else ANY_NAN
    return rounded(x / y, s, mode, negative_zero=bool(sign))


def _root(s: Format, mode: str, a: int) -> Any:
    value = s.value(a)
    if value == 0:
        return a
    if a & s.sign:
        return ANY_NAN
    return a if value is None else root(value, s, mode)


# Signs, classes, extremes.


def _of_sign(form: Spelled, s: Format) -> Formula:
    def compute(*values: int) -> tuple[int]:
        given = sources(form, s, values)
        if form.opcode == "copysign":
            return (given[0] & s.sign | given[1] & s.sign - 1,)
        return (given[0] & s.sign - 1 if form.opcode == "abs" else given[0] ^ s.sign,)

    return compute


def _class_test(form: Spelled, s: Format) -> Formula:
    def compute(a: int) -> tuple[int]:
        size = a & s.sign - 1
        is_denormal = 0 < size < 1 << s.mantissa
        holds = {
            "finite": size < s.infinity,
            "infinite": size == s.infinity,
            "number": size <= s.infinity,
            "notanumber": size > s.infinity,
            "normal": size < s.infinity and not is_denormal,
            "subnormal": is_denormal,
        }
        return (int(holds[form.word(*holds)]),)

    return compute


def _order(bits: int, s: Format) -> int:
    """The place of a number: -0 before 0."""
    return -1 - (bits & s.sign - 1) if bits & s.sign else bits


def _extreme(form: Spelled, s: Format, kind: str) -> Formula:
    choose = min if form.opcode == "min" else max

    def of_two(a: int, b: int) -> Any:
        sign = 0
        if "xorsign" in form.words:
            sign, a, b = (a ^ b) & s.sign, a & s.sign - 1, b & s.sign - 1
        nans = [value for value in (a, b) if s.is_nan(value)]
        if len(nans) == 2 or (nans and "NaN" in form.words):
            return s.plain_nan
        if nans:
            return (a if s.is_nan(b) else b) | sign
        return choose(a, b, key=lambda bits: _order(bits, s)) | sign

    def compute(*values: int) -> tuple[Any]:
        result, *rest = sources(form, s, values)
        for value in rest:
            result = of_two(result, value)
        return (finished(result, form, s, kind),)

    return compute


# Approximations.

# (the error relative to the result, the error besides it), as the ISA bounds them.
_BOUNDS = {
    "rcp": (2.0**-23, 0.0),
    "div": (2.0**-22, 0.0),
    "sqrt": (2.0**-23, 0.0),
    "rsqrt": (2.0**-22.9, 0.0),
    "sin": (0.0, 2.0**-20.5),
    "cos": (0.0, 2.0**-20.5),
    "lg2": (2.0**-22, 2.0**-22),
    "ex2": (2.0**-22 + 2.0**-22.5, 0.0),
    "tanh": (2.0**-11, 0.0),
}
_OF_NARROW = {"f16": 2.0**-9.9, "bf16": 2.0**-7}
_EXACT: dict[str, Callable[..., float]] = {
    "rcp": lambda x: 1 / x if x else math.copysign(math.inf, x),
    "div": lambda x, y: _float_quotient(x, y),
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x) if x else math.copysign(math.inf, x),
    "sin": math.sin,
    "cos": math.cos,
    "lg2": lambda x: math.log2(x) if x else -math.inf,
    "ex2": lambda x: 2.0**x if x < 1024 else math.inf,
    "tanh": math.tanh,
}


def _float_quotient(x: float, y: float) -> float:
    if math.isnan(x) or math.isnan(y) or (x == 0 and y == 0) or (math.isinf(x) and math.isinf(y)):
        return math.nan
    if y == 0:
        return math.copysign(math.inf, x) * math.copysign(1.0, y)
    return x / y


def python_float(bits: int, kind: str) -> float:
    """The number as Python has it."""
    if kind == "bf16":
        bits, kind = bits << 16, "f32"
    shape = FORMATS[kind]
    return float(np.array(bits, f"u{shape.width // 8}").view(f"f{shape.width // 8}"))


def _approximation(form: Spelled, s: Format, kind: str) -> Formula:
    relative, absolute = _BOUNDS[form.opcode]
    if kind in _OF_NARROW:
        relative = _OF_NARROW[kind]
    if kind == "f64":  # of the upper words of source and result, or to 2**-53 * 4
        relative = 2.0**-19 if "ftz" in form.words else 2.0**-51

    def compute(*values: int) -> tuple[Any]:
        given = sources(form, s, values)
        numbers = [python_float(value, kind) for value in given]
        if form.opcode in ("sin", "cos") and abs(numbers[0]) > 2 * math.pi:
            return (ANY,)  # the ISA bounds no error there
        if form.opcode == "div" and not _is_bounded(form, numbers[1]):
            return (ANY,)
        if any(map(math.isnan, numbers)):
            return (nan_of(kind),)
        try:
            exact = _EXACT[form.opcode](*numbers)
        except ValueError:
            exact = math.nan
        if math.isnan(exact):
            return (nan_of(kind),)
        error = abs(exact) * relative + absolute if math.isfinite(exact) else 0.0
        return (_near(exact, error, form, s),)

    return compute


def _is_bounded(form: Spelled, divisor: float) -> bool:
    """The ISA bounds the error of div.approx for divisors of ordinary size only."""
    return "full" in form.words or 2.0**-126 <= abs(divisor) <= 2.0**126


def _near(exact: float, error: float, form: Spelled, s: Format) -> Any:
    """What is near the exact result, one step of a denormal or overflow besides."""
    step = 2.0 ** (1 - s.bias - s.mantissa)
    tiny = 2.0 ** (1 - s.bias)
    size = max(abs(exact) - error - step, 0.0)
    if "ftz" in form.words and size < tiny:
        size = 0.0
    far = abs(exact) + error + step
    limit = float(Fraction(2) ** (s.bias + 1) - Fraction(2) ** (s.bias - s.mantissa))
    if far > limit:
        far = math.inf
    if size > limit:
        size = limit
    if exact == 0 and error == 0:
        return Within(-0.0, 0.0)
    low, high = (size, far) if exact >= 0 else (-far, -size)
    if error > abs(exact):
        low, high = exact - error - step, exact + error + step
    return Within(low, high)
