import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import refcomp
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Stmt
from refcomp.oracle.lockstep.interpret import interpret
from tests.lowering.tensorized import check, numbers, refusal
from tests.strategies.tensor_intrins import block_product, blocked, gemv, product

N, M, K = (refcomp.var(name) for name in ("n", "m", "l"))


def _symbolic(parts=("body", "reset", "update"), dtype="float32"):
    a, b, c, k = product(N * 8, M * 4, K * 2, dtype)
    s = blocked(c, k, 8, 4, 2, block_product(8, 4, 2, dtype, parts))
    return s, [a, b, c, N, M, K]


def test_golden(golden):
    s, args = _symbolic()
    golden("lowering/tensorize.txt", refcomp.print_func(refcomp.lower(s, args, "product")))


@pytest.mark.llvm
@pytest.mark.parametrize("parts", [("reset", "update"), ("update",), ("body", "reset", "update")])
def test_symbolic_outer_extents(parts):
    s, args = _symbolic(parts)
    func = refcomp.lower(s, args)
    for n, m, depth in ((2, 3, 3), (1, 1, 1), (2, 1, 0), (0, 2, 1)):
        x, y = numbers(n * 8, depth * 2), numbers(depth * 2, m * 4, seed=1)
        check(func, (x, y), (n, m, depth), x @ y)


def test_without_a_reset_the_identity_is_stored():
    s, args = _symbolic(("update",))
    text = refcomp.print_func(refcomp.lower(s, args))
    assert "C[i.outer * 8 + i.inner.init, j.outer * 4 + j.inner.init] = 0.0f32" in text


def _whole(parts):
    a, b, c, _ = product(N * 8, M * 4, 6)
    s = refcomp.create_schedule(c)
    _, _, yi, _ = s[c].tile(*c.op.axis, 8, 4)
    s[c].tensorize(yi, block_product(8, 4, 6, parts=parts))
    return s, [a, b, c, N, M]


@pytest.mark.llvm
@pytest.mark.parametrize("parts", [("body",), ("reset", "update"), ("update",)])
def test_all_of_the_reduction_inside(parts):
    func = refcomp.lower(*_whole(parts))
    x, y = numbers(16, 6), numbers(6, 12, seed=1)
    check(func, (x, y), (2, 3), x @ y)
    stores = sum(type(node).__name__ == "BufferStore" for node in walk(func.body))
    assert stores == 2


def test_its_statements_tell_where_they_come_from():
    s, args = _symbolic()
    func = refcomp.lower(s, args)
    made = {
        (item.origin.stage, item.origin.primitive)
        for item in walk(func.body)
        if isinstance(item, Stmt) and item.origin
    }
    assert ("C", "tensorize") in made
    assert all(item.origin for item in walk(func.body) if type(item).__name__ == "BufferStore")


@pytest.mark.search
def test_certificates_hold():
    a, b, c, k = product(N * 2, 4, K * 2)
    s = blocked(c, k, 2, 4, 2, block_product(2, 4, 2))
    found = refcomp.certify(s, [a, b, c, N, K], every_step=True)
    assert found.holds and any("tensorize" in step for step in found.compared)


def test_a_certificate_names_an_intrinsic_that_is_wrong():
    """Its update leaves the last column out."""
    a, b, c, _ = product(N * 8, M * 4, 6)
    right = block_product(8, 4, 6)
    wrong = refcomp.decl_tensor_intrin(right.op, lambda i, o: o[0].vstore((0, 0), i[0][0, 0]))
    s = refcomp.create_schedule(c)
    s[c].tensorize(s[c].tile(*c.op.axis, 8, 4)[2], wrong)
    assert "tensorize" in refcomp.certify(s, [a, b, c, N, M]).guilty


# Other computations.


