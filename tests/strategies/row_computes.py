"""Random computations with a scan, or with an operation that nothing is known of.

Drawn: scans of one state or two, whose rows come from one or two rows before, by elements, in
reverse or as sums, from inits of their own or of both, or from one that stages make of what lies
at an edge; calls of a registered function and of a C
function, and loops of the user's own, between a stage that makes what they read and one that reads
what they make.

Never drawn: values that are not small integers; extern operations of several outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import refcomp
from refcomp.te.tensor import Tensor
from tests.strategies.computation import Computation, Drawing, finish

_SHIFT = "tests.strategies.shift"
_ROWS = (0, 1, 2, 3, 4, 5, 8)


def _scan(d: Drawing) -> Computation:
    """Row t: at most 5, of what row t - 1 (or t - 2) and an input give."""
    steps, n, back = d.extent(_ROWS), d.extent(), d.one([1, 1, 2])
    x, first = d.tensor("X", (steps, n)), d.tensor("I", (back, n))
    init = refcomp.compute((back, n), lambda t, i: first[t, i] + 1, name="init")
    state = d.tensor("state", (steps, n))
    inputs, fresh = _row(d, state, x, d.one(range(1, back + 1)))
    update = refcomp.compute(
        (steps, n), lambda t, i: refcomp.minimum(fresh(t, i) + x[t, i], 5), name="U"
    )
    rows = refcomp.scan(init, update, state, inputs=[x, *inputs], name="S")
    outputs = [rows]
    if d.one([True, False]):
        outputs = [refcomp.compute((steps, n), lambda t, i: rows[t, i] * 2, name="C")]
    return finish(d, "scan", [first, x, *inputs], outputs)


def _row(
    d: Drawing, state: Tensor, x: Tensor, back: int
) -> tuple[list[Tensor], Callable[[Any, Any], Any]]:
    """What a row adds to `x`, from the row that lies `back`, and what else it reads."""
    n = state.shape[1]
    form = d.one(["element", "stage", "reverse", "sum", "product"])
    if form == "element":
        return [], lambda t, i: state[t - back, i]
    if form in ("stage", "reverse"):
        made = refcomp.compute(
            state.shape,
            lambda t, i: state[t - back, n - 1 - i if form == "reverse" else i] + x[t, i],
            name="T",
        )
        return [], lambda t, i: made[t, i]
    k = refcomp.reduce_axis((0, n), "k")
    weights = [d.tensor("W", (n, n))] if form == "product" else []
    factor = (lambda i: weights[0][k, i]) if weights else (lambda i: 1)
    dense = refcomp.compute(
        state.shape, lambda t, i: refcomp.sum(state[t - back, k] * factor(i), axis=k), name="D"
    )
    return weights, lambda t, i: dense[t, i]


def _scan_of_two_states(d: Drawing) -> Computation:
    """A row, and a number for each row that adds up what the row holds; perhaps of one init."""
    steps, n, rows = d.extent(_ROWS), d.extent(), d.one([1, 1, 2])
    x, first = d.tensor("X", (steps, n)), d.tensor("I", (rows, n))
    h, c = d.tensor("h", (steps, n)), d.tensor("c", (steps, n))
    h0 = refcomp.compute((rows, n), lambda t, i: first[t, i] * 2, name="h0")
    c0 = refcomp.compute((rows, n), lambda t, i: first[t, i] + 1, name="c0")
    c0 = h0 if d.one([True, False]) else c0
    uh = refcomp.compute(
        (steps, n), lambda t, i: refcomp.minimum(h[t - 1, i] + c[t - rows, i], 7), name="uh"
    )
    uc = refcomp.compute(
        (steps, n), lambda t, i: refcomp.maximum(uh[t, i] - x[t, i], c[t - 1, i]), name="uc"
    )
    outputs = refcomp.scan([h0, c0], [uh, uc], [h, c], inputs=[x], name="S")
    return finish(d, "scan of two states", [first, x], outputs)


def _scan_of_computed_init(d: Drawing) -> Computation:
    """The first rows, and what each row adds, come from stages that read beyond an edge."""
    steps, n, rows = d.symbol(d.one(_ROWS[1:])), d.extent(), d.one([1, 1, 2])
    x, m = d.tensor("X", (steps, n)), d.symbol(d.one([1, 2, 3, 5]))
    first = d.tensor("I", (m, n))
    edge = d.one([lambda t: refcomp.minimum(t, m - 1), lambda t: t % m])
    t0 = refcomp.compute((rows, n), lambda t, i: first[edge(t), i] + 1, name="F")
    init = refcomp.compute((rows, n), lambda t, i: t0[t, n - 1 - i], name="init")
    state = d.tensor("state", (steps, n))
    inner = refcomp.compute((steps, n), lambda t, i: x[t, refcomp.maximum(i - 1, 0)], name="T")
    update = refcomp.compute(
        (steps, n), lambda t, i: refcomp.minimum(state[t - 1, i] + inner[t, i], 5), name="U"
    )
    made = refcomp.scan(init, update, state, inputs=[x], name="S")
    return finish(d, "scan of computed init", [first, x], made)


SCAN_MAKERS = (_scan, _scan_of_two_states, _scan_of_computed_init)


def _shift(source: refcomp.NDArray, target: refcomp.NDArray, by: int) -> None:
    """The registered function: elements of `source` and `by`."""
    target[...] = source.numpy() + np.asarray(by).astype(source.dtype)


refcomp.register_func(_SHIFT, _shift, override=True)


def _between(
    d: Drawing, kind: str, statement: Callable[[Sequence[Any], Sequence[Any]], Any]
) -> Computation:
    """C = E + A of E = extern(T) of T = A * 2."""
    shape = d.shape(1, 2)
    a = d.tensor("A", shape)
    t = refcomp.compute(shape, lambda *i: a(*i) * 2, name="T")
    e = refcomp.extern(shape, [t], statement, name="E")
    c = refcomp.compute(shape, lambda *i: e(*i) + a(*i), name="C")
    return finish(d, kind, [a], d.one([e, c]))


def _packed_call(d: Drawing) -> Computation:
    return _between(
        d, "packed call", lambda ins, outs: refcomp.call_packed(_SHIFT, ins[0], outs[0], 3)
    )


def _c_call(d: Drawing) -> Computation:
    def copy(ins: Sequence[Any], outs: Sequence[Any]) -> Any:
        size = refcomp.const(ins[0].dtype.bytes, "int64")
        for extent in ins[0].shape:
            size = size * extent
        target, source = outs[0].access_ptr("w"), ins[0].access_ptr("r")
        return refcomp.call_extern("int32", "memcpy", target, source, size)

    return _between(d, "c call", copy)


def _loops_of_the_user(d: Drawing) -> Computation:
    def reverse(ins: Sequence[Any], outs: Sequence[Any]) -> Any:
        ib, source, target = refcomp.ir_builder.create(), ins[0], outs[0]
        last, *inner = source.shape
        with ib.for_range(0, last, name="y") as y:
            if inner:
                with ib.for_range(0, inner[0], name="x") as x:
                    ib.emit(target.vstore((y, x), source[last - 1 - y, x]))
            else:
                ib.emit(target.vstore(y, source[last - 1 - y]))
        return ib.get()

    return _between(d, "loops of the user", reverse)


EXTERN_MAKERS = (_packed_call, _c_call, _loops_of_the_user)
