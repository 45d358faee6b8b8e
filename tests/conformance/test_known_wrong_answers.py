"""Programs that the classic system got wrong or died of, each under the number of its public report
(apache/tvm). Here each is refused with a message that helps, or right under many schedules.
"""

from typing import Any

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError

TARGETS = ["interp", pytest.param("llvm", marks=pytest.mark.llvm)]


def run(schedule: Any, args: list[Any], arrays: list[np.ndarray], target: str) -> list[np.ndarray]:
    """Builds for `target` and calls with copies of `arrays`, which come back."""
    copies = [array.copy() for array in arrays]
    rc.build(schedule, args, target=target)(*copies)
    return copies


def floats(*shape: int) -> np.ndarray:
    """Small whole numbers, whose sums and products are exact."""
    return np.random.default_rng(0).integers(-4, 5, shape).astype(np.float32)


def test_1795_vectorizing_a_reduction_axis_is_refused():
    values = rc.placeholder((128,), name="V")
    k = rc.reduce_axis((0, 128), name="ax")
    total = rc.compute((1,), lambda _: rc.sum(values[k], axis=k), name="O")
    s = rc.create_schedule(total)
    with pytest.raises(UserError, match="cannot vectorize axis ax of stage O(.|\n)*reduction axis"):
        s[total].vectorize(k)


@pytest.mark.parametrize("target", TARGETS)
def test_9598_the_initialisation_of_an_attached_reduction_is_guarded(target):
    a = rc.placeholder((101, 101), name="A")
    k = rc.reduce_axis((0, 101), name="k")
    b = rc.compute((101,), lambda i: rc.sum(a[i, k], axis=k), name="B")
    c = rc.compute((101,), lambda i: b[i], name="C")
    s = rc.create_schedule(c)
    _, inner = s[c].split(c.op.axis[0], factor=100)
    s[b].compute_at(s[c], inner)
    x = floats(101, 101)
    assert (run(s, [a, c], [x, np.zeros(101, np.float32)], target)[1] == x.sum(1)).all()
    with pytest.raises(UserError, match="B is an argument, but its stage is computed in a loop"):
        rc.lower(s, [a, b, c])


def test_15203_comparisons_as_indices_are_refused():
    t = rc.compute((2, 2), lambda i, j: rc.const(1.0, "float32") * i, name="t")
    with pytest.raises(UserError, match="an index or extent must be an integer, not bool"):
        rc.compute((16,), lambda c: t[c <= 4, c < 4], name="unpack")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("is_inlined", [False, True])
def test_15204_a_sum_of_conditions_is_true_where_it_is_not_zero(target, is_inlined):
    a = rc.placeholder((3, 5), name="A")
    pad = rc.compute(
        (3, 5), lambda i, j: rc.if_then_else((i < 3) + (j < 1), a[i, j], 0.0), name="pad"
    )
    k = rc.reduce_axis((0, 3), name="k")
    total = rc.compute((3, 5), lambda i, j: rc.sum(pad[k, j], axis=k), name="total")
    s = rc.create_schedule(total)
    if is_inlined:
        s[pad].compute_inline()
    x = floats(3, 5)
    result = run(s, [a, total], [x, np.zeros((3, 5), np.float32)], target)[1]
    assert (result == x.sum(0)).all()


def test_15205_a_read_beyond_a_constant_tensor_is_refused():
    constant = rc.compute((3,), lambda i: rc.const(-34.0282, "float32"), name="inline")
    k = rc.reduce_axis((0, 64), name="k")
    with pytest.raises(UserError, match="reads index 63 of dimension 0 of inline"):
        rc.compute((), lambda: rc.sum(constant[k], axis=k), name="B")


@pytest.mark.parametrize("divides", [False, True])
def test_15196_15209_a_combiner_whose_order_matters_is_refused(divides):
    def combine(x: Any, y: Any) -> Any:
        return x / y if divides else x - y

    mine = rc.comm_reducer(combine, lambda t: rc.const(int(divides), t), name="mine")
    a, k = rc.placeholder((64, 64), name="A"), rc.reduce_axis((0, 64), name="k")
    with pytest.raises(UserError, match="the combiner f of reducer mine is not a reduction"):
        rc.compute((64,), lambda i: mine(a[i, k], axis=k), name="B")


def _softmax_like() -> list[Any]:
    e = rc.placeholder((1, 4, 6, 6), name="E")
    k = rc.reduce_axis((0, 4), name="k")
    total = rc.compute((1, 6, 6), lambda a, b, c: rc.sum(e[a, k, b, c], axis=k), name="total")
    inline = rc.compute((1, 6, 6), lambda a, b, c: total[a, b, c] * 2.0, name="inline")
    norm = rc.compute(
        (1, 4, 6, 6), lambda a, b, c, d: inline[a, b, c] + total[a, c, d], name="norm"
    )
    return [e, total, inline, norm]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("factor", [1, 3, 4])