@pytest.mark.llvm
def test_rows_of_a_product_bygemv():
    """The matrix is read row by row, the vector is a row of the transposed other one."""
    a = refcomp.placeholder((N, 8), name="A")
    b = refcomp.placeholder((M * 4, 8), name="B")
    k = refcomp.reduce_axis((0, 8), "k")
    c = refcomp.compute((N, M * 4), lambda i, j: refcomp.sum(b[j, k] * a[i, k], axis=k), name="C")
    s = refcomp.create_schedule(c)
    _, inner = s[c].split(c.op.axis[1], 4)
    s[c].parallel(c.op.axis[0])
    s[c].tensorize(inner, gemv())
    func = refcomp.lower(s, [a, b, c, M])
    x, y = numbers(5, 8), numbers(12, 8, seed=1)
    check(func, (x, y), (3,), x @ y.T)
    assert refcomp.certify(s, [a, b, c, M]).holds


@pytest.mark.llvm
def test_two_stages_and_a_copy_use_one_intrinsic():
    """Each use binds loops of its own; the copy holds a block, so that indices count from 0."""
    a, b, c, k = product(16, 16, 16)
    r = refcomp.reduce_axis((0, 16), "r")
    d = refcomp.compute((16, 16), lambda i, j: refcomp.sum(c[i, r] * b[r, j], axis=r), name="D")
    s = refcomp.create_schedule(d)
    intrin = block_product(8, 8, 8)
    for tensor, axis in ((c, k), (d, r)):
        y, x, yi, xi = s[tensor].tile(*tensor.op.axis, 8, 8)
        ko, ki = s[tensor].split(axis, 8)
        s[tensor].reorder(y, x, ko, yi, xi, ki)
        s[tensor].tensorize(yi, intrin)
    copy = s.cache_read(a, "local", [c])
    s[copy].compute_at(s[c], s[c].leaf_iter_vars[2])
    func = refcomp.lower(s, [a, b, d])
    assert "A.local[y, z]" in refcomp.print_func(func)
    x, y = numbers(16, 16), numbers(16, 16, seed=1)
    check(func, (x, y), (), (x @ y) @ y)
    assert refcomp.certify(s, [a, b, d]).holds


@pytest.mark.llvm
def test_an_attached_stage_is_tensorized():
    a, b, c, _ = product(16, N * 8, 4)
    d = refcomp.compute((16, N * 8), lambda i, j: refcomp.maximum(c[i, j], 0.0), name="D")
    s = refcomp.create_schedule(d)
    _, x, _, _ = s[d].tile(*d.op.axis, 8, 8)
    s[c].compute_at(s[d], x)
    s[c].tensorize(c.op.axis[0], block_product(8, 8, 4))
    func = refcomp.lower(s, [a, b, d, N])
    x, y = numbers(16, 4), numbers(4, 24, seed=1)
    check(func, (x, y), (3,), np.maximum(x @ y, 0))


@pytest.mark.search
def test_threads_do_a_block_each():
    a, b, c, k = product(16, 16, 16)
    s = blocked(c, k, 8, 8, 8, block_product(8, 8, 8))
    y, x = s[c].leaf_iter_vars[:2]
    s[c].bind(y, refcomp.thread_axis("blockIdx.x"))
    s[c].bind(x, refcomp.thread_axis("threadIdx.x"))
    u, v = numbers(16, 16), numbers(16, 16, seed=1)
    check(refcomp.lower(s, [a, b, c]), (u, v), (), u @ v, ("interp",))
    assert refcomp.certify(s, [a, b, c]).holds


@pytest.mark.llvm
def test_several_outputs():
    x = refcomp.placeholder((4,), name="x")
    y = refcomp.compute((4,), lambda i: (x[i] - 1.0, x[i] + 1.0), name="y")

    def body(ins, outs):
        ib = refcomp.ir_builder.create()
        given, first, second = (ib.buffer_ptr(view) for view in (*ins, *outs))
        with ib.for_range(0, 4) as i:
            first[i] = given[i] - 1.0
            second[i] = given[i] + 1.0
        return ib.get()

    intrin = refcomp.decl_tensor_intrin(y[0].op, body)
    a = refcomp.placeholder((N * 4,), name="A")
    b, c = refcomp.compute((N * 4,), lambda i: (a[i] - 1.0, a[i] + 1.0), name="C")
    s = refcomp.create_schedule(b)
    s[b].tensorize(s[b].split(b.op.axis[0], 4)[1], intrin)
    func = refcomp.lower(s, [a, b, c, N])
    given = numbers(12)
    results = np.zeros(12, np.float32), np.zeros(12, np.float32)
    for run in (lambda *args: interpret(func, args), refcomp.build(func)):
        run(given, *results, 3)
        assert (results[0] == given - 1).all() and (results[1] == given + 1).all()
        results[0][:], results[1][:] = 0, 0


