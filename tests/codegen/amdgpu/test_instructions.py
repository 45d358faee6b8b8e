"""Dot products and products of matrices, by tensorize: instructions, text, results."""

import re

import numpy as np
import pytest

import refcomp
from refcomp.driver.backends import as_target
from refcomp.driver.devices import rocm_emulator
from refcomp.driver.pipeline import run_device_passes
from refcomp.emulator.generations.generation import ARCHITECTURES
from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.foundation.errors import Unsupported
from refcomp.foundation.target import limits_of
from refcomp.ir.parser import parse_func
from refcomp.toolchain import disassemble, read_code_object
from tests.codegen.amdgpu.kernels import (
    NEWER_LLVMS,
    TOOLS_AND_GPUS,
    HostSimulation,
    compile_kernels,
    print_kernels,
    use_llvm,
    with_llvm,
)
from tests.walkthroughs import walkthrough

_LIMITS = limits_of(as_target("rocm"))
DTYPES = {"sdot4": ("int8", "int32"), "udot4": ("uint8", "uint32")}
HALVES = {"fdot2": ("float16", "float32"), "fdot2.f32.bf16": ("bfloat16", "float32")}


def dot_product(name, lanes):
    """The intrinsic of some products; what it resets and updates is one number."""
    element, total = (DTYPES | HALVES)[name]
    a, b = (refcomp.placeholder((lanes,), element, name=letter) for letter in "ab")
    k = refcomp.reduce_axis((0, lanes), name="k")
    c = refcomp.compute(
        (1,), lambda i: refcomp.sum(a[k].astype(total) * b[k].astype(total), axis=k), name="c"
    )

    def reset(out):
        ib = refcomp.ir_builder.create()
        ib.buffer_ptr(out)[0] = refcomp.const(0, total)
        return ib.get()

    def update(ins, out):
        ib = refcomp.ir_builder.create()
        x, y, z = map(ib.buffer_ptr, (*ins, out))
        factors = [x[i] for i in range(lanes)] + [y[i] for i in range(lanes)]
        z[0] = refcomp.call_llvm_intrin(total, f"llvm.amdgcn.{name}", *factors, z[0])
        return ib.get()

    return refcomp.decl_tensor_intrin(
        c.op,
        lambda ins, outs: (None, reset(outs[0]), update(ins, outs[0])),
        name,
        default_buffer_params={"offset_factor": lanes},
    )


def product(name, rows=8, depth=32):
    """C = A B^T, each thread adding up one element some products at a time."""
    (element, total), lanes = (DTYPES | HALVES)[name], 2 if name in HALVES else 4
    a, b = (refcomp.placeholder((rows, depth), element, name=letter) for letter in "AB")
    k = refcomp.reduce_axis((0, depth), name="k")
    c = refcomp.compute(
        (rows, rows),
        lambda i, j: refcomp.sum(a[i, k].astype(total) * b[j, k].astype(total), axis=k),
        name="C",
    )
    s = refcomp.create_schedule(c)
    sums = s.cache_write(c, "local")
    i, j = s[c].op.axis
    s[c].bind(i, refcomp.thread_axis("blockIdx.x"))
    s[c].bind(j, refcomp.thread_axis("threadIdx.x"))
    s[sums].compute_at(s[c], j)
    outer, inner = s[sums].split(s[sums].op.reduce_axis[0], factor=lanes)
    one, row = s[sums].op.axis
    s[sums].reorder(outer, one, row, inner)
    s[sums].tensorize(row, dot_product(name, lanes))
    return s, [a, b, c]


def _bytes(name, *shape):
    low, high = (-128, 128) if name == "sdot4" else (0, 256)
    return np.random.default_rng(4).integers(low, high, shape).astype(DTYPES[name][0])


def _kernel(name):
    schedule, args = product(name)
    program = run_device_passes(refcomp.lower(schedule, args, name), "rocm", _LIMITS)
    (kernel,) = program.kernels
    return kernel


@pytest.mark.parametrize("name", DTYPES)
def test_the_interpreter_computes_them(name):
    schedule, args = product(name)
    a, b, c = _bytes(name, 8, 32), _bytes(name, 8, 32)[::-1].copy(), np.zeros((8, 8), np.int64)
    c = c.astype(DTYPES[name][1])
    refcomp.build(schedule, args, "interp")(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.int64) @ b.T.astype(np.int64))


@pytest.mark.llvm
@pytest.mark.parametrize("name", DTYPES)
def test_they_compute_when_run_on_the_host(name, tmp_path):
    a, b = _bytes(name, 8, 32), _bytes(name, 8, 32)[::-1].copy()
    c = np.zeros((8, 8), DTYPES[name][1])
    kernel = _kernel(name)
    HostSimulation([kernel], tmp_path).call(kernel, [a, b, c])
    np.testing.assert_array_equal(c, a.astype(np.int64) @ b.T.astype(np.int64))


