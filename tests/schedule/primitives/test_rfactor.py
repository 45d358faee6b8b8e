import numpy as np
import pytest

import refcomp
from refcomp.certificates import certify
from refcomp.foundation.errors import UserError
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.schedule.stage import AttachPoint
from refcomp.te.tensor import DATA_PARALLEL, REDUCTION
from tests.lowering.reductions import argmax, row_sums, whole_numbers


def _two_axes():
    n, m, p = (refcomp.var(name) for name in "nmp")
    a = refcomp.placeholder((n, m, p), name="A")
    k, r = refcomp.reduce_axis((0, m), "k"), refcomp.reduce_axis((0, p), "r")
    b = refcomp.compute((n,), lambda i: refcomp.sum(a[i, k, r], axis=[k, r]), name="B")
    return refcomp.create_schedule(b.op), a, b, k, r


def _text(s, args):
    return refcomp.print_func(refcomp.lower(s, args))


def _sums(s, a, b, values, axes=1):
    out = np.full(values.shape[0], 77, np.float32)
    interpret(refcomp.lower(s, [a, b]), [values, out])
    assert out.tolist() == values.sum(axis=axes).tolist()


@pytest.mark.search
def test_the_inner_part_of_a_split(golden):
    s, a, b, k = row_sums()
    outer, inner = s[b].split(k, factor=4)
    made = s.rfactor(b, inner)
    assert made.name == "B.rf" and [stage.name for stage in s.stages] == ["A", "B.rf", "B"]
    assert str(made.shape[0]) == "4" and str(made.shape[1]) == "n"
    assert made.op.reduce_axis == (outer,)
    (rest,) = s[b].op.reduce_axis
    assert (rest.name, rest.kind, str(rest.extent)) == ("k.inner.v", REDUCTION, "4")
    assert s[b].leaf_iter_vars == (*b.op.axis, rest)
    golden("lowering/rfactor.txt", _text(s, [a, b]))
    certify(s, [a, b], every_step=True).require()
    for columns in (0, 1, 4, 7):
        _sums(s, a, b, whole_numbers(3, columns))


def test_the_outer_part_of_a_split_has_a_row_for_each():
    s, a, b, k = row_sums()
    outer, inner = s[b].split(k, factor=4)
    made = s.rfactor(b, outer)
    assert str(made.shape[0]) == "(m + 3) // 4" and made.op.reduce_axis == (inner,)
    _sums(s, a, b, whole_numbers(3, 7))


def test_an_axis_of_its_own_needs_no_reduction_to_be_left(golden):
    s, a, b, k = row_sums(where=lambda value: value > 0, begin=2)
    made = s.rfactor(b, k)
    assert made.op.reduction is None and made.op.axis[0].name == "k"
    golden("lowering/rfactor_whole.txt", _text(s, [a, b]))
    values = whole_numbers(3, 7)
    out = np.zeros(3, np.float32)
    interpret(refcomp.lower(s, [a, b]), [values, out])
    assert out.tolist() == np.where(values > 0, values, 0)[:, 2:].sum(axis=1).tolist()
    certify(s, [a, b]).require()


def test_a_condition_is_read_inside_only():
    s, a, b, k = row_sums(where=lambda value: value > 0)
    s.rfactor(b, s[b].split(k, factor=4)[1])
    certify(s, [a, b]).require()
    values, out = whole_numbers(3, 5), np.zeros(3, np.float32)
    interpret(refcomp.lower(s, [a, b]), [values, out])
    assert out.tolist() == np.where(values > 0, values, 0).sum(axis=1).tolist()


def test_less_than_no_iterations_need_no_memory():
    s, a, b, k = row_sums(begin=3)
    made = s.rfactor(b, k)
    assert str(made.shape[0]) == "max(m - 3, 0)"
    for columns in (0, 1, 3, 4):
        out = np.full(2, 77, np.float32)
        interpret(refcomp.lower(s, [a, b]), [whole_numbers(2, columns), out])
        assert out.tolist() == whole_numbers(2, columns)[:, 3:].sum(axis=1).tolist()


def test_a_whole_axis_without_a_condition_is_copied():
    s, a, b, k = row_sums()
    made = s.rfactor(b, k)
    assert made.op.inputs == (a,) and "if" not in _text(s, [a, b])
    _sums(s, a, b, whole_numbers(3, 5))


@pytest.mark.parametrize(("position", "shape"), [(0, "4 n"), (1, "n 4"), (-1, "n 4"), (-2, "4 n")])
def test_where_the_factored_axis_stands(position, shape):
    s, a, b, k = row_sums()
    _, inner = s[b].split(k, factor=4)
    made = s.rfactor(b, inner, position)
    assert " ".join(map(str, made.shape)) == shape
    assert made.op.axis[made.shape.index(made.shape[position])].kind == DATA_PARALLEL
    _sums(s, a, b, whole_numbers(3, 6))


