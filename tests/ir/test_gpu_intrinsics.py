"""The GPU's instructions: their operands, where they may stand, and who knows them."""

import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.ir.gpu_intrinsics import GPU_INTRINSICS, is_gpu_intrinsic
from refcomp.ir.parser import parse_func
from refcomp.ir.verify import find_fault
from refcomp.oracle.lockstep.interpret import interpret

_BYTES = ", ".join(f"A@[{k}]" for k in range(4)) + ", " + ", ".join(f"B@[{k}]" for k in range(4))
_SUM = f"""
func f(A: i8[4], B: i8[4], C: i32[1] out) {{
  for t in range(1) threadIdx.x {{ C@[0] = extern i32 llvm.amdgcn.sdot4({_BYTES}, C@[0]) }}
}}
"""


def test_the_interpreter_knows_what_it_computes():
    a, b = np.array([127, -128, 3, 0], np.int8), np.array([127, -128, -5, 9], np.int8)
    total = np.array([2**31 - 1], np.int32)
    interpret(parse_func(_SUM), [a, b, total])
    assert total[0] == (2**31 - 1 + 127 * 127 + 128 * 128 - 15) - 2**32
    unsigned = _SUM.replace("i8[", "u8[").replace("i32", "u32").replace("sdot", "udot")
    total = np.array([1], np.uint32)
    interpret(parse_func(unsigned), [a.view(np.uint8), b.view(np.uint8), total])
    assert total[0] == 1 + 127 * 127 + 128 * 128 + 3 * 251


def test_operands_are_checked():
    for wrong in ("A@[0], C@[0]", _BYTES, f"{_BYTES}, A@[0]"):
        with pytest.raises(UserError, match=r"sdot4 is \(i8, i8, i8, i8, i8, i8, i8, i8, i32\)"):
            parse_func(_SUM.replace(f"{_BYTES}, C@[0]", wrong))
    with pytest.raises(UserError, match=r"llvm.amdgcn.sdot8 is not a known instruction"):
        parse_func(_SUM.replace("sdot4", "sdot8"))


def test_it_stands_in_kernels_only_and_no_host_function_does():
    kernel = parse_func(_SUM)
    assert find_fault(kernel, "device") is None
    serial = parse_func(_SUM.replace("threadIdx.x", ""))
    assert "the GPU's instruction" in find_fault(serial, "host").what
    host = parse_func(_SUM.replace(f"llvm.amdgcn.sdot4({_BYTES}, C@[0])", "labs(C@[0])"))
    fault = find_fault(host, "device").what
    assert fault == "a call of the host's function labs is not allowed"


@pytest.mark.parametrize("target", ["llvm", "opencl"])
def test_other_targets_do_not_know_it(target):
    nested = parse_func(_SUM.replace("@", ""))
    with pytest.raises(
        UserError, match=r"the target \w+ does not know llvm.amdgcn.sdot4"
    ) as caught:
        refcomp.build(nested, target=target)
    assert "it is an instruction of AMD GPUs" in str(caught.value)


_MATRIX = """
func f(A: f32[64], C: f32[64] out) {
  for t in range(64) threadIdx.x {
    C@[t] = extern f32 llvm.amdgcn.mfma.f32.16x16x4f32(
      A@[t], A@[t], 0.0f32, 0.0f32, 0.0f32, 0.0f32, WHICH)
  }
}
"""


def test_a_matrix_product_is_asked_for_a_constant_element():
    assert find_fault(parse_func(_MATRIX.replace("WHICH", "3i32")), "device") is None
    for wrong in ("4i32", "-1i32", "i32(t)"):
        with pytest.raises(UserError, match="is a constant from 0 to 3"):
            parse_func(_MATRIX.replace("WHICH", wrong))


def test_all_threads_of_a_wave_come_to_a_matrix_product():
    text = _MATRIX.replace("WHICH", "0i32").replace("C@[t] =", "if (t < 9) { C@[t] =")
    fault = find_fault(parse_func(text.replace("0i32)", "0i32) }")), "device")
    assert fault.what == "a subgroup's call that some threads of a group may not reach"


def test_bf16_comes_as_itself_or_as_its_bits():
    text = """
    func f(A: DTYPE[2], C: f32[1] out) {
      for t in range(1) threadIdx.x {
        C@[0] = extern f32 llvm.amdgcn.fdot2.f32.bf16(A@[0], A@[1], A@[0], A@[1], C@[0])
      }
    }
    """
    assert find_fault(parse_func(text.replace("DTYPE", "bf16")), "flat") is None
    assert find_fault(parse_func(text.replace("DTYPE", "u16")), "device") is None
    with pytest.raises(UserError, match=r"bf16 is \(bf16, bf16, bf16, bf16, f32\) -> f32, not"):
        parse_func(text.replace("DTYPE", "f16"))


@pytest.mark.parametrize("name", [n for n, p in GPU_INTRINSICS.items() if p.wave > 1])
def test_each_element_of_a_product_has_one_place(name):
    product = GPU_INTRINSICS[name]
    threads, size = range(product.wave), range(product.size)
    at = {
        (product.row_at(t, v), t % product.size): (t, v)
        for t in threads
        for v in range(product.sums)
    }
    assert sorted(at) == [(row, column) for row in size for column in size]
    held = {
        (t % product.size, product.depth_at(t, n)) for t in threads for n in range(product.factors)
    }
    assert sorted(held) == [(row, k) for row in size for k in range(product.depth)]


def test_names():
    assert all(map(is_gpu_intrinsic, GPU_INTRINSICS))
    assert not is_gpu_intrinsic("llvm.fshl.i32")
