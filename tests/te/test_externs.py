import re

import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.foundation.registry import remove_global_func
from refcomp.oracle.tensors.evaluate import evaluate


@pytest.fixture
def sums():
    def function(a, b, *rest):
        b[...] = a.numpy().reshape(b.shape[0], -1).sum(axis=1) + sum(rest)

    refcomp.register_func("tests.sums", function)
    yield function
    remove_global_func("tests.sums")


def packed(*rest):
    return lambda ins, outs: refcomp.call_packed("tests.sums", ins[0], outs[0], *rest)


def a_of(*shape, dtype="float32", name="A"):
    return refcomp.placeholder(shape, dtype, name)


def test_the_operation():
    a = a_of(4, 8)
    c = refcomp.extern((4,), [a], packed(), name="C", tag="sum")
    assert (c.op.inputs, c.op.tag, str(c.dtype), c.op.reduce_axis) == ((a,), "sum", "f32", ())
    assert [(axis.name, axis.kind) for axis in c.op.axis] == [("i0", "opaque")]
    assert str(c.op.body) == "packed tests.sums(read(A), write(C))"


def test_several_outputs_have_shapes_and_dtypes_of_their_own():
    seen = []

    def body(ins, outs):
        seen.extend([(x.name, str(x.dtype), len(x.shape)) for x in (*ins, *outs)])
        return refcomp.call_packed("f", *ins, *outs)

    first, second = refcomp.extern([(4, 2), (3,)], [], body, name="C", dtype=["int8", "float64"])
    assert seen == [("C", "i8", 2), ("C.v1", "f64", 1)]
    assert (first.op is second.op, second.value_index, str(second.dtype)) == (True, 1, "f64")
    assert isinstance(refcomp.extern([(4,)], [], body, dtype="int8"), type(first))


@pytest.mark.llvm
@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_between_computes_with_symbols_and_scalars(sums, target):
    n, k = refcomp.var("n"), refcomp.var("k", "int32")
    a = a_of(n, 3)
    b = refcomp.compute((n, 3), lambda i, j: a[i, j] * 2.0, name="B")
    c = refcomp.extern((n,), [b], packed(k, n), name="C")
    d = refcomp.compute((n,), lambda i: c[i] + 1.0, name="D")
    s = refcomp.create_schedule(d)
    s[d].parallel(d.op.axis[0])
    given, got = np.arange(12, dtype=np.float32).reshape(4, 3), np.zeros(4, np.float32)
    refcomp.build(s, [a, d, k], target=target)(given, got, 10)
    assert got.tolist() == (given.sum(axis=1) * 2 + 14 + 1).tolist()
    (wanted,) = evaluate([d], {a: given}, {k: 10})
    assert wanted.tolist() == got.tolist()


@pytest.mark.llvm
@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_a_statement_of_the_users_own(target):
    n = refcomp.var("n")

    def prefix_sums(ins, outs):
        ib = refcomp.ir_builder.create()
        x, y = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        total = ib.allocate("int64", 1, name="total", scope="local")
        total[0] = 0
        with ib.for_range(0, n, name="i") as i:
            total[0] = total[0] + x[i]
            y[i] = total[0]
        return ib.get()

    a = a_of(n, dtype="int64")
    c = refcomp.extern((n,), [a], prefix_sums, name="C")
    given, got = np.array([3, 1, 4, 1, 5]), np.zeros(5, np.int64)
    refcomp.build(refcomp.create_schedule(c), [a, c], target=target)(given, got)
    assert got.tolist() == evaluate([c], {a: given})[0].tolist() == [3, 4, 8, 9, 14]


def test_declared_buffers():
    n, m, s = refcomp.var("n"), refcomp.var("m"), refcomp.var("s")
    a = a_of(n, 8)
    x = refcomp.decl_buffer((m, 8), name="X", strides=[s, 1], offset_factor=1)
    y = refcomp.decl_buffer((m,), name="Y")

    def body(ins, outs):
        assert (ins[0].name, outs[0].name) == ("X", "Y")
        return refcomp.call_packed("f", ins[0], outs[0], s, m, x.elem_offset)

    c = refcomp.extern((n,), [a], body, name="C", in_buffers=[x], out_buffers=y)
    assert str(c.op.body) == "packed f(read(X), write(Y), 8, n, 0)"


