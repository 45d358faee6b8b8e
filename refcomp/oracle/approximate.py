"""Values that are known up to an error, and what each operation of the IR makes of them.

An Approx holds a reference value in more digits than any dtype of the IR has, and how far a legal
value may be from it: one that rounds to nearest after each operation, or leaves a rounding out (a
contraction), and keeps the ulp bounds of `refcomp.ir.intrinsics`. Errors of operands travel
through each operation exactly or upwards, never downwards.

Floats are numpy long doubles. Where that type is no wider than f64, bounds of f64 are twice as
wide and still hold, as the error of the reference is counted, too. Integers and bools are exact, or
nothing is known of them (error inf). The source is N. J. Higham, Accuracy and Stability of
Numerical Algorithms, 2nd edition: section 2.2 (model of rounding, with the underflow term of
section 2.1), section 2.6 (fused multiply-add), section 3.3 (running error analysis).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from refcomp.dtype import DType, to_numpy
from refcomp.ir import expr as ir
from refcomp.ir.intrinsics import INTRINSICS
from refcomp.oracle import arrays
from refcomp.oracle.arrays import Array
from refcomp.oracle.intrinsics import FLOAT_FUNCTIONS
from refcomp.oracle.scalars import FORMATS

WIDE = np.longdouble
_REFERENCE_UNIT = float(np.finfo(WIDE).eps)  # of one operation of the reference, and to spare
_REFERENCE_FUNCTION = 8 * _REFERENCE_UNIT  # of one function of the C library
_LEAST = 5e-324


@dataclass(frozen=True, slots=True)
class Approx:
    """Arrays that broadcast together. `value`: the reference, in WIDE for floats. `error` (f64): no
    legal value is further from it. `doubtful`: the error holds because either branch may be taken,
    or an operation may overflow. `magnitude`: the sum of the absolute values that `value` was added
    up from; its ratio to |value| is the condition number (Higham, section 4.2)."""

    value: Any
    error: Any
    doubtful: Any
    magnitude: Any

    @property
    def _parts(self) -> tuple[Any, Any, Any, Any]:
        return self.value, self.error, self.doubtful, self.magnitude

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, place: Any) -> Approx:
        """The elements at `place`, an index of arrays that have one shape."""
        return Approx(*(part[place] for part in self._parts))

    def __setitem__(self, place: Any, fresh: Approx) -> None:
        """Puts `fresh` at `place`, an index of arrays that have one shape."""
        for part, values in zip(self._parts, fresh._parts, strict=True):
            part[place] = values

    def spread(self, shape: tuple[int, ...]) -> Approx:
        """All parts as arrays of `shape`."""
        return Approx(*(np.array(np.broadcast_to(part, shape)) for part in self._parts))


def exact(value: Array, dtype: DType) -> Approx:
    """`value` of `dtype`, which is what it is."""
    wide = value.astype(WIDE) if dtype.is_float else value
    return Approx(wide, np.float64(0), np.False_, np.abs(wide) if dtype.is_float else np.float64(0))


def zeros(shape: tuple[int, ...], dtype: DType) -> Approx:
    """Zeros of `dtype`, exactly, in arrays of their own."""
    return exact(np.zeros(shape, to_numpy(dtype)), dtype).spread(shape)


def unknown(value: Array, where: Any, dtype: DType) -> Approx:
    """`value`, of which nothing is known at `where`."""
    return replace(exact(value, dtype), error=np.where(where, np.inf, 0.0), doubtful=where)


def lost(result: Approx, where: Any) -> Approx:
    """`result`, of which nothing is known at `where`."""
    error, doubtful = np.where(where, np.inf, result.error), result.doubtful | where
    return replace(result, error=error, doubtful=doubtful)


def half_ulp(size: Any, dtype: DType) -> Any:
    """The greatest error of rounding a number of at most `size` to nearest."""
    digits, least, _ = FORMATS[dtype.kind, dtype.bits]
    _, exponent = np.frexp(np.maximum(size * WIDE(1 + 2.0**-50), np.ldexp(WIDE(1), least)))
    return np.maximum(np.ldexp(1.0, exponent - 1 - digits), _LEAST)


def overflow_limit(dtype: DType) -> Any:
    """The least number that rounds to infinity."""
    digits, _, greatest = FORMATS[dtype.kind, dtype.bits]
    return np.ldexp(WIDE(2) - np.ldexp(WIDE(1), -digits), greatest)


def to_dtype(value: Any, dtype: DType) -> Any:
    """WIDE values rounded to `dtype`; to bf16 by way of f32, which leaves what fits as it is."""
    wide = np.asarray(value)
    return (wide.astype(np.float32) if dtype.kind == "bfloat" else wide).astype(to_numpy(dtype))


def rounded(raw: Approx, dtype: DType, ulps: float = 0.5, reference: float = 0.0) -> Approx:
    """What `raw`, the result of one operation, may become in `dtype`: off by `ulps` more.
    `reference` is the relative error with which the reference itself was computed."""
    value, carried = raw.value, np.where(np.isnan(raw.error), np.inf, raw.error)
    local = 2 * ulps * half_ulp(np.abs(value) + carried, dtype)
    local = local + np.abs(value) * (reference or _REFERENCE_UNIT)
    if ulps <= 0.5:
        local = np.where(carried == 0, np.minimum(local, _rounding_of(value, dtype)), local)
    finite, known = np.isfinite(value), np.isfinite(carried)
    error = np.where(known, np.where(finite, carried + local, 0.0), np.inf).astype(np.float64)
    return _with_overflow(Approx(value, error, raw.doubtful, raw.magnitude), dtype)


def _rounding_of(value: Any, dtype: DType) -> Any:
    """What rounding off exact operands' result changes: not at all where it needs no rounding. A
    legal value is the rounded one, or this one in a contraction. The reference and numpy's ways to
    f16 and bf16 round by themselves, which shows close to ties only, in how far they are off."""
    narrow = to_dtype(value, dtype).astype(WIDE)
    detour = 2.0**-22 if dtype.kind == "bfloat" else 2.0**-51 if dtype.bits < 64 else 2.0**-61
    return np.where(narrow == value, 0.0, np.abs(narrow - value) + np.abs(value) * detour)


def _with_overflow(result: Approx, dtype: DType) -> Approx:
    value, limit = result.value, overflow_limit(dtype)
    beyond = np.isfinite(value) & (np.abs(value) - result.error >= limit)
    perhaps = np.isfinite(value) & (np.abs(value) + result.error >= limit) & ~beyond
    return Approx(
        np.where(beyond, np.copysign(WIDE(np.inf), value), value),
        np.where(beyond, 0.0, np.where(perhaps, np.inf, result.error)),
        result.doubtful | perhaps,
        result.magnitude,
    )


# Operators.


def binary(node: type[ir.Binary], a: Approx, b: Approx, dtype: DType) -> Approx:
    """The result of a binary node on operands of `dtype`."""
    if node in _COMPARES:
        return _compare(node, a, b, dtype)
    if dtype.is_float:
        return _FLOATS[node](a, b, dtype)
    if node in (ir.And, ir.Or):
        return _logic(node, a, b)
    return unknown(arrays.OPERATORS[node](a.value, b.value), (a.error > 0) | (b.error > 0), dtype)


_COMPARES = (ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE)


def _compare(node: type[ir.Binary], a: Approx, b: Approx, dtype: DType) -> Approx:
    truth, reach = arrays.OPERATORS[node](a.value, b.value), a.error + b.error
    undecided = reach > 0
    if dtype.is_float:
        undecided = undecided & ~(np.abs(a.value - b.value) > reach)
        nan = (np.isnan(a.value) & np.isfinite(a.error)) | (
            np.isnan(b.value) & np.isfinite(b.error)
        )
        undecided = undecided & ~nan
    return unknown_truth(truth, undecided)


def unknown_truth(truth: Any, undecided: Any) -> Approx:
    """A bool that may be either at `undecided`."""
    return Approx(truth, np.where(undecided, np.inf, 0.0), undecided, np.float64(0))


def _logic(node: type[ir.Binary], a: Approx, b: Approx) -> Approx:
    deciding = node is ir.Or  # the value that decides, whatever the other operand is
    settled = ((a.error == 0) & (a.value == deciding)) | ((b.error == 0) & (b.value == deciding))
    truth = np.where(settled, deciding, arrays.OPERATORS[node](a.value, b.value))
    return unknown_truth(truth, ~settled & ((a.error > 0) | (b.error > 0)))


def _part(size: Any, error: Any) -> Any:
    """|size| * error, where an exact operand adds nothing, however great the other one."""
    return np.where(error == 0, 0.0, np.abs(size) * error)


def _sum(a: Approx, b: Approx, dtype: DType) -> Approx:
    return _added(a.value + b.value, a, b, dtype)


def _difference(a: Approx, b: Approx, dtype: DType) -> Approx:
    return _added(a.value - b.value, a, b, dtype)


def _added(value: Any, a: Approx, b: Approx, dtype: DType) -> Approx:
    magnitude, doubtful = a.magnitude + b.magnitude, a.doubtful | b.doubtful
    return rounded(Approx(value, a.error + b.error, doubtful, magnitude), dtype)


def _product(a: Approx, b: Approx, dtype: DType) -> Approx:
    return rounded(product_of(a, b), dtype)


def product_of(a: Approx, b: Approx) -> Approx:
    """The product before it is rounded."""
    error = _part(a.value, b.error) + _part(b.value, a.error) + a.error * b.error
    doubtful = a.doubtful | b.doubtful
    return Approx(a.value * b.value, error, doubtful, a.magnitude * b.magnitude)


def _quotient(a: Approx, b: Approx, dtype: DType) -> Approx:
    value, room = a.value / b.value, np.abs(b.value) - b.error
    reached = a.error + _part(value, b.error)
    error = np.where(reached == 0, 0.0, np.where(room > 0, reached / room, np.inf))
    magnitude = a.magnitude / np.abs(b.value) * (b.magnitude / np.abs(b.value))
    doubtful = a.doubtful | b.doubtful | np.isinf(error)
    return rounded(Approx(value, error, doubtful, magnitude), dtype)


def _remainder(a: Approx, b: Approx, dtype: DType) -> Approx:
    """fmod: exact, but it jumps where the quotient passes a whole number."""
    value, whole = np.fmod(a.value, b.value), np.trunc(a.value / b.value)
    ends = [np.trunc((a.value + i * a.error) / (b.value + j * b.error)) for i, j in _CORNERS]
    safe = (np.abs(b.value) > b.error) & np.logical_and.reduce([end == whole for end in ends])
    is_exact = (a.error == 0) & (b.error == 0)
    moved = a.error + _part(whole, b.error)
    error = np.where(is_exact, 0.0, np.where(safe, moved, np.inf))
    doubtful = a.doubtful | b.doubtful | np.isinf(error)
    return rounded(Approx(value, error, doubtful, np.abs(value)), dtype)


_CORNERS = ((-1, -1), (-1, 1), (1, -1), (1, 1))


def _extremum(node: type[ir.Binary]) -> Callable[[Approx, Approx, DType], Approx]:
    def meaning(a: Approx, b: Approx, _dtype: DType) -> Approx:
        """Never rounds: as far off as the operand that it is, or the worse one."""
        value = arrays.OPERATORS[node](a.value, b.value)
        apart = np.abs(a.value - b.value) > a.error + b.error
        is_a = value == a.value
        error = np.where(is_a, a.error, b.error)
        # NaN wins, whatever the other operand is; nothing is apart from it.
        error = np.where(apart, error, np.maximum(a.error, b.error))
        doubtful = np.where(apart, np.where(is_a, a.doubtful, b.doubtful), a.doubtful | b.doubtful)
        return Approx(value, error, doubtful, np.where(is_a, a.magnitude, b.magnitude))

    return meaning


_FLOATS: dict[type[ir.Binary], Callable[[Approx, Approx, DType], Approx]] = {
    ir.Add: _sum,
    ir.Sub: _difference,
    ir.Mul: _product,
    ir.Div: _quotient,
    ir.Mod: _remainder,
    ir.Min: _extremum(ir.Min),
    ir.Max: _extremum(ir.Max),
}


def choose(condition: Approx, yes: Approx, no: Approx) -> Approx:
    """Select: where the condition is undecided, both branches lie within the error."""
    taken, chosen = condition.value, condition.error == 0

    def pick(x: Any, y: Any) -> Any:
        return np.where(taken, x, y)

    error, value = pick(yes.error, no.error), pick(yes.value, no.value)
    other = pick(no.error, yes.error) + _gap(yes.value, no.value)
    hull = np.where(chosen, error, np.maximum(error, other))
    doubtful = pick(yes.doubtful, no.doubtful) | (~chosen & (hull > error))
    return Approx(value, hull, doubtful, pick(yes.magnitude, no.magnitude))


def _gap(a: Any, b: Any) -> Any:
    if a.dtype.kind != "f":
        return np.where(a == b, 0.0, np.inf)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    gap = np.where(same, 0.0, np.abs(a - b))
    return np.where(np.isnan(gap), np.inf, gap)


def convert(a: Approx, source: DType, target: DType) -> Approx:
    """Cast. Nothing is known of an integer where a float could be cut off to either of two."""
    if target.is_float:
        wide = a.value.astype(WIDE)
        magnitude = a.magnitude if source.is_float else np.abs(wide)
        return rounded(Approx(wide, a.error, a.doubtful, magnitude), target)
    if target.is_bool:
        undecided = (a.error > 0) & ~(np.abs(a.value) > a.error)
        return unknown_truth(np.not_equal(a.value, 0), undecided)
    if not source.is_float:
        return unknown(arrays.convert(a.value, target), a.error > 0, target)
    value, low, high = (arrays.convert(v, target) for v in (a.value, *_ends(a)))
    return unknown(value, (a.error > 0) & ((low != value) | (high != value)), target)


def _ends(a: Approx) -> tuple[Any, Any]:
    return np.asarray(a.value - a.error), np.asarray(a.value + a.error)


# Intrinsics.


def call(name: str, operands: list[Approx], dtype: DType, result: DType) -> Approx:
    """The intrinsic `name` of operands of `dtype`."""
    if not dtype.is_float or not result.is_float:
        return _of_bits(name, operands, dtype, result)
    if name == "fma":
        a, b, c = operands
        product = product_of(a, b)
        return _added(product.value + c.value, product, c, dtype)
    value = _REFERENCES[name](*[a.value for a in operands])
    error = _travelled(name, value, operands)
    doubtful = np.isinf(error) | ((error > 0) & (name in _STEPS))
    raw = Approx(value, error, doubtful | _any([a.doubtful for a in operands]), np.abs(value))
    if name in _STEPS:
        return raw
    reference = 2.0**-51 if name == "erf" else _REFERENCE_FUNCTION
    return rounded(raw, dtype, INTRINSICS[name].ulp or 0.5, reference)


def _travelled(name: str, value: Any, operands: list[Approx]) -> Any:
    """How far the value may be off because the operands are."""
    travel: Callable[..., Any] = _TRAVELS.get(name, _by_corners)
    error = travel(_REFERENCES[name], value, operands)
    lost = np.isnan(error) | _any([np.isinf(a.error) for a in operands])
    return np.where(_any([a.error > 0 for a in operands]), np.where(lost, np.inf, error), 0.0)


def _any(masks: list[Any]) -> Any:
    return np.logical_or.reduce(np.broadcast_arrays(*masks))


def _of_bits(name: str, operands: list[Approx], dtype: DType, result: DType) -> Approx:
    """Functions with integers or bools on one side: exact of exact operands."""
    narrow = [to_dtype(a.value, dtype) if dtype.is_float else a.value for a in operands]
    value = arrays.call(name, [np.asarray(x) for x in narrow], dtype, result)
    is_predicate = name in ("isnan", "isinf", "isfinite")
    lost = [np.isinf(a.error) if is_predicate else a.error > 0 for a in operands]
    return unknown(value, _any(lost), result)


def _by_corners(function: Callable[..., Any], value: Any, operands: list[Approx]) -> Any:
    """Of a function that is monotone in each operand, on each side of zero: its extremes lie at
    the ends of the operands' ranges, or at zero."""
    ranges = [(*_ends(a), np.clip(WIDE(0), *_ends(a))) for a in operands]
    reach = [np.abs(function(*point) - value) for point in itertools.product(*ranges)]
    return np.maximum.reduce(np.broadcast_arrays(*reach)) + np.abs(value) * _REFERENCE_FUNCTION


