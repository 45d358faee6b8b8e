"""`tvm.build`, `tvm.lower` and `tvm.decl_tensor_intrin` follow `tvm.build_config`."""

import numpy as np
import pytest

import refcomp as rc
from refcomp import classic as tvm
from refcomp.foundation.errors import UserError


def row_sums() -> tuple[rc.Schedule, list[rc.te.Tensor]]:
    A = tvm.placeholder((8, 4), name="A")
    k = tvm.reduce_axis((0, 4), name="k")
    B = tvm.compute((8,), lambda i: tvm.sum(A[i, k], axis=k), name="B")
    return tvm.create_schedule(B.op), [A, B]


def test_functions_have_their_classic_name() -> None:
    s, args = row_sums()
    assert tvm.lower(s, args).name == "default_function"
    assert tvm.build(s, args, "interp").entry_name == "default_function"
    assert tvm.lower(s, args, "f", None, True).name == "f"
    assert tvm.build_module.build is tvm.build and tvm.build_module.lower is tvm.lower


def test_without_options_a_function_is_that_of_refcomp() -> None:
    s, args = row_sums()
    assert str(tvm.lower(s, args, name="main")) == str(rc.lower(s, args))


@pytest.mark.parametrize("explicit", [True, False])
def test_loops_are_unrolled_as_the_options_say(explicit: bool) -> None:
    s, args = row_sums()
    with tvm.build_config(auto_unroll_max_step=4, unroll_explicit=explicit):
        func = tvm.lower(s, args)
        module = tvm.build(s, args, "interp")
    text = str(func)
    assert "pragma auto_unroll_max_step 4 {" in text
    assert ("pragma unroll_explicit 0" in text) is not explicit
    a, b = np.arange(32, dtype="float32").reshape(8, 4), np.zeros(8, "float32")
    module(a, b)
    np.testing.assert_allclose(b, a.sum(1))


@pytest.mark.pocl
def test_kernels_are_unrolled_as_the_options_say() -> None:
    loops = {}
    for most in (0, 8):
        s, (A, B) = row_sums()
        s[B].bind(B.op.axis[0], tvm.thread_axis("threadIdx.x"))
        with tvm.build_config(auto_unroll_max_step=most, unroll_explicit=True):
            f = tvm.build(s, [A, B], "opencl", name="f")
        loops[most] = f.imported_modules[0].get_source().count("for (")
        a = np.arange(32, dtype="float32").reshape(8, 4)
        b = tvm.nd.empty((8,), ctx=tvm.opencl(0))
        f(tvm.nd.array(a, tvm.opencl(0)), b)
        np.testing.assert_allclose(b.asnumpy(), a.sum(1))
    assert loops == {0: 1, 8: 0}


def test_functions_that_were_lowered_are_built_as_they_are() -> None:
    s, args = row_sums()
    with tvm.build_config(auto_unroll_max_step=4):
        funcs = [tvm.lower(s, args, name=name) for name in ("f", "g")]
        module = tvm.build(funcs, target="interp")
    a, b = np.ones((8, 4), "float32"), np.zeros(8, "float32")
    for name in ("f", "g"):
        module[name](a, b)
        assert (b == 4).all()


def test_a_pass_of_the_user_changes_what_is_lowered_and_built() -> None:
    A = tvm.placeholder((8,), name="A")
    B = tvm.compute((8,), lambda i: A[i] * 2.0, name="B")
    s = tvm.create_schedule(B.op)

    def triple(stmt):
        def change(number):
            return tvm.const(3.0) if number.value == 2.0 else None

        return tvm.ir_pass.IRTransform(stmt, None, change, ["FloatImm"])

    b = np.zeros(8, "float32")
    with tvm.build_config(add_lower_pass=[(1, triple)]):
        assert "A[i] * 3.0f32" in str(tvm.lower(s, [A, B], simple_mode=True))
        tvm.build(s, [A, B], "interp")(np.ones(8, "float32"), b)
    assert (b == 3).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda stmt: None, "returned None, which is not a statement"),
        (lambda stmt: stmt.body, "returned an illegal statement: .* i"),
    ],
)
def test_a_pass_that_breaks_the_function_is_refused(change, message: str) -> None:
    A = tvm.placeholder((8,), name="A")
    B = tvm.compute((8,), lambda i: A[i] * 2.0, name="B")
    change.__name__ = "my_pass"
    with (
        tvm.build_config(add_lower_pass=[(0, change)]),
        pytest.raises(UserError, match=f"the pass my_pass {message}"),
    ):
        tvm.build(tvm.create_schedule(B.op), [A, B], "interp")


@pytest.mark.parametrize("function", [tvm.build, tvm.lower])
def test_binds_are_refused_with_what_to_write(function) -> None:
    s, args = row_sums()
    strided = tvm.decl_buffer((8, 4), strides=[tvm.var("s"), 1])
    with pytest.raises(UserError, match="refcomp does not take binds") as info:
        function(s, args, binds={args[0]: strided})
    assert "in_buffers and out_buffers of tvm.extern" in info.value.remedy


@pytest.mark.llvm
def test_an_intrinsic_on_vectors_takes_the_offset_factor_of_the_options() -> None:
    def add_rows(n):
        x = tvm.placeholder((n,), name="x")
        y = tvm.placeholder((n,), name="y")
        z = tvm.compute((n,), lambda i: x[i] + y[i], name="z")

        def lanes(ins, outs):
            ib = tvm.ir_builder.create()
            first, second = (block.vload(0, f"float32x{n}") for block in ins)
            ib.emit(outs[0].vstore(0, first + second))
            return ib.get()

        with tvm.build_config(offset_factor=n):
            return tvm.decl_tensor_intrin(z.op, lanes)

    A, B = tvm.placeholder((64,), name="A"), tvm.placeholder((64,), name="B")
    C = tvm.compute((64,), lambda i: A[i] + B[i], name="C")
    s = tvm.create_schedule(C.op)
    _, inner = s[C].split(C.op.axis[0], factor=16)
    intrinsic = add_rows(16)
    assert [buffer.offset_factor for buffer in intrinsic.buffers] == [16, 16, 16]
    s[C].tensorize(inner, intrinsic)
    a, c = np.arange(64, dtype="float32"), np.zeros(64, "float32")
    tvm.build(s, [A, B, C], "llvm")(a, a, c)
    np.testing.assert_allclose(c, 2 * a)
