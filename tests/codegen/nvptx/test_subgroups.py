"""What threads of a subgroup compute together: as text, compiled, run on the host."""

import numpy as np
import pytest

from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.foundation.errors import Unsupported
from refcomp.ir.parser import parse_func
from refcomp.ir.verify import verify
from tests.codegen.nvptx.kernels import NvptxOnHost, assemble, compile_ptx, print_kernels

DTYPES = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "f32", "f64")
ONE = "subgroup_shuffle(A@[t], 37i32, 32i32)"  # which is thread 5 of 32
EACH = "subgroup_shuffle(A@[t], i32(t) * 7i32, 16i32)"
SHUFFLE = "subgroup_shuffle_xor(A@[t], 4i32, 8i32)"
SUM = "subgroup_reduce_add(A@[t], 32i32)"


def _kernel(name, call, dtype):
    kernel = parse_func(f"""
    func {name}_{dtype}(A: {dtype}[64], B: {dtype}[64] out) {{
      for t in range(64) threadIdx.x {{ B@[t] = {call} }}
    }}
    """)
    verify(kernel, "device")
    return kernel


def test_a_sum_takes_a_step_for_each_bit_of_the_width():
    text = print_kernels([_kernel("sum", "subgroup_reduce_add(A@[t], 8i32)", "f32")]).text
    assert text.count(" = fadd float ") == 3
    for mask in (1, 2, 4):
        assert f"i32 {mask}, i32 {0x181F})" in text


@pytest.mark.parametrize(("dtype", "pieces"), [("u8", 1), ("f16", 1), ("i32", 1), ("f64", 2)])
def test_a_value_goes_in_pieces_of_32_bits(dtype, pieces):
    text = print_kernels([_kernel("shuffle", SHUFFLE, dtype)]).text
    assert text.count("call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1,") == pieces


def test_a_subgroup_is_no_wider_than_a_warp():
    kernel = _kernel("sum", "subgroup_reduce_add(A@[t], 64i32)", "i32")
    with pytest.raises(Unsupported, match="a subgroup of 64 threads") as caught:
        print_kernels([kernel])
    assert "a wave of this GPU has 32" in str(caught.value)


@pytest.mark.llvm
def test_they_compute_when_run_on_the_host(tmp_path):
    named = [("shuffle", SHUFFLE), ("sum", SUM), ("one", ONE), ("each", EACH)]
    kernels = {(name, d): _kernel(name, call, d) for name, call in named for d in DTYPES}
    simulation = NvptxOnHost(list(kernels.values()), tmp_path)
    rng = np.random.default_rng(2)
    lanes = np.arange(64)
    for (name, dtype), kernel in kernels.items():
        values = rng.integers(0, 200, 64).astype(to_numpy(as_dtype(dtype)))
        expected = values[lanes ^ 4]
        if name == "one":
            expected = np.repeat(values[5::32], 32)
        if name == "each":
            expected = values.reshape(4, 16)[:, np.arange(16) * 7 % 16].ravel()
        if name == "sum":
            expected = values
            for mask in (1, 2, 4, 8, 16):
                expected = expected + expected[lanes ^ mask]
        actual = np.zeros_like(values)
        simulation.call(kernel, [values, actual])
        np.testing.assert_array_equal(actual, expected, kernel.name)


@pytest.mark.llvm
@pytest.mark.nvcc
def test_they_compile():
    named = (("a", SHUFFLE), ("b", SUM), ("c", EACH))
    ptx = compile_ptx([_kernel(*one, d) for one in named for d in DTYPES])
    assert "shfl.sync.bfly.b32" in ptx and "shfl.sync.idx.b32" in ptx
    assemble(ptx)
