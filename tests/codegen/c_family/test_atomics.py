"""What atomic updates look like; kernels with all of them run in test_opencl."""

import pytest

from refcomp.foundation.errors import Unsupported
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes.split_host_device import split_host_device
from tests.codegen.device_kernels import device_kernel, draw_arguments
from tests.codegen.opencl.kernels import print_body
from tests.properties.oclgrind import run_watched


def test_integers_are_updated_by_functions_of_their_width():
    assert "atomic_min(&B[k], 3);" in print_body(
        "atomic min B[k] with 3i32", "B: i32[8] out, k: i64"
    )
    text = print_body("atomic xor B[k] with 3u64", "B: u64[8] out, k: i64")
    assert "atom_xor(&B[k], 3ul);" in text
    assert "#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable" in text
    assert "base_atomics" not in text


def test_floats_are_updated_by_compare_and_exchange_in_their_memory():
    text = print_body(
        "for t in range(2) threadIdx.x { alloc S: f32[1] shared { atomic max S[0] with A@[0] } }",
        "A: f32[1], B: f32[1] out",
    )
    assert "atomic_max_shared_f32(volatile __local float* place, float b) {" in text
    assert "atomic_cmpxchg(bits, expected, as_uint(greatest_f32(a, b)));" in text
    assert text.index("static float greatest_f32") < text.index("static void atomic_max")


@pytest.mark.parametrize("dtype", ["i8", "u16", "f16"])
def test_elements_of_other_widths_are_refused(dtype):
    with pytest.raises(Unsupported, match=f"an atomic add on elements of dtype {dtype} of B"):
        print_body(
            f"atomic add B[0] with 1{'.0' if dtype == 'f16' else ''}{dtype}", f"B: {dtype}[8] out"
        )


@pytest.mark.oclgrind
def test_updates_do_not_race_with_each_other(tmp_path):
    kernel, expected = device_kernel("atomics"), draw_arguments("atomics")
    program = split_host_device(kernel), draw_arguments("atomics")
    watched = run_watched({"atomics": program}, tmp_path)["atomics"]
    assert watched.findings == []
    interpret(kernel, expected)
    assert [a.tolist() for a in watched.arrays] == [a.tolist() for a in expected]
