"""ir_builder: what is written comes out as the loop IR that one would write by hand."""

import numpy as np
import pytest

import refcomp
from refcomp.foundation.dtype import I32, I64
from refcomp.foundation.errors import UserError
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func
from refcomp.ir.stmt import CallPacked
from refcomp.ir.structure import structurally_equal
from refcomp.ir.verify import find_fault
from refcomp.ir.view import BufferView
from refcomp.oracle.lockstep.interpret import interpret

create = refcomp.ir_builder.create


@pytest.fixture
def views():
    n = Var("n", I64)
    shape = (n, refcomp.const(4, "int64"))
    a = BufferView(Buffer("A", refcomp.as_dtype("f32"), shape))
    return a, BufferView(Buffer("B", a.dtype, shape)), n


def assert_is(func, text):
    assert find_fault(func, "nested") is None
    assert structurally_equal(func, parse_func(text)), f"\n{func}"


def test_loops_branches_and_lets(views):
    a, b, n = views
    ib = create()
    x, y = ib.buffer_ptr(a), ib.buffer_ptr(b)
    with ib.for_range(0, n, name="i", for_type="parallel") as i:
        with ib.if_scope(i < 2):
            y[i, 0] = x[i, 0] + 1.0
        with ib.else_scope():
            t = ib.let("t", x[i, 1])
            y[i, 0] = t * t
        with ib.for_range(1, 4, name="j", for_type="unroll", dtype="int32") as j:
            y[i, j] = 2
    assert_is(
        ib.func("f", [a, b]),
        """
        func f(A: f32[n, 4], B: f32[n, 4] out) {
          for i in range(n) parallel {
            if (i < 2) { B[i, 0] = A[i, 0] + 1.0f32 }
            else { let t: f32 = A[i, 1] { B[i, 0] = t * t } }
            for j: i32 in range(1i32, extent=3i32) unrolled { B[i, i64(j)] = 2.0f32 }
          }
        }""",
    )


def test_what_is_allocated_stands_around_the_rest_of_its_scope(views):
    a, b, _ = views
    ib = create()
    x, y = ib.buffer_ptr(a), ib.buffer_ptr(b)
    y[0, 0] = x[0, 0]
    t = ib.allocate("int32", (2, 3), name="T")
    t[0, 0] = 7
    s = ib.allocate("float32", 1, name="S", scope="local")
    s[0] = x[0, 1]
    y[0, 1] = s[0] + t[0]
    assert_is(
        ib.func("f", [a, b]),
        """
        func f(A: f32[n, 4], B: f32[n, 4] out) {
          B[0, 0] = A[0, 0]
          alloc T: i32[2, 3] {
            T[0, 0] = 7i32
            alloc S: f32[1] local {
              S[0] = A[0, 1]
              B[0, 1] = S[0] + f32(T[0 // 3, 0 % 3])
            }
          }
        }""",
    )


def test_thread_extents_make_kernels_in_canonical_form(views):
    a, b, n = views
    ib = create()
    x, y = ib.buffer_ptr(a), ib.buffer_ptr(b)
    tx, bx = refcomp.thread_axis("threadIdx.x"), refcomp.thread_axis("blockIdx.x")
    ib.scope_attr(tx, "thread_extent", 4)
    ib.scope_attr(bx, "thread_extent", n)
    y[bx, tx] = x[bx, tx]
    func = ib.func("f", [a, b])
    assert find_fault(func, "nested") is None
    assert (func.body.kind, func.body.body.kind) == ("blockIdx.x", "threadIdx.x")
    given, got = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros((3, 4), np.float32)
    interpret(func, [given, got])
    assert (given == got).all()


def test_pragmas(views):
    a, b, _ = views
    ib = create()
    ib.scope_attr(None, "pragma_auto_unroll_max_step", 16)
    ib.buffer_ptr(b)[0, 0] = ib.buffer_ptr(a)[0, 0]
    assert "pragma auto_unroll_max_step 16i32 {" in refcomp.print_func(ib.func("f", [a, b]))


def test_outputs_are_what_is_written(views):
    a, b, n = views
    ib = create()
    ib.emit(refcomp.call_packed("f", a.access_ptr("r"), b.access_ptr("w"), n))
    func = ib.func("f", [a, b])
    assert isinstance(func, PrimFunc) and func.outputs == ("B",)
    assert isinstance(func.body, CallPacked)


