"""Expressions that are both built as te and evaluated legally, with random licences taken."""

import math

import numpy as np

import refcomp
from refcomp.foundation.dtype import to_numpy
from tests.properties import legal_arithmetic as arithmetic

FUNCTIONS = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "tanh": np.tanh,
    "sin": np.sin,
    "atan": np.arctan,
    "cosh": np.cosh,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "exp10": lambda x: np.float_power(10, x),
    "log2": np.log2,
    "log10": np.log10,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "sinh": np.sinh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "power": np.float_power,
    "hypot": np.hypot,
    "atan2": np.arctan2,
}
_EXACT = {
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
    "copysign": np.copysign,
}


class Tensors:
    """Builds te; `dtype` is that of the operands."""

    def __init__(self, dtype):
        self.dtype = dtype

    def __getattr__(self, name):
        return getattr(refcomp, name)

    def convert(self, x, dtype):
        return x.astype(dtype)


class Legal:
    """Values of one dtype, rounded; and the factors of what is a product."""

    def __init__(self, run, value, factors=None):
        self.run, self.value, self.factors = run, value, factors

    def _of(self, other):
        if isinstance(other, Legal):
            return other
        return Legal(self.run, np.full(self.value.shape, other).astype(self.value.dtype))

    def __neg__(self):
        x, y = self.factors or (None, None)
        return Legal(self.run, -self.value, None if x is None else (-x, y))

    def __add__(self, other):
        return self.run.add(self, self._of(other))

    def __sub__(self, other):
        return self + -self._of(other)

    def __mul__(self, other):
        return self.run.multiply(self, self._of(other))

    def __truediv__(self, other):
        return self.run.divide(self, self._of(other))

    def __rtruediv__(self, other):
        return self._of(other) / self

    def __gt__(self, other):
        return self.value > self._of(other).value

    def __ge__(self, other):
        return self.value >= self._of(other).value


class Evaluation:
    """Evaluates on arrays; every element takes its own licences."""

    def __init__(self, rng, dtype, contract=0.5):
        self.rng, self.dtype, self.contract = rng, dtype, contract

    def value(self, array):
        return Legal(self, array)

    def finish(self, result, _operation):
        """What an operation gives that has rounded."""
        return result

    def _result(self, array, operation, factors=None):
        return Legal(self, self.finish(array, operation), factors)

    def add(self, a, b):
        result = arithmetic.add(a.value, b.value, _name(a))
        for product, other in ((a, b), (b, a)):
            if product.factors is None or not self.contract:
                continue
            fused = np.flatnonzero(self.rng.random(result.size) < self.contract)
            x, y = (factor[fused] for factor in product.factors)
            result[fused] = arithmetic.fused(x, y, other.value[fused], _name(a))
        is_removed = (b.value == 0) & np.signbit(b.value)
        return self._result(result, "add", _factors(is_removed, a, Legal(self, result)))

    def multiply(self, a, b):
        product = arithmetic.multiply(a.value, b.value, _name(a))
        own = Legal(self, product, (a.value, b.value))
        is_removed = (b.value == 1) & (self.rng.random(product.size) < 0.5)
        return self._result(product, "multiply", _factors(is_removed, a, own))

    def divide(self, a, b):
        quotient = arithmetic.divide(a.value, b.value, _name(a))
        factors = _factors(b.value == 1, a, Legal(self, quotient))
        return self._result(quotient, "divide", factors)

    def sqrt(self, a):
        name = _name(a)
        root = np.sqrt(a.value if name == "float64" else a.value.astype(np.float64))
        return self._result(root if name == "float64" else arithmetic.narrow(root, name), "sqrt")

    def fma(self, a, b, c):
        return self._result(arithmetic.fused(a.value, b.value, c.value, _name(a)), "fma")

    def fmod(self, a, b):
        return self._result(arithmetic.remainder(a.value, b.value, _name(a)), "fmod")

    def maximum(self, a, b):
        b = a._of(b)
        greater = np.where((b.value > a.value) | np.isnan(b.value), b.value, a.value)
        return self._result(greater, "maximum", _factors_of_both(a, b))

    def minimum(self, a, b):
        b = a._of(b)
        lesser = np.where((b.value < a.value) | np.isnan(b.value), b.value, a.value)
        return self._result(lesser, "minimum", _factors_of_both(a, b))

    def select(self, condition, a, b):
        b = a._of(b)
        factors = _factors(condition, a, b)
        return Legal(self, np.where(condition, a.value, b.value), factors)

    if_then_else = select

    def convert(self, a, dtype):
        if "int" in dtype:
            limits = np.iinfo(dtype)
            wide = np.nan_to_num(np.trunc(a.value.astype(np.float64)), nan=0.0)
            low, high = float(limits.min), float(limits.max)
            inside = np.clip(wide, low, high).astype(dtype)
            whole = np.where(wide >= high, limits.max, np.where(wide <= low, limits.min, inside))
            return Legal(self, whole.astype(dtype))
        if a.value.dtype.kind in "iu":
            return Legal(self, arithmetic.narrow(a.value.astype(np.float64), dtype))
        factors = a.factors if dtype == _name(a) else None
        return self._result(arithmetic.convert(a.value, dtype), "convert", factors)

    def __getattr__(self, name):
        def call(*operands):
            values = [x.value for x in operands]
            if name in _EXACT:
                return Legal(self, _EXACT[name](*values))
            found = arithmetic.function(self.rng, FUNCTIONS[name], _name(operands[0]), *values)
            return self._result(found, name)

        return call