@pytest.mark.parametrize("position", [2, -3, 0.5, True, "first"])
def test_nowhere_else(position):
    s, _, b, k = row_sums()
    with pytest.raises(UserError, match=r"1 dimensions(.|\n)*pass a factor_axis of -2 .. 1"):
        s.rfactor(b, k, position)
    assert not s.steps and len(s.stages) == 2


def test_one_of_several_reduction_axes_keeps_the_others_and_their_loops():
    s, a, b, k, r = _two_axes()
    r_outer, r_inner = s[b].split(r, factor=2)
    s[b].unroll(r_inner)
    made = s.rfactor(b, k)
    assert made.op.reduce_axis == (r,) and s[made].leaf_iter_vars[2:] == (r_outer, r_inner)
    assert "unrolled" in _text(s, [a, b])
    certify(s, [a, b]).require()
    _sums(s, a, b, whole_numbers(3, 4, 5), axes=(1, 2))


def test_fused_axes_are_factored_together(golden):
    s, a, b, k, r = _two_axes()
    outer, inner = s[b].split(s[b].fuse(k, r), factor=4)
    made = s.rfactor(b, inner)
    assert made.op.reduce_axis == (outer,)
    golden("lowering/rfactor_fused.txt", _text(s, [a, b]))
    certify(s, [a, b]).require()
    _sums(s, a, b, whole_numbers(3, 3, 5), axes=(1, 2))


@pytest.mark.search
def test_a_split_of_a_split():
    s, a, b, k = row_sums()
    outer, inner = s[b].split(k, factor=8)
    middle, inner = s[b].split(inner, factor=3)  # 3 does not divide 8
    made = s.rfactor(b, middle)
    assert made.op.reduce_axis == (outer, inner)
    certify(s, [a, b]).require()
    _sums(s, a, b, whole_numbers(3, 19))


@pytest.mark.search
def test_tuples_are_factored_together():
    s, a, b, k = argmax()
    _, inner = s[b[0]].split(k, factor=4)
    made = s.rfactor(b[0], inner)
    assert [t.name for t in made] == ["B.rf", "B.rf.v1"]
    s[made[0]].compute_at(s[b[0]], s[b[0]].op.reduce_axis[0])
    certify(s, [a, *b]).require()
    values = whole_numbers(5, 9)
    index, value = np.zeros(5, np.int64), np.zeros(5, np.float32)
    interpret(refcomp.lower(s, [a, *b]), [values, index, value])
    assert index.tolist() == values.argmax(axis=1).tolist()
    assert value.tolist() == values.max(axis=1).tolist()


def test_loops_over_the_output_stay():
    s, a, b, k = row_sums()
    (i,) = b.op.axis
    outer, inner = s[b].split(i, factor=8)
    s[b].reorder(k, outer, inner)
    s[b].vectorize(inner)
    s.rfactor(b, k)
    assert [leaf.name for leaf in s[b].leaf_iter_vars] == ["k.v", "i.outer", "i.inner"]
    _sums(s, a, b, whole_numbers(11, 3))


@pytest.mark.search
def test_the_result_may_be_vectorized_where_the_reduction_could_not():
    s, a, b, k = row_sums()
    _, inner = s[b].split(k, factor=4)
    made = s.rfactor(b, inner, 1)
    s[made].reorder(made.op.axis[0], s[made].op.reduce_axis[0], made.op.axis[1])
    s[made].vectorize(made.op.axis[1])
    s[made].compute_at(s[b], b.op.axis[0])
    certify(s, [a, b], every_step=True).require()
    _sums(s, a, b, whole_numbers(3, 10))


@pytest.mark.llvm
@pytest.mark.parametrize("columns", [0, 3, 8, 13])
def test_machine_code(columns):
    s, a, b, k = row_sums()
    _, inner = s[b].split(k, factor=4)
    made = s.rfactor(b, inner, 1)
    s[made].compute_at(s[b], b.op.axis[0])
    values, out = whole_numbers(3, columns), np.full(3, 77, np.float32)
    refcomp.build(s, [a, b], target="llvm")(values, out)
    assert out.tolist() == values.sum(axis=1).tolist()


def test_hints_go_with_the_loops():
    s, a, b, k = row_sums()
    outer, inner = s[b].split(k, factor=4)
    s[b].pragma(outer, "auto_unroll_max_step", 4)
    s[b].pragma(inner, "unroll_explicit", 0)
    s[b].prefetch(a, outer, 2)
    made = s.rfactor(b, inner)
    fresh = s[made].stage
    assert [p.axis for p in fresh.loops.pragmas] == [outer, made.op.axis[0]]
    assert [p.axis for p in fresh.loops.prefetches] == [outer]
    assert not s[b].stage.loops.pragmas and not s[b].stage.loops.prefetches
    _sums(s, a, b, whole_numbers(3, 10))


