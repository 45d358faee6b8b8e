"""Regions are tight: exactly a tile and its halo."""

import re

import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import IntImm
from refcomp.ir.printer import print_func
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Allocate, IfThenElse
from refcomp.oracle.lockstep.interpret import interpret
from tests.quotations import quoted


def _allocated(func):
    """The shapes of all workspaces by name: numbers where they are constants, else text."""
    return {
        node.buffer.name: tuple(
            dim.value if isinstance(dim, IntImm) else str(dim) for dim in node.buffer.shape
        )
        for node in walk(func.body)
        if isinstance(node, Allocate)
    }


def _pointwise(n, dtype="float32"):
    a = refcomp.placeholder((n,), dtype, name="A")
    b = refcomp.compute((n,), lambda i: a[i] + 1, name="B")
    return a, b


def _attached(b, c, factor, axis=0, at="outer"):
    s = refcomp.create_schedule(c)
    outer, inner = s[c].split(c.op.axis[axis], factor=factor)
    s[b].compute_at(s[c], outer if at == "outer" else inner)
    return s, outer, inner


@pytest.mark.parametrize("n", [64, 61, 3, 0])
def test_a_tile_and_its_halo(n):
    a, b = _pointwise(n + 2)
    c = refcomp.compute((n,), lambda i: b[i] + b[i + 1] * 2 + b[i + 2], name="C")
    s, *_ = _attached(b, c, 8)
    func = refcomp.lower(s, [a, c])
    assert _allocated(func) == {"B": (min(10, n + 2),)}
    values, out = np.arange(n + 2, dtype=np.float32), np.zeros(n, np.float32)
    interpret(func, [values, out])
    t = values + 1
    assert out.tolist() == (t[:n] + t[1 : n + 1] * 2 + t[2:]).tolist()


def test_a_symbolic_extent_leaves_a_tile_constant():
    n = refcomp.var("n")
    a, b = _pointwise(n + 2)
    c = refcomp.compute((n,), lambda i: b[i] + b[i + 1] * 2 + b[i + 2], name="C")
    s, *_ = _attached(b, c, 8)
    assert _allocated(refcomp.lower(s, [a, n, c])) == {"B": (10,)}
    s[b].compute_at(s[c], s[c].leaf_iter_vars[1])
    assert _allocated(refcomp.lower(s, [a, n, c])) == {"B": (3,)}


@pytest.mark.parametrize(("n", "guarded"), [(64, False), (60, True)])
def test_stores_are_guarded_only_where_a_region_may_lie_beyond_its_tensor(n, guarded):
    a, b = _pointwise(n)
    c = refcomp.compute((n,), lambda i: b[i] * 2, name="C")
    s, *_ = _attached(b, c, 8)
    func = refcomp.lower(s, [a, c])
    assert _allocated(func) == {"B": (8,)}
    assert any(isinstance(node, IfThenElse) for node in walk(func.body)) == guarded


def test_edges_that_are_clamped():
    a, b = _pointwise(20)
    edge = lambda i: refcomp.minimum(refcomp.maximum(i, 0), 19)  # noqa: E731
    c = refcomp.compute((20,), lambda i: b[edge(i - 1)] + b[edge(i + 1)], name="C")
    s, *_ = _attached(b, c, 4)
    assert _allocated(refcomp.lower(s, [a, c])) == {"B": (6,)}


N, M = refcomp.var("n"), refcomp.var("m")
_BEHIND_UNKNOWN_SIGNS = {
    "remainder": lambda i: i % (N - 2),
    "remainder of a difference": lambda i: (i - M) % N,
    "quotient": lambda i: i // (N - M),
    "half of a remainder": lambda i: refcomp.floordiv((i - M) % N, 4096),
    "clamped remainder": lambda i: refcomp.minimum(refcomp.maximum((i - M) % N, 0), N - 1),
}


