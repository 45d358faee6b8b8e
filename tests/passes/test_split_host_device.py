"""Functions split into a host function and kernels, and what a GPU cannot run."""

import numpy as np
import pytest

import refcomp
from refcomp.driver.backends import as_target
from refcomp.driver.pipeline import run_device_passes
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.foundation.target import limits_of
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func, parse_program
from refcomp.ir.printer import print_expr, print_func, print_program
from refcomp.ir.rewrite import map_children, walk, with_fields
from refcomp.ir.stmt import For, LaunchKernel, Origin
from refcomp.ir.verify import verify
from refcomp.oracle.lockstep.interpret import interpret, interpret_program
from refcomp.passes import split_host_device as module
from refcomp.passes.flatten_storage import flatten_storage
from refcomp.passes.split_host_device import split_host_device
from tests.passes.docstring_examples import docstring_example
from tests.quotations import quoted


def _split(text):
    program = split_host_device(flatten_storage(parse_func(text)))
    verify(program.host, "launch")
    for kernel in program.kernels:
        verify(kernel, "device")
    assert print_program(parse_program(print_program(program))) == print_program(program)
    return program


def _launches(program):
    return [node for node in walk(program.host.body) if isinstance(node, LaunchKernel)]


def test_docstring():
    before = docstring_example(module, "Before")
    program = _split(before)
    assert print_program(program) == docstring_example(module, "After")
    # Splitting what is split changes nothing more of the host.
    assert split_host_device(program.kernels[0]).kernels[0].body is program.kernels[0].body


def test_the_meaning_is_kept():
    text = """
    func f(A: i64[n], B: i64[n] out, m: i64, x: i64) {
      for h in range(m) {
        let c: i64 = h * 2 + x {
          alloc T: i64[n + m] {
            for b in range((n + 3) // 4) blockIdx.y { for t in range(4) threadIdx.x {
              alloc S: i64[4] shared {
                S[t] = if_then_else(b * 4 + t < n, A[b * 4 + t], 0)
                barrier
                if (b * 4 + t < n) { T[b * 4 + t] = S[3 - t] * c }
              }
            } }
            if (m > 1) { for k in range(n) threadIdx.x { B[k] = B[k] + T[k] + h } }
          }
        }
      }
    }
    """
    func, program = parse_func(text), _split(text)
    results = []
    for run, what in ((interpret, func), (interpret_program, program)):
        b = np.zeros(8, np.int64)
        run(what, [np.arange(8), b, 3, 5])
        results.append(b.tolist())
    assert results[0] == results[1] and any(results[0])


def test_parameters_are_what_is_used_buffers_first():
    program = _split("""
    func f(A: f32[n, m], B: f32[n, m] out, p: i64, q: i64) {
      for b in range(p) blockIdx.x { alloc L: f32[4] local { B[b, q] = A[b, 0] } }
    }
    """)
    (kernel,) = program.kernels
    assert [param.name for param in kernel.params] == ["B", "A", "p", "m", "q", "n"]
    assert kernel.outputs == ("B",) and kernel.symbols == ()
    (launch,) = _launches(program)
    assert all(a is b for a, b in zip(launch.arguments, kernel.params, strict=True))
    assert kernel.buffers[0] is program.host.buffers[1]  # the host's own


def test_two_arguments_of_one_name():
    func = parse_func("""
    func f(A: i64[n], B: i64[n] out, n_1: i64) {
      alloc A_1: i64[n_1 + n] {
        for b in range(n) blockIdx.x { A_1[b] = A[b] + n_1 }
        for b in range(n) blockIdx.x { alloc L: i64[n_1] shared { L[0] = 1 B[b] = A_1[b] + L[0] } }
      }
    }
    """)
    nodes = list(walk(func.body))
    buffer = next(n.buffer for n in nodes if getattr(getattr(n, "buffer", 0), "name", "") == "A_1")
    object.__setattr__(buffer, "name", "A")
    object.__setattr__(func.params[2], "name", "n")
    program = split_host_device(
        flatten_storage(PrimFunc(func.name, func.params, func.body, ("B",)))
    )
    for kernel in program.kernels:
        verify(kernel, "device")
    b = np.zeros(3, np.int64)
    interpret_program(program, [np.arange(3), b, 2])
    assert b.tolist() == [3, 4, 5]


