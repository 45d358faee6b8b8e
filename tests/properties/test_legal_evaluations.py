"""No legal evaluation is called wrong, wrong ones are, and bounds are not far above legal ones.

Legal are all trees over the terms of a reduction, or the one in the order of the axis, each product
rounded or contracted into the sum that takes it. Numbers are ordinary ones, or near the edges of
their format: underflow, subnormals, ties, overflow, infinities, NaN and zeros of both signs.
"""

import numpy as np
import pytest

import refcomp
from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.oracle.compare import EXACT, UNDECIDABLE, WITHIN_BOUND, WRONG, judge_bounded
from refcomp.oracle.floats.error_bounds import Licence, bound_errors
from refcomp.oracle.interpreter.intrinsics import apply_intrinsic
from refcomp.oracle.tensors.evaluate import evaluate
from tests.properties import legal_forms as forms
from tests.properties import legal_reductions as reductions
from tests.properties.legal_arithmetic import edge_operands

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


# Numbers near the edges of each format.

_CASES = [(name, dtype) for name in forms.FORMS for dtype in _DTYPES if forms.has(name, dtype)]
_OTHER_ACCUMULATORS = {
    "float16": ("float32",),
    "bfloat16": ("float32",),
    "float32": ("float16", "bfloat16", "float64"),
    "float64": ("float32",),
}


def _drawn(rng, dtype, count):
    with np.errstate(all="ignore"):
        return edge_operands(rng, dtype, count)


def _bounds_of_form(name, dtype, arrays):
    operands = forms.operands_of(dtype, len(arrays[0]))
    output = forms.te_of(name, operands)
    return bound_errors([output], dict(zip(operands, arrays, strict=True)))[0]


class _Tally:
    """Counts verdicts of legal evaluations; fails where one is called wrong."""

    def __init__(self):
        self.counts = dict.fromkeys((EXACT, WITHIN_BOUND, UNDECIDABLE), 0)

    def add(self, what, arrays, actual, bounded):
        report = judge_bounded(actual, bounded)
        for place, *_ in report.indices(WRONG):
            given = [array[place] for array in arrays]
            shown = bounded.value[place], bounded.error[place], bounded.others[place]
            raise AssertionError(f"{what} of {given}: {actual[place]} is legal; bounds {shown}")
        for verdict in self.counts:
            self.counts[verdict] += report.count(verdict)

    def summary(self, what):
        total = sum(self.counts.values())
        shares = {verdict: count / total for verdict, count in self.counts.items()}
        # Most edges are decided: an overflow, or a zero, that is legal does not make all legal.
        assert shares[UNDECIDABLE] < 0.15
        return (
            f"{total} legal evaluations of {what}, near edges: none is called wrong; "
            f"{shares[EXACT]:.1%} exact, {shares[WITHIN_BOUND]:.1%} within the bound, "
            f"{shares[UNDECIDABLE]:.1%} undecidable"
        )


def test_legal_evaluations_near_edges_are_never_called_wrong(request, record_property):
    nightly = request.config.getoption("--nightly")
    rng, tally = np.random.default_rng(None if nightly else 17), _Tally()
    for name, dtype in _CASES:
        arrays = _drawn(rng, dtype, 4_500 if nightly else 40)
        bounded = _bounds_of_form(name, dtype, arrays)
        for contract in (0.5, 0.0):
            evaluation = forms.Evaluation(rng, dtype, contract)
            actual = forms.evaluate_form(name, evaluation, arrays)
            tally.add((name, dtype), arrays, actual, bounded)
    record_property("summary", tally.summary("expressions"))


def _scan(rows, operands):
    state = refcomp.placeholder((4, rows), operands.dtype, "S")
    init = refcomp.compute((1, rows), lambda t, i: operands[i, t, 0] * operands[i, t, 1])
    update = refcomp.compute(
        (4, rows), lambda t, i: state[t - 1, i] * operands[i, t, 0] + operands[i, t, 1]
    )
    return [refcomp.scan(init, update, state)]


def _complex_products(rows, a):
    product = refcomp.comm_reducer(
        lambda x, y: (x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]),
        lambda t, u: (1.0, 0.0),
    )
    k = refcomp.reduce_axis((0, 4), "k")
    return refcomp.compute((rows,), lambda i: product((a[i, k, 0], a[i, k, 1]), axis=k))


def _lazy_branches(rows, a):
    return [
        refcomp.compute(
            (rows,),
            lambda i: refcomp.if_then_else(
                a[i, 0, 0] * a[i, 0, 1] > a[i, 1, 0],
                a[i, 1, 1] * a[i, 1, 0] + a[i, 2, 0],
                1.0 / (a[i, 2, 1] * a[i, 3, 1]),
            ),
        )
    ]


