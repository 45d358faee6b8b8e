"""Whole files of CUDA C++: golden texts, compiled by nvcc, run on this machine by g++."""

import copy

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from refcomp.codegen.cuda.module import print_cuda
from refcomp.foundation.artifacts import Source
from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.errors import ToolchainError, Unsupported, UserError
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func
from refcomp.ir.verify import verify
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes.fit_vector_lanes import fit_vector_lanes
from refcomp.passes.introduce_lets import introduce_lets
from refcomp.passes.lower_intrinsics import lower_intrinsics
from refcomp.toolchain import compile_source
from tests.codegen.cuda.host_kernels import HostKernels
from tests.codegen.device_kernels import TEXTS, device_kernel, draw_arguments
from tests.codegen.opencl.kernels import as_kernel
from tests.strategies.funcs import make_arguments, runnable_funcs

SHARED_BYTES = {"group_sum": (24 * 4,)}
RANDOM_PROGRAMS = 60


@pytest.mark.parametrize("name", TEXTS)
def test_golden(name, golden):
    golden(f"cuda/{name}.cu", print_cuda([device_kernel(name)]).text)


@pytest.mark.gcc
def test_golden_kernels_compute_on_the_host():
    kernels = {name: device_kernel(name) for name in TEXTS}
    built = HostKernels(list(kernels.values()))
    for name, kernel in kernels.items():
        actual = draw_arguments(name)
        expected = copy.deepcopy(actual)
        interpret(kernel, expected)
        built.call(kernel, actual, shared_bytes=SHARED_BYTES.get(name, ()))
        for ours, theirs in zip(actual, expected, strict=True):
            tolerance = 1e-6 if name in ("vectors", "softmax") else 0  # exp
            np.testing.assert_allclose(ours, theirs, tolerance, err_msg=name)


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_nvcc_compiles_the_golden_kernels(arch):
    source = print_cuda([device_kernel(name) for name in TEXTS])
    binary = compile_source(source, {"arch": arch}, "cubin", description="cuda")
    assert binary.data.startswith(b"\x7fELF")


@pytest.mark.gcc
def test_random_programs_agree_with_the_interpreter():
    """Draw programs first, and compile all of them as one file."""
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
    built = HostKernels(kernels)
    for (func, symbols), kernel in zip(drawn, kernels, strict=True):
        actual = make_arguments(func, symbols)
        expected = copy.deepcopy(actual)
        interpret(func, expected)
        built.call(kernel, [*actual, *symbols.values()])
        for ours, theirs in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs, err_msg=str(kernel))
    assert len(drawn) >= RANDOM_PROGRAMS // 2


def _as_kernel(name, func, symbols):
    kernel = as_kernel(introduce_lets(fit_vector_lanes(lower_intrinsics(func))), symbols)
    verify(kernel, "device")
    return PrimFunc(name, kernel.params, kernel.body, kernel.outputs)


def test_the_size_of_a_group_is_a_launch_bound():
    assert "__launch_bounds__(256)" in print_cuda([device_kernel("matmul")]).text


def test_only_functions_that_are_used_are_defined():
    text = print_cuda([device_kernel("vector_add")]).text
    assert "template" not in text and "#include" not in text
    assert "struct vec" in print_cuda([device_kernel("vectors")]).text


@pytest.mark.parametrize("name", ["threadIdx", "float4", "__syncthreads", "class", "expf"])
def test_names_that_mean_something_in_cuda_are_changed(name):
    func = parse_func("func f(A: i64[1] out) { A@[0] = 1 }")
    object.__setattr__(func.params[0], "name", name)
    text = print_cuda([PrimFunc("f", func.params, func.body, (name,))]).text
    assert f" {name}[" not in text


def test_a_kernel_with_a_name_of_cuda_is_refused():
    kernel = parse_func("func atomicAdd(A: i64[1] out) { A@[0] = 1 }")
    with pytest.raises(UserError, match="no kernel can be named 'atomicAdd'") as caught:
        print_cuda([kernel])
    assert caught.value.why == "the name means something in CUDA C++, or may mean something"


@pytest.mark.nvcc
def test_a_failure_names_the_statement_behind_the_line():
    source = print_cuda([device_kernel("vector_add")])
    lines = source.text.splitlines()
    number = next(k for k, line in enumerate(lines) if " = A[" in line)
    wrong = source.text.replace(lines[number], lines[number].replace("+ B", "+ +* B"))
    with pytest.raises(ToolchainError) as caught:
        compile_source(Source(wrong, "cuda", source.line_map), {}, "cubin", description="cuda")
    assert "C@[bx * 64 + tx] = A@[bx * 64 + tx] +" in (caught.value.where or "")


def _text(body):
    func = parse_func(f"func f(A: f32[64], B: f32[64] out, n: i64) {{ {body} }}")
    verify(func, "device")
    return print_cuda([func]).text


def test_a_loop_that_is_left_to_the_compiler_has_a_pragma():
    assert "  #pragma unroll\n  for (long long i = 0ll; i < 8ll; ++i) {\n" in _text(
        "for i in range(8) unrollable { B@[i] = A@[i] }"
    )
    assert "#pragma" not in _text("for i in range(8) { B@[i] = A@[i] }")


def test_no_variable_is_volatile():
    text = _text("""
    for t in range(64) threadIdx.x { alloc S: f32[64] shared {
      let p: bool = t < n { for k in range(5) { for j in range(n) {
        S@[t] = A@[t] barrier if (p) { B@[t] = S@[63 - t] } barrier
      } } }
    } }""")
    assert "__syncthreads" in text and "volatile" not in text


def test_a_subgroup_wider_than_a_warp_is_refused():
    with pytest.raises(Unsupported, match="a subgroup of 64 threads does not fit") as caught:
        _text("for t in range(64) threadIdx.x { B@[t] = subgroup_reduce_add(A@[t], 64i32) }")
    assert caught.value.why == "a warp of this GPU has 32 lanes"
    assert caught.value.remedy == "schedule for narrower subgroups"


_BOUNDS = """
func {name}(A: {float}[{count}], B: {int}[{count}] out) {{
  for i in range({count}) threadIdx.x {{
    B@[i] = {int}(A@[i])
  }}
}}
"""


@pytest.mark.gcc
def test_floats_beyond_an_integer_type_become_its_nearest_number():
    powers = [2.0**k for k in (7, 8, 15, 16, 31, 32, 63, 64)]
    numbers = [
        sign * p * near for p in powers for near in (0.75, 1, 1.25, 1.75) for sign in (-1, 1)
    ]
    numbers += [p - 1 for p in powers] + [-p - 1 for p in powers] + [np.nan, np.inf, -np.inf]
    kernels = {}
    for float_ in ("f32", "f64"):
        for int_ in ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"):
            name = f"{float_}_to_{int_}"
            text = _BOUNDS.format(name=name, float=float_, int=int_, count=len(numbers))
            kernels[name] = parse_func(text)
    built = HostKernels(list(kernels.values()))
    for name, kernel in kernels.items():
        given, target = (to_numpy(param.dtype) for param in kernel.params)
        arrays = [np.array(numbers).astype(given), np.zeros(len(numbers), target)]
        expected = copy.deepcopy(arrays)
        interpret(kernel, expected)
        built.call(kernel, arrays)
        np.testing.assert_array_equal(arrays[1], expected[1], err_msg=name)