def test_15197_15202_no_variable_is_used_before_its_definition(target, factor):
    e, total, inline, norm = _softmax_like()
    s = rc.create_schedule(norm)
    s[inline].compute_inline()
    a, b, c, d = norm.op.axis
    outer, inner = s[norm].split(b, factor=factor)
    s[norm].reorder(outer, c, inner, a, d)
    s[total].compute_at(s[norm], outer)
    x = floats(1, 4, 6, 6)
    sums = x.sum(1)
    expected = 2 * sums[:, :4, :, None] + sums[:, None, :, :]
    result = run(s, [e, norm], [x, np.zeros((1, 4, 6, 6), np.float32)], target)[1]
    assert (result == expected).all()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("is_attached", [False, True])
def test_15200_a_branch_around_a_smaller_tensor_reads_nothing_beyond_it(target, is_attached):
    a = rc.placeholder((4, 10, 10), name="A")
    p, q = rc.reduce_axis((0, 2), name="p"), rc.reduce_axis((0, 2), name="q")
    t = rc.compute(
        (4, 4, 4), lambda i, j, k: rc.sum(a[i, j * 2 + p, k * 2 + q], axis=(p, q)), name="t"
    )
    out = rc.compute(
        (4, 8, 8),
        lambda i, j, k: rc.if_then_else(rc.all(j < 4, k < 4), t[i, j, k], 0.0),
        name="out",
    )
    s = rc.create_schedule(out)
    _, j, k = out.op.axis
    outer, _ = s[out].split(j, factor=3)
    s[out].vectorize(s[out].split(k, factor=4)[1])
    if is_attached:
        s[t].compute_at(s[out], outer)
    x = floats(4, 10, 10)
    expected = np.zeros((4, 8, 8), np.float32)
    expected[:, :4, :4] = x[:, :8, :8].reshape(4, 4, 2, 4, 2).sum((2, 4))
    assert (run(s, [a, out], [x, np.zeros((4, 8, 8), np.float32)], target)[1] == expected).all()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("is_attached", [False, True])
def test_15201_indices_that_depend_on_two_axes_have_one_bound(target, is_attached):
    w = rc.placeholder((3, 8, 5), name="W")
    kernel = rc.compute((8, 3, 5), lambda o, i, x: w[i, o, 4 - x], name="kernel")
    k = rc.reduce_axis((0, 3), name="k")
    t = rc.compute(
        (8, 3, 5),
        lambda a, b, c: rc.sum(kernel[k, b, c] + kernel[rc.maximum(2, a), b, c], axis=k),
        name="t",
    )
    s = rc.create_schedule(t)
    outer, _ = s[t].split(t.op.axis[0], factor=3)
    if is_attached:
        s[kernel].compute_at(s[t], outer)
    x = floats(3, 8, 5)
    flipped = x.transpose(1, 0, 2)[:, :, ::-1]
    expected = flipped[:3].sum(0)[None] + 3 * flipped[np.maximum(2, np.arange(8))]
    assert (run(s, [w, t], [x, np.zeros((8, 3, 5), np.float32)], target)[1] == expected).all()


def test_139_two_schedules_do_not_mix():
    a = rc.placeholder((8, 8), name="A")
    k = rc.reduce_axis((0, 8), name="k")
    b = rc.compute((8,), lambda i: rc.sum(a[i, k], axis=k), name="B")
    c = rc.compute((8, 8), lambda i, j: a[i, j] * 2, name="C")
    sb, sc = rc.create_schedule(b), rc.create_schedule(c)
    with pytest.raises(UserError, match="schedule"):
        sc[c].compute_at(sb[b], b.op.axis[0])


@pytest.mark.parametrize("target", TARGETS)
def test_19368_round_takes_ties_to_the_even_number(target):
    a = rc.placeholder((10,), name="A")
    b = rc.compute((10,), lambda i: rc.round(a[i]), name="B")
    s = rc.create_schedule(b)
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 3.5, 0.49999997, 8388609.0, -2.5, 4.5], np.float32)
    result = run(s, [a, b], [x, np.zeros(10, np.float32)], target)[1]
    assert (result == np.round(x)).all()
    assert (np.signbit(result) == np.signbit(np.round(x))).all()


@pytest.mark.llvm
@pytest.mark.parametrize("lanes", [1, 3, 4, 16])
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sin", "sqrt", "erf", "floor", "round"])
def test_16404_maths_in_vectors_is_that_of_scalars(name, lanes):
    a = rc.placeholder((48,), name="A")
    b = rc.compute((48,), lambda i: getattr(rc, name)(a[i]), name="B")
    s = rc.create_schedule(b)
    s[b].vectorize(s[b].split(b.op.axis[0], factor=lanes)[1])
    x = np.linspace(0.1, 3.0, 48, dtype=np.float32)
    result = run(s, [a, b], [x, np.zeros(48, np.float32)], "llvm")[1]
    scalar = run(rc.create_schedule(b), [a, b], [x, np.zeros(48, np.float32)], "llvm")[1]
    assert np.allclose(result, scalar, rtol=8 * np.finfo(np.float32).eps, atol=0)