def test_an_update_of_a_scan_is_factored_within_it():
    n, m, p = (refcomp.var(name) for name in "nmp")
    x, w = refcomp.placeholder((n, m, p), name="X"), refcomp.placeholder((p, m), name="W")
    k = refcomp.reduce_axis((0, p), "k")
    state = refcomp.placeholder((n, m), name="S")
    init = refcomp.compute((1, m), lambda t, i: w[0, i] + 1.0, name="init")
    update = refcomp.compute(
        (n, m), lambda t, i: refcomp.sum(state[t - 1, i] * x[t, i, k], axis=k), name="update"
    )
    scan = refcomp.scan(init, update, state, inputs=[x], name="scan")
    s = refcomp.create_schedule(scan.op)
    made = s.rfactor(update, k)
    assert isinstance(s[made].stage.placement, AttachPoint)
    values, weights = whole_numbers(4, 2, 3), whole_numbers(3, 2)
    out = np.zeros((4, 2), np.float32)
    interpret(refcomp.lower(s, [x, w, scan]), [values, weights, out])
    wanted = [weights[0] + 1]
    for t in range(1, 4):
        wanted.append(wanted[-1] * values[t].sum(axis=1))
    assert out.tolist() == np.array(wanted).tolist()


def test_steps_replay():
    s, a, b, k = row_sums()
    _, inner = s[b].split(k, factor=4)
    made = s.rfactor(b, inner, 1)
    s[made].compute_at(s[b], b.op.axis[0])
    s[made].split(s[made].op.reduce_axis[0], 2)
    again = refcomp.replay(s.outputs, s.steps)
    assert str(s.steps[1]) == "s[B].rfactor(k.inner, factor_axis=1)"
    assert _text(s, [a, b]) == _text(again, [a, b])


def test_only_reduction_loops_that_nothing_is_said_of():
    s, _, b, k = row_sums()
    (i,) = b.op.axis
    with pytest.raises(
        UserError, match=r"i of stage B(.|\n)*is not a reduction axis(.|\n)*use one of"
    ):
        s.rfactor(b, i)
    outer, inner = s[b].split(k, factor=4)
    with pytest.raises(UserError, match=r"k of stage B(.|\n)*split replaced it by k.outer"):
        s.rfactor(b, k)
    s[b].unroll(inner)
    with pytest.raises(UserError, match=r"it is unrolled already(.|\n)*rfactor first, then mark"):
        s.rfactor(b, inner)
    made = s.rfactor(b, outer)
    with pytest.raises(UserError, match="outer of stage B.rf(.|\n)*is not a reduction axis"):
        s.rfactor(made, made.op.axis[0])


def test_only_reductions():
    s, a, b, k = row_sums()
    with pytest.raises(UserError, match=r"factor the reduction of stage A(.|\n)*a placeholder"):
        s.rfactor(a, k)
    c = refcomp.compute((4,), lambda i: i * 2, name="C")
    s = refcomp.create_schedule(c.op)
    with pytest.raises(UserError, match=r"stage C(.|\n)*it has no reduction(.|\n)*such as sum"):
        s.rfactor(c, c.op.axis[0])
    with pytest.raises(UserError, match="B is not part of this schedule"):
        s.rfactor(b, k)


def test_before_others_are_attached():
    a = refcomp.placeholder((4, 8), name="A")
    t = refcomp.compute((4, 8), lambda i, j: a[i, j] * 2.0, name="T")
    k = refcomp.reduce_axis((0, 8), "k")
    b = refcomp.compute((4,), lambda i: refcomp.sum(t[i, k], axis=k), name="B")
    s = refcomp.create_schedule(b.op)
    s[t].compute_at(s[b], b.op.axis[0])
    with pytest.raises(UserError, match=r"stage T is computed at one of its loops(.|\n)*rfactor"):
        s.rfactor(b, k)
    s[t].compute_root()
    made = s.rfactor(b, k)
    s[t].compute_at(s[made], made.op.axis[1])
    certify(s, [a, b]).require()


def test_a_combiner_that_is_none_never_gets_here():
    a = refcomp.placeholder((4, 8), name="A")
    k = refcomp.reduce_axis((0, 8), "k")
    minus = refcomp.comm_reducer(lambda x, y: x - y, lambda t: refcomp.const(0, t), name="minus")
    with pytest.raises(UserError, match="the combiner f of reducer minus is not a reduction"):
        refcomp.compute((4,), lambda i: minus(a[i, k], axis=k), name="B")


def test_a_range_that_depended_on_a_factored_axis_may_be_constant():
    a = refcomp.placeholder((2, 2), name="A")

    def row(i):
        k = refcomp.reduce_axis((0, refcomp.minimum(i + 1, 2)), name="k")
        r = refcomp.reduce_axis((0, k), name="r")
        return refcomp.sum(a[k, r], axis=[k, r])

    c = refcomp.compute((3,), row, name="C")
    s = refcomp.create_schedule(c)
    outer, _ = s[c].split(c.op.reduce_axis[0], 2)
    made = s.rfactor(c, outer, 1)
    s[made].split(made.op.axis[0], 2)
    values, found = np.float32([[1, 2], [3, 4]]), np.full(3, 9, "float32")
    interpret(refcomp.lower(s, [a, c]), [values, found])
    assert found.tolist() == [0, 3, 3]