def _name(a):
    return str(a.value.dtype)


def _factors(condition, a, b):
    """Those of `a` where the condition holds, else of `b`; of what is no product, itself and 1."""
    if a.factors is None and b.factors is None:
        return None
    pairs = [x.factors or (x.value, np.ones_like(x.value)) for x in (a, b)]
    return tuple(np.where(condition, x, y) for x, y in zip(*pairs, strict=True))


def _factors_of_both(a, b):
    """The factors of two products that are the same one."""
    if a.factors is None or b.factors is None:
        return None
    pairs = zip(a.factors, b.factors, strict=True)
    same = all(np.array_equal(x, y, equal_nan=True) for x, y in pairs)
    return a.factors if same else None


class Flawed(Evaluation):
    """Does one thing wrong: `flaw` changes what operations give."""

    def __init__(self, rng, dtype, flaw):
        super().__init__(rng, dtype)
        self._flaw = FLAWS[flaw]

    def finish(self, result, operation):
        return self._flaw(result) if operation in _ROUNDING else result


_ROUNDING = ("add", "multiply", "divide", "sqrt", "fma", "convert")
_NARROWER = {"float64": "float32", "float32": "bfloat16", "float16": "bfloat16"}


def _flushed(x):
    _, least, _ = arithmetic.FORMATS[str(x.dtype)]
    subnormal = np.abs(x.astype(np.longdouble)) < np.ldexp(np.longdouble(1), least)
    return np.where(subnormal, np.copysign(x.dtype.type(0), x), x)


def _narrowed(x):
    name = str(x.dtype)
    if name in _NARROWER:
        return arithmetic.convert(arithmetic.convert(x, _NARROWER[name]), name)
    return (x.view(np.uint16) & 0xFFFC).view(x.dtype)  # without its last two digits


def _saturated(x):
    digits, _, greatest = arithmetic.FORMATS[str(x.dtype)]
    most = x.dtype.type(np.ldexp(2 - np.ldexp(1.0, 1 - digits), greatest))
    return np.where(np.isinf(x), np.copysign(most, x), x)


def _moved(x):
    """Two units in the last place away from zero."""
    bits = f"i{x.dtype.itemsize}"
    moved = (x.view(bits) + 2).astype(bits).view(x.dtype)
    return np.where(np.isfinite(x) & np.isfinite(moved) & (x != 0), moved, x)