def test_what_is_written_runs(views):
    a, b, _ = views
    ib = create()
    x, y = ib.buffer_ptr(a), ib.buffer_ptr(b)
    with ib.for_range(0, 4, name="j") as j:
        y[1, 3 - j] = x[0, j]
    given, got = np.arange(8, dtype=np.float32).reshape(2, 4), np.zeros((2, 4), np.float32)
    refcomp.build(ib.func("f", [a, b]), target="interp")(given, got)
    assert got.tolist() == [[0, 0, 0, 0], [3, 2, 1, 0]]


def test_mistakes(views):
    a, _, n = views
    ib = create()
    with pytest.raises(UserError, match="else_scope does not follow an if_scope"), ib.else_scope():
        pass
    with ib.if_scope(n < 2):
        ib.emit(a.vstore((0, 0), 1.0))
    ib.emit(a.vstore((0, 0), 1.0))
    with pytest.raises(UserError, match="if_scope\n.*right after"), ib.else_scope():
        pass
    fast = ib.for_range(0, 4, for_type="fast")
    with pytest.raises(UserError, match="a loop cannot be 'fast'\n.*serial, parallel"), fast:
        pass
    with pytest.raises(UserError, match="3 is not a statement"):
        ib.emit(3)
    with pytest.raises(UserError, match="is not a buffer\n.*decl_buffer"):
        ib.buffer_ptr(refcomp.placeholder((4,)))
    with pytest.raises(UserError, match="'speed' is not an attribute of None"):
        ib.scope_attr(None, "speed", 1)
    with ib.for_range(0, 4), pytest.raises(UserError, match="a scope is still open"):
        ib.get()


def test_an_error_inside_a_scope_leaves_the_builder_usable(views):
    a, _, _ = views
    ib = create()
    with pytest.raises(KeyError), ib.for_range(0, 4):
        raise KeyError
    ib.emit(a.vstore((0, 0), 1.0))
    assert str(ib.get()) == "A[0, 0] = 1.0f32"


def test_ranges_that_do_not_begin_at_zero():
    ib = create()
    with ib.for_range(refcomp.const(2, I32), 10, dtype=I32) as i:
        assert i.dtype == I32
        ib.emit(refcomp.call_packed("f", i))
    assert str(ib.get()).startswith("for i: i32 in range(2i32, extent=8i32) {")


def test_range_of_int32_constants_folds_to_an_int64_extent():
    ib = create()
    with ib.for_range(1, refcomp.const(4, I32)) as i:
        ib.emit(refcomp.call_packed("f", i))
    assert str(ib.get()).startswith("for i in range(1, extent=3) {")


def test_extent_of_a_range_of_int32_does_not_wrap():
    ib = create()
    with ib.for_range(refcomp.const(-(2**31), I32), refcomp.const(2**31 - 1, I32)) as i:
        ib.emit(refcomp.call_packed("f", i))
    assert f"extent={2**32 - 1})" in str(ib.get())


def test_a_pointer_is_an_argument_as_long_as_what_is_passed():
    ib, n = create(), refcomp.var("n")
    a = ib.pointer("float32", name="A")
    with ib.for_range(0, n, name="i") as i, ib.if_scope(ib.likely(i < 2)):
        a[i] = a[i] + 1.0
    func = ib.func("f", [a, n])
    assert str(func.params[0].shape) == "(A.size)" or func.params[0].shape[0].name == "A.size"
    values = np.zeros(3, "float32")
    refcomp.build_functions([func], target="interp")["f"](values, 3)
    assert values.tolist() == [1, 1, 0]
    with pytest.raises(UserError, match=r"pointer p points to shared memory\n(.|\n)*allocate"):
        ib.pointer("float32", name="p", scope="shared")


def test_a_pointer_may_hold_vectors():
    ib = create()
    a = ib.pointer("float32x4", name="A")
    a[1] = a[0] * 2.0
    values = np.arange(8, dtype="float32").reshape(2, 4)
    refcomp.build_functions([ib.func("f", [a])], target="interp")["f"](values)
    assert values[1].tolist() == [0, 2, 4, 6]


def test_memory_of_a_warp_is_shared():
    ib = create()
    assert ib.allocate("float32", 4, "t", scope="warp").view.scope == "shared"
    assert refcomp.decl_buffer((4,), scope="warp").scope == "shared"