# Refusals.


def test_guards_inside():
    a, b, c, k = product(N, 16, 16)
    message = refusal(blocked(c, k, 8, 8, 8, block_product(8, 8, 8)), [a, b, c])
    assert "the loops inside run only where i.outer * 8 + i.inner < n" in message
    assert "split by factors that divide the extents" in message


@pytest.mark.parametrize("is_split_again", [False, True])
def test_a_constant_tail_is_guarded_inside(is_split_again):
    """Split again, there are blocks outside, too: that is no reason to let half a one pass."""
    a, b, c, k = product(20, 16, 16)
    s = blocked(c, k, 8, 8, 8, block_product(8, 8, 8))
    if is_split_again:
        s[c].split(s[c].leaf_iter_vars[0], 2)
    assert "i.inner < 20" in refusal(s, [a, b, c])


def test_a_region_that_begins_before_its_tensor():
    a = refcomp.placeholder((N * 8,), name="A")
    d = refcomp.compute((N * 8,), lambda i: a[i] * 2.0, name="D")
    c = refcomp.compute((N * 8,), lambda i: refcomp.if_then_else(i >= 1, d[i - 1], 0.0), name="C")
    x = refcomp.placeholder((8,), name="x")
    y = refcomp.compute((8,), lambda i: x[i] * 2.0, name="y")
    intrin = refcomp.decl_tensor_intrin(y, lambda i, o: o[0].vstore(0, i[0][0]))
    s = refcomp.create_schedule(c)
    outer, _ = s[c].split(c.op.axis[0], 8)
    s[d].compute_at(s[c], outer)
    s[d].tensorize(s[d].split(d.op.axis[0], 8)[1], intrin)
    assert "the loops inside run only where" in refusal(s, [a, c, N])


def test_guards_outside_are_kept():
    """Blocks of 8 rows, of which the outer loops visit more than there are."""
    a, b, c, _ = product(N * 8, 8, 8)
    s = refcomp.create_schedule(c)
    y, yi = s[c].split(c.op.axis[0], 8)
    s[c].split(y, 4)
    s[c].tensorize(yi, block_product(8, 8, 8))
    func = refcomp.lower(s, [a, b, c, N])
    assert "if (i.outer.outer * 4 + i.outer.inner < n)" in refcomp.print_func(func)
    x, z = numbers(48, 8), numbers(8, 8, seed=1)
    check(func, (x, z), (6,), x @ z, ("interp",))


def test_a_missing_update():
    a, b, c, k = product(16, 16, 16)
    message = refusal(blocked(c, k, 8, 8, 8, block_product(8, 8, 8, parts=("body",))), [a, b, c])
    assert message == (
        "reduction axis k.outer stands outside, and tensor intrinsic gemm has no update; "
        "return (body, reset, update) from its function, or reorder: the reduction inside"
    )


@pytest.mark.parametrize(
    ("primitive", "message"),
    [
        (lambda s, c: s[c].vectorize(s[c].leaf_iter_vars[4]), "axis j.inner inside it is vectoriz"),
        (lambda s, c: s[c].reorder(s[c].leaf_iter_vars[5], s[c].leaf_iter_vars[0]), "iterations"),
    ],
)
def test_what_is_done_to_the_loops_later(primitive, message):
    a, b, c, k = product(16, 16, 8)
    s = blocked(c, k, 8, 8, 4, block_product(8, 8, 4))
    primitive(s, c)
    assert message in refusal(s, [a, b, c])


