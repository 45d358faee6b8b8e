import re

import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import CompilerBug, Unsupported, UserError
from tests.properties.seeded_bugs import INTERPRETED, switched_on

pytestmark = pytest.mark.llvm


def _matmul(n, m, p):
    a, b = refcomp.placeholder((n, p), name="A"), refcomp.placeholder((p, m), name="B")
    k = refcomp.reduce_axis((0, p), "k")
    c = refcomp.compute((n, m), lambda i, j: refcomp.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = refcomp.create_schedule(c.op)
    i_outer, j_outer, i_inner, j_inner = s[c].tile(*c.op.axis, 4, 16)
    s[c].reorder(i_outer, j_outer, k, i_inner, j_inner)
    s[c].unroll(i_inner)
    s[c].vectorize(j_inner)
    s[c].parallel(i_outer)
    return s, [a, b, c]


def _run_matmul(module, n, m, p):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 4, shape).astype(np.float32) for shape in ((n, p), (p, m)))
    c = np.full((n, m), 77, np.float32)
    module(a, b, c)
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize("target", ["llvm", "interp"])
@pytest.mark.parametrize("extents", [(8, 32, 4), (7, 17, 5), (1, 1, 1), (3, 0, 2), (3, 2, 0)])
def test_matmul_with_constant_extents(target, extents):
    schedule, args = _matmul(*extents)
    _run_matmul(refcomp.build(schedule, args, target, name="matmul"), *extents)


def test_matmul_with_symbolic_extents_runs_for_every_size():
    schedule, args = _matmul(*(refcomp.var(name) for name in ("n", "m", "p")))
    module = refcomp.build(schedule, args, "llvm", name="matmul")
    for extents in [(1, 1, 1), (8, 32, 4), (33, 65, 7), (0, 5, 5), (5, 5, 0)]:
        _run_matmul(module, *extents)


def test_a_stencil_with_a_symbolic_halo():
    n = refcomp.var("n")
    a = refcomp.placeholder((n + 2,), name="A")
    b = refcomp.compute((n,), lambda i: a[i] + a[i + 1] + a[i + 2], name="B")
    s = refcomp.create_schedule(b.op)
    _, inner = s[b].split(b.op.axis[0], factor=8)
    s[b].vectorize(inner)
    module = refcomp.build(s, [a, b])
    for size in (0, 1, 8, 29):
        source, out = np.arange(size + 2, dtype=np.float32), np.zeros(size, np.float32)
        module(source, out)
        np.testing.assert_array_equal(out, source[:-2] + source[1:-1] + source[2:])


def test_sources_of_every_stage():
    schedule, args = _matmul(8, 16, 4)
    module = refcomp.build(schedule, args, "llvm", target_host="llvm", name="matmul")
    assert "func matmul(" in module.get_source("loop_ir")
    assert "define i32 @matmul(" in module.get_source("llvm") == module.get_source()
    assert "<matmul>:" in module.get_source("asm") or "matmul" in module.get_source("asm")
    assert str(module.signatures["matmul"]) == (
        "matmul(A: f32[8, 4], B: f32[4, 16], C: f32[8, 16] (output))"
    )


def test_several_functions_in_one_module():
    funcs = []
    for name, factor in (("double", 2.0), ("triple", 3.0)):
        a = refcomp.placeholder((4,), name="A")
        b = refcomp.compute((4,), lambda i, a=a, f=factor: a[i] * f, name="B")
        funcs.append(refcomp.lower(refcomp.create_schedule(b.op), [a, b], name))
    module = refcomp.build_functions(funcs)
    source, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    module["triple"](source, out)
    np.testing.assert_array_equal(out, source * 3)
    module(source, out)  # the entry is the first
    np.testing.assert_array_equal(out, source * 2)


def test_a_built_module_survives_a_file(tmp_path):
    schedule, args = _matmul(8, 16, 4)
    refcomp.build(schedule, args, name="matmul").save(tmp_path / "matmul.refcomp")
    _run_matmul(refcomp.load_module(tmp_path / "matmul.refcomp"), 8, 16, 4)


def test_another_processor_by_the_target_string():
    schedule, args = _matmul(8, 16, 4)
    module = refcomp.build(schedule, args, "llvm -mcpu=x86-64", name="matmul")
    assert "zmm" not in module.get_source("asm")
    _run_matmul(module, 8, 16, 4)