def test_since_gfx11_bytes_say_themselves_whether_they_are_signed():
    text = print_kernels([_kernel("sdot4")], "gfx90a").text
    assert re.search(r"call i32 @llvm.amdgcn.sdot4\(i32 %\S+, i32 %\S+, i32 %\S+, i1 false\)", text)
    mixed = print_kernels([_kernel("sdot4")], "gfx1100").text
    assert "@llvm.amdgcn.sudot4(i1 true, i32 %" in mixed
    assert "@llvm.amdgcn.udot4(i32 " in print_kernels([_kernel("udot4")], "gfx1100").text


@pytest.mark.rocm
@pytest.mark.parametrize(("llvm", "gpu"), [*TOOLS_AND_GPUS, ("19", "gfx906"), ("19", "gfx1030")])
def test_each_is_an_instruction(llvm, gpu, monkeypatch):
    use_llvm(llvm, monkeypatch)
    has_bf16 = gpu.startswith(("gfx11", "gfx12", "gfx95"))
    names = [*DTYPES, "fdot2", *(["fdot2.f32.bf16"] if has_bf16 else [])]
    text = disassemble(compile_kernels([_kernel(name) for name in names], gpu))
    assert re.search(r"\sv_dot4c?_i32_iu?8", text) and re.search(r"\sv_dot4_u32_u8", text)
    assert re.search(r"v_(dual_)?dot2(c|acc)?_f32_f16", text)
    assert bool(re.search(r"v_(dual_)?dot2(c|acc)?_f32_bf16", text)) == has_bf16
    # The elements of a row are read as a part of wider ones.
    assert not re.search(r"global_load_(ubyte|sbyte|ushort|[ui]8|[ui]16)", text)


@pytest.mark.parametrize("name", HALVES)
def test_the_interpreter_computes_dot_products_of_halves(name):
    schedule, args = product(name)
    rng, dtype = np.random.default_rng(7), to_numpy(as_dtype(args[0].dtype))
    a, b = (rng.integers(-9, 10, (8, 32)).astype(dtype) for _ in "ab")
    c = np.zeros((8, 8), np.float32)
    refcomp.build(schedule, args, "interp")(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


def test_bf16_is_named_since_llvm_19():
    kernel = _kernel("fdot2.f32.bf16")
    call = "call float @llvm.amdgcn.fdot2.f32.bf16(%s %%"
    assert call % "<2 x bfloat>" in print_kernels([kernel], "gfx1100", llvm=19).text
    assert call % "<2 x i16>" in print_kernels([kernel], "gfx1100", llvm=18).text


def test_a_gpu_without_it_refuses():
    bytes_ = ", ".join(f"A@[{k % 4}]" for k in range(8))
    store = f"C@[0] = extern i32 llvm.amdgcn.sdot4({bytes_}, 0i32)"
    kernel = parse_func(f"func f(A: i8[4], C: i32[1] out) {{ {store} }}")
    for gpu in ("gfx900", "gfx1010"):
        with pytest.raises(Unsupported, match=f"{gpu} has no instruction llvm.amdgcn.sdot4"):
            print_kernels([kernel], gpu)


# Products of matrices, by the walkthrough's schedule.

MATRIX = walkthrough("matrix_cores")
WALKTHROUGH = MATRIX["INSTRUCTIONS"]
SMALL = WALKTHROUGH[0][1]
_OTHERS = (
    ("mfma.f32.32x32x2f32", "float32", 32, 2, 1, 16, 64),
    ("mfma.f32.16x16x16f16", "float16", 16, 16, 4, 4, 64),
    ("mfma.f32.16x16x32.bf16", "bfloat16", 16, 32, 8, 4, 64),
    ("mfma.f32.32x32x16.f16", "float16", 32, 16, 8, 16, 64),
    ("wmma.f32.16x16x16.f16.v8f32.v8f16", "float16", 16, 16, 8, 8, 32),
)
KNOWN = {one.name: one for _, one in WALKTHROUGH}
KNOWN |= {values[0]: MATRIX["Instruction"](*values) for values in _OTHERS}


def _matrix_kernel(one, n, depth):
    schedule, args = MATRIX["schedule_product"](one, n, depth)
    program = run_device_passes(refcomp.lower(schedule, args, "product"), "rocm", _LIMITS)
    (kernel,) = program.kernels
    return kernel


@pytest.mark.llvm
def test_a_wave_computes_a_block_when_run_on_the_host(tmp_path):
    kernel = _matrix_kernel(SMALL, 16, 8)
    rng = np.random.default_rng(6)
    a, b = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((16, 8), (8, 16)))
    c = np.zeros((16, 16), np.float32)
    HostSimulation([kernel], tmp_path).call(kernel, [a, b, c])
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.rocm
@pytest.mark.parametrize(
    ("llvm", "gpu", "name", "pattern"),
    [
        with_llvm("19", "gfx908", "mfma.f32.16x16x4f32", "v_mfma_f32_16x16x4f32"),
        with_llvm("19", "gfx90a", "mfma.f32.32x32x2f32", "v_mfma_f32_32x32x2f32"),
        with_llvm("19", "gfx90a", "mfma.f32.32x32x8bf16.1k", "v_mfma_f32_32x32x8bf16_1k"),
        with_llvm("19", "gfx942", "mfma.f32.16x16x16f16", "v_mfma_f32_16x16x16_f16"),
        with_llvm("19", "gfx942", "mfma.f32.32x32x8f16", "v_mfma_f32_32x32x8_f16"),
        with_llvm("19", "gfx942", "mfma.f32.16x16x16bf16.1k", "v_mfma_f32_16x16x16_bf16"),
        with_llvm("19", "gfx1100", "wmma.f32.16x16x16.f16", "v_wmma_f32_16x16x16_f16"),
        with_llvm("19", "gfx1200", "wmma.f32.16x16x16.f16.v8f32.v8f16", "v_wmma_f32_16x16x16_f16"),
        with_llvm("16", "gfx90a", "mfma.f32.16x16x4f32", "v_mfma_f32_16x16x4f32"),
        with_llvm("16", "gfx1100", "wmma.f32.16x16x16.bf16", "v_wmma_f32_16x16x16_bf16"),
        with_llvm("15", "gfx90a", "mfma.f32.16x16x16bf16.1k", "v_mfma_f32_16x16x16bf16_1k"),
        with_llvm("15", "gfx1100", "wmma.f32.16x16x16.f16", "v_wmma_f32_16x16x16_f16"),
        *(
            with_llvm(newer, "gfx942", "mfma.f32.32x32x8bf16.1k", "v_mfma_f32_32x32x8_bf16")
            for newer in NEWER_LLVMS
        ),
        *(
            with_llvm(newer, "gfx950", "mfma.f32.16x16x32.bf16", "v_mfma_f32_16x16x32_bf16")
            for newer in NEWER_LLVMS
        ),
        *(
            with_llvm(newer, "gfx950", "mfma.f32.32x32x16.f16", "v_mfma_f32_32x32x16_f16")
            for newer in NEWER_LLVMS
        ),
        *(
            with_llvm(
                newer, "gfx1200", "wmma.f32.16x16x16.bf16.v8f32.v8i16", "v_wmma_f32_16x16x16_bf"
            )
            for newer in NEWER_LLVMS
        ),
    ],
)
def test_each_step_of_a_wave_is_one_instruction(llvm, gpu, name, pattern, monkeypatch):
    use_llvm(llvm, monkeypatch)
    one = KNOWN[name]
    code = compile_kernels([_matrix_kernel(one, 64, 2 * one.step)], gpu)
    assert disassemble(code).count(pattern) == 2
    (told,) = read_code_object(code.data).kernels
    assert (told.spilled_vgprs, told.private_bytes, told.max_threads) == (0, 0, one.wave)


