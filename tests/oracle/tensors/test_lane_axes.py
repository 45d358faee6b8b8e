"""Tensors of vectors are evaluated lane by lane."""

import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.oracle.tensors.evaluate import evaluate
from refcomp.oracle.tensors.lane_axes import scalar_tensors, with_lane_axes

A = refcomp.placeholder((3, 2), "float32x4", name="A")
S = refcomp.placeholder((3,), "float32", name="S")
_RNG = np.random.default_rng(1)
a = _RNG.integers(-9, 9, (3, 2, 4)).astype("float32")
s = _RNG.integers(-9, 9, (3,)).astype("float32")


def test_each_form_of_an_expression():
    forms = {
        "arithmetic": (lambda i: A[i, 0] * 2.0 + A[i, 1], a[:, 0] * 2 + a[:, 1]),
        "scalars": (lambda i: A[i, 0] - S[i], a[:, 0] - s[:, None]),
        "constants": (lambda i: refcomp.const(3, "int8x4"), np.full((3, 4), 3, "int8")),
        "conversions": (lambda i: A[i, 0].astype("int32x4"), a[:, 0].astype("int32")),
        "choices": (
            lambda i: refcomp.select(A[i, 0] > S[i], A[i, 1], S[i]),
            np.where(a[:, 0] > s[:, None], a[:, 1], s[:, None]),
        ),
        "functions": (lambda i: refcomp.sqrt(A[i, 0] * A[i, 0]), abs(a[:, 0])),
    }
    for name, (form, wanted) in forms.items():
        tensor = refcomp.compute((3,), form, name="C")
        (found,) = evaluate([tensor], {A: a, S: s})
        assert np.array_equal(found, wanted) and found.dtype == wanted.dtype, name


def test_reductions_of_several_values():
    k = refcomp.reduce_axis(2, "k")
    both = refcomp.comm_reducer(
        lambda x, y: (x[0] + y[0], refcomp.maximum(x[1], y[1])),
        lambda t, u: (refcomp.const(0, t), refcomp.min_value(u)),
        name="both",
    )
    total, most = refcomp.compute((3,), lambda i: both((A[i, k], A[i, k]), axis=k), name="B")
    found = evaluate([total, most], {A: a})
    assert np.array_equal(found[0], a.sum(1)) and np.array_equal(found[1], a.max(1))


def test_bounds_of_errors_have_lanes():
    k = refcomp.reduce_axis(2, "k")
    total = refcomp.compute((3,), lambda i: refcomp.sum(A[i, k] * 0.1, axis=k), name="B")
    (bounded,) = refcomp.oracle.bound_errors([total], {A: a})
    assert bounded.value.shape == (3, 4)
    exact = (a.astype("float64") * np.float32(0.1)).sum(1)
    assert np.all(abs(exact - bounded.value) <= bounded.error)


def test_an_extern_operation_reads_and_writes_vectors():
    def move(ins, outs):
        ib = refcomp.ir_builder.create()
        with ib.for_range(0, 3, name="i") as i:
            ib.emit(outs[0].vstore(i * 4, ins[0][i, 1] + 1.0))
        return ib.get()

    flat = refcomp.extern((12,), [A], move, name="E", dtype="float32")
    (found,) = evaluate([flat], {A: a})
    assert np.array_equal(found, (a[:, 1] + 1).ravel())


def test_a_scan_of_vectors_and_scalars():
    x = refcomp.placeholder((5, 2), "float32x4", name="x")
    state, count = refcomp.placeholder((5, 2), "float32x4"), refcomp.placeholder((5, 2), "float32")
    init = refcomp.compute((1, 2), lambda t, i: x[t, i])
    zero = refcomp.compute((1, 2), lambda t, i: refcomp.const(0.0))
    update = refcomp.compute((5, 2), lambda t, i: state[t - 1, i] + x[t, i])
    more = refcomp.compute((5, 2), lambda t, i: count[t - 1, i] + 1.0)
    sums, counts = refcomp.scan([init, zero], [update, more], [state, count], inputs=[x])
    values = _RNG.integers(0, 9, (5, 2, 4)).astype("float32")
    found = evaluate([sums, counts], {x: values})
    assert np.array_equal(found[0], np.cumsum(values, 0)) and found[1][4, 1] == 4


def test_scalars_stay_as_they_are():
    outputs, feeds = [S], {S: s}
    assert scalar_tensors(outputs) == {}
    assert with_lane_axes(outputs, feeds) == (outputs, feeds)


def test_an_array_without_lanes():
    with pytest.raises(UserError, match="A has rank 3, 2 given"):
        evaluate([refcomp.compute((3,), lambda i: A[i, 0])], {A: a[:, :, 0]})
