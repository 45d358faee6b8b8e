import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import IntImm
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import For
from tests.quotations import quoted


def _two_stages(n=64):
    a = refcomp.placeholder((n,), name="A")
    b = refcomp.compute((n,), lambda i: a[i] + 1.0, name="B")
    c = refcomp.compute((n,), lambda i: b[i] * 2.0, name="C")
    s = refcomp.create_schedule(c)
    outer, inner = s[c].split(c.op.axis[0], factor=8)
    return s, a, b, c, outer, inner


def _bound(n=64):
    s, a, b, c, outer, inner = _two_stages(n)
    s[c].bind(outer, refcomp.thread_axis("blockIdx.x"))
    s[c].bind(inner, refcomp.thread_axis("threadIdx.x"))
    s[b].compute_at(s[c], outer)
    return s, a, b, c


def _extents(func):
    """The extents of all loops by kind, in order."""
    loops = [node for node in walk(func.body) if isinstance(node, For)]
    return [(loop.kind, str(loop.extent)) for loop in loops]


def test_attached_stages_have_the_extents_of_their_region():
    s, a, b, c, outer, _ = _two_stages()
    s[b].compute_at(s[c], outer)
    x, y = s[b].split(b.op.axis[0], nparts=2)
    s[b].unroll(y)
    assert _extents(refcomp.lower(s, [a, c])) == [
        *(("serial", "8"), ("serial", "2"), ("unrolled", "4"), ("serial", "8"))
    ]
    assert x.extent.value == 2


def test_loops_of_a_kernel_that_are_bound_to_one_tag_are_one_loop():
    s, a, b, c = _bound()
    s[b].bind(b.op.axis[0], refcomp.thread_axis("threadIdx.x"))
    assert _extents(refcomp.lower(s, [a, c])) == [("blockIdx.x", "8"), ("threadIdx.x", "8")]


@pytest.mark.parametrize("n", [64, 61, refcomp.var("n")])
def test_symbolic_and_odd_extents_bind(n):
    s, a, b, c = _bound(n)
    s[b].bind(b.op.axis[0], refcomp.thread_axis("threadIdx.x"))
    extents = dict(_extents(refcomp.lower(s, [a, c])))
    assert set(extents) == {"blockIdx.x", "threadIdx.x"} and extents["threadIdx.x"] == "8"


def test_different_extents_of_one_thread_axis():
    s, a, b, c = _bound()
    x, y = s[b].split(b.op.axis[0], factor=4)
    s[b].bind(y, refcomp.thread_axis("threadIdx.x"))
    with pytest.raises(UserError) as caught:
        refcomp.lower(s, [a, c])
    message = str(caught.value)
    assert message.startswith(
        "axis i.inner of stage B has 4 iterations for threadIdx.x, but axis i.inner of stage C "
        f"has 8\n  --> {__file__}:"
    )
    assert quoted(caught.value, "bound here") == 's[b].bind(y, refcomp.thread_axis("threadIdx.x"))'
    assert caught.value.where == "stage B"
    assert "are run by the same threads" in message and "same factor" in message
    assert x.extent.value == 16


def test_the_range_of_a_thread_axis_is_kept_when_a_region_changes_the_loop():
    s, a, b, c = _bound()
    s[b].bind(b.op.axis[0], refcomp.thread_axis((0, 16), "threadIdx.x"))
    with pytest.raises(UserError, match=r"axis i of stage B has 8 it(.|\n)*the thread axis has 16"):
        refcomp.lower(s, [a, c])


def test_a_mark_that_does_not_fit_the_region():
    n = refcomp.var("n")
    s, a, b, c, outer, _ = _two_stages(n)
    k = refcomp.reduce_axis((0, n), "k")
    d = refcomp.compute((n,), lambda i: refcomp.sum(b[k] * c[i], axis=k), name="D")
    s = refcomp.create_schedule(d)
    s[c].compute_inline()
    s[b].compute_at(s[d], d.op.axis[0])
    s[b].unroll(b.op.axis[0])
    with pytest.raises(UserError, match=r"cannot unroll axis i of stage B(.|\n)*split it by a fac"):
        refcomp.lower(s, [a, d])
    assert outer is not None and isinstance(n, refcomp.ir.expr.Var)


def test_a_parallel_loop_in_a_kernel():
    s, a, b, c = _bound()
    s[b].parallel(b.op.axis[0])
    with pytest.raises(
        UserError, match=r"cannot parallelize axis i of stage B(.|\n)*bind the loop"
    ):
        refcomp.lower(s, [a, c])


def test_region_extents_are_constants_where_a_bound_is_known():
    s, a, _, c = _bound(refcomp.var("n"))
    func = refcomp.lower(s, [a, c])
    loops = [node for node in walk(func.body) if isinstance(node, For) and node.kind == "serial"]
    assert [loop.extent.value for loop in loops if isinstance(loop.extent, IntImm)] == [8]


def test_update_of_a_scan_computes_its_row_only():
    """Its memory, the scan's result, has no room for what a reader's split would visit beyond."""
    a, h, c = (refcomp.placeholder((4, 3), name=name) for name in ("A", "h", "c"))
    first = refcomp.placeholder((1, 3), name="F")
    one = refcomp.compute((4, 3), lambda t, i: h[t - 1, i] + a[t, i], name="U")
    two = refcomp.compute((4, 3), lambda t, i: c[t - 1, i] + one[t, i], name="V")
    rows = refcomp.scan([first, first], [one, two], [h, c], inputs=[a], name="S")
    s = refcomp.create_schedule(rows[0])
    copy = s.cache_read(one, "global", [two])
    s[two].split(two.op.axis[0], factor=2)
    s[copy].compute_at(s[two], two.op.axis[1])
    loops = walk(refcomp.lower(s, [first, a, *rows]).body)
    extents = {loop.origin.stage: str(loop.extent) for loop in loops
               if isinstance(loop, For) and loop.var.name == "t"}  # fmt: skip
    assert extents == {"U": "1"}
