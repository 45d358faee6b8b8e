"""Which thread stores what all compute; and conditions that would lose elements."""

import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError


def idle():
    """T is computed by the whole group in B's kernel, but shares nothing out to threadIdx.x."""
    a = rc.placeholder((16, 8), name="A")
    t = rc.compute((16, 8), lambda i, j: a[i, j] * 2.0, name="T")
    b = rc.compute((16, 8), lambda i, j: t[i, 7 - j], name="B")
    s = rc.create_schedule(b)
    i, j = b.op.axis
    s[b].bind(i, rc.thread_axis("blockIdx.x"))
    s[b].bind(j, rc.thread_axis("threadIdx.x"))
    s[t].set_scope("shared")
    s[t].compute_at(s[b], i)
    return a, t, b, s, rc.thread_axis("threadIdx.x"), rc.thread_axis("threadIdx.y")


@pytest.mark.parametrize("number", [0, 3])
def test_the_chosen_thread_stores(number):
    a, t, b, s, tx, _ = idle()
    s[t].set_store_predicate(tx.var == number)
    text = rc.print_func(rc.lower(s, [a, b]))
    assert f"if (threadIdx.x == {number})" in text
    assert rc.certify(s, [a, b]).holds


def test_several_thread_axes_may_be_chosen():
    _, t, _, s, tx, ty = idle()
    s[t].set_store_predicate(rc.all(tx.var == 0, ty.var == 1))
    assert s[t].stage.memory.store_predicate == {"threadIdx.x": 0, "threadIdx.y": 1}


@pytest.mark.parametrize(
    ("predicate", "why"),
    [
        (lambda tx: tx.var < 4, "threadIdx.x < 4 does not choose one thread"),
        (lambda tx: True, "True is not a condition"),
        (lambda tx: tx.var == -1, "thread -1 of threadIdx.x does not have the result"),
    ],
)
def test_other_conditions_are_refused(predicate, why):
    _, t, _, s, tx, _ = idle()
    with pytest.raises(UserError, match="cannot store stage T by such a predicate") as caught:
        s[t].set_store_predicate(predicate(tx))
    assert why in caught.value.why
    assert "tx.var == 0" in caught.value.remedy


def test_an_axis_that_is_shared_out_needs_all_its_threads():
    _, _, b, s, tx, _ = idle()
    with pytest.raises(UserError) as caught:
        s[b].set_store_predicate(tx.var == 0)
    assert "axis j is bound to threadIdx.x: each thread has other elements" in caught.value.why