@pytest.mark.search
@pytest.mark.parametrize("index", _BEHIND_UNKNOWN_SIGNS.values(), ids=_BEHIND_UNKNOWN_SIGNS)
@pytest.mark.parametrize("extent", [N, N - 2, N // 2, N + M], ids=str)
def test_limits_of_i64_are_not_taken_for_the_extent_of_a_region(index, extent):
    a, b = _pointwise(extent)
    c = refcomp.compute((N,), lambda i: b[index(i)] + b[0], name="C")
    s = refcomp.create_schedule(c)
    s[b].compute_at(s[c], c.op.axis[0])
    s[b].split(b.op.axis[0], factor=8)
    func = refcomp.lower(s, [a, N, M, c])
    assert _allocated(func) == {"B": (str(extent),)}
    text = print_func(func)
    assert not re.search(r"\d{8}", text), text


def test_limits_of_i64_are_not_taken_for_what_a_factored_reduction_reads():
    a, b = _pointwise((N - M) % N)
    k = refcomp.reduce_axis((0, N), "k")
    c = refcomp.compute((4,), lambda i: refcomp.sum(b[i + k] + b[0], axis=k), name="C")
    s = refcomp.create_schedule(c)
    _, inner = s[c].split(k, factor=4)
    factored = s.rfactor(c, inner)
    s[factored].compute_at(s[c], c.op.axis[0])
    s[b].compute_at(s[factored], s[factored].leaf_iter_vars[-1])
    copy = s.cache_read(a, "global", [b])
    s[copy].compute_at(s[factored], s[factored].leaf_iter_vars[0])
    s[b].split(b.op.axis[0], factor=8)
    text = print_func(refcomp.lower(s, [a, N, M, c]))
    assert "alloc A.global: f32[max((truncmod(n - m, n) + 7) // 8 * 8, 0)]" in text
    assert not re.search(r"\d{8}", text), text


def test_local_memory_that_only_i64_bounds_is_refused():
    a, b = _pointwise(N)
    c = refcomp.compute((N,), lambda i: b[(i - M) % N] + b[0], name="C")
    s = refcomp.create_schedule(c)
    s[b].compute_at(s[c], c.op.axis[0])
    s[b].set_scope("local")
    with pytest.raises(UserError, match="local memory of unknown size: dimension 0 of B is n "):
        refcomp.lower(s, [a, N, M, c])


def test_padding_inside_of_a_choice():
    a, b = _pointwise(20)
    inside = lambda i: refcomp.all(i >= 1, i < 21)  # noqa: E731
    c = refcomp.compute((22,), lambda i: refcomp.if_then_else(inside(i), b[i - 1], 0), name="C")
    s, *_ = _attached(b, c, 4)
    func = refcomp.lower(s, [a, c])
    assert _allocated(func) == {"B": (4,)}
    out = np.zeros(22, np.float32)
    interpret(func, [np.arange(20, dtype=np.float32), out])
    assert out.tolist() == [0, *range(1, 21), 0]


def test_strides_fusions_and_transposes():
    a = refcomp.placeholder((16, 24), name="A")
    b = refcomp.compute((16, 24), lambda i, j: a[i, j] + 1.0, name="B")
    c = refcomp.compute((12, 8), lambda i, j: b[j * 2, i * 2 + 1], name="C")
    s = refcomp.create_schedule(c)
    x, y, *_ = s[c].tile(*c.op.axis, 3, 4)
    s[b].compute_at(s[c], y)
    assert _allocated(refcomp.lower(s, [a, c])) == {"B": (7, 5)}
    d = refcomp.compute((16, 24), lambda i, j: b[i, j] * 2.0, name="D")
    s = refcomp.create_schedule(d)
    outer, _ = s[d].split(s[d].fuse(*d.op.axis), factor=8)
    s[b].compute_at(s[d], outer)
    assert _allocated(refcomp.lower(s, [a, d])) == {"B": (1, 8)}
    assert x.extent.value == 4


def test_two_readers_and_a_chain():
    a, b = _pointwise(64)
    c = refcomp.compute((62,), lambda i: b[i] + b[i + 2], name="C")
    d = refcomp.compute((60,), lambda i: c[i] + c[i + 2] + b[i + 3], name="D")
    s, outer, inner = _attached(c, d, 4)
    s[b].compute_at(s[d], outer)
    assert _allocated(refcomp.lower(s, [a, d])) == {"B": (8,), "C": (6,)}
    s[b].compute_at(s[d], outer)
    s[c].compute_at(s[d], inner)
    assert _allocated(refcomp.lower(s, [a, d])) == {"B": (8,), "C": (3,)}


def test_a_guest_of_a_guest_needs_what_its_host_needs():
    a, b = _pointwise(64)
    c = refcomp.compute((62,), lambda i: b[i] + b[i + 2], name="C")
    d = refcomp.compute((60,), lambda i: c[i] + c[i + 2], name="D")
    s, *_ = _attached(c, d, 4)
    s[b].compute_at(s[c], c.op.axis[0])
    assert _allocated(refcomp.lower(s, [a, d])) == {"C": (6,), "B": (3,)}


def test_through_an_inlined_stage():
    a, b = _pointwise(64)
    c = refcomp.compute((62,), lambda i: b[i] + b[i + 2], name="C")
    d = refcomp.compute((62,), lambda i: c[i] * 2, name="D")
    s = refcomp.create_schedule(d)
    s[c].compute_inline()
    outer, _ = s[d].split(d.op.axis[0], factor=4)
    s[b].compute_at(s[d], outer)
    assert _allocated(refcomp.lower(s, [a, d])) == {"B": (6,)}


def test_what_is_read_at_an_index_from_memory_is_needed_as_a_whole():
    a, b = _pointwise(20)
    index = refcomp.placeholder((8,), "int64", name="I")
    c = refcomp.compute((8,), lambda i: b[index[i]], name="C")
    s, *_ = _attached(b, c, 4)
    assert _allocated(refcomp.lower(s, [a, index, c])) == {"B": (20,)}


def test_all_of_a_symbolic_row_is_symbolic():
    n, m = refcomp.var("n"), refcomp.var("m")
    a = refcomp.placeholder((n, m), name="A")
    b = refcomp.compute((n, m), lambda i, j: a[i, j] + 1, name="B")
    c = refcomp.compute((n, m), lambda i, j: b[i, m - 1 - j], name="C")
    s = refcomp.create_schedule(c)
    s[b].compute_at(s[c], c.op.axis[0])
    assert _allocated(refcomp.lower(s, [a, c])) == {"B": (1, "m")}


def test_an_extent_that_changes_with_the_loop_around_is_taken_as_a_whole():
    n = refcomp.var("n")
    a, b = _pointwise(n)
    k = refcomp.reduce_axis((0, n), "k")
    c = refcomp.compute((n,), lambda i: refcomp.sum(b[k * i // n], axis=k), name="C")
    s = refcomp.create_schedule(c)
    s[b].compute_at(s[c], c.op.axis[0])
    assert _allocated(refcomp.lower(s, [a, c])) == {"B": ("n",)}


def _gemm(n, m, p, tile, step):
    a, b = refcomp.placeholder((n, p), name="A"), refcomp.placeholder((p, m), name="B")
    k = refcomp.reduce_axis((0, p), "k")
    c = refcomp.compute((n, m), lambda i, j: refcomp.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = refcomp.create_schedule(c)
    local = s.cache_write(c, "local")
    copies = [s.cache_read(x, "shared", [local]) for x in (a, b)]
    y, x, yi, xi = s[c].tile(*c.op.axis, tile, tile)
    ty, yi = s[c].split(yi, nparts=4)
    tx, xi = s[c].split(xi, nparts=4)
    s[c].reorder(y, x, ty, tx, yi, xi)
    for loop, tag in (
        (y, "blockIdx.y"),
        (x, "blockIdx.x"),
        (ty, "threadIdx.y"),
        (tx, "threadIdx.x"),
    ):
        s[c].bind(loop, refcomp.thread_axis(tag))
    s[local].compute_at(s[c], tx)
    outer, inner = s[local].split(k, factor=step)
    s[local].reorder(outer, inner, *s[local].op.axis)
    for copy in copies:
        s[copy].compute_at(s[local], outer)
    return s, [a, b, c], outer


@pytest.mark.parametrize("sizes", [(32, 32, 32), (33, 30, 7), None])
def test_shared_memory_holds_a_tile_of_the_group_and_local_memory_one_of_the_thread(sizes):
    n, m, p = sizes or (refcomp.var(name) for name in "nmp")
    s, args, _ = _gemm(n, m, p, 16, 8)
    assert _allocated(refcomp.lower(s, args)) == {
        "C.local": (4, 4),
        "A.shared": (16, min(8, p if sizes else 8)),
        "B.shared": (min(8, p if sizes else 8), 16),
    }


def test_threads_run_for_shared_memory_and_stand_still_for_local_memory():
    a, b = _pointwise(64)
    c = refcomp.compute((64,), lambda i: b[i] * 2, name="C")
    s, outer, inner = _attached(b, c, 8)
    s[c].bind(outer, refcomp.thread_axis("blockIdx.x"))
    s[c].bind(inner, refcomp.thread_axis("threadIdx.x"))
    for loop, scope, extent in (
        *((outer, "shared", 8), (inner, "shared", 8)),
        *((outer, "local", 1), (inner, "local", 1)),
    ):
        s[b].compute_at(s[c], loop)
        s[b].set_scope(scope)
        assert _allocated(refcomp.lower(s, [a, c])) == {"B": (extent,)}, (loop, scope)


@pytest.mark.parametrize("shape", [(4, 5), (4, 300)])
def test_a_kernel_before_computes_what_all_threads_of_the_next_one_copy(shape):
    """The copy is computed around the loop of the threads, and its place is that of a thread."""
    a = refcomp.placeholder(shape, "int32", name="A")
    t = refcomp.compute(shape, lambda i, j: a[i, j] + 1, name="T")
    c = refcomp.compute(shape, lambda i, j: t[i, j] * 2, name="C")
    s = refcomp.create_schedule(c)
    copy = s.cache_read(t, "local", [c])
    for tensor, factor in ((c, 8), (t, 4)):
        block, thread = s[tensor].split(tensor.op.axis[1], factor=factor)
        s[tensor].bind(block, refcomp.thread_axis("blockIdx.x"))
        s[tensor].bind(thread, refcomp.thread_axis("threadIdx.x"))
        if tensor is c:
            s[copy].compute_at(s[c], block)
    s[t].compute_at(s[c], c.op.axis[0])
    func = refcomp.lower(s, [a, c])
    assert _allocated(func) == {"T": (1, shape[1]), "T.local": (1, 1)}
    values, out = np.arange(np.prod(shape), dtype=np.int32).reshape(shape), np.zeros(shape, "i4")
    interpret(func, [values, out])
    assert (out == (values + 1) * 2).all()


def test_shared_memory_of_unknown_size_names_the_loop_to_split():
    n = refcomp.var("n")
    a, b = _pointwise(n)
    k = refcomp.reduce_axis((0, n), "k")
    c = refcomp.compute((n,), lambda i: refcomp.sum(b[k] * a[i], axis=k), name="C")
    s = refcomp.create_schedule(c)
    s[c].bind(c.op.axis[0], refcomp.thread_axis("blockIdx.x"))
    s[b].compute_at(s[c], c.op.axis[0])
    with pytest.raises(UserError) as caught:
        refcomp.lower(s, [a, c])
    message = str(caught.value)
    assert message.startswith(
        f"shared memory of unknown size: dimension 0 of B is n elements long\n  --> {__file__}:"
    )
    assert quoted(caught.value, "stage B is attached here") == "s[b].compute_at(s[c], c.op.axis[0])"
    assert caught.value.where == "stage B, computed at axis i of stage C"
    assert message.endswith(
        "  why: shared memory is laid out before the program runs\n"
        "  what to do: split axis k of stage C by a factor, and compute B inside the outer of "
        "both loops"
    )
    outer, _ = s[c].split(k, factor=16)
    s[b].compute_at(s[c], outer)
    assert _allocated(refcomp.lower(s, [a, c])) == {"B": (16,)}


@pytest.mark.parametrize("how", ["factor", "nparts", "fused"])
@pytest.mark.parametrize("loop", [0, 1])
def test_an_axis_of_one_value_needs_that_value_however_it_is_split(how, loop):
    """What iterations beyond would need is needed by nobody, not even by copies inside."""
    a = refcomp.placeholder((8, 3), name="A")
    b = refcomp.compute((8, 3), lambda i, j: a[i, j] + 1.0, name="B")
    c = refcomp.compute((8, 3), lambda i, j: b[i, j] * 2.0, name="C")
    d = refcomp.compute((8, 3), lambda i, j: c[i, j] - 1.0, name="D")
    s = refcomp.create_schedule(d)
    copy = s.cache_read(b, "global", [c])
    for tensor in (b, c):
        s[tensor].compute_at(s[d], d.op.axis[0])
    if how == "fused":
        s[c].split(s[c].fuse(*c.op.axis), factor=2)
    else:
        s[c].split(c.op.axis[0], **{how: 2})
    s[copy].compute_at(s[c], s[c].leaf_iter_vars[loop])
    func = refcomp.lower(s, [a, d])
    assert _allocated(func)["B"] == (1, 3)
    assert _allocated(func)["B.global"][0] == 1
    values, out = np.arange(24, dtype=np.float32).reshape(8, 3), np.zeros((8, 3), np.float32)
    interpret(func, [values, out])
    assert (out == (values + 1) * 2 - 1).all()