@pytest.mark.rocm
@pytest.mark.parametrize(
    ("gpu", "one"), [*((g, o) for g, o in WALKTHROUGH if g in ARCHITECTURES), ("gfx942", SMALL)]
)
def test_products_of_matrices_on_emulated_gpus(gpu, one):
    """Small whole numbers, so that every order of adding gives the same."""
    n, depth, dtype = 2 * one.size, 3 * one.step, to_numpy(as_dtype(one.dtype))
    rng, device = np.random.default_rng(8), rocm_emulator(gpu)
    a, b = rng.integers(-8, 9, (n, depth)), rng.integers(-8, 9, (depth, n))
    arrays = [refcomp.array(x.astype(dtype), device) for x in (a, b)]
    result = refcomp.array(np.zeros((n, n), np.float32), device)
    refcomp.build(*MATRIX["schedule_product"](one, n, depth), f"rocm -mcpu={gpu}")(*arrays, result)
    np.testing.assert_array_equal(result.asnumpy(), a @ b)


@pytest.mark.search
@pytest.mark.parametrize("name", ["mfma.f32.16x16x16bf16.1k", "wmma.f32.16x16x16.bf16"])
def test_the_interpreter_computes_products_of_matrices(name):
    one = KNOWN[name]
    rng, dtype = np.random.default_rng(9), to_numpy(as_dtype(one.dtype))
    a, b = (rng.integers(-8, 9, (one.size, one.size)).astype(dtype) for _ in "ab")
    c = np.zeros((one.size, one.size), np.float32)
    refcomp.build(*MATRIX["schedule_product"](one, one.size, one.step), "interp")(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_matrix_products_have_their_gpus_and_waves():
    kernel = _matrix_kernel(SMALL, 16, 8)
    with pytest.raises(Unsupported, match="gfx1100 has no instruction llvm.amdgcn.mfma"):
        print_kernels([kernel], "gfx1100")
    wmma = _matrix_kernel(KNOWN["wmma.f32.16x16x16.f16"], 16, 16)
    with pytest.raises(Unsupported, match="is an instruction of waves of 32 lanes") as caught:
        print_kernels([wmma], "gfx1100", wavefront=64)
    assert "build with -wavefront=32" in str(caught.value)
