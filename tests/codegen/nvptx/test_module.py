"""Whole files for NVIDIA GPUs: golden texts, compiled by each LLVM and ptxas, computed, names."""

import copy
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from refcomp.codegen.spelling import load_spelling
from refcomp.foundation.artifacts import Source
from refcomp.foundation.dtype import F32, F64, I64
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func, parse_funcs
from refcomp.ir.stmt import For, Store
from refcomp.ir.verify import verify
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes.align_arguments import align_arguments
from refcomp.passes.introduce_lets import introduce_lets
from refcomp.passes.lower_intrinsics import lower_intrinsics
from refcomp.toolchain import compile_source
from tests.codegen.device_kernels import TEXTS, device_kernel, draw_arguments
from tests.codegen.intrinsic_cases import CASES, intrinsic_kernel
from tests.codegen.nvptx.kernels import (
    ARCHS,
    LLVMS,
    NvptxOnHost,
    assemble,
    compile_ptx,
    print_kernels,
    use_llvm,
)
from tests.codegen.opencl.kernels import as_kernel
from tests.strategies.funcs import make_arguments, runnable_funcs

BEGINS = {"group_sum": (128,)}
RANDOM_PROGRAMS = 40


@pytest.mark.parametrize("name", TEXTS)
def test_golden(name, golden):
    golden(f"nvptx/{name}.ll", print_kernels([device_kernel(name)]).text)


@pytest.mark.llvm
@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("llvm", LLVMS)
def test_golden_kernels_compile(llvm, arch, monkeypatch):
    use_llvm(llvm, monkeypatch)
    arch = "sm_80" if (llvm, arch) == ("15", "sm_90") else arch
    ptx = compile_ptx([device_kernel(name) for name in TEXTS], arch)
    assert ptx.count(".entry") == len(TEXTS) and f".target {arch}\n" in ptx
    assert assemble(ptx, arch).data.startswith(b"\x7fELF")


@pytest.mark.llvm
def test_golden_kernels_compute_when_run_on_the_host(tmp_path):
    kernels = {name: device_kernel(name) for name in TEXTS}
    simulation = NvptxOnHost(list(kernels.values()), tmp_path)
    for name, kernel in kernels.items():
        actual = draw_arguments(name)
        expected = copy.deepcopy(actual)
        interpret(kernel, expected)
        simulation.call(kernel, actual, BEGINS.get(name, ()))
        for ours, theirs in zip(actual, expected, strict=True):
            tolerance = 1e-6 if name in ("vectors", "atomics", "softmax") else 0  # exp; sums
            np.testing.assert_allclose(ours, theirs, tolerance, err_msg=name)


@pytest.mark.llvm
@pytest.mark.nvcc
def test_random_programs_compute_and_compile(tmp_path):
    """Draw programs first, then compile all as one file for the host, and one for GPUs."""
    drawn = []

    @settings(
        max_examples=RANDOM_PROGRAMS,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def draw(data):
        drawn.append(data.draw(runnable_funcs("host")))

    draw()
    kernels = [_as_kernel(f"random{k}", *program) for k, program in enumerate(drawn)]
    simulation = NvptxOnHost(kernels, tmp_path)
    for (func, symbols), kernel in zip(drawn, kernels, strict=True):
        actual = make_arguments(func, symbols)
        expected = copy.deepcopy(actual)
        interpret(func, expected)
        simulation.call(kernel, [*actual, *symbols.values()])
        for ours, theirs in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs, err_msg=str(kernel))
    ptx = compile_ptx(kernels, passes="default<O1>")
    assert ptx.count(".entry") == len(drawn) >= RANDOM_PROGRAMS // 2
    assemble(ptx)


def _as_kernel(name, func, symbols):
    kernel = as_kernel(introduce_lets(lower_intrinsics(func)), symbols)
    verify(kernel, "device")
    return PrimFunc(name, kernel.params, kernel.body, kernel.outputs)


# The structure of the code.


def _ptx(text, arch="sm_75"):
    return compile_ptx([align_arguments(parse_func(text))], arch)


