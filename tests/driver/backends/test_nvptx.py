"""NVIDIA GPUs by LLVM as a back end: the texts, code by ptxas or PTX, refused options."""

import pytest

from refcomp.driver.backends import as_target, nvptx
from refcomp.driver.backends.nvptx import NVPTX
from refcomp.driver.compile import compile_functions
from refcomp.driver.kernel_resources import SlowKernelWarning
from refcomp.driver.pipeline import run_pipeline
from refcomp.foundation.artifacts import Binary
from refcomp.foundation.errors import ToolchainError, Unsupported, UserError
from tests.driver.backends.kernels import fills
from tests.driver.test_amd_resources import _lowered

pytestmark = pytest.mark.llvm


@pytest.mark.nvcc
def test_kernels_become_a_cubin_where_there_is_a_ptxas():
    compiled = compile_functions([fills("float64")], "nvptx -arch=sm_90")
    code = compiled.code.code
    assert isinstance(code, Binary) and code.format == "cubin"
    assert code.data.startswith(b"\x7fELF")
    assert ".target sm_90\n" in compiled.code.sources["ptx"]


def test_without_ptxas_the_code_is_ptx(monkeypatch):
    monkeypatch.setenv("REFCOMP_PTXAS", "/nowhere")
    code = compile_functions([fills("float64")], "nvptx").code
    assert code.code.format == "ptx" and ".entry f_kernel0(" in code.code.data.decode()
    with pytest.raises(ToolchainError, match="no usable ptxas") as caught:
        compile_functions([fills("float64")], "nvptx -code=cubin")
    assert "pip install nvidia-cuda-nvcc" in str(caught.value)


def test_the_code_may_be_ptx_by_wish():
    assert compile_functions([fills("float32")], "nvptx -code=ptx").code.code.format == "ptx"
    with pytest.raises(UserError, match="nvptx makes no code 'cubim'") as caught:
        compile_functions([fills("float32")], "nvptx -code=cubim")
    assert "did you mean cubin?" in caught.value.remedy


@pytest.mark.nvcc
def test_texts_that_are_shown_are_those_of_the_code():
    compiled = compile_functions([fills("float32")], "nvptx -arch=sm_80")
    shown = NVPTX.texts(compiled.made, compiled.target)
    texts = {name: text() for name, text in shown.items()}
    assert texts.pop("asm") == compiled.code.disassemble()
    assert [*texts.items()] == [*compiled.code.sources.items()]


def test_printed_texts_need_no_compiling(monkeypatch):
    target = as_target("nvptx")
    made = [run_pipeline(fills("float32"), target)]
    monkeypatch.setattr(nvptx.toolchain, "compile_source", None)
    shown = NVPTX.texts(made, target)
    assert "define ptx_kernel void @f_kernel0" in shown["llvm"]()
    assert shown["kernels"]().startswith("func f_kernel0(")
    assert "f_kernel0" in shown["lines"]()


def test_ptx_names_the_lines_of_the_loop_ir():
    code = compile_functions([fills("float32")], "nvptx -code=ptx").code
    ptx = code.sources["ptx"]
    assert '.file\t1 "kernels.ir"' in ptx and ".debug_info" not in ptx and "debug\n" not in ptx
    line = next(k for k, text in enumerate(code.sources["kernels"].split("\n"), 1) if "B@[" in text)
    assert f".loc\t1 {line} 0" in ptx


def test_unknown_architectures_are_refused():
    with pytest.raises(UserError, match="arch 'sm_91' is unknown to the nvptx toolchain") as caught:
        compile_functions([fills("float32")], "nvptx -arch=sm_91")
    assert "did you mean" in caught.value.remedy and "sm_90" in caught.value.remedy
    with pytest.raises(UserError, match="sm_50 is older than sm_60"):
        compile_functions([fills("float32")], "nvptx -arch=sm_50")
    with pytest.raises(UserError, match="'sm_80,sm_90' is not the name of an NVIDIA arch"):
        compile_functions([fills("float32")], "nvptx -arch=sm_80,sm_90")


@pytest.mark.nvcc
def test_a_gpu_that_is_newer_than_llvm_gets_ptx_of_the_newest_known(monkeypatch):
    monkeypatch.setenv("REFCOMP_NVPTX_LLVM", "/usr/lib/llvm-19/bin")
    code = compile_functions([fills("float32")], "nvptx -arch=sm_120").code
    assert ".target sm_90\n" in code.sources["ptx"] and code.code.format == "cubin"
    monkeypatch.setenv("REFCOMP_PTXAS", "/nowhere")
    with pytest.raises(UserError, match="arch 'sm_120' is unknown to the nvptx toolchain"):
        compile_functions([fills("float32")], "nvptx -arch=sm_120")
    # Of a device that is there, the driver compiles it.
    monkeypatch.setattr(nvptx, "arch_of", lambda _: "sm_120")
    code = compile_functions([fills("float32")], "nvptx").code
    assert ".target sm_90\n" in code.sources["ptx"] and code.code.format == "ptx"


@pytest.mark.nvcc
def test_an_architecture_that_only_older_ptxas_know_can_be_left_to_the_driver():
    with pytest.raises(UserError, match="arch 'sm_61' is unknown to the ptxas toolchain") as caught:
        compile_functions([fills("float32")], "nvptx -arch=sm_61 -code=cubin")
    assert "or let the driver compile: -code=ptx" in caught.value.remedy
    code = compile_functions([fills("float32")], "nvptx -arch=sm_61 -code=ptx").code
    assert ".target sm_61\n" in code.sources["ptx"]


@pytest.mark.nvcc
def test_resources_are_those_that_ptxas_reports():
    compiled = compile_functions([fills("float32")], "nvptx -arch=sm_90")
    (found,) = NVPTX.resources(compiled)
    assert (found.kernel, found.arch, found.threads) == ("f_kernel0", "sm_90", 8)
    assert (found.limit, found.stack_bytes) == ("blocks", 0)
    with pytest.raises(Unsupported, match="the resources of kernels are not known"):
        NVPTX.resources(compile_functions([fills("float32")], "nvptx -arch=sm_90 -code=ptx"))


@pytest.mark.nvcc
def test_a_loop_that_keeps_values_in_memory_is_named():
    with pytest.warns(SlowKernelWarning) as caught:
        compile_functions([_lowered(512, False)], "nvptx -arch=sm_80")
    assert "what to do: unroll stage C.local, axis j.c" in str(caught[0].message)
