"""Whole files of OpenCL C: golden texts, run on PoCL, read by clang; names, refusals, line map."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refcomp.codegen.opencl.module import print_opencl
from refcomp.foundation.artifacts import Source
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import ToolchainError, Unsupported, UserError
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func
from refcomp.ir.rewrite import with_fields
from refcomp.ir.stmt import For, Origin, Store
from refcomp.ir.verify import verify
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes.fit_vector_lanes import fit_vector_lanes
from refcomp.passes.introduce_lets import introduce_lets
from refcomp.passes.lower_intrinsics import lower_intrinsics
from refcomp.toolchain import compile_source
from tests.codegen.device_kernels import TEXTS, device_kernel, draw_arguments
from tests.codegen.opencl.kernels import ALL, POCL, OpenCLKernels, as_kernel, print_body
from tests.strategies.funcs import make_arguments, runnable_funcs

SHARED_BYTES = {"group_sum": (24 * 4,)}
# What the golden texts are printed for; `halves` also for a device that computes in f16.
PRINTED = {name: (name, POCL) for name in TEXTS} | {"halves_native": ("halves", ALL)}


@pytest.mark.parametrize("file", PRINTED)
def test_golden(file, golden):
    name, extensions = PRINTED[file]
    text = print_opencl([device_kernel(name)], extensions=extensions).text
    golden(f"opencl/{file}.cl", text)


@pytest.mark.clang
@pytest.mark.parametrize("file", PRINTED)
def test_clang_takes_the_golden_texts(file):
    name, extensions = PRINTED[file]
    source = print_opencl([device_kernel(name)], extensions=extensions)
    assert "spir_kernel" in compile_source(source, {}, "ll", description="opencl_c").data.decode()


@pytest.mark.pocl
def test_golden_kernels_compute():
    kernels = {name: device_kernel(name) for name in TEXTS}
    built = OpenCLKernels(list(kernels.values()))
    for name, kernel in kernels.items():
        actual = draw_arguments(name)
        expected = copy.deepcopy(actual)
        interpret(kernel, expected)
        built.call(kernel, actual, shared_bytes=SHARED_BYTES.get(name, ()))
        for ours, theirs in zip(actual, expected, strict=True):
            tolerance = 1e-6 if name in ("vectors", "softmax") else 0  # exp
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, err_msg=name)


@pytest.mark.pocl
@given(st.data())
@settings(max_examples=max(1, settings().max_examples // 2))
def test_random_programs_agree_with_the_interpreter(data):
    func, symbols = data.draw(runnable_funcs("host"))
    kernel = as_kernel(introduce_lets(fit_vector_lanes(lower_intrinsics(func))), symbols)
    verify(kernel, "device")
    actual = make_arguments(func, symbols)
    expected = copy.deepcopy(actual)
    interpret(func, expected)
    OpenCLKernels([kernel]).call(kernel, [*actual, *symbols.values()])
    for ours, theirs in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_kernels_without_bound_loops_are_groups_of_one_thread():
    assert "reqd_work_group_size(1, 1, 1)" in print_body("B@[0] = 1.0f32")


def test_extensions_are_named_only_where_they_are_used():
    text = print_body("B@[0] = A@[0]", extensions=ALL)
    assert "EXTENSION" not in text
    text = print_body("B@[0] = f32(f16(A@[0]))", extensions=ALL)
    assert text.count("EXTENSION") == 1 and "cl_khr_fp16 : enable" in text


def test_nothing_is_contracted():
    assert print_body("B@[0] = A@[0]").startswith("#pragma OPENCL FP_CONTRACT OFF\n")


def test_a_device_without_f64_is_told_so():
    with pytest.raises(Unsupported, match="no value of dtype f64 can be computed") as caught:
        print_body("B@[0] = f32(f64(A@[0]) + 1.0f64)", extensions=())
    assert caught.value.where == "B@[0] = f32(f64(A@[0]) + 1.0f64)"


def test_a_lack_of_atomics_names_the_dtype():
    with pytest.raises(Unsupported, match="no element of dtype u64 can be updated at once"):
        print_opencl([device_kernel("atomics")], extensions=["cl_khr_fp64"])


def test_names_of_users_are_harmless():
    hostile = 'x" }\n__kernel void evil() {'
    a, i = Buffer(hostile, I64, (IntImm(8, I64),)), Var(hostile, I64)
    loop = For(i, IntImm(0, I64), IntImm(8, I64), "serial", Store(a, i, i))
    text = print_opencl([PrimFunc(hostile, (a,), loop, (hostile,))], extensions=()).text
    assert "evil()" not in text and '"' not in text
    assert text.count("__kernel ") == 1


@pytest.mark.clang
@pytest.mark.parametrize(
    "name",
    [
        "kernel",
        "global",
        "float4",
        "exp",
        "min",
        "select",
        "as_int",
        "vload4",
        "half",
        "M_PI",
        "int",
        "INT_MIN",
        "floordiv_i64",
        "get_local_id",
        "barrier",
        "convert_int_sat",
        "t",
        "uchar",
        "NAN",
    ],
)
def test_names_that_mean_something_in_opencl_are_changed(name):
    func = PrimFunc("f", *_reading(name), ("out_",))
    source = print_opencl([func], extensions=POCL)
    compile_source(source, {}, "ll", description="opencl_c")
    assert name == "t" or f" {name} =" not in source.text


def _reading(name):
    """A parameter and a variable of that name, in a kernel that calls functions."""
    text = """
    func f(p: i64[9], out_: i64[9] out) {
      for v in range(7) {
        out_@[v] = min(p@[v] // p@[0], i64(exp(f32(v)) + 0.5f32)) - -9223372036854775808
        let pair: i64x2 = p@[ramp(v, 1, 2)] {
          out_@[ramp(v, 1, 2)] = select(ramp(v, 1, 2) < broadcast(v, 2), ramp(v, 2, 2), pair)
        }
      }
    }
    """
    func = parse_func(text)
    for item in (func.params[0], func.body.var):
        object.__setattr__(item, "name", name)  # most of these names cannot stand in a text
    return func.params, func.body


def test_kernels_that_cannot_have_their_name_are_refused():
    twice = [parse_func("func f(A: i64[1] out) { A@[0] = 1 }") for _ in range(2)]
    with pytest.raises(UserError, match="two kernels named 'f' cannot stand in one file"):
        print_opencl(twice, extensions=())
    taken = parse_func("func convert_float4(A: i64[1] out) { A@[0] = 1 }")
    with pytest.raises(UserError, match="no kernel can be named 'convert_float4'"):
        print_opencl([taken], extensions=())


@pytest.mark.parametrize("name", ["to_gray", "get_local_mean", "read_all", "atomics", "as_is_8"])
def test_names_that_only_begin_like_those_of_opencl_are_kept(name):
    func = parse_func(f"func {name}({name}_: i64[1] out) {{ {name}_@[0] = 1 }}")
    text = print_opencl([func], extensions=()).text
    assert f"void {name}(" in text and f"  {name}_[0l] = 1l;" in text


@pytest.mark.clang
def test_a_failure_names_the_statement_behind_the_line():
    kernel = device_kernel("vector_add")
    store = kernel.body.body.body.then_case
    guilty = with_fields(store, origin=Origin("C", line="model.py:7"))
    guarded = with_fields(kernel.body.body.body, then_case=guilty)
    inner = with_fields(kernel.body.body, body=guarded)
    source = print_opencl([kernel.with_body(with_fields(kernel.body, body=inner))], extensions=())
    lines = source.text.splitlines()
    number = next(k for k, line in enumerate(lines) if "C[" in line)
    assert source.line_map[number].startswith("C@[bx * 64 + tx] = A@[bx * 64 + tx] +")
    assert source.line_map[number].endswith("stage C, at model.py:7")
    wrong = source.text.replace(lines[number], lines[number].replace("+ B", "+ +* B"))
    with pytest.raises(ToolchainError) as caught:
        compile_source(Source(wrong, "opencl", source.line_map), {}, "ll", description="opencl_c")
    assert "model.py:7" in (caught.value.where or "")


def test_every_line_of_a_kernel_has_a_statement_but_braces_of_the_kernel():
    source = print_opencl([device_kernel("matmul")], extensions=())
    assert len(source.line_map) == source.text.count("\n")
    told = dict(zip(source.text.splitlines(), source.line_map, strict=True))
    assert told["      sum[0l] = sum[0l] + As[ty * 16ul + r] * Bs[r * 16ul + tx];"].startswith(
        "sum@"
    )
    assert any("blockIdx.y" in line for text, line in told.items() if "get_group_id(1)" in text)


def test_printing_grows_linearly():
    def size(count):
        return len(print_body(" ".join(f"B@[{k}] = A@[{k}] + 1.0f32" for k in range(count))))

    assert size(64) < 11 * size(8)
