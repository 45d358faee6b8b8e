"""Whole files for AMD GPUs: golden texts, compiled by each LLVM, computed, names, line map."""

import copy

import numpy as np
import pytest

import refcomp
from refcomp.codegen.amdgpu.module import gpu_features
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func, parse_funcs
from refcomp.ir.stmt import For, Store
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.toolchain import disassemble, read_code_object
from tests.codegen.amdgpu.kernels import (
    TOOLS_AND_GPUS,
    HostSimulation,
    compile_kernels,
    print_kernels,
    use_llvm,
)
from tests.codegen.device_kernels import TEXTS, device_kernel, draw_arguments


@pytest.mark.parametrize("name", TEXTS)
def test_golden(name, golden):
    golden(f"amdgpu/{name}.ll", print_kernels([device_kernel(name)]).text)


@pytest.mark.rocm
@pytest.mark.parametrize(("llvm", "gpu"), TOOLS_AND_GPUS)
def test_golden_kernels_compile(llvm, gpu, monkeypatch):
    use_llvm(llvm, monkeypatch)
    code = compile_kernels([device_kernel(name) for name in TEXTS], gpu)
    assert "s_barrier" in disassemble(code)


@pytest.mark.rocm
@pytest.mark.parametrize(
    "gpu",
    ["gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1101", "gfx1200"],
)
def test_every_gpu_that_llvm_knows(gpu, monkeypatch):
    use_llvm("19", monkeypatch)
    names = ("matmul", "softmax", "halves", "atomics")
    code = compile_kernels([device_kernel(name) for name in names], gpu)
    assert read_code_object(code.data).mcpu == gpu
    # Two elements of f16 in one instruction.
    text = disassemble(code)
    assert ("v_pk_mul_f16" in text and "v_pk_add_f16" in text) or "v_pk_fma_f16" in text


@pytest.mark.llvm
@pytest.mark.parametrize("name", TEXTS)
def test_golden_kernels_compute_when_run_on_the_host(name, tmp_path):
    kernel, actual = device_kernel(name), draw_arguments(name)
    expected = copy.deepcopy(actual)
    interpret(kernel, expected)
    HostSimulation([kernel], tmp_path).call(kernel, actual)
    for ours, theirs in zip(actual, expected, strict=True):
        tolerance = 1e-6 if name in ("vectors", "atomics", "softmax") else 0  # exp; sums
        np.testing.assert_allclose(ours, theirs, rtol=tolerance)


def _threads(extent, tag="threadIdx.x"):
    kernel = parse_func(f"""
    func f(A: i64[9] out, n: i64) {{ for t in range({extent}) {tag} {{ A@[t] = t }} }}
    """)
    return print_kernels([kernel]).text


def test_products_of_f32_matrices_get_registers_for_two_waves():
    kernel = parse_func("""
    func f(A: f32[64], C: f32[256] out) {
      for t in range(64) threadIdx.x {
        C@[ramp(t * 4, 1, 4)] = extern f32x4 llvm.amdgcn.mfma.f32.16x16x4f32(
          A@[t], A@[t], 0.0f32, 0.0f32, 0.0f32, 0.0f32)
      }
    }
    """)
    assert '"amdgpu-waves-per-eu"="2"' in print_kernels([kernel]).text


def test_what_is_known_of_the_threads_is_told():
    known = _threads(9)
    assert (
        '"amdgpu-flat-work-group-size"="9,9" "amdgpu-waves-per-eu"="1" !reqd_work_group_size '
        "!{i32 9, i32 1, i32 1}" in known
    )
    assert "workitem.id.x(), !range !{i32 0, i32 9}" in known
    unknown = _threads("n")
    assert '"amdgpu-flat-work-group-size"="1,1024" {' in unknown
    assert "workitem.id.x(), !range !{i32 0, i32 1024}" in unknown
    group = _threads("n", "blockIdx.y")
    assert "!reqd_work_group_size !{i32 1, i32 1, i32 1}" in group
    assert '"amdgpu-waves-per-eu"' not in unknown and '"amdgpu-waves-per-eu"="1"' in group
    assert "workgroup.id.y(), !range !{i32 0, i32 2147483647}" in group
    assert "workgroup.id.x(), !range !{i32 0, i32 1}" in _threads(0, "blockIdx.x")