@pytest.mark.llvm
def test_reads_of_inputs_go_through_the_read_only_cache():
    ptx = _ptx("""
    func f(A: f32[64], B: f32[64] out) {
      for t in range(64) threadIdx.x { B@[t] = A@[t] + B@[t] }
    }
    """)
    assert ptx.count("ld.global.nc.f32") == 1 and ptx.count("ld.global.f32") == 1
    assert ".maxntid 64, 1, 1" in ptx and "%tid.x" in ptx


@pytest.mark.llvm
@pytest.mark.parametrize(
    ("dtype", "lanes", "access"),
    [("f32", 4, "v4.f32"), ("f64", 2, "v2.f64"), ("i32", 4, "v4.u32"), ("f16", 8, "v4.[bu]32")],
)
def test_aligned_vectors_are_accesses_of_128_bits(dtype, lanes, access):
    at = f"ramp(t * {lanes}, 1, {lanes})"
    ptx = _ptx(f"""
    func f(A: {dtype}[512], B: {dtype}[512] out) {{
      for t in range(64) threadIdx.x {{
        alloc S: {dtype}[512] shared {{
          S@[{at}] = A@[{at}]
          barrier
          B@[{at}] = S@[ramp((63 - t) * {lanes}, 1, {lanes})]
        }}
      }}
    }}
    """)
    for kind in ("ld.global.nc", "st.shared", "ld.shared", "st.global"):
        assert re.search(rf"{kind}\.{access}\b", ptx), kind
    assert ptx.count("bar.sync") == 1


@pytest.mark.llvm
def test_vectors_at_odd_places_are_read_by_elements():
    ptx = _ptx("""
    func f(A: f32[65], B: f32[64] out) {
      for t in range(16) threadIdx.x { B@[ramp(t * 4, 1, 4)] = A@[ramp(t * 4 + 1, 1, 4)] }
    }
    """)
    assert ptx.count("ld.global.nc.f32") == 4 and "st.global.v4.f32" in ptx


@pytest.mark.llvm
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_a_product_and_a_sum_are_fused_only_by_licence(dtype):
    text = f"""
    func f(A: {dtype}[8], B: {dtype}[8] out) {{
      for t in range(8) threadIdx.x {{ B@[t] = A@[t] * A@[t] + B@[t] }}
    }}
    """
    ptx = _ptx(text)
    assert f"mul.rn.{dtype}" in ptx and f"add.rn.{dtype}" in ptx and "fma" not in ptx
    assert f"fma.rn.{dtype}" in _ptx(
        text.replace("A@[t] * A@[t] + B@[t]", "fma(A@[t], A@[t], B@[t])")
    )


@pytest.mark.llvm
def test_divisions_and_roots_are_exact_and_denormals_are_kept():
    ptx = _ptx("func f(A: f32[8], B: f32[8] out) { B@[0] = A@[0] / A@[1] + sqrt(A@[2]) }")
    assert "div.rn.f32" in ptx and "sqrt.rn.f32" in ptx and ".ftz" not in ptx


@pytest.mark.llvm
@pytest.mark.nvcc
def test_libdevice_is_linked_only_where_maths_needs_it():
    plain = print_kernels([device_kernel("matmul")])
    assert plain.requires == frozenset()
    source = print_kernels([device_kernel("vectors")])
    assert source.requires == {"libdevice"} and "call float @__nv_expf" in source.text
    ptx = compile_ptx([device_kernel("vectors")])
    # The function's body is part of the kernel, and no other function is there.
    assert "ex2.approx" in ptx and ".func" not in ptx and "__nv" not in ptx


@pytest.mark.llvm
@pytest.mark.nvcc
def test_every_function_of_libdevice_is_there():
    kernels = [intrinsic_kernel(*case, 1) for case in CASES]
    ptx = compile_ptx([*kernels, *_remainders()], passes="default<O1>")
    assert ".extern .func" not in ptx
    assemble(ptx)


def _remainders():
    for dtype in ("f16", "f32", "f64"):
        yield parse_func(f"""
        func mod_{dtype}(A: {dtype}[2], B: {dtype}[1] out) {{ B@[0] = truncmod(A@[0], A@[1]) }}
        """)


