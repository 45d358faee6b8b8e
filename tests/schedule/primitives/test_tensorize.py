import re

import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.schedule.schedule import replay
from tests.quotations import quoted, quoted_call
from tests.strategies.tensor_intrins import block_product, blocked, product


def _tiled(n=16, m=16, depth=16, dtype="float32", order="yxkYXK"):
    _, _, c, k = product(n, m, depth, dtype)
    s = refcomp.create_schedule(c)
    y, x, yi, xi = s[c].tile(*c.op.axis, 8, 8)
    ko, ki = s[c].split(k, 8)
    loops = dict(zip("yxYXkK", (y, x, yi, xi, ko, ki), strict=True))
    s[c].reorder(*(loops[name] for name in order))
    return s, c, loops


def test_it_is_recorded_and_replayed():
    _, _, c, k = product(16, 16, 16)
    intrin = block_product(8, 8, 8)
    s = blocked(c, k, 8, 8, 8, intrin)
    assert str(s.steps[-1]) == "s[C].tensorize(i.inner, tensor intrinsic gemm)"
    again = replay(s.outputs, s.steps)[c].stage
    assert again.loops.tensorized.intrin is intrin and again.loops.tensorized.axis.name == "i.inner"
    assert again.loops.marks[again.loops.tensorized.axis] == "tensorized"
    assert again.loops.tensorized.line == s.steps[-1].line


def test_the_loop_is_marked():
    s, c, loops = _tiled()
    s[c].tensorize(loops["Y"], block_product(8, 8, 8))
    with pytest.raises(UserError, match="it is tensorized already"):
        s[c].vectorize(loops["Y"])
    with pytest.raises(UserError, match="it is tensorized already"):
        s[c].split(loops["Y"], 2)
    with pytest.raises(
        UserError, match=r"axis i\.inner of this stage is tensorized already"
    ) as caught:
        s[c].tensorize(loops["k"], block_product(8, 8, 8))
    first = 's[c].tensorize(loops["Y"], block_product(8, 8, 8))'
    assert quoted(caught.value, "tensorized here") == first


@pytest.mark.parametrize(
    ("axis", "prepare", "intrin", "message"),
    [
        ("Y", None, "gemm", "'gemm' is not a tensor intrinsic"),
        ("Y", None, block_product(8, 8, 8, "float64"), "computes f32, and tensor intrinsic gemm"),
        ("Y", "vectorize", block_product(8, 8, 8), "axis j.inner inside it is vectorized, but the"),
        ("Y", "bind", block_product(8, 8, 8), "axis j.inner inside it is bound to threadIdx.x"),
        ("Y", None, block_product(8, 8, 4), "8 x 8 x 8 = 512 iterations, and tensor intrinsic"),
        ("X", None, block_product(8, 8, 8), "inwards have 8 x 8 = 64 iterations"),
        ("K", None, block_product(2, 2, 1), "inwards have 8 iterations, and tensor intrinsic gemm"),
    ],
)
def test_what_can_be_known_is_refused_at_once(axis, prepare, intrin, message):
    s, c, loops = _tiled()
    if prepare == "vectorize":
        s[c].vectorize(loops["X"])
    if prepare == "bind":
        s[c].bind(loops["X"], refcomp.thread_axis("threadIdx.x"))
    with pytest.raises(UserError, match=re.escape(message)) as refused:
        s[c].tensorize(loops[axis], intrin)
    assert quoted_call(refused.value) == "s[c].tensorize(loops[axis], intrin)"
    assert refused.value.remedy
    assert s.steps[-1].primitive != "tensorize" and s[c].stage.loops.tensorized is None


def test_only_a_loop_is_tensorized():
    s, c, _ = _tiled()
    with pytest.raises(UserError, match=r"tile replaced it by i.outer\n") as caught:
        s[c].tensorize(c.op.axis[0], block_product(8, 8, 8))
    assert ".tile(" in quoted(caught.value, "tiled here")


def test_a_bound_loop_is_no_block():
    s, c, loops = _tiled()
    s[c].bind(loops["Y"], refcomp.thread_axis("threadIdx.x"))
    with pytest.raises(UserError, match="it is bound to threadIdx.x already"):
        s[c].tensorize(loops["Y"], block_product(8, 8, 8))


def test_the_extents_inside_are_constants():
    s, c, loops = _tiled(refcomp.var("n"), 16, 16, order="xkYXKy")
    with pytest.raises(UserError, match=re.escape("axis i.outer has (n + 7) // 8 iterations")):
        s[c].tensorize(loops["Y"], block_product(8, 8, 8))


def test_nothing_is_computed_inside():
    a = refcomp.placeholder((16, 8), name="A")
    b = refcomp.compute((16, 8), lambda i, j: a[i, j] * 2.0, name="B")
    c = refcomp.compute((16, 8), lambda i, j: b[i, j] + 1.0, name="C")
    d = refcomp.compute((8,), lambda j: refcomp.placeholder((8,), name="x")[j] + 1.0, name="d")
    intrin = refcomp.decl_tensor_intrin(d, lambda ins, outs: outs[0].vstore(0, ins[0][0] + 1.0))
    s = refcomp.create_schedule(c)
    s[b].compute_at(s[c], c.op.axis[1])
    with pytest.raises(UserError, match="stage B is computed at axis j\n") as refused:
        s[c].tensorize(c.op.axis[1], intrin)
    assert refused.value.remedy == "compute B at a loop outside of j"


def test_a_reduction_is_no_plain_compute():
    a = refcomp.placeholder((16, 8), name="A")
    c = refcomp.compute((16, 8), lambda i, j: a[i, j] + 1.0, name="C")
    s = refcomp.create_schedule(c)
    with pytest.raises(
        UserError, match="tensor intrinsic gemm is a reduction, and the stage is not"
    ):
        s[c].tensorize(c.op.axis[1], block_product(1, 8, 1))


def test_operations_without_such_loops_have_none():
    a = refcomp.placeholder((16,), name="A")
    b = refcomp.extern((16,), [a], lambda i, o: refcomp.call_packed("f", i[0], o[0]), name="B")
    s = refcomp.create_schedule(b)
    with pytest.raises(UserError, match="it is opaque"):
        s[b].tensorize(b.op.axis[0], block_product(1, 8, 1))