def _printed(mcpu, threads=256, **wishes):
    kernel = parse_func(
        f"func f(A: i64[{threads}] out) {{ for t in range({threads}) threadIdx.x {{ A@[t] = t }} }}"
    )
    return print_kernels([kernel], mcpu, **wishes).text


def test_a_simd_holds_its_part_of_a_group_or_what_is_wished():
    assert '"amdgpu-waves-per-eu"="1"' in _printed("gfx90a")
    assert '"amdgpu-waves-per-eu"="4"' in _printed("gfx90a", 1024)
    assert '"amdgpu-waves-per-eu"="2"' in _printed("gfx1100")
    assert '"amdgpu-waves-per-eu"="8"' in _printed("gfx90a", waves=8)
    assert '"amdgpu-waves-per-eu"="4"' in _printed("gfx90a", 1024, waves=2)


def test_waves_have_as_many_lanes_as_is_wished():
    assert "wavefrontsize" not in _printed("gfx1100")
    assert "wavefrontsize" not in _printed("gfx1100", wavefront=32)
    wide = _printed("gfx1100", wavefront=64)
    assert '"target-features"="-wavefrontsize32,+wavefrontsize64"' in wide
    maths = print_kernels([device_kernel("softmax")], "gfx1100", wavefront=64).text
    assert "constant i8 1" in maths.partition("@__oclc_wavefrontsize64")[2].splitlines()[0]
    for mcpu, wish, sizes in (("gfx90a", 32, "64"), ("gfx1100", 16, "32 or 64")):
        with pytest.raises(UserError, match=f"a wave of {mcpu} has {sizes} lanes, not {wish}"):
            _printed(mcpu, wavefront=wish)


def test_llvm_makes_no_dot_products_by_itself_where_it_takes_wrong_bytes():
    """But for those that are asked for; LLVM 20 is right."""
    call = "C@[0] = extern i32 llvm.amdgcn.{}dot4({}, 0{}32)"
    texts = []
    for sign, kind in (("s", "i"), ("u", "u")):
        bytes_ = ", ".join([f"1{kind}8"] * 8)
        store = call.format(sign, bytes_, kind).replace("extern i32", f"extern {kind}32")
        texts.append(f"func {sign}(C: {kind}32[1] out) {{ {store} }}")
    signed, unsigned = map(parse_func, texts)
    plain = device_kernel("softmax")
    for kernels, features in (
        ([plain], "-dot7-insts"),
        ([signed, plain], "-dot7-insts"),
        ([unsigned], "-dot1-insts,-dot8-insts"),
        ([unsigned, signed], ""),
    ):
        assert gpu_features(kernels, "gfx942", llvm=19) == features
        assert gpu_features(kernels, "gfx942", llvm=20) == ""
    assert gpu_features([plain], "gfx1100", 64, 19).endswith("+wavefrontsize64,-dot7-insts")
    assert '"target-features"="-dot7-insts"' in print_kernels([plain], llvm=19).text


@pytest.mark.rocm
@pytest.mark.parametrize("gpu", ["gfx942", "gfx1100"])
def test_sums_of_products_of_bytes_have_the_right_bytes(gpu):
    a = refcomp.placeholder((4, 5), "int8", name="A")
    w = refcomp.placeholder((3,), "int8", name="W")
    k = refcomp.reduce_axis((0, 3), name="k")
    c = refcomp.compute((4, 3), lambda i, j: refcomp.sum(a[i, j + k] * w[k], axis=k), name="C")
    s = refcomp.create_schedule(c)
    sums = s.cache_write(c, "local")
    rows, _ = s[c].split(c.op.axis[0], factor=3)
    s[c].bind(rows, refcomp.thread_axis("blockIdx.x"))
    s[sums].compute_at(s[c], rows)
    (i, j), (term,) = sums.op.axis, sums.op.reduce_axis
    s[sums].reorder(i, term, j)
    s[s.cache_read(a, "local", [sums])].compute_at(s[sums], term)
    image, window = np.arange(20, dtype=np.int8).reshape(4, 5), np.array([1, 2, 3], np.int8)
    device = refcomp.rocm_emulator(gpu)
    arrays = [refcomp.array(x, device) for x in (image, window, np.zeros((4, 3), np.int8))]
    refcomp.build(s, [a, w, c], f"rocm -mcpu={gpu}")(*arrays)
    expected = sum(image[:, at : at + 3] * window[at] for at in range(3))
    np.testing.assert_array_equal(arrays[2].asnumpy(), expected)


