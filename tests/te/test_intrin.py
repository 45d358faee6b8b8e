import re

import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.oracle.interpreter.expressions import Frame
from refcomp.oracle.interpreter.memory import Memory
from refcomp.oracle.interpreter.statements import run_to_end


def product():
    """A 4 x 4 block times a vector of 4, as a compute."""
    w, x = refcomp.placeholder((4, 4), name="w"), refcomp.placeholder((4,), name="x")
    k = refcomp.reduce_axis((0, 4), "k")
    z = refcomp.compute((4,), lambda i: refcomp.sum(w[i, k] * x[k], axis=k), name="z")
    return w, x, z


def gemv(ins, outs):
    def accumulate(first):
        ib = refcomp.ir_builder.create()
        w, x, z = (ib.buffer_ptr(view) for view in (*ins, *outs))
        with ib.for_range(0, 4, name="i") as i:
            if first:
                z[i] = 0.0
            with ib.for_range(0, 4, name="k") as k:
                z[i] = z[i] + w[i, k] * x[k]
        return ib.get()

    reset = refcomp.call_extern("int32", "memset", outs[0].access_ptr("w"), 0, 16)
    return accumulate(True), reset, accumulate(False)


def test_three_statements():
    _, _, z = product()
    intrin = refcomp.decl_tensor_intrin(z.op, gemv, name="gemv")
    assert intrin.inputs == z.op.inputs and repr(intrin) == "tensor intrinsic gemv"
    assert [view.name for view in intrin.buffers] == ["w", "x", "z"]
    assert [view.access for view in intrin.buffers] == ["read", "read", "update"]
    assert str(intrin.reset) == "extern i32 memset(write(z), 0i32, 16i32)"
    assert intrin.views[z] is intrin.buffers[2]


@pytest.mark.parametrize("statements", [("body",), ("reset", "update")])
def test_the_statements_mean_what_the_compute_does(statements):
    _, _, z = product()
    intrin = refcomp.decl_tensor_intrin(z, gemv)
    w = np.arange(16, dtype=np.float32).reshape(4, 4)
    x, got = np.arange(4, dtype=np.float32), np.full(4, 9, np.float32)
    frame = Frame()
    for view, array in zip(intrin.buffers, (w, x, got), strict=True):
        frame.memory[view.buffer] = Memory(view.buffer, array.shape, array)
    for statement in statements:
        run_to_end(frame, getattr(intrin, statement))
    assert got.tolist() == (w @ x).tolist()


def test_declared_buffers_have_strides_and_offsets():
    w, _, z = product()
    view = refcomp.decl_buffer((4, 4), name="W", strides=[refcomp.var("s"), 1], offset_factor=1)
    intrin = refcomp.decl_tensor_intrin(
        z.op,
        lambda ins, outs: refcomp.call_packed("f", ins[0], view.strides[0], view.elem_offset),
        binds={w: view},
        default_buffer_params={"data_alignment": 16},
    )
    assert str(intrin.body) == "packed f(read(W), s, W.elem_offset)"
    assert [v.data_alignment for v in intrin.buffers] == [0, 16, 16]


def test_two_statements_are_reset_and_update():
    _, _, z = product()
    intrin = refcomp.decl_tensor_intrin(z.op, lambda ins, outs: gemv(ins, outs)[1:])
    assert intrin.body is None and intrin.reset is not None and intrin.update is not None


def test_buffers_of_one_name_are_kept_apart():
    _, _, z = product()
    views = {t: refcomp.decl_buffer(t.shape) for t in (*z.op.inputs, z)}
    intrin = refcomp.decl_tensor_intrin(z, gemv, binds=views)
    assert [view.name for view in intrin.buffers] == ["buffer", "buffer_1", "buffer_2"]


def _stores_to_an_input(ins, outs):
    return ins[0].vstore((0, 0), 1.0)


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda w, x, z: refcomp.decl_tensor_intrin(w.op, gemv), "is declared with 'w'"),
        (lambda w, x, z: refcomp.decl_tensor_intrin(z, lambda i, o: None), "neither a body nor an"),
        (lambda w, x, z: refcomp.decl_tensor_intrin(z, lambda i, o: 3), "returns 3"),
        (
            lambda w, x, z: refcomp.decl_tensor_intrin(z, 3),
            "tensor intrinsic tensor_intrin is given 3, not a function of its views",
        ),
        (
            lambda w, x, z: refcomp.decl_tensor_intrin(z, _stores_to_an_input, "f"),
            "the body of tensor intrinsic f is not legal: w is written, but is not an output",
        ),
        (
            lambda w, x, z: refcomp.decl_tensor_intrin(
                z, lambda i, o: refcomp.call_packed("f", refcomp.var("n"))
            ),
            "uses the variable n, which nothing gives a value",
        ),
        (
            lambda w, x, z: refcomp.decl_tensor_intrin(
                z, gemv, binds={w: refcomp.decl_buffer((4, 5))}
            ),
            "does not fit w of tensor intrinsic",
        ),
        (
            lambda w, x, z: refcomp.decl_tensor_intrin(
                z, gemv, binds={refcomp.placeholder((4,), name="q"): refcomp.decl_buffer((4,))}
            ),
            "binds Tensor(q: f32, rank 1), which z does not use",
        ),
        (
            lambda w, x, z: refcomp.decl_tensor_intrin(
                z, lambda i, o: (gemv(i, o)[0], gemv(i, o)[2], gemv(i, o)[2])
            ),
            "the reset of tensor intrinsic tensor_intrin reads inputs",
        ),
    ],
)
def test_mistakes(declare, message):
    with pytest.raises(UserError, match=re.escape(message)):
        declare(*product())


def test_an_intrinsic_has_one_size():
    n = refcomp.var("n")
    a = refcomp.placeholder((n,), name="a")
    b = refcomp.compute((n,), lambda i: a[i] + 1.0, name="b")
    with pytest.raises(UserError, match="axis i of tensor intrinsic f has the extent n"):
        refcomp.decl_tensor_intrin(b, lambda i, o: None, "f")


def test_only_a_reduction_is_done_in_parts():
    a = refcomp.placeholder((4,), name="a")
    b = refcomp.compute((4,), lambda i: a[i] + 1.0, name="b")
    with pytest.raises(UserError, match="a reset or an update, but b is not a reduction"):
        refcomp.decl_tensor_intrin(
            b, lambda i, o: (None, None, refcomp.call_packed("f", i[0], o[0]))
        )
