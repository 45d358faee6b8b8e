"""No legal evaluation of a sum of products exceeds its bound, and the bound is not far above them.

Legal are all trees over the terms, or the one in the order of the axis, each product rounded or
contracted into the sum that takes it.
"""

import numpy as np
import pytest

import refcomp
from refcomp.dtype import as_dtype, to_numpy
from refcomp.oracle.error_bounds import Licence, bound_errors
from refcomp.oracle.evaluate import evaluate
from refcomp.oracle.intrinsics import apply_intrinsic

_DTYPES = ("float16", "bfloat16", "float32", "float64")
_ROWS = 50
_IN_ORDER = Licence(reassociate=False)


def _dots(rows, length, dtype):
    """The te of `rows` dots, and its two placeholders."""
    a, b = (refcomp.placeholder((rows, length), dtype, name) for name in "AB")
    k = refcomp.reduce_axis((0, length), "k")
    c = refcomp.compute((rows,), lambda i: refcomp.sum(a[i, k] * b[i, k], axis=k), name="C")
    return c, a, b


def _operands(rng, shape, dtype):
    """Numbers of many sizes: most of them near each other, some that cancel, some zeros."""
    spread = rng.choice([0, 0, 2, 6])
    values = rng.standard_normal(shape) * 2.0 ** rng.integers(-spread, spread + 1, shape)
    if rng.random() < 0.4:
        half = shape[1] // 2
        values[:, half : 2 * half] = -values[:, :half]
    values[rng.random(shape) < 0.05] = 0
    if rng.random() < 0.2:
        values = np.abs(values)
    return values.astype(to_numpy(as_dtype(dtype)))


def _random_tree(rng, x, y, dtype, contract):
    """The dot of x and y in a random order of additions, with random contractions."""
    nodes = [(a, b) for a, b in zip(x, y, strict=True)]
    chain = rng.random() < 0.5
    while len(nodes) > 1:
        first = nodes.pop(rng.integers(len(nodes)))
        second = nodes.pop(-1 if chain else rng.integers(len(nodes)))
        nodes.append(_add(rng, first, second, dtype, contract))
    return _rounded(nodes[0])


def _in_order(rng, x, y, dtype):
    """The dot of x and y in the order of its terms, with random contractions."""
    total = x[0] * y[0]
    for pair in zip(x[1:], y[1:], strict=True):
        total = _add(rng, pair, total, dtype, contract=True)
    return total


def _add(rng, first, second, dtype, contract):
    if isinstance(second, tuple) and not isinstance(first, tuple):
        first, second = second, first
    if contract and isinstance(first, tuple) and rng.random() < 0.5:
        return apply_intrinsic("fma", (*first, _rounded(second)), dtype)
    return _rounded(first) + _rounded(second)


def _rounded(node):
    return node[0] * node[1] if isinstance(node, tuple) else node


def test_reassociations_and_contractions_are_within_the_bound(request, record_property):
    count = 100_000 if request.config.getoption("--nightly") else 2_000
    rng = np.random.default_rng(None if count > 2_000 else 11)
    tried, ratios = 0, []
    while tried < count:
        dtype, length = str(rng.choice(_DTYPES)), int(rng.integers(1, 25))
        x, y = (_operands(rng, (_ROWS, length), dtype) for _ in "ab")
        c, a, b = _dots(_ROWS, length, dtype)
        free, ordered = (
            bound_errors([c], {a: x, b: y}, licence=licence)[0]
            for licence in (Licence(), _IN_ORDER)
        )
        contract = bool(rng.random() < 0.5)
        for row in range(_ROWS):
            actual = _random_tree(rng, x[row], y[row], as_dtype(dtype), contract)
            ratios.append(_ratio(actual, free, row, (dtype, x[row], y[row])))
            actual = _in_order(rng, x[row], y[row], as_dtype(dtype))
            ratios.append(_ratio(actual, ordered, row, (dtype, x[row], y[row])))
        tried += _ROWS
    record_property(
        "summary",
        f"{tried} random orders and contractions of sums, and as many contractions in order: "
        f"none exceeds its bound; the worst error is {max(ratios):.2f} of it",
    )