def test_an_unknown_processor_lists_the_known_ones():
    schedule, args = _matmul(8, 16, 4)
    with pytest.raises(UserError, match=r"znver9(.|\n)*znver4"):
        refcomp.build(schedule, args, "llvm -mcpu=znver9")


def test_what_build_refuses():
    schedule, args = _matmul(8, 16, 4)
    with pytest.raises(UserError, match="a schedule is built without arguments"):
        refcomp.build(schedule)
    with pytest.raises(UserError, match="unknown target 'metal'"):
        refcomp.build(schedule, args, "metal")
    with pytest.raises(UserError, match="a host function cannot be compiled for interp"):
        refcomp.build(schedule, args, "llvm", target_host="interp")
    with pytest.raises(UserError, match="list of functions to build is empty"):
        refcomp.build_functions([])


def test_every_stage_is_dumped_on_request(tmp_path, monkeypatch):
    monkeypatch.setenv("REFCOMP_DUMP", str(tmp_path))
    schedule, args = _matmul(8, 16, 4)
    refcomp.build(schedule, args)
    names = [path.stem.split("_", 1)[1] for path in sorted(tmp_path.iterdir())]
    assert names[0] == "lowered" and names[-1] == "llvm" and "vectorize_loops" in names


@pytest.mark.parametrize("given", [None, "C"])
def test_what_is_no_schedule_cannot_be_built(given):
    with pytest.raises(UserError, match="cannot be built"):
        refcomp.build(given, [])


def test_no_functions_cannot_be_built():
    with pytest.raises(UserError, match="the list of functions to build is empty"):
        refcomp.build([])


@pytest.mark.parametrize("target", ["llvm", "interp"])
def test_a_function_of_the_users_that_breaks_a_rule_is_refused(target):
    func = refcomp.parse_func("func f(A: f32[4], B: f32[4] out) { A[0] = 1.0f32 }")
    with pytest.raises(UserError, match="f cannot be built: A is written, but") as caught:
        refcomp.build(func, target=target)
    assert caught.value.where == "A[0] = 1.0f32"


@pytest.mark.parametrize("target", ["llvm", "interp", "opencl"])
def test_a_function_that_is_flat_already_is_refused(target):
    func = refcomp.parse_func("func f(A: f32[4] out) { A@[0] = 1.0f32 }")
    with pytest.raises(UserError, match="f cannot be built: Store is not allowed"):
        refcomp.build(func, target=target)
    with pytest.raises(UserError, match="f cannot be built: Store is not allowed"):
        refcomp.build_functions([func], target)


# Devices.


def _tiled_product(n, m, p, tile=4):
    """A product of matrices by way of shared memory: the schedule that GPUs are made for."""
    a, b = refcomp.placeholder((n, p), name="A"), refcomp.placeholder((p, m), name="B")
    k = refcomp.reduce_axis((0, p), "k")
    c = refcomp.compute((n, m), lambda i, j: refcomp.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = refcomp.create_schedule(c.op)
    copies = [s.cache_read(tensor, "shared", [c]) for tensor in (a, b)]
    local = s.cache_write(c, "local")
    axes = s[c].tile(*c.op.axis, tile, tile)
    for axis, tag in zip(
        axes, ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x"), strict=True
    ):
        s[c].bind(axis, refcomp.thread_axis(tag))
    s[local].compute_at(s[c], axes[-1])
    outer, _ = s[local].split(s[local].op.reduce_axis[0], factor=tile)
    for copy in copies:
        s[copy].compute_at(s[local], outer)
        for axis, tag in zip(copy.op.axis, ("threadIdx.y", "threadIdx.x"), strict=True):
            s[copy].bind(axis, refcomp.thread_axis(tag))
    return s, [a, b, c]


def _on_device(module, device, n, m, p):
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 4, shape).astype(np.float32) for shape in ((n, p), (p, m)))
    arrays = [refcomp.array(x, device) for x in (a, b, np.full((n, m), 77, np.float32))]
    module(*arrays)
    np.testing.assert_array_equal(arrays[2].asnumpy(), a @ b)