def test_the_grid_and_the_block_are_extents_of_the_host():
    program = _split("""
    func f(A: f32[n, m] out) {
      for z in range(n) blockIdx.z { for x in range(m // 4) blockIdx.x {
        for y in range(n) threadIdx.y { for t in range(4) threadIdx.x { A[z, x * 4 + t] = 0f32 } }
      } }
    }
    """)
    (launch,) = _launches(program)
    assert [print_expr(e) for e in launch.grid] == ["m // 4", "1", "n"]
    assert [print_expr(e) for e in launch.block] == ["4", "n", "1"]


def test_bytes_of_shared_memory_that_is_no_constant():
    program = _split("""
    func f(A: f32[n] out, m: i64) {
      for t in range(8) threadIdx.x {
        alloc C: f32[8] shared { alloc S: f32[m, 4] shared {
        alloc T: f16[n] shared { alloc L: f64[2] local {
          C[t] = 0f32 S[0, 0] = 0f32 T[t] = 0f16 L[0] = 0f64 A[t] = C[t]
        } } } }
      }
    }
    """)
    assert [print_expr(e) for e in _launches(program)[0].shared_bytes] == ["m * 16", "n * 2"]


def test_shared_memory_of_a_size_that_differs_within_a_kernel_is_refused():
    text = """
    func f(A: f32[n] out) {
      for b in range(4) blockIdx.x { alloc S: f32[b + 1] shared { S[b] = 0f32 A[b] = S[b] } }
    }
    """
    with pytest.raises(
        Unsupported, match="the size of the shared buffer S differs within"
    ) as caught:
        _split(text)
    assert "constant factors" in caught.value.remedy


@pytest.mark.parametrize("kind", ["parallel", "vectorized", "unrolled"])
def test_loops_around_kernels_become_serial(kind):
    program = _split(f"""
    func f(A: f32[n] out) {{
      for h in range(2) {kind} {{ for t in range(n) threadIdx.x {{ A[t] = f32(h) }} }}
    }}
    """)
    assert program.host.body.kind == "serial"


def test_origins_are_kept():
    func = parse_func("func f(A: f32[n] out) { for t in range(n) threadIdx.x { A@[t] = 0f32 } }")
    origin = Origin("A", "t", "bind", "model.py:3")
    program = split_host_device(func.with_body(with_fields(func.body, origin=origin)))
    assert program.host.body.origin is origin
    assert program.kernels[0].body.origin is origin


# What the host cannot do.


def _lowered(schedule, args):
    return flatten_storage(refcomp.lower(schedule, args))


def test_a_stage_without_a_bound_loop_is_refused_with_the_call_that_helps():
    a = refcomp.placeholder((8, 8), name="A")
    c = refcomp.compute((8, 8), lambda i, j: a[i, j] + 1, name="C")
    s = refcomp.create_schedule(c.op)
    with pytest.raises(UserError, match="stage C is computed outside of a kernel") as caught:
        split_host_device(_lowered(s, [a, c]))
    assert "its loop i is not bound" in caught.value.what
    assert quoted(caught.value, "declared here").startswith("c = refcomp.compute(")
    assert caught.value.remedy == 's[C].bind(C.op.axis[0], refcomp.thread_axis("blockIdx.x"))'
    s[c].bind(c.op.axis[0], refcomp.thread_axis("blockIdx.x"))
    assert len(split_host_device(_lowered(s, [a, c])).kernels) == 1


def test_the_loop_of_a_split_is_named():
    a = refcomp.placeholder((8,), name="A")
    c = refcomp.compute((8,), lambda i: a[i] + 1, name="C")
    s = refcomp.create_schedule(c.op)
    s[c].split(c.op.axis[0], factor=4)
    with pytest.raises(UserError, match="its loop i.outer is not bound") as caught:
        split_host_device(_lowered(s, [a, c]))
    assert caught.value.remedy.startswith("s[C].bind(i_outer, ")
    assert "by split" in caught.value.where


def test_of_two_stages_the_one_without_a_kernel_is_named():
    a = refcomp.placeholder((8,), name="A")
    b = refcomp.compute((8,), lambda i: a[i] + 1, name="B")
    c = refcomp.compute((8,), lambda i: b[i] + 1, name="C")
    s = refcomp.create_schedule(c.op)
    s[c].bind(c.op.axis[0], refcomp.thread_axis("blockIdx.x"))
    with pytest.raises(UserError, match="stage B is computed outside of a kernel"):
        split_host_device(_lowered(s, [a, c]))