def test_functions_that_err_by_too_much_are_computed_in_f64():
    """CUDA's powf may err by more units in the last place than the loop IR allows."""
    for dtype, lanes in ((F32, 1), (F32, 2), (F64, 1)):
        text = print_kernels([intrinsic_kernel("pow", dtype, lanes)]).text
        assert "double @__nv_pow(double" in text and "@__nv_powf" not in text
    assert "float @__nv_expf(float" in print_kernels([intrinsic_kernel("exp", F32, 1)]).text


def test_bounds_of_errors_are_those_of_cuda():
    ours = load_spelling("llvm", "llvm_kernels", "nvptx").tables
    theirs = load_spelling("c_family", "cuda").tables["maths"]["float"]
    for name, ulp in ours["function_ulp"].items():
        assert theirs.get(name, {}).get("ulp", 0) == ulp, name
    assert ours["function_ulp"].keys() == ours["function"].keys()


# Names and failures.


def test_the_entries_are_the_kernels():
    kernels = parse_funcs("func exp(A: f32[1] out) { A@[0] = 1.0f32 } func g(A: f32[1] out) { }")
    assert print_kernels(kernels).entries == ("exp_", "g")


def test_every_line_tells_its_statement():
    source = print_kernels([device_kernel("matmul")])
    lines = source.text.splitlines()
    assert len(lines) == len(source.line_map)
    told = dict(zip(lines, source.line_map, strict=True))
    assert told["  call void @llvm.nvvm.barrier0()"] == "barrier"


@pytest.mark.llvm
def test_a_failure_names_the_statement_behind_the_line():
    source = print_kernels([device_kernel("vector_add")])
    wrong = source.text.replace(" = fadd float", " = fsum float")
    broken = Source(wrong, "llvm", source.line_map, entries=source.entries)
    with pytest.raises(ToolchainError) as caught:
        compile_source(broken, {}, "ptx", description="nvptx")
    assert "C@[bx * 64 + tx] = A@[bx * 64 + tx] +" in (caught.value.where or "")


def test_names_of_users_are_harmless():
    hostile = 'x" }\n; define @evil()'
    a, i = Buffer(hostile, I64, (IntImm(8, I64),)), Var(hostile, I64)
    loop = For(i, IntImm(0, I64), IntImm(8, I64), "threadIdx.x", Store(a, i, i))
    text = print_kernels([PrimFunc(hostile, (a,), loop, (hostile,))]).text
    assert "evil()" not in text
    assert len([line for line in text.splitlines() if line.startswith("define")]) == 1


@pytest.mark.llvm
@pytest.mark.nvcc
def test_names_that_mean_something_in_ptx_are_harmless():
    names = ("add", "reg", "entry", "tid", "texref", "bar")
    text = "func {}(A: f32[4], {}: f32[4] out) {{ {}@[0] = exp(A@[0]) }}"
    assemble(compile_ptx([parse_func(text.format(name, name, name)) for name in names]))


@pytest.mark.parametrize("name", ["__nv_expf", "dynamic_shared", "WARP_SZ", "_"])
def test_a_kernel_with_a_name_that_is_taken_is_refused(name):
    with pytest.raises(UserError, match=f"no kernel can be named '{name}'") as caught:
        print_kernels([parse_func(f"func {name}(A: f32[4] out) {{ A@[0] = 1.0f32 }}")])
    assert "means something in PTX, or may mean something in libdevice" in caught.value.why


def test_two_kernels_of_one_name_are_refused():
    kernels = parse_funcs("func f(A: f32[1] out) { } func f(A: f32[1] out) { }")
    with pytest.raises(UserError, match="two functions named 'f' cannot stand in one module"):
        print_kernels(kernels)


def test_unknown_architectures_are_refused():
    with pytest.raises(UserError, match="'sm_9x' is not the name of an NVIDIA architecture"):
        print_kernels([device_kernel("matmul")], "sm_9x")


def test_launch_bounds_are_those_of_groups_of_constant_size():
    kernels = [device_kernel("group_sum"), device_kernel("matmul"), device_kernel("control")]
    text = print_kernels(kernels).text
    assert "!nvvm.annotations = !{!0, !1}\n" in text
    assert (
        '!0 = !{ptr @matmul, !"maxntidx", i32 16, !"maxntidy", i32 16, !"maxntidz", i32 1}' in text
    )
    assert "nvvm.annotations" not in print_kernels(kernels[:1]).text