@pytest.mark.pocl
def test_a_product_on_an_opencl_device():
    module = refcomp.build(*_tiled_product(8, 12, 20), "opencl", name="gemm")
    _on_device(module, refcomp.opencl(0), 8, 12, 20)
    (device_module,) = module.imported_modules
    text = device_module.get_source()
    assert "__kernel" in text and text.count("barrier(") == 2
    assert "launch gemm_kernel0" in module.get_source("launch")


@pytest.mark.pocl
def test_symbolic_extents_on_an_opencl_device():
    args = _tiled_product(*(refcomp.var(name) for name in ("n", "m", "p")))
    module = refcomp.build(*args, "opencl", target_host="llvm", name="gemm")
    for extents in [(8, 12, 20), (1, 1, 1), (7, 9, 5), (0, 3, 3), (3, 3, 0)]:
        _on_device(module, refcomp.opencl(0), *extents)


def test_the_interpreter_runs_kernels():
    module = refcomp.build(*_tiled_product(5, 6, 7), "interp")
    _run_matmul(module, 5, 6, 7)


@pytest.mark.rocm
def test_a_module_for_a_gpu_that_is_not_there():
    args = _tiled_product(32, 32, 32, tile=16)  # more threads than a wave has, which need a barrier
    module = refcomp.build(*args, "rocm -mcpu=gfx90a", name="gemm")
    (device_module,) = module.imported_modules
    assert "gemm_kernel0" in device_module.get_source("asm")
    assert "s_barrier" in device_module.get_source("asm")


def test_loops_bound_to_threads_are_refused_on_the_host():
    with pytest.raises(UserError, match="is bound to blockIdx.y, but the host has no such threads"):
        refcomp.build(*_tiled_product(8, 8, 8), "llvm")


def test_a_certified_build_runs_as_any_other():
    schedule, args = _matmul(70, 90, 50)
    with refcomp.build_options(certify=True):
        _run_matmul(refcomp.build(schedule, args, name="matmul"), 70, 90, 50)


@pytest.mark.parametrize("target", ["llvm", "interp"])
def test_a_certified_build_that_is_wrong_names_the_guilty_step(target):
    schedule, args = _matmul(70, 90, 50)
    (bug,) = [bug for bug in INTERPRETED if bug.name == "wrong step of a split"]
    with switched_on(bug):
        refcomp.build(schedule, args, target)
        with refcomp.build_options(certify=True), pytest.raises(CompilerBug) as caught:
            refcomp.build(schedule, args, target, name="matmul")
    assert re.match(r"s\[C\].tile\(.*\), at .* changes the result of matmul", caught.value.what)
    assert "C[0, 18] is " in caught.value.why and "; nothing writes it" in caught.value.why
    assert "with i = 0, j = 18, k = 17" in caught.value.why


def test_passes_over_loop_ir_are_certified_in_a_build():
    text = "func f(A: f32[n] out) { for i in range(n) parallel { A[i] = 1f32 } }"
    (bug,) = [bug for bug in INTERPRETED if bug.name == "last iterations of a parallel loop lost"]
    with refcomp.build_options(certify=True):
        refcomp.build(refcomp.parse_func(text))
        with switched_on(bug), pytest.raises(CompilerBug, match="pass outline_parallel changes"):
            refcomp.build(refcomp.parse_func(text))


def _calling(statement):
    a = refcomp.placeholder((4,), name="A")
    b = refcomp.extern((4,), [a], statement, name="B")
    return refcomp.create_schedule(b), [a, b]


def test_a_certified_build_of_what_calls_a_function_calls_it_only_when_it_runs():
    """Nothing is registered yet."""
    schedule, args = _calling(lambda ins, outs: refcomp.call_packed("tests.later", *ins, *outs))
    with refcomp.build_options(certify=True):
        refcomp.build(schedule, args)


def test_a_certified_build_of_what_cannot_be_certified_is_refused():
    schedule, args = _calling(
        lambda ins, outs: refcomp.call_extern("int32", "abs", outs[0].access_ptr("w", offset=1))
    )
    with refcomp.build_options(certify=True), pytest.raises(Unsupported) as caught:
        refcomp.build(schedule, args)
    assert "; or build it without the build option certify" in caught.value.remedy