@pytest.mark.parametrize("computation", [_scan, _complex_products, _lazy_branches])
@pytest.mark.parametrize("dtype", _DTYPES)
def test_the_oracles_own_evaluation_near_edges_is_never_called_wrong(computation, dtype):
    rows = 200
    (numbers, _, _) = _drawn(np.random.default_rng(41), dtype, rows * 8)
    feed, a = numbers.reshape(rows, 4, 2), refcomp.placeholder((rows, 4, 2), dtype, "A")
    outputs = computation(rows, a)
    found = evaluate(outputs, {a: feed})
    for bounded, actual in zip(
        bound_errors(outputs, {a: feed}, licence=_IN_ORDER), found, strict=True
    ):
        report = judge_bounded(actual, bounded)
        assert report.wrong == 0, str(report)
        assert report.exact > 0.7 * actual.size


@pytest.mark.llvm
@pytest.mark.parametrize(
    ("dtype", "contract"),
    [*((dtype, False) for dtype in _DTYPES), ("float32", True), ("float64", True)],
)
def test_compiled_code_near_edges_is_never_called_wrong(dtype, contract, request, record_property):
    nightly = request.config.getoption("--nightly")
    rng, tally, count = np.random.default_rng(None if nightly else 37), _Tally(), 200
    names = [name for name in forms.FORMS if forms.has(name, dtype)]
    operands = forms.operands_of(dtype, count)
    outputs = [forms.te_of(name, operands) for name in names]
    with refcomp.build_options(contract=contract):
        schedule = refcomp.create_schedule([output.op for output in outputs])
        module = refcomp.build(schedule, [*operands, *outputs], "llvm")
    for _ in range(20 if nightly else 1):
        arrays = _drawn(rng, dtype, count)
        found = [np.zeros(count, to_numpy(output.dtype)) for output in outputs]
        given = [refcomp.nd.array(array) for array in (*arrays, *found)]
        module(*given)
        feeds = dict(zip(operands, arrays, strict=True))
        for name, output, actual in zip(names, outputs, given[3:], strict=True):
            (bounded,) = bound_errors([output], feeds)
            tally.add((name, dtype), arrays, actual.numpy(), bounded)
    kind = "contracted" if contract else "plain"
    record_property("summary", tally.summary(f"{kind} {dtype} expressions by LLVM"))


def _rows(rng, dtype, shape):
    """Operands of a reduction: some rows have one sign, cancel, or are mostly zeros."""
    x, y, _ = (array.reshape(shape) for array in _drawn(rng, dtype, shape[0] * shape[1]))
    half = shape[1] // 2
    cancel, positive, sparse = (rng.random((shape[0], 1)) < share for share in (0.3, 0.2, 0.1))
    x[:, half : 2 * half] = np.where(cancel, -x[:, :half], x[:, half : 2 * half])
    x = np.where(positive, np.abs(x), x)
    signs = np.where(rng.random((shape[0], 1)) < 0.5, -np.ones_like(x), x)
    zeros = np.copysign(np.zeros_like(x), signs)
    return np.where(sparse & (rng.random(shape) < 0.9), zeros, x), y


def test_legal_reductions_near_edges_are_never_called_wrong(request, record_property):
    nightly = request.config.getoption("--nightly")
    rng, tally = np.random.default_rng(None if nightly else 19), _Tally()
    for name in list(reductions.REDUCTIONS) * (40 if nightly else 1):
        for dtype in _DTYPES:
            shape = (150 if nightly else 20, int(rng.integers(1, 10)))
            x, y = _rows(rng, dtype, shape)
            output, operands = reductions.te_of_reduction(name, dtype, shape)
            others = _OTHER_ACCUMULATORS[dtype] if name.startswith("sum") else ()
            for accumulate in (None, *others):
                for in_order in (False, True):
                    another = None if accumulate is None else as_dtype(accumulate)
                    licence = Licence(not in_order, another)
                    feeds = dict(zip(operands, (x, y), strict=True))
                    (bounded,) = bound_errors([output], feeds, licence=licence)
                    actual = reductions.evaluate_reduction(
                        *(name, forms.Evaluation(rng, dtype), x, y),
                        in_order=in_order,
                        accumulate=accumulate,
                    )
                    tally.add((name, dtype, licence), (x, y), actual, bounded)
    record_property("summary", tally.summary("reductions"))


