"""What threads of a subgroup compute together: as text, and through each LLVM."""

import re

import numpy as np
import pytest

from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.foundation.errors import Unsupported
from refcomp.ir.parser import parse_func
from refcomp.ir.verify import verify
from refcomp.toolchain import disassemble
from tests.codegen.amdgpu.kernels import (
    TOOLS_AND_GPUS,
    HostSimulation,
    compile_kernels,
    print_kernels,
    use_llvm,
)

DTYPES = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "f32", "f64")


def _kernel(name, call, dtype):
    kernel = parse_func(f"""
    func {name}_{dtype}(A: {dtype}[64], B: {dtype}[64] out) {{
      for t in range(64) threadIdx.x {{ B@[t] = {call} }}
    }}
    """)
    verify(kernel, "device")
    return kernel


ONE = "subgroup_shuffle(A@[t], 37i32, 64i32)"  # which is thread 5 of 32
EACH = "subgroup_shuffle(A@[t], i32(t) * 7i32, 16i32)"
SHUFFLE = "subgroup_shuffle_xor(A@[t], 4i32, 8i32)"
SUM = "subgroup_reduce_add(A@[t], 32i32)"


def _ways(gpu, width):
    """How each step of a sum reads the other lane, and the number that says which."""
    kernel = _kernel("sum", f"subgroup_reduce_add(A@[t], {width}i32)", "f32")
    text = print_kernels([kernel], gpu).text
    assert text.count(" = fadd float ") == width.bit_length() - 1
    pattern = (
        r"(update.dpp).*?, i32 (\d+), i32 15|(swizzle).*, i32 (\d+)\)|(xor) i32 \S+.lane, (\d+)"
    )
    return [(m[1] or m[3] or m[5], int(m[2] or m[4] or m[6])) for m in re.finditer(pattern, text)]


def test_a_sum_takes_a_step_for_each_bit_of_the_width():
    quad = [("update.dpp", 0b10110001), ("update.dpp", 0b01001110)]
    swizzle = [("swizzle", mask << 10 | 31) for mask in (4, 8, 16)]
    assert _ways("gfx90a", 64) == [*quad, *swizzle, ("xor", 32)]
    rows = [("update.dpp", 0x164), ("update.dpp", 0x168)]
    assert _ways("gfx1100", 32) == [*quad, *rows, ("swizzle", 16 << 10 | 31)]


@pytest.mark.parametrize(("dtype", "pieces"), [("u8", 1), ("f16", 1), ("i32", 1), ("f64", 2)])
def test_a_value_goes_in_pieces_of_32_bits(dtype, pieces):
    text = print_kernels([_kernel("shuffle", SHUFFLE, dtype)]).text
    assert text.count("call i32 @llvm.amdgcn.ds.swizzle(") == pieces


def test_a_subgroup_is_no_wider_than_a_wave():
    kernel = _kernel("sum", "subgroup_reduce_add(A@[t], 64i32)", "i32")
    assert "bpermute" in print_kernels([kernel], "gfx90a").text  # for the last step
    with pytest.raises(Unsupported, match="a subgroup of 64 threads") as caught:
        print_kernels([kernel], "gfx1100")
    assert "a wave of this GPU has 32" in str(caught.value)
    assert "narrower subgroups" in str(caught.value)


def _shuffled(values, mask):
    return values[np.arange(len(values)) ^ mask]


@pytest.mark.llvm
def test_they_compute_when_run_on_the_host(tmp_path):
    named = [("shuffle", SHUFFLE), ("sum", SUM), ("one", ONE), ("each", EACH)]
    kernels = {(name, d): _kernel(name, call, d) for name, call in named for d in DTYPES}
    simulation = HostSimulation(list(kernels.values()), tmp_path)
    rng = np.random.default_rng(2)
    for (name, dtype), kernel in kernels.items():
        values = rng.integers(0, 200, 64).astype(to_numpy(as_dtype(dtype)))
        expected = _shuffled(values, 4)
        if name == "one":
            expected = np.full_like(values, values[37])
        if name == "each":
            expected = values.reshape(4, 16)[:, np.arange(16) * 7 % 16].ravel()
        if name == "sum":
            expected = values
            for mask in (1, 2, 4, 8, 16):
                expected = expected + _shuffled(expected, mask)
        actual = np.zeros_like(values)
        simulation.call(kernel, [values, actual])
        np.testing.assert_array_equal(actual, expected, kernel.name)


@pytest.mark.rocm
@pytest.mark.parametrize(("llvm", "gpu"), TOOLS_AND_GPUS)
def test_they_compile(llvm, gpu, monkeypatch):
    use_llvm(llvm, monkeypatch)
    kernels = [
        _kernel(*named, d) for named in (("a", SHUFFLE), ("b", SUM), ("c", EACH)) for d in DTYPES
    ]
    text = disassemble(compile_kernels(kernels, gpu))
    assert "ds_swizzle_b32" in text and ("_dpp" in text or "quad_perm" in text)


def _one_lane(number, width, gpu="gfx90a", before=""):
    """How the lane of that number is read."""
    kernel = parse_func(f"""
    func one(A: f32[64], B: f32[64] out, n: i32) {{
      for t in range(64) threadIdx.x {{
        {before} B@[t] = subgroup_shuffle(A@[t], {number}, {width}i32) {"}" * before.count("{")}
      }}
    }}
    """)
    verify(kernel, "device")
    text = print_kernels([kernel], gpu).text
    return re.findall(r"call i32 @llvm.amdgcn.(?:ds.)?(readlane|readfirstlane|bpermute)", text)


def test_one_lane_that_all_read_is_a_scalar():
    assert _one_lane("5i32", 64) == _one_lane("n", 64) == ["readlane"]
    assert _one_lane("0i32", 64) == _one_lane("64i32", 64) == ["readfirstlane"]
    assert _one_lane("k", 64, before="for k: i32 in range(n) {") == ["readlane"]
    assert _one_lane("5i32", 32, "gfx1100") == ["readlane"]
    # Of subgroups that share a wave, each has a lane of its own.
    assert _one_lane("5i32", 32) == _one_lane("0i32", 16) == ["bpermute"]
    assert _one_lane("i32(t)", 64) == ["bpermute"]
    assert _one_lane("m", 64, before="let m: i32 = i32(t) {") == ["bpermute"]
    assert _one_lane("m", 64, before="let m: i32 = n * 2i32 {") == ["readlane"]


@pytest.mark.rocm
@pytest.mark.parametrize(("llvm", "gpu"), TOOLS_AND_GPUS)
def test_a_scalar_is_read_by_one_instruction(llvm, gpu, monkeypatch):
    use_llvm(llvm, monkeypatch)
    width = 32 if gpu.startswith("gfx1") else 64
    calls = [f"subgroup_shuffle(A@[t], {lane}, {width}i32)" for lane in ("0i32", "7i32")]
    kernels = [_kernel(f"k{k}", call, d) for k, call in enumerate(calls) for d in DTYPES]
    text = disassemble(compile_kernels(kernels, gpu))
    assert "v_readfirstlane_b32" in text and "v_readlane_b32" in text
    assert "ds_bpermute" not in text


@pytest.mark.rocm
def test_near_lanes_are_read_by_the_sum_itself():
    kernel = _kernel("sum", "subgroup_reduce_add(A@[t], 4i32)", "f32")
    text = disassemble(compile_kernels([kernel], "gfx90a"))
    assert len(re.findall(r"v_add_f32_dpp \S+, \S+, \S+ quad_perm:", text)) == 2
    assert "ds_" not in text
