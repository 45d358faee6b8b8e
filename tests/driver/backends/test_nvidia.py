"""Options and resources of targets for NVIDIA GPUs."""

import pytest

from refcomp.driver.backend import CompiledFunctions
from refcomp.driver.backends import as_target
from refcomp.driver.backends.loading import device_limits
from refcomp.driver.backends.nvidia import (
    all_archs_of,
    arch_of,
    assemble,
    code_format,
    report_text,
    resources_of_compiled,
)
from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.errors import ToolchainError, Unsupported, UserError
from refcomp.ir.parser import parse_func
from refcomp.toolchain import ReportedBinary, compile_with_report


def test_the_oldest_of_several_architectures_decides():
    assert arch_of(as_target("cuda -arch=sm_90,sm_80")) == "sm_80"
    assert all_archs_of(as_target("cuda -arch=sm_90,sm_80")) == ("sm_90", "sm_80")


@pytest.mark.parametrize(
    ("text", "kib"),
    [
        ("cuda", 64),
        ("cuda -arch=sm_90", 227),
        ("cuda -arch=sm_80,sm_86", 99),
        ("nvptx -arch=sm_61", 48),
        ("nvptx -arch=sm_80 -shared_bytes=1024", 1),
    ],
)
def test_the_architecture_limits_shared_memory(text, kib):
    assert device_limits(as_target(text)).shared_bytes == kib << 10


def test_a_word_that_is_no_architecture():
    with pytest.raises(UserError, match="'ampere' is not the name of an NVIDIA architecture"):
        arch_of(as_target("cuda -arch=ampere"))


def test_an_unknown_format_is_refused_with_near_ones():
    target = as_target("cuda -code=cubim")
    with pytest.raises(UserError, match="the target cuda makes no code 'cubim'") as caught:
        code_format(target, ("cubin", "ptx"), "cubin")
    assert "did you mean cubin" in str(caught.value) and "-code=cubim" in str(caught.value)


def test_times_are_not_part_of_the_report():
    assert report_text("ptxas info    : a\nptxas info    : Compile time = 7.2 ms\nb\n") == (
        "ptxas info    : a\nb\n"
    )


def test_a_failure_of_ptxas_is_explained():
    def crash() -> ReportedBinary:
        raise ToolchainError("ptxas failed", stderr="ptxas died")

    target = as_target("cuda -arch=sm_75")
    with pytest.raises(ToolchainError, match="ptxas failed"):
        assemble(crash, [], target)
    made = ReportedBinary(Binary(b"", "ptx"), "")
    assert assemble(lambda: made, [], target) is made
    fail_text = "Feature '.tf32' requires .target sm_80 or higher"

    def refuse() -> ReportedBinary:
        raise ToolchainError("ptxas failed", stderr=fail_text)

    with pytest.raises(Unsupported, match="tf32 needs sm_80 or newer") as caught:
        assemble(refuse, [], target)
    assert isinstance(caught.value.__cause__, ToolchainError)


@pytest.mark.nvcc
def test_ptxas_itself_refuses_too_much_shared_memory():
    text = 'extern "C" __global__ void k(float* a) { __shared__ float s[20000]; s[0] = a[1]; '
    source = Source(f"{text} __syncthreads(); a[0] = s[a[0] > 0]; }}\n", "cuda")
    kernel = parse_func("""func k(A: f32[9] out) { for t in range(64) threadIdx.x {
        alloc S: f32[20000] shared { S@[t] = 1f32 A@[t] = S@[t] } } }""")

    def build() -> ReportedBinary:
        return compile_with_report(source, {"arch": "sm_80"}, "cubin", description="cuda")

    with pytest.raises(UserError, match="declares 80000 bytes of shared memory, and") as caught:
        assemble(build, [kernel], as_target("cuda -arch=sm_80"))
    assert "fewer elements of S, which has 80000 bytes" in str(caught.value)


@pytest.mark.nvcc
def test_ptxas_itself_refuses_an_instruction_of_newer_gpus():
    text = 'extern "C" __global__ void k(int* a) { asm volatile("cp.async.wait_all;"); }\n'

    def build() -> ReportedBinary:
        source = Source(text, "cuda")
        return compile_with_report(source, {"arch": "sm_75"}, "cubin", description="cuda")

    with pytest.raises(Unsupported, match="cp.async.* needs sm_80 or newer"):
        assemble(build, [], as_target("cuda -arch=sm_75"))


def test_code_without_a_report_has_no_resources():
    with pytest.raises(Unsupported, match="the resources of kernels are not known"):
        resources_of_compiled(CompiledFunctions(as_target("cuda"), (), None))
