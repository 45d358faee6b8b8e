"""Random GPU schedules: OpenCL runs them as numpy does, every LLVM compiles them for AMD GPUs.

Some of them are also printed as CUDA C++: nvcc compiles them, and g++ with sanitizers judges them.
LLVM and ptxas compile some for NVIDIA GPUs. There are 104 schedules by day, 4,000 with --nightly.
"""

from contextlib import suppress
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from refcomp.codegen.cuda.module import print_cuda
from refcomp.driver.backends import as_target
from refcomp.driver.cuda_on_host import (
    compile_on_host,
    cuda_programs,
    device_on_host,
    load_on_host,
)
from refcomp.driver.pipeline import passes_for, run_device_passes
from refcomp.driver.steps import run_pass
from refcomp.foundation.target import limits_of
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import kernel_nest, kernels_in
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Allocate, Barrier
from refcomp.oracle.interpreter.interpret import evaluate_expr
from refcomp.passes.insert_barriers import insert_barriers
from refcomp.runtime.cuda.driver import USUAL_LIMITS
from refcomp.toolchain import compile_source
from tests.codegen.amdgpu.kernels import LLVMS_AND_GPUS, compile_kernels, use_llvm
from tests.codegen.nvptx.kernels import assemble, compile_ptx
from tests.properties.device_differential import check_module, check_opencl_together
from tests.samples import sample_count
from tests.strategies.gpu_schedules import GpuCase, gpu_cases

SHARDS = sample_count(by_day=2, nightly=4)
ROUNDS = 10  # of drawing, at most; most shards take three
EACH = sample_count(by_day=52, nightly=1000)  # schedules of a shard, an even number
# Of so many schedules of the first shard, one is also judged as CUDA.
AS_CUDA = sample_count(by_day=2, nightly=1)
BATCH = 200  # schedules that g++ and nvcc compile as one file


@dataclass(frozen=True)
class Drawn:
    """A case, lowered under a name of its own, and whether one of its kernels has several groups,
    shared memory and a barrier."""

    case: GpuCase
    func: PrimFunc
    has_barrier: bool


@pytest.fixture(scope="module", params=range(SHARDS))
def drawn(request):
    """The schedules of a shard: the same for each device. None can be shrunk: they run together."""
    hard, easy, half = [], [], EACH // 2
    for number in range(ROUNDS):
        if min(len(hard), len(easy)) < half:
            _draw(ROUNDS * (20 + request.param) + number, half, hard, easy)
    return [*hard[:half], *easy[:half]]


class _Enough(Exception):
    """There are enough cases of both kinds."""


def _draw(number, half, hard, easy):
    """Adds cases to those with a barrier, `hard`, and to the others, until there are `half` of
    each, or as many in all."""

    @seed(number)
    @settings(
        max_examples=half,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
        database=None,
        print_blob=False,
    )
    @given(gpu_cases())
    def draw(case):
        if min(len(hard), len(easy)) >= half:
            raise _Enough
        func = replace(case.func, name=f"case{len(hard) + len(easy)}")
        has_barrier = case.has_shared and _has_barrier(func, case)
        (hard if has_barrier else easy).append(Drawn(case, func, has_barrier))

    with suppress(_Enough):
        draw()


def _has_barrier(func, case):
    for step in passes_for("opencl"):
        func = run_pass(step, func)
        if step.function is insert_barriers:
            break
    return any(_has_groups_and_barrier(kernel_nest(start), case) for start in kernels_in(func.body))


def _has_groups_and_barrier(nest, case):
    groups = 1
    for extent in nest.grid:
        groups *= int(evaluate_expr(extent, case.computation.sizes))
    inside = list(walk(nest.body))
    is_shared = any(isinstance(n, Allocate) and n.buffer.scope == "shared" for n in inside)
    return groups >= 2 and is_shared and any(isinstance(n, Barrier) for n in inside)


@pytest.mark.pocl
def test_they_agree_with_numpy_on_opencl(drawn, record_property):
    hard = sum(one.has_barrier for one in drawn)
    text = f"{len(drawn)} GPU schedules on OpenCL, {hard} with groups, shared memory and a barrier"
    record_property("summary", text)
    assert (len(drawn), hard) == (EACH, EACH // 2), text
    check_opencl_together([(one.func, one.case.computation) for one in drawn])


@pytest.mark.rocm
@pytest.mark.llvm15
@pytest.mark.llvm16
def test_every_llvm_compiles_them_for_amd_gpus(drawn, monkeypatch, record_property):
    """LLVM checks its own work after each pass."""
    limits = limits_of(as_target("rocm"))
    programs = [run_device_passes(one.func, "rocm", limits) for one in drawn]
    kernels = [kernel for program in programs for kernel in program.kernels]
    for llvm, gpu in LLVMS_AND_GPUS:
        use_llvm(llvm, monkeypatch)
        # LLVM 15 differs little from 16: of it, every fourth.
        compile_kernels(kernels[:: 4 if llvm == "15" else 1], gpu, verify="1")
    where = ", ".join(f"{gpu} by LLVM {llvm}" for llvm, gpu in LLVMS_AND_GPUS)
    record_property("summary", f"{len(drawn)} GPU schedules compiled for {where}")


FIRST_SHARD = pytest.mark.parametrize("drawn", [0], indirect=True)


@pytest.fixture(scope="module")
def as_cuda(drawn):
    """Batches of schedules, their Programs for `cuda`, and the printed text of all kernels."""
    chosen = drawn[::AS_CUDA]
    batches = []
    for begin in range(0, len(chosen), BATCH):
        batch = chosen[begin : begin + BATCH]
        programs = cuda_programs([one.func for one in batch])
        kernels = [kernel for program in programs for kernel in program.kernels]
        batches.append((batch, programs, print_cuda(kernels)))
    return batches


@FIRST_SHARD
@pytest.mark.gcc
@pytest.mark.parametrize("sanitizers", ["races", "bounds"])
def test_they_agree_with_numpy_as_cuda_on_this_machine(as_cuda, sanitizers, record_property):
    """The sanitizers report nothing, either."""
    device = device_on_host(sanitizers)
    for batch, programs, source in as_cuda:
        code = compile_on_host(source, sanitizers)
        module = load_on_host([one.func for one in batch], programs, code, device)
        for one in batch:
            check_module(module, device, one.func.name, one.case.computation)
    count = sum(len(batch) for batch, _, _ in as_cuda)
    assert count == EACH // AS_CUDA
    record_property("summary", f"{count} GPU schedules as CUDA by g++, checked for {sanitizers}")


@FIRST_SHARD
@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_nvcc_compiles_them(as_cuda, arch):
    for _, _, source in as_cuda:
        binary = compile_source(source, {"arch": arch}, "cubin", description="cuda")
        assert binary.data.startswith(b"\x7fELF")


@FIRST_SHARD
@pytest.mark.llvm
@pytest.mark.nvcc
def test_llvm_and_ptxas_compile_them_for_nvidia_gpus(as_cuda):
    for batch, _, _ in as_cuda:
        programs = [run_device_passes(one.func, "nvptx", USUAL_LIMITS) for one in batch[::2]]
        kernels = [kernel for program in programs for kernel in program.kernels]
        ptx = compile_ptx(kernels, passes="default<O1>")
        assert ptx.count(".visible .entry ") == len(kernels) >= len(programs) / 2
        assert assemble(ptx).data.startswith(b"\x7fELF")