def test_what_stands_in_a_loop_of_the_host_beside_a_kernel():
    text = """
    func f(A: i64[n] out) {
      for h in range(2) {
        for t in range(n) threadIdx.x { A[t] = h }
        for i in range(n) { A[i] = 3 }
      }
    }
    """
    with pytest.raises(
        UserError, match="what is written to A is computed(.|\n)*loop i is"
    ) as caught:
        _split(text)
    assert caught.value.remedy == "bind the loop i to blockIdx.x"


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("A[0] = 1", "what is written to A is computed outside of a kernel.*it has no loop"),
        ("atomic add A[0] with 1", "what is written to A"),
        ("if (A[0] < 1) { for t in range(n) threadIdx.x { A[t] = 3 } }", "a value that is read"),
        (
            "let c: i64 = A[0] { for t in range(n) threadIdx.x { A[t] = c } }",
            "a value that is read",
        ),
        ("for h in range(A[1]) { for t in range(n) threadIdx.x { A[t] = 1 } }", "a value that is"),
    ],
)
def test_memory_that_the_host_would_touch(body, what):
    with pytest.raises(UserError, match=what) as caught:
        split_host_device(flatten_storage(parse_func(f"func f(A: i64[n] out) {{ {body} }}")))
    assert "outside of a kernel" in caught.value.what and caught.value.remedy


def test_an_extent_that_is_read_from_memory_is_refused():
    text = "func f(A: i64[n] out) { for t in range(A[0]) threadIdx.x { A[t] = 3 } }"
    with pytest.raises(UserError, match="the extent of the loop t, bound to threadIdx.x, is read"):
        _split(text)


def test_statements_that_the_host_of_a_program_cannot_run():
    func = parse_func("func f(A: i64[n] out) { launch g (A) grid (n, 1, 1) block (1, 1, 1) }")
    with pytest.raises(Unsupported, match="host function f holds a LaunchKernel between kernels"):
        split_host_device(func)
    with pytest.raises(Unsupported, match="host function f calls g between kernels") as caught:
        split_host_device(parse_func("func f(A: i64[n] out) { packed g(1) }"))
    assert caught.value.remedy == "build two modules, and call it between their calls"


def test_a_later_loop_of_a_hybrid_function_is_named():
    @refcomp.hybrid.script
    def twice(a):
        c = output_tensor((4,), "float32")  # noqa: F821
        for i in range(4):
            c[i] = a[i] * 2.0
        for i in range(4):
            c[i] = c[i] + 1.0
        return c

    a = refcomp.placeholder((4,), name="A")
    c = twice(a)
    s = refcomp.create_schedule(c)
    s[c].bind(s[c].leaf_iter_vars[0], refcomp.thread_axis("blockIdx.x"))
    limits = limits_of(as_target("rocm"))
    with pytest.raises(UserError, match="outside of a kernel") as told:
        run_device_passes(refcomp.lower(s, [a, c]), "rocm", limits)
    assert told.value.remedy == "bind the loop i.1 to blockIdx.x"
    s[c].bind(s[c].leaf_iter_vars[1], refcomp.thread_axis("blockIdx.x"))
    assert len(run_device_passes(refcomp.lower(s, [a, c]), "rocm", limits).kernels) == 2


def test_a_c_function_in_a_kernel_is_refused():
    a = refcomp.placeholder((8,), name="A")
    c = refcomp.compute((8,), lambda i: refcomp.call_pure_extern("float32", "sinf", a[i]), name="C")
    s = refcomp.create_schedule(c.op)
    s[c].bind(c.op.axis[0], refcomp.thread_axis("threadIdx.x"))
    with pytest.raises(Unsupported, match="the C function sinf cannot be called in a") as caught:
        split_host_device(_lowered(s, [a, c]))
    assert "stage C" in caught.value.where


def test_a_function_without_statements_has_no_kernels():
    program = _split("func f(A: i64[n] out) { }")
    assert program.kernels == () and not [n for n in walk(program.host.body) if isinstance(n, For)]
    assert map_children(program.host.body, lambda child: child) is program.host.body


def test_the_host_asks_for_nothing_between_kernels():
    func = parse_func(
        "func f(A: f32[4], B: f32[4] out) { for k in range(2) { prefetch A[k]"
        " for t in range(4) threadIdx.x { B@[t] = A@[t] } } }"
    )
    program = split_host_device(func)
    assert "prefetch" not in print_func(program.host)
    assert "launch" in print_func(program.host)


def test_a_kernel_takes_what_it_only_asks_for():
    program = _split(
        "func f(A: f32[n], B: f32[4] out) { for t in range(4) threadIdx.x {"
        " prefetch A[t] B[t] = 0.0f32 } }"
    )
    assert [arg.name for arg in _launches(program)[0].arguments] == ["A", "B", "n"]