def test_a_loop_that_goes_to_another_stage_later():
    a, b, c, k = product(16, 16, 16)
    s = refcomp.create_schedule(c)
    ko, ki = s[c].split(k, 8)
    i, j = c.op.axis
    s[c].reorder(j, ko, ki, i)
    s[c].tensorize(ki, block_product(16, 1, 8))
    s.rfactor(c, ko)
    message = refusal(s, [a, b, c])
    assert message == "it is no longer a loop of this stage; tensorize last"


def test_what_is_computed_inside_later():
    a = refcomp.placeholder((N * 8, 8), name="A")
    b, k = refcomp.placeholder((8, 8), name="B"), refcomp.reduce_axis((0, 8), "k")
    d = refcomp.compute((N * 8, 8), lambda i, j: a[i, j] * 2.0, name="D")
    c = refcomp.compute((N * 8, 8), lambda i, j: refcomp.sum(d[i, k] * b[k, j], axis=k), name="C")
    s = refcomp.create_schedule(c)
    _, inner = s[c].split(c.op.axis[0], 8)
    s[c].tensorize(inner, block_product(8, 8, 8))
    s[d].compute_at(s[c], inner)
    assert "stage D is computed at axis i.inner; " in refusal(s, [a, b, c, N])


def test_what_is_touched_lies_inside():
    x = refcomp.placeholder((12,), name="x")
    y = refcomp.compute((8,), lambda i: x[i], name="y")
    intrin = refcomp.decl_tensor_intrin(y, lambda i, o: o[0].vstore(0, i[0][11]), "reaches")
    for length, is_inside in ((20, True), (16, False)):
        a = refcomp.placeholder((length,), name="A")
        b = refcomp.compute((16,), a, name="B")
        s = refcomp.create_schedule(b)
        s[b].tensorize(s[b].split(b.op.axis[0], 8)[1], intrin)
        if is_inside:
            refcomp.lower(s, [a, b])
        else:
            assert "tensor intrinsic reaches does not read all of x" in refusal(s, [a, b])


# Any blocks.


@st.composite
def _cases(draw):
    """The sizes of an intrinsic, how many blocks there are, and how the loops over them stand."""
    sizes = draw(st.tuples(*[st.integers(1, 3)] * 3))
    counts = draw(st.tuples(*[st.integers(1, 4)] * 3))
    parts = draw(st.sampled_from([("update",), ("reset", "update"), ("body", "reset", "update")]))
    dtype = draw(st.sampled_from(["float32", "int32", "float64"]))
    return sizes, counts, parts, dtype, draw(st.data())


@pytest.mark.search
@given(_cases())
def test_random_splits_around_the_intrinsic(case):
    (rows, columns, depth), counts, parts, dtype, data = case
    lengths = [size * count for size, count in zip((rows, columns, depth), counts, strict=True)]
    a, b, c, k = product(*lengths, dtype)
    s = refcomp.create_schedule(c)
    outer, inner = [], []
    is_fused = data.draw(st.booleans())
    for axis, size, count in zip((*c.op.axis, k), (rows, columns, depth), counts, strict=True):
        out, block = s[c].split(axis, size)
        inner.append(block)
        # Where loops are fused in any order, not every guard is seen to be one of whole blocks.
        factors = [f for f in range(4) if not is_fused or f == 0 or count % f == 0]
        factor = data.draw(st.sampled_from(factors))
        outer += s[c].split(out, factor) if factor else [out]
    outer = data.draw(st.permutations(outer))
    s[c].reorder(*outer, *data.draw(st.permutations(inner)))
    if is_fused and outer[0].kind == outer[1].kind:
        outer[:2] = [s[c].fuse(*outer[:2])]
    if data.draw(st.booleans()) and outer[0].kind == "data_parallel":
        s[c].parallel(outer[0])
    first = s[c].leaf_iter_vars[len(outer)]
    s[c].tensorize(first, block_product(rows, columns, depth, dtype, parts))
    x = numbers(lengths[0], lengths[2], dtype=dtype)
    y = numbers(lengths[2], lengths[1], dtype=dtype, seed=1)
    check(refcomp.lower(s, [a, b, c]), (x, y), (), x @ y, ("interp",))
