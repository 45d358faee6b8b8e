"""Random computations of tensors whose sizes are independent symbols, or that have no axes.

Drawn: tensors of symbolic sizes of which a result reads only the first elements, or the last, so
that each call checks the sizes; results and stages of rank 0, of elements and of sums, read by
stages with axes; scans of which only later rows read their inputs, by themselves or through stages.

Never drawn: values that are not small integers; scalar arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import refcomp
from refcomp.te.tensor import Tensor
from tests.strategies.computation import Computation, Drawing, finish

_ROWS = (1, 2, 3, 4, 5, 8)
_SPARE = (0, 1, 2, 3, 5)
_SIZES = (0, 1, 2, 3, 4, 5, 8, 9, 13)


def _several_sizes(d: Drawing) -> Computation:
    """C[i, j] of elements of a matrix and of two vectors, all of which may be larger than C."""
    m, r = d.one(_SIZES), d.one(_SIZES)
    rows, columns = d.symbol(m), d.symbol(r)
    back = d.one([0, 1, 2])
    a = d.tensor("A", (d.symbol(m + d.one(_SPARE)), d.symbol(r + d.one(_SPARE))))
    b = d.tensor("B", (d.symbol(m + back + d.one(_SPARE)),))
    e = d.tensor("E", (d.symbol(2 * r + d.one(_SPARE)),))
    column = d.one([lambda j: j * 2, lambda j: columns * 2 - 1 - j, lambda j: j])
    t = refcomp.compute((rows, columns), lambda i, j: a[i, j] + b[i + back], name="T")
    c = refcomp.compute((rows, columns), lambda i, j: d.value(t[i, j], e[column(j)]), name="C")
    return finish(d, "several sizes", [a, b, e], c)


def _fold_of_several_sizes(d: Drawing) -> Computation:
    """A sum over the shorter of two rows."""
    n, k = d.one(_SIZES), d.one(_SIZES)
    rows, depth = d.symbol(n), d.symbol(k)
    a = d.tensor("A", (rows, d.symbol(k + d.one(_SPARE))))
    b = d.tensor("B", (depth,))
    axis = refcomp.reduce_axis((0, depth), "k")
    c = refcomp.compute((rows,), lambda i: refcomp.sum(a[i, axis] * b[axis], axis=axis), name="C")
    return finish(d, "fold of several sizes", [a, b], c)


def _point(d: Drawing) -> Computation:
    """A result without axes, perhaps by way of a stage without axes."""
    a, b, v = d.tensor("A", ()), d.tensor("B", ()), d.tensor("V", (3,))
    t = refcomp.compute((), lambda: d.value(a(), v[2]), name="T")
    source = t if d.one([True, False]) else a
    return finish(d, "point", [a, b, v], refcomp.compute((), lambda: source() + b() + v[0], "C"))


def _total(d: Drawing) -> Computation:
    """The sum or the maximum of products, and what is computed from it with axes or without."""
    n = d.extent()
    a, b = d.tensor("A", (n,)), d.tensor("B", (n,))
    k = refcomp.reduce_axis((0, n), "k")
    reducer = d.one([refcomp.sum, refcomp.max])
    t = refcomp.compute((), lambda: reducer(a[k] * b[k], axis=k), name="T")
    c = {
        "total": lambda: t,
        "point": lambda: refcomp.compute((), lambda: t() + 1, name="C"),
        "spread": lambda: refcomp.compute((n,), lambda i: refcomp.maximum(b[i], t()), name="C"),
    }[d.one(["total", "point", "spread"])]
    return finish(d, "total", [a, b], c())


def _shifted_scan(d: Drawing) -> Computation:
    """Row t reads row t - 1 of an input or a stage, or counts rows from the last one."""
    steps, n, back = d.extent(_ROWS), d.extent(), d.one([1, 1, 2])
    if isinstance(steps, int):
        steps = max(steps, back + 1)  # a scan without rows is refused if an input is too short
    size = steps if isinstance(steps, int) else d.sizes[steps]
    forms = ["input", "backwards", "stage", "later stage", "sums"]
    form = d.one([*forms, "fewer rows"] if size >= back else forms)
    fewer = back if form == "fewer rows" else 0
    x, first = d.tensor("X", (steps - fewer, n)), d.tensor("I", (back, n))
    init = refcomp.compute((back, n), lambda t, i: first[t, i] + 1, name="init")
    state = d.tensor("state", (steps, n))
    row = _shifted_row(form, x, steps, n, back)
    update = refcomp.compute(
        (steps, n), lambda t, i: refcomp.minimum(state[t - 1, i] + row(t, i), 5), name="U"
    )
    made = refcomp.scan(init, update, state, inputs=[x], name="S")
    return finish(d, "shifted scan", [first, x], made)


def _shifted_row(form: str, x: Tensor, steps: Any, n: Any, back: int) -> Callable[[Any, Any], Any]:
    """What a row adds to the one before."""
    shape = (steps, n)
    if form == "backwards":
        return lambda t, i: x[steps - t, i]
    if form == "stage":
        whole = refcomp.compute(shape, lambda t, i: x[t, i] * 2, name="T")
        return lambda t, i: whole[t - back, i]
    if form == "later stage":
        later = refcomp.compute(shape, lambda t, i: x[t - back, i] * 2, name="T")
        return lambda t, i: later[t, i]
    if form == "sums":
        k = refcomp.reduce_axis((0, n), "k")
        sums = refcomp.compute(shape, lambda t, i: refcomp.sum(x[t - 1, k], axis=k), name="T")
        return lambda t, i: sums[t, i] + x[t - back, i]
    return lambda t, i: x[t - back, i]


SIZED = (_several_sizes, _fold_of_several_sizes, _point, _total)
SHIFTED_SCAN_MAKERS = (_shifted_scan,)
