"""Tensor intrinsics that call functions outside of the loop IR, on memory as they declare it."""

import pytest

import refcomp
from refcomp.foundation.errors import Unsupported
from tests.lowering.tensorized import check, numbers, refusal

N = refcomp.var("n")


def _copy(strides=None, **declared):
    """Copies 4 x 8 numbers row by row, by memcpy."""
    x = refcomp.placeholder((4, 8), name="x")
    y = refcomp.compute((4, 8), lambda i, j: x[i, j], name="y")
    views = {
        t: refcomp.decl_buffer((4, 8), name=t.name, strides=s, **declared)
        for t, s in zip((x, y), strides or (None, None), strict=True)
    }

    def body(ins, outs):
        if strides is None:
            source, target = ins[0].access_ptr("r"), outs[0].access_ptr("w")
            return refcomp.call_extern("int32", "memcpy", target, source, refcomp.const(128, "i64"))
        ib = refcomp.ir_builder.create()
        with ib.for_range(0, 4, name="r") as r:
            source, target = ins[0].access_ptr("r", r * 8), outs[0].access_ptr("w", r * 8)
            ib.emit(
                refcomp.call_extern("int32", "memcpy", target, source, refcomp.const(32, "i64"))
            )
        return ib.get()

    return refcomp.decl_tensor_intrin(y, body, "copy", binds=views)


def _copied(columns, intrin, copied=False):
    a = refcomp.placeholder((N * 4, columns), name="A")
    b = refcomp.compute((N * 4, columns), lambda i, j: a[i, j], name="B")
    s = refcomp.create_schedule(b)
    s[b].tensorize(s[b].tile(*b.op.axis, 4, 8)[2], intrin)
    return s, [a, b, N]


@pytest.mark.llvm
def test_a_c_function_gets_the_block_s_address():
    func = refcomp.lower(*_copied(8, _copy()))
    assert (
        "extern i32 memcpy(write(B[i.outer * 4, 0]), read(A[i.outer * 4, 0]), 128)"
        in refcomp.print_func(func)
    )
    x = numbers(12, 8)
    check(func, (x,), (3,), x)


@pytest.mark.llvm
def test_rows_lie_apart_by_a_stride():
    strides = [[refcomp.var("s"), 1], [refcomp.var("t"), 1]]
    func = refcomp.lower(*_copied(24, _copy(strides)))
    x = numbers(8, 24)
    check(func, (x,), (2,), x)


def test_strides_and_offsets_get_values():
    x = refcomp.placeholder((4, 8), name="x")
    y = refcomp.compute((4, 8), lambda i, j: x[i, j], name="y")
    view = refcomp.decl_buffer((4, 8), name="x", strides=[refcomp.var("s"), 1], offset_factor=8)

    def body(ins, outs):
        return refcomp.call_extern("int32", "f", ins[0], ins[0].strides[0], ins[0].elem_offset)

    a = refcomp.placeholder((N * 4, 3, 24), name="A")
    b = refcomp.compute((3, N * 4, 24), lambda h, i, j: a[i, h, j], name="B")
    s = refcomp.create_schedule(b)
    s[b].tensorize(
        s[b].tile(*b.op.axis[1:], 4, 8)[2], refcomp.decl_tensor_intrin(y, body, binds={x: view})
    )
    text = refcomp.print_func(refcomp.lower(s, [a, b, N]))
    at = "read(A[i.outer * 4, h, j.outer * 8])"
    assert f"extern i32 f({at}, 72, h * 24 + i.outer * 288 + j.outer * 8)" in text


@refcomp.register_func("tests.tensorize.double")
def _double(x, y):
    y[:] = x.asnumpy() * 2


def _doubled(has_copies):
    x = refcomp.placeholder((4, 8), name="x")
    y = refcomp.compute((4, 8), lambda i, j: x[i, j] * 2.0, name="y")
    intrin = refcomp.decl_tensor_intrin(
        y,
        lambda i, o: refcomp.call_packed("tests.tensorize.double", i[0], _written(o[0])),
        "double",
    )
    a = refcomp.placeholder((N * 4, 8), name="A")
    b = refcomp.compute((N * 4, 8), lambda i, j: a[i, j] * 2.0, name="B")
    s = refcomp.create_schedule(b)
    if not has_copies:
        s[b].tensorize(s[b].split(b.op.axis[0], 4)[1], intrin)
        return s, [a, b, N]
    made = s.cache_write(b, "global")
    copy = s.cache_read(a, "global", [made])
    outer, _ = s[b].split(b.op.axis[0], 4)
    s[made].compute_at(s[b], outer)
    s[copy].compute_at(s[b], outer)
    s[made].tensorize(s[made].leaf_iter_vars[0], intrin)
    return s, [a, b, N]


def _written(view):
    return view.access_ptr("w")


@pytest.mark.llvm
def test_a_registered_function_gets_copies_of_blocks():
    x = numbers(12, 8)
    check(refcomp.lower(*_doubled(True)), (x,), (3,), 2 * x)


def test_a_function_outside_is_not_certified():
    s, args = _copied(8, _copy())
    with pytest.raises(Unsupported, match="stage B is tensorized by functions, and cannot be cert"):
        refcomp.certify(s, args)


def test_a_registered_function_gets_no_part():
    message = refusal(*_doubled(False))
    assert (
        "is a registered function, which takes whole buffers only, but x is a part of A" in message
    )
    assert "copy the block first (cache_read, cache_write" in message


@pytest.mark.parametrize(
    ("intrin", "message"),
    [
        (_copy(), "declared without strides, but in A its neighbours lie 24 elements apart"),
        (_copy([[8, 1], [24, 1]]), "x is declared with stride 8, but here it is 24"),
        (_copy([[24, 1], [24, 1]], offset_factor=64), "x is declared with offset_factor 64, but"),
        (
            _copy([[24, 1], [24, 1]], scope="shared"),
            "x is declared in shared memory, but A lies in",
        ),
        (_copy([[24, 1], [24, 1]], data_alignment=64), "data_alignment 64, but its block begins"),
        (
            _copy([[24, 1], [24, 1]], elem_offset=8),
            "x is declared with elem_offset 8, but here it is i.outer * 96 + j.outer * 8",
        ),
    ],
)
def test_memory_is_as_declared(intrin, message):
    assert message in refusal(*_copied(24, intrin))