def _ratio(actual, bounded, row, told):
    error, allowed = abs(np.longdouble(actual) - bounded.value[row]), bounded.error[row]
    assert error <= allowed, (told, actual, bounded)
    return float(error / allowed) if allowed else 0.0


def _worst_dot(x, y):
    """An f32 dot in an order chosen against it: terms of one sign, then of the other, each the one
    whose addition rounds off most in the direction in which the sum is off already."""
    products = x.astype(np.float64) * y.astype(np.float64)  # exact
    best = (0.0, np.float32(0))
    for direction in (1, -1):
        total, off = np.float32(0), 0.0
        for part in (products[products > 0], products[products <= 0]):
            left = np.sort(part)
            while len(left):
                wanted = total + left  # contracted; in f64, which rounds far below f32
                local = (wanted.astype(np.float32).astype(np.float64) - wanted) * direction
                chosen = int(np.argmax(local))
                total, off = np.float32(wanted[chosen]), off + local[chosen]
                left = np.delete(left, chosen)
        best = max(best, (off, total), key=lambda pair: pair[0])
    return best[1]


@pytest.mark.parametrize("kind", ["positive", "of both signs"])
def test_bounds_of_dots_in_any_order_are_reached_nearly(kind, record_property):
    """No bound of any order can be near the error of each: the worst order found is off by many
    times as much as that of the axis, and must lie within the bound, too."""
    rng = np.random.default_rng(7)
    make = rng.random if kind == "positive" else rng.standard_normal
    x, y = (make((12, 1024)).astype(np.float32) for _ in "ab")
    c, a, b = _dots(12, 1024, "float32")
    (bounded,) = bound_errors([c], {a: x, b: y})
    errors = _errors(np.array([_worst_dot(*row) for row in zip(x, y, strict=True)]), bounded)
    assert (errors <= bounded.error).all()
    in_order = _errors(evaluate([c], {a: x, b: y})[0], bounded)
    worst, plain = (float(np.median(bounded.error / e)) for e in (errors, in_order))
    spread = float(np.median(errors / in_order))
    assert worst <= 50 and spread >= 10
    record_property(
        "summary",
        f"dots of 1024 f32 products {kind}, any order: the bound is {worst:.1f} times the error of "
        f"the worst order found, {plain:.0f} times that of the axis' order; the former is "
        f"{spread:.0f} times the latter (medians)",
    )


def _errors(actual, bounded):
    return np.abs(actual - bounded.value).astype(np.float64)


def _blocked(rows, block, dtype):
    """Dots of 1024 as sums of `block` products each, and the sums of these."""
    a, b = (refcomp.placeholder((rows, 1024 // block, block), dtype, name) for name in "AB")
    k, j = refcomp.reduce_axis(block, "k"), refcomp.reduce_axis(1024 // block, "j")
    partial = refcomp.compute(
        (rows, 1024 // block), lambda i, j: refcomp.sum(a[i, j, k] * b[i, j, k], axis=k)
    )
    return refcomp.compute((rows,), lambda i: refcomp.sum(partial[i, j], axis=j)), a, b


@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize("block", [8, 1024])
def test_bounds_of_dots_in_a_known_order_are_tight(block, dtype, record_property):
    rng = np.random.default_rng(5)
    c, a, b = _blocked(30, block, dtype)
    shape = (30, 1024 // block, block)
    x, y = (rng.standard_normal(shape).astype(to_numpy(as_dtype(dtype))) for _ in "ab")
    (bounded,) = bound_errors([c], {a: x, b: y}, licence=_IN_ORDER)
    errors = _errors(evaluate([c], {a: x, b: y})[0], bounded)
    assert (errors <= bounded.error).all()
    ratio = float(np.median(bounded.error / errors))
    assert 1 <= ratio <= 50
    record_property(
        "summary",
        f"dots of 1024 {dtype} products in blocks of {block}, in order: the bound is {ratio:.1f} "
        "times the error (median)",
    )
