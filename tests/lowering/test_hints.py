"""Memory as stages wish it; a tiled product that uses all wishes at once, on every judge."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.driver.pipeline import run_passes
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import IntImm
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Barrier
from refcomp.lowering.hints import aligned_shape


def product(n=32, virtual=2, threads=2, tile=8, step=4, is_doubled=True):
    """C = A B by groups of threads, each of them several virtual ones."""
    a, b = rc.placeholder((n, 16), name="A"), rc.placeholder((16, n), name="B")
    k = rc.reduce_axis((0, 16), name="k")
    c = rc.compute((n, n), lambda i, j: rc.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = rc.create_schedule(c)
    sums = s.cache_write(c, "local")
    copies = [s.cache_read(t, "shared", [sums]) for t in (a, b)]
    loops = []
    for axis, dim in zip(c.op.axis, "yx", strict=True):
        outer, rest = s[c].split(axis, factor=tile)
        vthread, rest = s[c].split(rest, nparts=virtual)
        thread, rest = s[c].split(rest, nparts=threads)
        s[c].bind(outer, rc.thread_axis(f"blockIdx.{dim}"))
        s[c].bind(vthread, rc.thread_axis((0, virtual), "vthread", name=f"v{dim}"))
        s[c].bind(thread, rc.thread_axis(f"threadIdx.{dim}"))
        loops.append((outer, vthread, thread, rest))
    s[c].reorder(*(loop for level in zip(*loops, strict=True) for loop in level))
    s[sums].compute_at(s[c], loops[1][2])
    outer, inner = s[sums].split(s[sums].op.reduce_axis[0], factor=step)
    s[sums].reorder(outer, inner, *s[sums].op.axis)
    for copy in copies:
        s[copy].compute_at(s[sums], outer)
        fused = s[copy].fuse(*s[copy].op.axis)
        y, rest = s[copy].split(fused, nparts=threads)
        x, _ = s[copy].split(rest, nparts=threads)
        s[copy].bind(y, rc.thread_axis("threadIdx.y"))
        s[copy].bind(x, rc.thread_axis("threadIdx.x"))
        s[copy].storage_align(s[copy].op.axis[0], 8, 1)
        if is_doubled:
            s[copy].double_buffer()
    return s, [a, b, c]


@pytest.mark.search
@pytest.mark.parametrize("n", [32, 20, "n"])
@pytest.mark.parametrize("is_doubled", [False, True])
def test_the_product_is_certified(n, is_doubled):
    s, args = product(rc.var("n") if n == "n" else n, is_doubled=is_doubled)
    certificate = rc.certify(s, args)
    assert certificate.holds, str(certificate)


@pytest.mark.search
@pytest.mark.parametrize(("is_doubled", "barriers"), [(False, 2), (True, 1)])
def test_a_double_buffer_saves_a_barrier(is_doubled, barriers):
    s, args = product(is_doubled=is_doubled)
    func = run_passes(rc.lower(s, args), "interp")
    if is_doubled:
        func = run_passes(rc.lower(s, args), "opencl")
    assert sum(isinstance(item, Barrier) for item in walk(func.body)) == barriers


@pytest.mark.pocl
@pytest.mark.parametrize("n", [32, 20])
def test_the_product_runs_on_a_device(n):
    s, args = product(n)
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((n, 16), (16, n)))
    there = [rc.nd.array(v, rc.opencl(0)) for v in (x, y, np.zeros((n, n), np.float32))]
    rc.build(s, args, "opencl")(*there)
    assert (there[2].asnumpy() == x @ y).all()


def test_virtual_threads_share_what_real_ones_share():
    s, args = product(is_doubled=False)
    text = rc.print_func(rc.lower(s, args))
    assert "for i.inner.outer in range(2) vthread" in text
    assert "alloc A.shared: f32[8, 9] shared" in text
    assert "alloc C.local: f32[2, 2] local" in text


@pytest.mark.llvm
def test_virtual_threads_of_a_host_have_memory_of_their_own():
    a = rc.placeholder((8, 4), name="A")
    k = rc.reduce_axis((0, 4), name="k")
    t = rc.compute((8,), lambda i: rc.sum(a[i, k], axis=k), name="T")
    b = rc.compute((8,), lambda i: t[i] * 2.0, name="B")
    s = rc.create_schedule(b)
    virtual, rest = s[b].split(b.op.axis[0], nparts=2)
    s[b].bind(virtual, rc.thread_axis("vthread"))
    s[t].compute_at(s[b], rest)
    x, y = np.arange(32, dtype=np.float32).reshape(8, 4), np.zeros(8, np.float32)
    rc.build(s, [a, b])(x, y)
    assert (y == 2 * x.sum(1)).all()
    assert rc.certify(s, [a, b], every_step=True).holds


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (lambda s, c, k: s[c].bind(k, rc.thread_axis("vthread")), "it is a reduction axis"),
        (
            lambda s, c, k: s[c].bind(c.op.axis[0], rc.thread_axis("vthread")),
            "the number of virtual threads is not a constant",
        ),
    ],
)
def test_loops_that_cannot_be_virtual_threads(act, why):
    n = rc.var("n")
    a, k = rc.placeholder((n, 4), name="A"), rc.reduce_axis((0, 4), name="k")
    c = rc.compute((n,), lambda i: rc.sum(a[i, k], axis=k), name="C")
    with pytest.raises(UserError) as caught:
        act(rc.create_schedule(c), c, k)
    assert why in caught.value.why


def test_shapes_without_wishes_stay():
    s, args = product()
    shape = (IntImm(3, I64), IntImm(4, I64))
    assert aligned_shape(s[args[2]].stage, shape) == shape


def test_groups_move_together():
    a = rc.placeholder((8, 8), name="A")
    t = rc.compute((8, 8), lambda i, j: a[i, j] + 1.0, name="T")
    u = rc.compute((8, 8), lambda i, j: t[i, j] * 2.0, name="U")
    b = rc.compute((8, 8), lambda i, j: u[i, j] - 1.0, name="B")
    s = rc.create_schedule(b)
    group = s.create_group(outputs=u, inputs=a)
    assert [stage.name for stage in group.stages] == ["T", "U"]
    group.compute_at(s[b], b.op.axis[0])
    text = rc.print_func(rc.lower(s, [a, b]))
    assert "alloc T: f32[1, 8]" in text
    assert "alloc U: f32[1, 8]" in text
    assert rc.certify(s.normalize(), [a, b]).holds
    group.compute_root()
    assert "alloc T: f32[8, 8]" in rc.print_func(rc.lower(s, [a, b]))
    with pytest.raises(UserError, match="the group has no stages"):
        s.create_group(outputs=t, inputs=u)


def test_a_prefetch_around_a_kernel_asks_for_what_its_first_thread_reads():
    a = rc.placeholder((8, 16), name="A")
    b = rc.compute((8, 16), lambda i, j: a[i, j] + 1.0, name="B")
    s = rc.create_schedule(b)
    i, j = b.op.axis
    s[b].bind(j, rc.thread_axis("threadIdx.x"))
    s[b].prefetch(a, i, 2)
    text = rc.print_func(rc.lower(s, [a, b]))
    assert "for i in range(8) {\n    prefetch A[i + 2, 0]" in text


def test_a_prefetch_knows_no_bound_that_is_read_later():
    begins = rc.placeholder((9,), "int64", name="begins")
    a = rc.placeholder((64,), name="A")

    def row(i):
        k = rc.reduce_axis((begins[i], begins[i + 1]), "k")
        return rc.sum(a[k], axis=k)

    c = rc.compute((8,), row, name="C")
    s = rc.create_schedule(c)
    s[c].prefetch(a, c.op.axis[0], 1)
    assert "prefetch" not in rc.print_func(rc.lower(s, [begins, a, c]))
    s[c].prefetch(a, c.op.reduce_axis[0], 2)
    assert "prefetch A[k + 2]" in rc.print_func(rc.lower(s, [begins, a, c]))