def _lipschitz(most: float) -> Callable[..., Any]:
    """Of a function whose slope is at most 1, and whose values lie at most `most` apart."""

    def error(_function: Callable[..., Any], _value: Any, operands: list[Approx]) -> Any:
        return np.minimum(sum(a.error for a in operands), most)

    return error


def _tangent(function: Callable[..., Any], value: Any, operands: list[Approx]) -> Any:
    """It jumps where the cosine changes its sign."""
    low, high = (np.cos(end) > 0 for end in _ends(operands[0]))
    between = (low == high) & (operands[0].error < 1)
    return np.where(between, _by_corners(function, value, operands), np.inf)


def _angle(function: Callable[..., Any], value: Any, operands: list[Approx]) -> Any:
    """atan2 jumps where y passes zero left of the origin."""
    y, x = operands
    jumps = (np.abs(y.value) <= y.error) & (x.value - x.error <= 0)
    return np.where(jumps, 2 * math.pi, _by_corners(function, value, operands))


def _power(function: Callable[..., Any], value: Any, operands: list[Approx]) -> Any:
    """Of a base that may be negative, known only for exponents that are whole and exact."""
    base, exponent = operands
    whole = (exponent.error == 0) & (np.trunc(exponent.value) == exponent.value)
    known = (base.value - base.error > 0) | whole
    at_pole = (np.abs(base.value) <= base.error) & ~(exponent.value - exponent.error >= 0)
    return np.where(known & ~at_pole, _by_corners(function, value, operands), np.inf)


def _sign(_function: Callable[..., Any], value: Any, operands: list[Approx]) -> Any:
    a, b = operands
    flips = (b.error > 0) & ~(np.abs(b.value) > b.error)
    return a.error + np.where(flips, 2 * np.abs(value), 0)


_STEPS = ("floor", "ceil", "trunc", "round")
_TRAVELS: dict[str, Callable[..., Any]] = {
    "sin": _lipschitz(2.0),
    "cos": _lipschitz(2.0),
    "abs": _lipschitz(math.inf),
    "hypot": _lipschitz(math.inf),
    "tan": _tangent,
    "atan2": _angle,
    "pow": _power,
    "copysign": _sign,
}


def _erf(x: Any) -> Any:
    narrow = np.asarray(x, np.float64)
    return np.array([math.erf(one) for one in narrow.flat], WIDE).reshape(narrow.shape)


_REFERENCES: dict[str, Callable[..., Any]] = {
    **FLOAT_FUNCTIONS,
    "erf": _erf,
    "exp10": lambda x: np.power(WIDE(10), x),
}
