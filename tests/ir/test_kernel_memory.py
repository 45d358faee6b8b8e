"""Memory of kernels: what users allocate before the loops over threads moves into the kernel."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.ir.kernel_memory import memory_in_kernels, outside_memory
from refcomp.ir.parser import parse_func

HEAD = "func f(A: f32[8], B: f32[8] out) "


def moved(body: str) -> str:
    return repr(memory_in_kernels(parse_func(HEAD + "{" + body + "}").body))


KERNEL = "for threadIdx.x in range(8) threadIdx.x { t[0] = A[threadIdx.x] B[threadIdx.x] = t[0] }"


@pytest.mark.parametrize("scope", ["local", "shared"])
def test_memory_around_one_kernel_moves_inside_of_its_loops(scope: str) -> None:
    text = moved(
        f"alloc t: f32[1] {scope} {{ alloc u: f32[2] {scope} {{ "
        f"for blockIdx.x in range(1) blockIdx.x {{ {KERNEL} }} }} }}"
    )
    lines = [line.strip() for line in text.splitlines()]
    assert lines[:4] == [
        "for blockIdx.x in range(1) blockIdx.x {",
        "for threadIdx.x in range(8) threadIdx.x {",
        f"alloc t: f32[1] {scope} {{",
        f"alloc u: f32[2] {scope} {{",
    ]


def test_other_memory_stays_where_it_is() -> None:
    in_place = (
        "for threadIdx.x in range(8) threadIdx.x { alloc t: f32[1] local { B[0] = 1f32 } }",
        f"alloc t: f32[1] {{ {KERNEL} }}",
        f"alloc t: f32[1] local {{ {KERNEL} {KERNEL} }}",
        "alloc t: f32[1] local { for i in range(8) { t[0] = A[i] B[i] = t[0] } }",
    )
    for body in in_place:
        stmt = parse_func(HEAD + "{" + body + "}").body
        assert memory_in_kernels(stmt) is stmt


def test_local_memory_outside_of_a_kernel_that_uses_it_is_found() -> None:
    stmt = parse_func(HEAD + f"{{ alloc t: f32[1] local {{ {KERNEL} }} }}").body
    assert outside_memory(stmt) is stmt
    assert outside_memory(memory_in_kernels(stmt)) is None
    host = "alloc t: f32[1] local { t[0] = 1f32 for threadIdx.x in range(8) threadIdx.x { } }"
    assert outside_memory(parse_func(HEAD + f"{{ {host} }}").body) is None


def total_before_threads(n: int, rows: int) -> tuple[rc.te.Tensor, rc.te.Tensor]:
    """Return row sums by a builder that allocates before the loop over threads."""

    def sums(ins, outs):
        ib = rc.ir_builder.create()
        total = ib.allocate("float32", (1,), name="total", scope="local")
        a, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        for begin in range(0, n, n // rows):
            with ib.scope():
                thread = rc.thread_axis("threadIdx.x")
                ib.scope_attr(thread, "thread_extent", n // rows)
                total[0] = 0.0
                with ib.for_range(0, 4, name="k") as k:
                    total[0] += a[begin + thread.var, k]
                out[begin + thread.var] = total[0]
        return ib.get()

    A = rc.placeholder((n, 4), name="A")
    return A, rc.extern((n,), [A], sums, name="sums", dtype="float32")


@pytest.mark.parametrize("target", ["interp", pytest.param("opencl", marks=pytest.mark.pocl)])
def test_each_thread_has_its_own_total(target: str) -> None:
    A, B = total_before_threads(8, rows=1)
    f = rc.build(rc.create_schedule(B), [A, B], target)
    device = rc.opencl(0) if target == "opencl" else rc.cpu()
    a = np.arange(32, dtype="float32").reshape(8, 4)
    b = rc.empty((8,), "float32", device)
    f(rc.array(a, device), b)
    np.testing.assert_allclose(b.asnumpy(), a.sum(1))


def test_local_memory_of_two_kernels_is_refused() -> None:
    with pytest.raises(UserError) as info:
        total_before_threads(8, rows=2)
    assert info.value.what == (
        "the local memory total of extern sums lies outside of the kernel that uses it"
    )
    assert info.value.why == "each thread has local memory of its own"
    assert info.value.remedy == (
        "begin a kernel by all its loops over threads, one in the other, and allocate its memory "
        "within them"
    )


def test_a_function_of_a_builder_has_its_memory_within_the_kernel() -> None:
    out = rc.decl_buffer((8,), name="out")
    ib = rc.ir_builder.create()
    cell = ib.allocate("float32", (1,), name="cell", scope="local")
    thread = rc.thread_axis("threadIdx.x")
    ib.scope_attr(thread, "thread_extent", 8)
    cell[0] = thread.var.astype("float32")
    ib.buffer_ptr(out)[thread.var] = cell[0]
    b = np.zeros(8, "float32")
    rc.build(ib.func("f", [out]), target="interp")(b)
    assert b.tolist() == list(range(8))