def test_buffers_of_one_name_are_kept_apart():
    a, b = a_of(4), a_of(4)
    views = [refcomp.decl_buffer((4,)) for _ in range(3)]
    c = refcomp.extern(
        (4,),
        [a, b],
        lambda ins, outs: refcomp.call_packed("f", *ins, *outs),
        in_buffers=views[:2],
        out_buffers=views[2:],
    )
    assert str(c.op.body) == "packed f(read(buffer), read(buffer_1), write(buffer_2))"


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ({"shape": (4, 4)}, "4 is declared, but the tensor has 8"),
        ({"dtype": "int32"}, "i32 of rank 2, not f32 of rank 2"),
        ({"shape": (4,)}, "f32 of rank 1, not f32 of rank 2"),
        ({"strides": [16, 1]}, "16 is declared, but the tensor has 8"),
        ({"elem_offset": 4}, "4 is declared, but the tensor has 0"),
        ({"scope": "shared"}, "it lies in shared memory"),
    ],
)
def test_declared_buffers_fit_their_tensors(declared, why):
    x = refcomp.decl_buffer(**{"shape": (4, 8), "name": "X"} | declared)
    with pytest.raises(UserError, match="buffer X of extern C does not fit tensor A") as caught:
        refcomp.extern((4,), [a_of(4, 8)], packed(), name="C", in_buffers=[x])
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a: refcomp.extern((4,), [3], packed()), "reads 3, which is not a tensor"),
        (
            lambda a: refcomp.extern((4,), [], packed()),
            "needs a dtype, since its inputs have no dtype",
        ),
        (
            lambda a: refcomp.extern((4,), [a, a_of(4, dtype="int8")], packed()),
            "needs a dtype, since its inputs have f32, i8",
        ),
        (
            lambda a: refcomp.extern([(4,), (4,)], [a], packed(), dtype=["int8"]),
            "has 2 outputs and 1 dtypes",
        ),
        (lambda a: refcomp.extern((4,), [a], lambda ins, outs: None), "returns None, which is no"),
        (
            lambda a: refcomp.extern((4,), [a], packed(), in_buffers=[a]),
            "in_buffers of extern extern holds Tensor",
        ),
        (
            lambda a: refcomp.extern((4,), [a], packed(), out_buffers=[]),
            "out_buffers of extern extern holds 0 buffers for 1 tensors",
        ),
        (
            lambda a: refcomp.extern((4,), [a], lambda ins, outs: ins[0].vstore(0, 1.0), name="C"),
            "the statement of extern C is not legal: A is written, but is not an output",
        ),
        (
            lambda a: refcomp.extern(
                (4,), [a], lambda ins, outs: refcomp.decl_buffer((4,), name="Z").vstore(0, 1.0)
            ),
            "is not legal: the buffer Z is not bound here",
        ),
    ],
)
def test_mistakes(call, message):
    with pytest.raises(UserError, match=re.escape(message)):
        call(a_of(8))


def scheduled():
    a = a_of(4, 8)
    b = refcomp.compute((4, 8), lambda i, j: a[i, j] * 2.0, name="B")
    c = refcomp.extern((4,), [b], packed(), name="C")
    d = refcomp.compute((4,), lambda i: c[i] + 1.0, name="D")
    return refcomp.create_schedule(d), a, b, c, d


@pytest.mark.parametrize(
    "primitive",
    [
        lambda s, axis: s.split(axis, 2),
        lambda s, axis: s.reorder(axis),
        lambda s, axis: s.parallel(axis),
        lambda s, axis: s.vectorize(axis),
        lambda s, axis: s.unroll(axis),
        lambda s, axis: s.bind(axis, refcomp.thread_axis("blockIdx.x")),
        lambda s, axis: s.fuse(axis, axis),
    ],
)
def test_an_opaque_axis_is_left_alone(primitive):
    s, _, _, c, _ = scheduled()
    with pytest.raises(UserError, match=r"axis i0 of stage C\n(.|\n)*it is opaque: an extern oper"):
        primitive(s[c], c.op.axis[0])
    assert not s.steps


def test_who_wrote_the_loops_of_an_opaque_axis_says_how_they_run():
    a = refcomp.placeholder((8,), name="A")

    def doubled(ins, outs):
        builder = refcomp.ir_builder.create()
        source, target = builder.buffer_ptr(ins[0]), builder.buffer_ptr(outs[0])
        with builder.for_range(0, 8) as i:
            target[i] = source[i] * 2.0
        return builder.get()

    called = refcomp.extern((8,), [a], lambda i, o: refcomp.call_packed("f", i[0], o[0]), name="B")
    written = refcomp.extern((8,), [a], doubled, name="C")
    remedies = []
    for tensor in (called, written):
        with pytest.raises(UserError) as told:
            refcomp.create_schedule(tensor)[tensor].parallel(tensor.op.axis[0])
        remedies.append(told.value.remedy)
    assert "cache_read copies what it reads or makes" in remedies[0]
    assert 'for_range(0, n, for_type="parallel")' in remedies[1]


def test_what_says_how_a_stage_is_stored_is_refused_for_an_extern_stage():
    s, _, _, c, _ = scheduled()
    with pytest.raises(UserError, match="storage_align axis i0 of stage C(.|\n)*without gaps"):
        s[c].storage_align(c.op.axis[0], 8, 1)
    with pytest.raises(UserError, match="store stage C by(.|\n)*stores its elements itself"):
        s[c].set_store_predicate(refcomp.thread_axis("threadIdx.x").var.equal(0))
    assert not s.steps


def test_an_extern_stage_stays_where_it_is():
    s, _, b, c, d = scheduled()
    with pytest.raises(UserError, match="it is an extern operation: all of it is computed at once"):
        s[c].compute_at(s[d], d.op.axis[0])
    with pytest.raises(UserError, match="cannot inline stage C(.|\n)*it is an extern operation"):
        s[c].compute_inline()
    with pytest.raises(
        UserError,
        match="it is an extern operation: its memory is global, since it belongs to others",
    ):
        s[c].set_scope("shared")
    with pytest.raises(UserError, match="it is an extern operation, which has no loops of its own"):
        s.cache_write(c, "local")
    with pytest.raises(UserError, match="stage C is an extern operation, which reads its memory"):
        s[b].compute_inline()
    with pytest.raises(UserError, match="compute_at axis i0 of stage C(.|\n)*it is opaque"):
        s[b].compute_at(s[c], c.op.axis[0])


def test_an_extern_stage_reads_a_copy(sums):
    s, a, b, c, d = scheduled()
    copy = s.cache_read(b, "global", [c])
    s[b].compute_inline()
    func = refcomp.lower(s, [a, d])
    assert f"packed tests.sums(read({copy.name}), write(C))" in refcomp.print_func(func)
    given, got = np.ones((4, 8), np.float32), np.zeros(4, np.float32)
    refcomp.build(func, target="interp")(given, got)
    assert got.tolist() == [17] * 4
