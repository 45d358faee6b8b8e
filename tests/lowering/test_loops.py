"""Kernels, attached stages and guards, as lowering arranges them."""

import numpy as np
import pytest

import refcomp
from refcomp.ir.rewrite import variables_in, walk
from refcomp.ir.stmt import Allocate, Block, BufferStore, For, IfThenElse
from refcomp.ir.verify import verify
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes.insert_barriers import insert_barriers


def _axis(tag):
    return refcomp.thread_axis(tag)


def _check(func, arrays, wanted):
    """The function is legal and, with barriers, gives `wanted` as its last argument."""
    verify(func, "nested")
    with_barriers = insert_barriers(func)
    verify(with_barriers, "nested")
    interpret(with_barriers, arrays)
    assert np.array_equal(arrays[-1], wanted)


def _integers(*shape):
    return np.random.default_rng(7).integers(0, 4, shape).astype(np.float32)


def _gemm(n, m, p, fetch=True):
    a, b = refcomp.placeholder((n, p), name="A"), refcomp.placeholder((p, m), name="B")
    k = refcomp.reduce_axis((0, p), "k")
    c = refcomp.compute((n, m), lambda i, j: refcomp.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = refcomp.create_schedule(c)
    local = s.cache_write(c, "local")
    copies = [s.cache_read(x, "shared", [local]) for x in (a, b)]
    y, x, yi, xi = s[c].tile(*c.op.axis, 8, 8)
    ty, yi = s[c].split(yi, nparts=4)
    tx, xi = s[c].split(xi, nparts=4)
    s[c].reorder(y, x, ty, tx, yi, xi)
    bound = {y: "blockIdx.y", x: "blockIdx.x", ty: "threadIdx.y", tx: "threadIdx.x"}
    for loop, tag in bound.items():
        s[c].bind(loop, _axis(tag))
    s[local].compute_at(s[c], tx)
    outer, inner = s[local].split(k, factor=4)
    s[local].reorder(outer, inner, *s[local].op.axis)
    for copy in copies:
        s[copy].compute_at(s[local], outer)
        if fetch:
            rest, t = s[copy].split(s[copy].fuse(*s[copy].op.axis), factor=4)
            s[copy].bind(t, _axis("threadIdx.x"))
            _, t = s[copy].split(rest, factor=4)
            s[copy].bind(t, _axis("threadIdx.y"))
    return s, [a, b, c]


@pytest.mark.search
@pytest.mark.parametrize(
    ("name", "shape", "sizes"),
    [
        ("even", (16, 16, 8), (16, 16, 8)),
        ("odd", (13, 9, 7), (13, 9, 7)),
        ("symbolic", tuple(map(refcomp.var, "nmp")), (11, 17, 6)),
    ],
)
def test_a_tiled_matrix_product(name, shape, sizes, golden):
    s, args = _gemm(*shape)
    func = refcomp.lower(s, args)
    golden(f"lowering/gemm_{name}.txt", refcomp.print_func(func))
    n, m, p = sizes
    a, b = _integers(n, p), _integers(p, m)
    _check(func, [a, b, np.full((n, m), 77, np.float32)], a @ b)


@pytest.mark.search
@pytest.mark.parametrize("sizes", [(0, 5, 3), (1, 1, 1), (8, 8, 0)])
def test_a_matrix_product_of_nothing_and_of_little(sizes):
    n, m, p = sizes
    s, args = _gemm(*map(refcomp.var, "nmp"))
    a, b = _integers(n, p), _integers(p, m)
    _check(refcomp.lower(s, args), [a, b, np.full((n, m), 77, np.float32)], a @ b)


def test_what_no_thread_shares_is_left_to_the_first_of_them():
    s, args = _gemm(8, 8, 4, fetch=False)
    func = refcomp.lower(s, args)
    stores = _guards_of_stores(func)
    idle = {"threadIdx.x", "threadIdx.y"}
    assert stores["A.shared"] == stores["B.shared"] == idle
    assert not stores["C"] and not stores["C.local"]
    a, b = _integers(8, 4), _integers(4, 8)
    _check(func, [a, b, np.zeros((8, 8), np.float32)], a @ b)


def _guards_of_stores(func):
    """The variables of all conditions around the stores to each buffer."""
    found = {}

    def visit(stmt, conditions):
        if isinstance(stmt, BufferStore):
            names = {v.name for c in conditions for v in variables_in(c)}
            found[stmt.buffer.name] = names
        elif isinstance(stmt, IfThenElse):
            visit(stmt.then_case, [*conditions, stmt.condition])
        elif isinstance(stmt, Block):
            for part in stmt.stmts:
                visit(part, conditions)
        else:
            visit(stmt.body, conditions)

    visit(func.body, [])
    return found


def _blur(n, m):
    a = refcomp.placeholder((n + 2, m), name="A")
    b = refcomp.compute((n + 2, m), lambda i, j: a[i, j] * 2.0, name="B")
    c = refcomp.compute((n, m), lambda i, j: b[i, j] + b[i + 1, j] + b[i + 2, j], name="C")
    s = refcomp.create_schedule(c)
    return s, a, b, c


def test_a_stencil_with_its_halo_in_shared_memory(golden):
    n, m = refcomp.var("n"), refcomp.var("m")
    s, a, b, c = _blur(n, m)
    y, x, ty, tx = s[c].tile(*c.op.axis, 4, 8)
    for loop, tag in (
        (y, "blockIdx.y"),
        (x, "blockIdx.x"),
        (ty, "threadIdx.y"),
        (tx, "threadIdx.x"),
    ):
        s[c].bind(loop, _axis(tag))
    s[b].compute_at(s[c], x)
    rest, t = s[b].split(b.op.axis[0], factor=4)
    s[b].bind(t, _axis("threadIdx.y"))
    s[b].bind(b.op.axis[1], _axis("threadIdx.x"))
    func = refcomp.lower(s, [a, n, c])
    golden("lowering/stencil_shared.txt", refcomp.print_func(func))
    values = _integers(9, 11)
    wanted = 2 * (values[:7] + values[1:8] + values[2:])
    _check(func, [values, 7, np.zeros((7, 11), np.float32)], wanted)
    assert rest.name == "i.outer"


def test_a_stencil_on_the_host_in_parallel(golden):
    s, a, b, c = _blur(13, 8)
    y, yi = s[c].split(c.op.axis[0], factor=4)
    s[c].parallel(y)
    s[b].compute_at(s[c], y)
    s[b].vectorize(b.op.axis[1])
    s[c].vectorize(c.op.axis[1])
    func = refcomp.lower(s, [a, c])
    golden("lowering/stencil_host.txt", refcomp.print_func(func))
    values = _integers(15, 8)
    wanted = 2 * (values[:13] + values[1:14] + values[2:])
    _check(func, [values, np.zeros((13, 8), np.float32)], wanted)
    assert yi.extent.value == 4


def test_loops_outside_the_first_bound_one_are_the_hosts():
    s, a, b, c = _blur(6, 8)
    i, j = c.op.axis
    s[c].bind(j, _axis("threadIdx.x"))
    s[b].compute_at(s[c], i)
    s[b].bind(b.op.axis[1], _axis("threadIdx.x"))
    func = refcomp.lower(s, [a, c])
    (host,) = [func.body]
    assert isinstance(host, For) and host.kind == "serial" and isinstance(host.body, Allocate)
    rows, last = host.body.body.stmts  # a kernel for each row of B, and one for the row of C
    assert [rows.kind, rows.body.kind, last.kind] == ["serial", "threadIdx.x", "threadIdx.x"]
    assert host.body.buffer.scope == "global"
    values = _integers(8, 8)
    _check(
        func, [values, np.zeros((6, 8), np.float32)], 2 * (values[:6] + values[1:7] + values[2:])
    )


def test_bound_loops_stand_in_one_order_however_they_are_scheduled():
    s, a, b, c = _blur(6, 8)
    s[b].compute_inline()
    i, j = c.op.axis
    s[c].bind(i, _axis("threadIdx.y"))
    s[c].bind(j, _axis("blockIdx.x"))
    func = refcomp.lower(s, [a, c])
    assert [n.kind for n in walk(func.body) if isinstance(n, For)] == ["blockIdx.x", "threadIdx.y"]


def test_an_attached_reduction_is_initialised_where_it_is_computed():
    a = refcomp.placeholder((10, 5), name="A")
    k = refcomp.reduce_axis((0, 5), "k")
    b = refcomp.compute((10,), lambda i: refcomp.sum(a[i, k], axis=k), name="B")
    c = refcomp.compute((10,), lambda i: b[i] * 2.0, name="C")
    s = refcomp.create_schedule(c)
    outer, _ = s[c].split(c.op.axis[0], factor=4)  # the last tile has a tail
    s[b].compute_at(s[c], outer)
    s[b].reorder(k, b.op.axis[0])
    values = _integers(10, 5)
    _check(refcomp.lower(s, [a, c]), [values, np.zeros(10, np.float32)], 2 * values.sum(axis=1))


def test_no_guard_stands_around_an_attached_stage():
    s, a, b, c = _blur(13, 8)
    _, yi = s[c].split(c.op.axis[0], factor=4)
    s[b].compute_at(s[c], yi)
    func = refcomp.lower(s, [a, c])
    guards = [node for node in walk(func.body) if isinstance(node, IfThenElse)]
    inside = [node for guard in guards for node in walk(guard) if isinstance(node, Allocate)]
    assert guards and not inside


@pytest.mark.parametrize("on_gpu", [False, True])
def test_a_single_element_is_attached_too(on_gpu):
    a = refcomp.placeholder((6,), name="A")
    k = refcomp.reduce_axis((0, 6), "k")
    total = refcomp.compute((), lambda: refcomp.sum(a[k], axis=k), name="T")
    c = refcomp.compute((4,), lambda i: total[()] + a[i], name="C")
    s = refcomp.create_schedule(c)
    outer, inner = s[c].split(c.op.axis[0], factor=2)
    s[total].compute_at(s[c], outer)
    if on_gpu:
        s[c].bind(outer, _axis("blockIdx.x"))
        s[c].bind(inner, _axis("threadIdx.x"))
    values = _integers(6)
    wanted = values.sum() + values[:4]
    _check(refcomp.lower(s, [a, c]), [values, np.zeros(4, np.float32)], wanted)


@pytest.mark.parametrize("offset", [-2, 0, 3])
def test_a_region_may_begin_at_a_scalar_argument(offset):
    n, shift = refcomp.var("n"), refcomp.var("shift")
    a = refcomp.placeholder((n,), name="A")
    b = refcomp.compute((n,), lambda i: a[i] * 2.0, name="B")
    inside = lambda i: refcomp.all(i >= 0, i < n)  # noqa: E731
    c = refcomp.compute(
        (n,),
        lambda i: refcomp.if_then_else(inside(i + shift), b[i + shift], 0.0),
        name="C",
    )
    s = refcomp.create_schedule(c)
    outer, _ = s[c].split(c.op.axis[0], factor=4)
    s[b].compute_at(s[c], outer)
    func = refcomp.lower(s, [a, shift, c])
    (region,) = [node.buffer for node in walk(func.body) if isinstance(node, Allocate)]
    assert region.shape[0].value == 4
    values = _integers(10)
    wanted = [2 * values[i + offset] if 0 <= i + offset < 10 else 0 for i in range(10)]
    _check(func, [values, offset, np.zeros(10, np.float32)], np.array(wanted, np.float32))


def test_a_reduction_loop_outside_the_bound_ones_is_inside_the_kernel():
    a = refcomp.placeholder((6, 8), name="A")
    k = refcomp.reduce_axis((0, 8), "k")
    c = refcomp.compute((6,), lambda i: refcomp.sum(a[i, k], axis=k), name="C")
    s = refcomp.create_schedule(c)
    s[c].reorder(k, c.op.axis[0])
    s[c].bind(c.op.axis[0], _axis("threadIdx.x"))
    func = refcomp.lower(s, [a, c])
    kinds = [node.kind for node in walk(func.body) if isinstance(node, For)]
    assert kinds == ["threadIdx.x", "serial"]
    values = _integers(6, 8)
    _check(func, [values, np.zeros(6, np.float32)], values.sum(axis=1))
