import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.oracle.lockstep.interpret import interpret


def _row_sums():
    a = refcomp.placeholder((4, 8), name="A")
    k = refcomp.reduce_axis((0, 8), "k")
    b = refcomp.compute((4,), lambda i: refcomp.sum(a[i, k], axis=k), name="B")
    return refcomp.create_schedule(b.op), a, b, k


def test_the_computation_moves_and_its_reduction_axes_with_it():
    s, a, b, k = _row_sums()
    (i,) = b.op.axis
    made = s.cache_write(b, "local")
    assert [stage.name for stage in s.stages] == ["A", "B.local", "B"]
    assert s[made].op.reduce_axis == (k,) and [x.name for x in s[made].op.axis] == ["i.c"]
    assert s[b].op.axis == (i,) and s[b].op.reduce_axis == () and s[b].op.inputs == (made,)
    assert s[b].leaf_iter_vars == (i,) and s[made].op.inputs == (a,)


def test_the_result_stays_the_same():
    s, a, b, _ = _row_sums()
    s.cache_write(b, "global")
    out = np.zeros(4, np.float32)
    values = np.arange(32, dtype=np.float32).reshape(4, 8)
    interpret(refcomp.lower(s, [a, b]), [values, out])
    assert out.tolist() == values.sum(axis=1).tolist()


def test_all_outputs_of_an_operation_move_together():
    a = refcomp.placeholder((4,), name="A")
    p, q = refcomp.compute((4,), lambda i: (a[i] + 1.0, a[i] * 2.0), name="P")
    s = refcomp.create_schedule(p.op)
    with pytest.raises(UserError, match=r"computes P, P.v1 together(.|\n)*pass \[P, P.v1\]"):
        s.cache_write(p, "local")
    made = s.cache_write([p, q], "local")
    assert [tensor.name for tensor in made] == ["P.local", "P.local.v1"]
    assert s[q].op.inputs == tuple(made)


def test_only_what_is_computed():
    s, a, _, _ = _row_sums()
    with pytest.raises(UserError, match=r"it is a placeholder(.|\n)*cache_read"):
        s.cache_write(a, "local")
    with pytest.raises(UserError, match="cache_write is given no tensor"):
        s.cache_write([], "local")


@pytest.mark.parametrize("change", ["split", "reorder", "unroll"])
def test_before_loops_are_changed(change):
    s, _, b, k = _row_sums()
    args = {"split": (k, 2), "reorder": (k, b.op.axis[0]), "unroll": (k,)}[change]
    getattr(s[b], change)(*args)
    with pytest.raises(UserError, match=r"loops have been changed(.|\n)*call cache_write first"):
        s.cache_write(b, "local")


def test_before_others_are_attached_and_never_inlined():
    a = refcomp.placeholder((4,), name="A")
    b = refcomp.compute((4,), lambda i: a[i] + 1.0, name="B")
    c = refcomp.compute((4,), lambda i: b[i] + 1.0, name="C")
    d = refcomp.compute((4,), lambda i: c[i] + 1.0, name="D")
    s = refcomp.create_schedule(d)
    s[b].compute_at(s[c], c.op.axis[0])
    with pytest.raises(UserError, match="stage B is computed at one of its loops"):
        s.cache_write(c, "local")
    s[b].compute_root()
    s[c].compute_inline()
    with pytest.raises(UserError, match="it is inlined and has no loops"):
        s.cache_write(c, "local")


def test_a_step_replays():
    s, a, b, k = _row_sums()
    made = s.cache_write(b, "local")
    s[made].split(k, factor=4)
    s[made].compute_at(s[b], b.op.axis[0])
    again = refcomp.replay(s.outputs, s.steps)
    assert str(s.steps[0]) == "s[B].cache_write(local)"
    texts = [refcomp.print_func(refcomp.lower(one, [a, b])) for one in (s, again)]
    assert texts[0] == texts[1]
