"""The GPU's instructions: their operands, where they may stand, and who knows them."""

import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import PureExtern
from refcomp.ir.gpu_instructions.records import MatrixProduct
from refcomp.ir.gpu_intrinsics import GPU_INTRINSICS, is_gpu_intrinsic, result_count, vendor_of
from refcomp.ir.parser import parse_func
from refcomp.ir.rewrite import walk
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


_PRODUCTS = [p for p in GPU_INTRINSICS.values() if isinstance(p, MatrixProduct)]


@pytest.mark.parametrize("product", _PRODUCTS, ids=lambda p: p.name)
def test_each_element_of_a_product_has_one_place(product):
    def places(fragment):
        pairs = [(t, n) for t in range(product.wave) for n in range(fragment.count)]
        return sorted(fragment.place(t, n) for t, n in pairs)

    rows = max(row for row, _ in places(product.c)) + 1
    columns = max(column for _, column in places(product.c)) + 1
    assert places(product.c) == _all_places(rows, columns)
    # Some waves hold each element of a factor twice.
    assert sorted(set(places(product.a))) == _all_places(rows, product.depth)
    assert sorted(set(places(product.b))) == _all_places(product.depth, columns)


def _all_places(rows, columns):
    return [(row, column) for row in range(rows) for column in range(columns)]


def test_names():
    assert all(map(is_gpu_intrinsic, GPU_INTRINSICS))
    assert not is_gpu_intrinsic("llvm.fshl.i32") and vendor_of("llvm.fshl.i32") is None
    assert vendor_of("llvm.amdgcn.sdot4") == "amdgpu"
    assert vendor_of("llvm.nvvm.idp4a.s.s") == "nvidia"


_LOAD = """
func f(S: DTYPE[256], D: DTYPE[32] out) {
  for t in range(32) threadIdx.x {
    D@[t] = extern DTYPE llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4TRANS.b16(ROW, WHICH)
  }
}
"""


def _load(dtype="f16", transposed="", row=8, which="0i32"):
    elements = ", ".join(f"S@[t * 8 + {k}]" for k in range(row))
    text = _LOAD.replace("DTYPE", dtype).replace("TRANS", transposed)
    return parse_func(text.replace("ROW", elements).replace("WHICH", which))


@pytest.mark.parametrize(("dtype", "row"), [("f16", 8), ("bf16", 8), ("u16", 8), ("i8", 16)])
def test_a_matrix_load_moves_rows_of_sixteen_bytes(dtype, row):
    func = _load(dtype, row=row)
    assert find_fault(func, "flat") is None
    (call,) = [node for node in walk(func.body) if isinstance(node, PureExtern)]
    assert result_count(call) == row


def test_a_matrix_load_refuses_other_elements():
    with pytest.raises(UserError, match="loads elements of 8 or 16 bits, not of f32"):
        _load("f32", row=4)
    with pytest.raises(UserError, match="loads elements of 16 bits, not of i8"):
        _load("i8", ".trans", row=16)
    with pytest.raises(UserError, match=r"b16 is \(f16, .*, i32\) -> f16, not \(f16, f16, i32\)"):
        _load(row=2)
    with pytest.raises(UserError, match="is a constant from 0 to 7"):
        _load(which="8i32")


def test_unknown_instructions_are_listed_by_vendor():
    text = _SUM.replace("llvm.amdgcn.sdot4", "llvm.nvvm.mma.m1n1k1")
    with pytest.raises(UserError, match="known: llvm.nvvm.idp4a") as caught:
        parse_func(text)
    assert "amdgcn" not in str(caught.value)


def test_instructions_of_one_vendor_are_refused_by_the_other():
    nested = parse_func(_SUM.replace("@", ""))
    with pytest.raises(UserError, match="cuda does not know llvm.amdgcn.sdot4") as caught:
        refcomp.build(nested, target="cuda")
    assert caught.value.why == "it is an instruction of AMD GPUs"
    nested = parse_func(_SUM.replace("@", "").replace("llvm.amdgcn.sdot4", "llvm.nvvm.idp4a.s.s"))
    with pytest.raises(UserError, match="rocm does not know llvm.nvvm.idp4a.s.s") as caught:
        refcomp.build(nested, target="rocm")
    assert caught.value.why == "it is an instruction of NVIDIA GPUs"
    assert caught.value.remedy == 'build for the target "cuda"'