@pytest.mark.rocm
def test_wishes_are_followed():
    kernels = [device_kernel("softmax")]
    code = compile_kernels(kernels, "gfx1100", wishes={"wavefront": 64, "waves": 4})
    assert read_code_object(code.data).kernels[0].wavefront_size == 64


def test_what_is_known_of_arguments_is_told():
    text = print_kernels([device_kernel("gather"), device_kernel("bytes")]).text
    assert "ptr addrspace(1) noalias readonly align 4 %A," in text  # of unknown size
    known = "noalias readonly align 1 nonnull dereferenceable(512) %A,"
    assert known in text
    assert "noalias writeonly align 1 nonnull dereferenceable(32) %C)" in text
    updated = parse_func("func f(A: f32[4] out) { A@[0] = A@[0] + 1.0f32 }")
    assert "noalias align 4 nonnull dereferenceable(16) %A)" in print_kernels([updated]).text
    atomic = parse_func("func f(A: i32[0] out) { atomic add A[0] with 1i32 }")
    assert "noalias align 4 %A)" in print_kernels([atomic]).text


def test_only_kernels_with_maths_require_the_device_library():
    plain = print_kernels([device_kernel("matmul")])
    assert plain.requires == frozenset() and "__oclc" not in plain.text
    maths = print_kernels([device_kernel("vectors")], "gfx1100")
    assert maths.requires == {"ocml"}
    assert maths.text.count("= weak_odr hidden local_unnamed_addr addrspace(4) constant") == 7
    assert (
        "@__oclc_ISA_version = weak_odr hidden local_unnamed_addr addrspace(4) constant i32 11000"
        in (maths.text)
    )
    assert (
        "@__oclc_wavefrontsize64 = weak_odr hidden local_unnamed_addr addrspace(4) constant i8 0"
        in (maths.text)
    )


def test_the_entries_are_the_kernels():
    kernels = parse_funcs("func exp(A: f32[1] out) { A@[0] = 1.0f32 } func g(A: f32[1] out) { }")
    assert print_kernels(kernels).entries == ("exp_", "g")


def test_every_line_tells_its_statement():
    source = print_kernels([device_kernel("matmul")])
    lines = source.text.splitlines()
    assert len(lines) == len(source.line_map)
    told = dict(zip(lines, source.line_map, strict=True))
    assert told["  call void @llvm.amdgcn.s.barrier()"] == "barrier"
    assert told["  %bx.id = call i32 @llvm.amdgcn.workgroup.id.x(), !range !{i32 0, i32 2}"] == (
        "for bx in range(2) blockIdx.x {"
    )


def test_names_of_users_are_harmless():
    hostile = 'x" }\n; define @evil()'
    a, i = Buffer(hostile, I64, (IntImm(8, I64),)), Var(hostile, I64)
    loop = For(i, IntImm(0, I64), IntImm(8, I64), "threadIdx.x", Store(a, i, i))
    text = print_kernels([PrimFunc(hostile, (a,), loop, (hostile,))]).text
    assert "evil()" not in text
    assert len([line for line in text.splitlines() if line.startswith("define")]) == 1


def test_two_kernels_of_one_name_are_refused():
    kernels = parse_funcs("func f(A: f32[1] out) { } func f(A: f32[1] out) { }")
    with pytest.raises(UserError, match="two functions named 'f' cannot stand in one module"):
        print_kernels(kernels)