def _same(a, b):
    return (a == b) | (np.isnan(a) & np.isnan(b))


@pytest.mark.parametrize("flaw", forms.FLAWS)
def test_one_operation_done_wrong_near_an_edge_is_always_noticed(flaw):
    rng, changed = np.random.default_rng(23), 0
    for name in forms.SINGLE:
        for dtype in _DTYPES:
            if not forms.has(name, dtype):
                continue
            arrays = _drawn(rng, dtype, 500)
            actual = forms.evaluate_form(name, forms.Flawed(rng, dtype, flaw), arrays)
            right = forms.evaluate_form(name, forms.Evaluation(rng, dtype), arrays)
            # Of a tie both neighbours are as near: what is off by one unit may be the other one.
            bits = f"i{right.dtype.itemsize}"
            apart = np.abs(actual.view(bits) - right.view(bits)) > 1
            apart |= ~(np.isfinite(actual) & np.isfinite(right))
            visible = ~_same(actual, right) & apart
            verdicts = judge_bounded(actual, _bounds_of_form(name, dtype, arrays)).verdicts
            assert (verdicts[visible] == WRONG).all(), (name, dtype)
            changed += int(visible.sum())
    assert changed > 100


def _visibly_wrong(actual, legal, units):
    """Where `actual` is far from all of several legal evaluations: by more than four times what
    lies between those, and `units` in the last place; or not finite where they are."""
    with np.errstate(all="ignore"):
        wide = np.array([one.astype(np.longdouble) for one in legal])
        least, most = wide.min(0), wide.max(0)
        unit = np.spacing(np.abs(legal[0])).astype(np.longdouble)
        reach = 4 * (most - least) + units * unit
        value = actual.astype(np.longdouble)
        finite = np.isfinite(wide).all(0)
        far = (value > most + reach) | (value < least - reach) | ~np.isfinite(value)
        all_alike = np.logical_and.reduce([_same(one, wide[0]) for one in wide])
        return np.where(finite, far, all_alike & ~_same(value, wide[0]))


def _noticed(name, flawed, legal, bounded):
    """How many elements are visibly wrong, and how many of them are called wrong."""
    # Functions may be off by four units, more than their legal evaluations here are.
    units = 16 if any(function in name for function in forms.FUNCTIONS) else 4
    visible = _visibly_wrong(flawed, legal, units)
    verdicts = judge_bounded(flawed, bounded).verdicts
    return np.array([visible.sum(), (visible & (verdicts == WRONG)).sum()])


def test_most_wrong_expressions_near_edges_are_noticed(record_property):
    rng, counts = np.random.default_rng(29), {flaw: np.zeros(2, int) for flaw in forms.FLAWS}
    for name, dtype in _CASES:
        arrays = _drawn(rng, dtype, 60)
        bounded = _bounds_of_form(name, dtype, arrays)
        legal = [forms.evaluate_form(name, forms.Evaluation(rng, dtype), arrays) for _ in range(8)]
        for flaw in forms.FLAWS:
            flawed = forms.evaluate_form(name, forms.Flawed(rng, dtype, flaw), arrays)
            counts[flaw] += _noticed(name, flawed, legal, bounded)
    shares = {flaw: noticed / visible for flaw, (visible, noticed) in counts.items()}
    # What jumps is bounded by its range alone: fmod, sines of great numbers, roots of cancellation.
    assert min(shares.values()) > 0.8
    told = "; ".join(f"{flaw} {share:.1%}" for flaw, share in shares.items())
    record_property("summary", f"wrong evaluations near edges that are noticed: {told}")


def test_most_reductions_without_a_term_are_noticed_near_edges(record_property):
    rng, counts = np.random.default_rng(31), np.zeros(2, int)
    for name in reductions.REDUCTIONS:
        for dtype in _DTYPES:
            shape = (60, int(rng.integers(2, 10)))
            x, y = _rows(rng, dtype, shape)
            output, operands = reductions.te_of_reduction(name, dtype, shape)
            (bounded,) = bound_errors([output], dict(zip(operands, (x, y), strict=True)))
            evaluation = forms.Evaluation(rng, dtype)
            legal = [reductions.evaluate_reduction(name, evaluation, x, y) for _ in range(8)]
            flawed = reductions.evaluate_reduction(name, evaluation, x[:, 1:], y[:, 1:])
            counts += _noticed(name, flawed, legal, bounded)
    visible, noticed = counts
    assert noticed / visible > 0.8
    share = f"{noticed / visible:.1%} of {visible}"
    record_property("summary", f"reductions without a term that are noticed near edges: {share}")
