"""Random computations on tensors whose elements are vectors.

Drawn: elements of 2, 3, 4, 8 and 16 lanes; operations lane by lane, scalars of another tensor and
constants among their operands, comparisons and conversions; stencils, reads guarded lazily,
gathers; sums, maxima and argmax lane by lane, with and without a condition; products of a matrix
with vectors; scans; extern operations that read and write vectors in tensors of scalars, or make a
tensor of vectors; two stages.

Never drawn: values that are not small integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import refcomp
from refcomp.te.tensor import Tensor
from tests.strategies.computation import Computation, Drawing, finish

_LANES = (2, 3, 4, 4, 8, 16)


def _vectors(d: Drawing, name: str, shape: tuple[Any, ...], lanes: int) -> Tensor:
    return d.tensor(name, shape, f"{d.dtype}x{lanes}")


def _vector_elements(d: Drawing) -> Computation:
    shape, lanes = d.shape(1, 2), d.one(_LANES)
    a, b = _vectors(d, "A", shape, lanes), _vectors(d, "B", shape, lanes)
    s = d.tensor("S", shape)
    form = d.one(
        [
            lambda x, y, z: d.value(x, y),
            lambda x, y, z: x * z + y,
            lambda x, y, z: z - y * refcomp.const(2, x.dtype),
            lambda x, y, z: refcomp.select(x > y, z, x),
            lambda x, y, z: refcomp.select(z > 1, x, y),
            lambda x, y, z: x.astype(f"int32x{lanes}") + y.astype("int32") * 2,
            lambda x, y, z: x == y,
            lambda x, y, z: z.astype(str(x.dtype)),
        ]
    )
    c = refcomp.compute(shape, lambda *i: form(a(*i), b(*i), s(*i)), name="C")
    return finish(d, "vector elements", list(c.op.inputs), c)


def _vector_stages(d: Drawing) -> Computation:
    n, lanes = d.extent(), d.one(_LANES)
    a = _vectors(d, "A", (n + 2,), lanes)
    t = refcomp.compute((n + 2,), lambda i: d.value(a[i], a[i]), name="T")
    form = d.one(
        [
            lambda i: t[i] + t[i + 2],
            lambda i: t[n + 1 - i],
            lambda i: refcomp.if_then_else(i < 2, t[i], a[i]),
        ]
    )
    c = refcomp.compute((n,), form, name="C")
    return finish(d, "vector stages", [a], c)


def _vector_gather(d: Drawing) -> Computation:
    n, m, lanes = d.extent(), d.one((1, 2, 3, 5)), d.one(_LANES)
    a, index = _vectors(d, "A", (m,), lanes), d.tensor("I", (n,), "int32")
    c = refcomp.compute((n,), lambda i: a[refcomp.minimum(index[i], m - 1)] * 2, name="C")
    return finish(d, "vector gather", [a, index], c)


def _vector_fold(d: Drawing) -> Computation:
    n, m, lanes = d.extent(), d.extent(), d.one(_LANES)
    a = _vectors(d, "A", (n, m), lanes)
    k = refcomp.reduce_axis((0, m), "k")
    reduce = d.one([refcomp.sum, refcomp.max, refcomp.min])
    where = d.one([None, k % 2 < 1])
    c = refcomp.compute((n,), lambda i: reduce(a[i, k], axis=k, where=where), name="C")
    return finish(d, "vector fold", [a], c)


def _vector_argmax(d: Drawing) -> Computation:
    n, m, lanes = d.extent(), d.extent((1, 2, 3, 5, 8)), d.one(_LANES)
    a = _vectors(d, "A", (n, m), lanes)
    k = refcomp.reduce_axis((0, m), "k")
    argmax = refcomp.comm_reducer(
        # Of equal values the first, in any order of combination.
        lambda x, y: (
            refcomp.select(refcomp.any(x[1] > y[1], (x[1] == y[1]) & (x[0] < y[0])), x[0], y[0]),
            refcomp.maximum(x[1], y[1]),
        ),
        lambda i, v: (refcomp.max_value(i), refcomp.min_value(v)),
        name="argmax",
    )
    position = k.var.astype(f"int32x{lanes}")
    made = refcomp.compute((n,), lambda i: argmax((position, a[i, k]), axis=k), name="C")
    return finish(d, "vector argmax", [a], made)


def _vector_product(d: Drawing) -> Computation:
    n, m, lanes = d.extent(), d.extent(), d.one(_LANES)
    a, b = d.tensor("A", (n, m)), _vectors(d, "B", (m,), lanes)
    k = refcomp.reduce_axis((0, m), "k")
    c = refcomp.compute((n,), lambda i: refcomp.sum(a[i, k] * b[k], axis=k), name="C")
    return finish(d, "vector product", [a, b], c)


def _vector_scan(d: Drawing) -> Computation:
    steps, n, lanes = d.extent((1, 2, 3, 5, 8)), d.extent(), d.one(_LANES)
    x, first = _vectors(d, "X", (steps, n), lanes), _vectors(d, "I", (1, n), lanes)
    state = _vectors(d, "state", (steps, n), lanes)
    init = refcomp.compute((1, n), lambda t, i: first[t, i] + 1, name="init")
    update = refcomp.compute(
        (steps, n), lambda t, i: refcomp.minimum(state[t - 1, i] + x[t, i], 5), name="U"
    )
    rows = refcomp.scan(init, update, state, inputs=[x], name="S")
    return finish(d, "vector scan", [first, x], rows)


def _vectors_in_scalars(d: Drawing) -> Computation:
    """C = E + A of E = extern(T) of T = A * 2, whose statement moves vectors."""
    n, lanes = d.extent((0, 1, 2, 3, 5)), d.one(_LANES)
    rows = d.one([1, 2])  # of a vector: it may begin in one row and end in the next
    shape = (n * rows, lanes // rows) if lanes % rows == 0 else (n, lanes)
    a = d.tensor("A", shape)
    t = refcomp.compute(shape, lambda i, j: a[i, j] * 2, name="T")
    step = rows if lanes % rows == 0 else 1

    def move(ins: Any, outs: Any) -> Any:
        ib = refcomp.ir_builder.create()
        with ib.for_range(0, n, name="i") as i:
            read = ib.let("read", ins[0].vload((i * step, 0), f"{d.dtype}x{lanes}"))
            ib.emit(outs[0].vstore((i * step, 0), read + 1))
        return ib.get()

    e = refcomp.extern(shape, [t], move, name="E")
    c = refcomp.compute(shape, lambda i, j: e[i, j] + a[i, j], name="C")
    return finish(d, "vectors in scalars", [a], c)


def _scalars_to_vectors(d: Drawing) -> Computation:
    """Vectors that an extern operation takes from a row of scalars, and what is added to them."""
    n, lanes = d.extent((0, 1, 2, 3, 5)), d.one(_LANES)
    a = d.tensor("A", (n * lanes,))

    def gather(ins: Any, outs: Any) -> Any:
        ib = refcomp.ir_builder.create()
        into = ib.buffer_ptr(outs[0])
        with ib.for_range(0, n, name="i") as i:
            into[i] = ins[0].vload(i * lanes, f"{d.dtype}x{lanes}")
            into[i] = into[i] + into[i]
        return ib.get()

    e = refcomp.extern((n,), [a], gather, name="E", dtype=f"{d.dtype}x{lanes}")
    c = refcomp.compute((n,), lambda i: e[i] + a[i * lanes], name="C")
    return finish(d, "scalars to vectors", [a], c)


VECTOR_MAKERS: tuple[Callable[[Drawing], Computation], ...] = (
    *(_vector_elements, _vector_stages, _vector_gather, _vector_fold, _vector_argmax),
    *(_vector_product, _vector_scan),
)
VECTOR_EXTERN_MAKERS = (_vectors_in_scalars, _scalars_to_vectors)
