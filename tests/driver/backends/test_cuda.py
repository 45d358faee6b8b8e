"""CUDA C++ as a back end: the text, and nvcc's code for the architecture of the target."""

import pytest

from refcomp.driver.backends import as_target
from refcomp.driver.backends.cuda import CUDA
from refcomp.driver.backends.nvidia import arch_of
from refcomp.driver.compile import compile_functions
from refcomp.driver.kernel_resources import SlowKernelWarning
from refcomp.foundation.artifacts import Binary
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.ir.parser import parse_func
from tests.driver.backends.kernels import fills
from tests.driver.test_amd_resources import _lowered


@pytest.mark.nvcc
def test_kernels_become_a_cubin():
    compiled = compile_functions([fills("float64")], "cuda -arch=sm_90")
    code = compiled.code.code
    assert isinstance(code, Binary) and code.format == "cubin"
    assert "__global__" in compiled.code.sources["cuda"]


@pytest.mark.nvcc
def test_the_texts_are_the_source_and_ptx():
    target = as_target("cuda -arch=sm_80")
    made = compile_functions([fills("float32")], target).made
    texts = CUDA.texts(made, target)
    assert "__global__" in texts["cuda"]() and ".target sm_80" in texts["ptx"]()


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ["sm_91", "sm_80,sm_91"])
def test_an_unknown_architecture_is_refused_with_near_ones(arch):
    with pytest.raises(UserError, match="arch 'sm_91' is unknown to the cuda") as caught:
        compile_functions([fills("float32")], f"cuda -arch={arch}")
    assert "did you mean" in str(caught.value) and "sm_90" in str(caught.value)


@pytest.mark.nvcc
@pytest.mark.nvrtc
def test_several_architectures_make_a_fatbin():
    code = compile_functions([fills("float32")], "cuda -arch=sm_80,sm_90").code
    assert code.code.format == "fatbin"
    text = code.disassemble()
    assert "code for sm_80" in text and "code for sm_90" in text


@pytest.mark.nvcc
def test_ptx_is_code_too():
    code = compile_functions([fills("float32")], "cuda -arch=sm_80 -code=ptx").code
    assert code.code.format == "ptx" and b".target sm_80" in code.code.data
    assert code.disassemble is None


@pytest.mark.nvcc
def test_ptx_names_the_lines_of_the_loop_ir():
    compiled = compile_functions([fills("float32")], "cuda -arch=sm_80 -code=ptx")
    sources = compiled.code.sources
    lines = sources["kernels"].split("\n")
    line = next(k for k, text in enumerate(lines, 1) if "B@[" in text)
    ptx = sources["ptx"]
    assert f".loc 1 {line} 0" in ptx and ptx.count(".file") == 1 and "kernel.cu" not in ptx
    assert compiled.code.code.data.decode() == ptx
    texts = CUDA.texts(compiled.made, compiled.target)
    assert {name: texts[name]() for name in sources} == sources


def test_one_cubin_is_not_for_several_architectures():
    with pytest.raises(UserError, match="code of format cubin is for one architecture, not for 2"):
        compile_functions([fills("float32")], "cuda -arch=sm_80,sm_90 -code=cubin")


@pytest.mark.nvcc
@pytest.mark.nvrtc
def test_resources_and_sass_of_a_cubin():
    compiled = compile_functions([fills("float32")], "cuda -arch=sm_90")
    (found,) = CUDA.resources(compiled)
    assert (found.kernel, found.arch, found.threads) == ("f_kernel0", "sm_90", 8)
    assert found.limit == "blocks" and found.stack_bytes == 0
    assert "Compile time" not in compiled.code.sources["ptxas"]
    assert "STG.E" in compiled.code.disassemble()


@pytest.mark.nvcc
def test_a_loop_that_keeps_values_in_memory_is_named():
    with pytest.warns(SlowKernelWarning) as caught:
        compile_functions([_lowered(512, False)], "cuda -arch=sm_80")
    text = str(caught[0].message)
    assert "keeps 2096 bytes of each thread's local memory out of registers on sm_80" in text
    assert "what to do: unroll stage C.local, axis j.c" in text


@pytest.mark.nvcc
def test_dynamic_shared_memory_counts():
    func = parse_func("""
    func f(A: f32[64] out) { for t in range(64) threadIdx.x {
      alloc S: f32[20000] shared { S[t] = 1f32 barrier A[t] = S[63 - t] }
    } }
    """)
    (found,) = CUDA.resources(compile_functions([func], "cuda -arch=sm_80 -shared_bytes=100000"))
    assert (found.shared_bytes, found.dynamic_bytes) == (0, 80000)
    assert (found.blocks, found.limit) == (2, "shared memory")
    assert found.advice == (
        "let a block keep fewer elements of S: split the loops that it is attached to by smaller "
        "factors"
    )


@pytest.mark.nvrtc
def test_without_nvcc_nvrtc_compiles(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setenv("REFCOMP_CACHE_DIR", str(tmp_path / "cache"))
    compiled = compile_functions([fills("float16")], "cuda -arch=sm_80")
    assert compiled.code.code.format == "cubin"
    assert CUDA.resources(compiled)[0].arch == "sm_80"
    with pytest.raises(ToolchainError, match="no usable nvcc"):
        compile_functions([fills("float16")], "cuda -arch=sm_80,sm_90")


def test_the_default_architecture_is_the_oldest_that_nvcc_knows():
    assert arch_of(as_target("cuda")) == "sm_75"
    assert arch_of(as_target("cuda -arch=sm_90")) == "sm_90"