FLAWS = {
    "flushes subnormals to zero": _flushed,
    "rounds to a narrower format": _narrowed,
    "saturates at the greatest number": _saturated,
    "takes NaN for zero": lambda x: np.where(np.isnan(x), x.dtype.type(0), x),
    "is two units off": _moved,
}
# Forms with one operation have one legal result.
SINGLE = {
    "a * b": lambda o, a, b, c: a * b,
    "a + c": lambda o, a, b, c: a + c,
    "a - c": lambda o, a, b, c: a - c,
    "a / b": lambda o, a, b, c: a / b,
    "sqrt(a)": lambda o, a, b, c: o.sqrt(a),
    "fma(a, b, c)": lambda o, a, b, c: o.fma(a, b, c),
    "f16(a)": lambda o, a, b, c: o.convert(a, "float16"),
    "f32(a)": lambda o, a, b, c: o.convert(a, "float32"),
    "bf16(a)": lambda o, a, b, c: o.convert(a, "bfloat16"),
}
FORMS = {
    **SINGLE,
    "a * b + c": lambda o, a, b, c: a * b + c,
    "c - a * b": lambda o, a, b, c: c - a * b,
    "a * b - c": lambda o, a, b, c: a * b - c,
    "a * b + a": lambda o, a, b, c: a * b + a,
    "a * b + c * b": lambda o, a, b, c: a * b + c * b,
    "a * b - a * c": lambda o, a, b, c: a * b - a * c,
    "(a * b + c) * b": lambda o, a, b, c: (a * b + c) * b,
    "(a * b + c) / a": lambda o, a, b, c: (a * b + c) / a,
    "a * b * c": lambda o, a, b, c: a * b * c,
    "a * b / c": lambda o, a, b, c: a * b / c,
    "a * b * c + a": lambda o, a, b, c: a * b * c + a,
    "c / (a * b)": lambda o, a, b, c: c / (a * b),
    "1 / (a * b)": lambda o, a, b, c: 1.0 / (a * b),
    "a / b + c": lambda o, a, b, c: a / b + c,
    "a + b + c": lambda o, a, b, c: a + b + c,
    "1 / (a + b)": lambda o, a, b, c: 1.0 / (a + b),
    "a - b * 0.5": lambda o, a, b, c: a - b * 0.5,
    "sqrt(a * a)": lambda o, a, b, c: o.sqrt(a * a),
    "sqrt(a * b + c)": lambda o, a, b, c: o.sqrt(a * b + c),
    "sqrt(a / b * b - a)": lambda o, a, b, c: o.sqrt(a / b * b - a),
    "sqrt(a * a + b * b)": lambda o, a, b, c: o.sqrt(a * a + b * b),
    "fma(a, b, c) * a": lambda o, a, b, c: o.fma(a, b, c) * a,
    "fmod(a, b)": lambda o, a, b, c: o.fmod(a, b),
    "fmod(a * b, c)": lambda o, a, b, c: o.fmod(a * b, c),
    "max(a * b, c)": lambda o, a, b, c: o.maximum(a * b, c),
    "1 / max(a * b, c)": lambda o, a, b, c: 1.0 / o.maximum(a * b, c),
    "min(a + b, c) * a": lambda o, a, b, c: o.minimum(a + b, c) * a,
    "select(a * b > c, a, b)": lambda o, a, b, c: o.select(a * b > c, a, b),
    "select(a * a >= 0, a * b, c)": lambda o, a, b, c: o.select(a * a >= 0.0, a * b, c),
    "select(a * b + c > 0, 1 / a, c)": lambda o, a, b, c: o.select(a * b + c > 0.0, 1.0 / a, c),
    "own(f32(a * b) * 3)": lambda o, a, b, c: o.convert(o.convert(a * b, "float32") * 3.0, o.dtype),
    "own(f16(a * b + c))": lambda o, a, b, c: o.convert(o.convert(a * b + c, "float16"), o.dtype),
    "own(bf16(a * b) + bf16(c))": lambda o, a, b, c: o.convert(
        o.convert(a * b, "bfloat16") + o.convert(c, "bfloat16"), o.dtype
    ),
    "own(f64(a * b) + f64(c))": lambda o, a, b, c: o.convert(
        o.convert(a * b, "float64") + o.convert(c, "float64"), o.dtype
    ),
    "own(i32(a * b + c))": lambda o, a, b, c: o.convert(o.convert(a * b + c, "int32"), o.dtype),
    "own(i8(a / b))": lambda o, a, b, c: o.convert(o.convert(a / b, "int8"), o.dtype),
    "copysign(a, b * c) + a": lambda o, a, b, c: o.copysign(a, b * c) + a,
    "1 / floor(a * b)": lambda o, a, b, c: 1.0 / o.floor(a * b),
    "abs(a * b) + c": lambda o, a, b, c: o.abs(a * b) + c,
    "exp(a)": lambda o, a, b, c: o.exp(a),
    "exp(a) * b": lambda o, a, b, c: o.exp(a) * b,
    "exp(a * b + c)": lambda o, a, b, c: o.exp(a * b + c),
    "exp(a) / (exp(a) + exp(b))": lambda o, a, b, c: o.exp(a) / (o.exp(a) + o.exp(b)),
    "log(a * b)": lambda o, a, b, c: o.log(a * b),
    "tanh(a * b) + c": lambda o, a, b, c: o.tanh(a * b) + c,
    "rsqrt(a * a + c)": lambda o, a, b, c: o.rsqrt(a * a + c),
    "sigmoid(a * b) * c": lambda o, a, b, c: o.sigmoid(a * b) * c,
    "power(a, b)": lambda o, a, b, c: o.power(a, b),
    "power(a * b, c)": lambda o, a, b, c: o.power(a * b, c),
    "hypot(a * b, c)": lambda o, a, b, c: o.hypot(a * b, c),
    "atan2(a * b, c)": lambda o, a, b, c: o.atan2(a * b, c),
    "expm1(a * b)": lambda o, a, b, c: o.expm1(a * b),
    "log1p(a * b)": lambda o, a, b, c: o.log1p(a * b),
    "sin(a * b)": lambda o, a, b, c: o.sin(a * b),
    "cosh(a)": lambda o, a, b, c: o.cosh(a),
    "exp2(a) - b": lambda o, a, b, c: o.exp2(a) - b,
    "atan(a / b)": lambda o, a, b, c: o.atan(a / b),
    "own(i64(a * b))": lambda o, a, b, c: o.convert(o.convert(a * b, "int64"), o.dtype),
    "own(u8(a - c))": lambda o, a, b, c: o.convert(o.convert(a - c, "uint8"), o.dtype),
}
# What is taken from about a product before it is contracted.
FORMS |= {
    "(a * b) * 1 + c": lambda o, a, b, c: (a * b) * 1.0 + c,
    "c - (a * b) * 1": lambda o, a, b, c: c - (a * b) * 1.0,
    "(a * b) / 1 + c": lambda o, a, b, c: (a * b) / 1.0 + c,
    "((a * b) - 0) + c": lambda o, a, b, c: ((a * b) - 0.0) + c,
    "((a * b) + -0) + c": lambda o, a, b, c: ((a * b) + -0.0) + c,
    "((a * b) + 0) + c": lambda o, a, b, c: ((a * b) + 0.0) + c,
    "own(a * b) + c": lambda o, a, b, c: o.convert(a * b, o.dtype) + c,
    "max(a * b, a * b) + c": lambda o, a, b, c: o.maximum(a * b, a * b) + c,
    "min(a * b, a * c) - c": lambda o, a, b, c: o.minimum(a * b, a * c) - c,
    "select(True, a * b, a) + c": lambda o, a, b, c: o.select(True, a * b, a) + c,
    "select(a > b, a * b, a) + c": lambda o, a, b, c: o.select(a > b, a * b, a) + c,
    "select(a * b > c, c, a * b) + a": lambda o, a, b, c: o.select(a * b > c, c, a * b) + a,
    "if(a > b, c, (a * b) * 1) - b": lambda o, a, b, c: o.if_then_else(a > b, c, (a * b) * 1.0) - b,
}
FORMS |= {
    f"{name}(a * b)": lambda o, a, b, c, name=name: getattr(o, name)(a * b)
    for name in ("exp10", "log2", "log10", "cos", "tan", "asin", "acos", "asinh", "acosh", "atanh")
}
FORMS |= {
    f"{name}(a) * c": lambda o, a, b, c, name=name: getattr(o, name)(a) * c
    for name in ("erf", "sinh", "tan", "atanh")
}


def has(name, dtype):
    """Whether a form is defined on `dtype`."""
    return not ("fma" in name and dtype == "bfloat16")


def operands_of(dtype, count):
    """Three placeholders."""
    return [refcomp.placeholder((count,), dtype, letter) for letter in "ABC"]


def te_of(name, operands):
    """The te of a form over three placeholders."""
    form, build = FORMS[name], Tensors(str(to_numpy(operands[0].dtype)))
    shape = operands[0].shape
    return refcomp.compute(shape, lambda i: form(build, *(x[i] for x in operands)))


def evaluate_form(name, evaluation, arrays):
    """A legal value of each element."""
    with np.errstate(all="ignore"):
        return FORMS[name](evaluation, *map(evaluation.value, arrays)).value
