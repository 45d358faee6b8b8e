"""One computation, one schedule for GPUs, its kernels run in two ways: both must agree with numpy.

The interpreter runs what each pass makes, and refuses races and reads of what nothing wrote; the
OpenCL device runs what comes out of the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np
from hypothesis import assume

import refcomp
from refcomp.codegen.signature import signature_of
from refcomp.compiler import build_functions
from refcomp.driver.backends import as_target
from refcomp.driver.backends.loading import device_limits
from refcomp.driver.compile import compile_functions
from refcomp.driver.cuda_emulator import cuda_emulator
from refcomp.driver.cuda_on_host import build_on_host
from refcomp.driver.devices import rocm_emulator
from refcomp.driver.pipeline import run_device_passes, steps_for
from refcomp.driver.steps import run_step
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.ir.constants import as_int
from refcomp.ir.func import PrimFunc, Program
from refcomp.ir.kernels import kernel_nest, kernels_in
from refcomp.oracle.lockstep.interpret import interpret, interpret_program
from refcomp.passes.insert_barriers import insert_barriers
from refcomp.runtime.device import Device
from refcomp.runtime.module import Module
from refcomp.runtime.programs.program import DeviceCode, ProgramFunction
from refcomp.schedule.schedule import Schedule
from tests.codegen.amdgpu.kernels import signatures
from tests.properties.differential import agree, expected, lowered
from tests.strategies.computation import Computation

_SEED = 20240  # as in differential.expected


@cache
def opencl_limits() -> DeviceLimits:
    """Those of the device that is there."""
    return device_limits(as_target("opencl"))


def check_every_pass(computation: Computation, schedule: Schedule) -> None:
    """The interpreter agrees with numpy after each pass for OpenCL that changed something, from
    the one on that puts barriers in: without them kernels race."""
    wanted = expected(computation)
    made, has_barriers = lowered(computation, schedule), False
    for step in steps_for("opencl"):
        changed = run_step(step, made)
        has_barriers |= step.function is insert_barriers
        if isinstance(changed, Program):
            if changed is not made:
                _hold_program(changed, computation, wanted, step.name)
        elif has_barriers and (changed is not made or step.function is insert_barriers):
            _hold(lambda arrays, f=changed: interpret(f, arrays), computation, wanted, step.name)
        made = changed


def check_program(computation: Computation, schedule: Schedule) -> None:
    """The interpreter agrees with numpy about what all passes for OpenCL made together."""
    program = run_device_passes(lowered(computation, schedule), "opencl", opencl_limits())
    _hold_program(program, computation, expected(computation), "all passes")


def _hold_program(
    program: Program, computation: Computation, wanted: list[np.ndarray], where: str
) -> None:
    _hold(lambda arrays: interpret_program(program, arrays), computation, wanted, where)


def _hold(
    run: Callable[[list[np.ndarray]], None],
    computation: Computation,
    wanted: list[np.ndarray],
    where: str,
) -> None:
    arrays = computation.arrays(_SEED)
    run(arrays)
    agree(arrays, wanted, f"after {where}")


def check_opencl(computation: Computation, schedule: Schedule) -> None:
    """The OpenCL device agrees with numpy."""
    check_opencl_together([(lowered(computation, schedule), computation)])


def check_opencl_together(cases: Sequence[tuple[PrimFunc, Computation]]) -> None:
    """The OpenCL device agrees with numpy in each case; all are built as one module, which takes a
    fraction of the time. Names of functions differ."""
    _check_together(cases, "opencl")


def check_rocm(computation: Computation, schedule: Schedule) -> None:
    """The AMD GPU agrees with numpy. UserError when there is none."""
    refcomp.rocm(0).require()
    _check_together([(lowered(computation, schedule), computation)], "rocm")


def check_emulated(computation: Computation, schedule: Schedule, gpu: str = "gfx942") -> None:
    """An emulated GPU agrees with numpy, and finds no hazards."""
    func = lowered(computation, schedule)
    results = emulated_results(func, computation.arrays(_SEED), gpu)
    agree(results, expected(computation), f"on the emulated {gpu}")


def emulated_results(
    func: PrimFunc, arrays: Sequence[np.ndarray], gpu: str = "gfx942"
) -> list[np.ndarray]:
    """The arguments after a call on an emulated GPU, which finds no hazards."""
    compiled = compile_functions([func], f"rocm -mcpu={gpu}")
    (program,) = compiled.made
    device = rocm_emulator(gpu, hazards=True)
    code = DeviceCode(compiled.code.code, signatures(program.kernels), device)
    passed = [refcomp.array(values, device) for values in arrays]
    ProgramFunction(signature_of(func), program.host, code)(*passed)
    return [a.asnumpy() for a in passed]


def check_ptx(computation: Computation, schedule: Schedule, target: str = "nvptx") -> None:
    """An emulated NVIDIA GPU agrees with numpy about the PTX of a target, and finds no hazards."""
    func = lowered(computation, schedule)
    assume(fits_nvidia(func))  # what does not fit is not counted
    check_ptx_together([(func, computation)], target)


def check_ptx_together(cases: Sequence[tuple[PrimFunc, Computation]], target: str) -> None:
    """The same of several cases, which are compiled together."""
    device = cuda_emulator("sm_80", hazards=True)
    compiled = compile_functions([func for func, _ in cases], f"{target} -code=ptx -arch=sm_80")
    kernels = [kernel for program in compiled.made for kernel in program.kernels]
    code = DeviceCode(compiled.code.code, signatures(kernels), device)
    for (func, computation), program in zip(cases, compiled.made, strict=True):
        passed = [refcomp.array(values, device) for values in computation.arrays(_SEED)]
        ProgramFunction(signature_of(func), program.host, code)(*passed)
        results = [a.asnumpy() for a in passed]
        agree(results, expected(computation), f"{func}\n{func.name} as PTX of {target}")


def fits_nvidia(func: PrimFunc) -> bool:
    """Return True unless a kernel has more threads along z than NVIDIA GPUs take."""
    nests = map(kernel_nest, kernels_in(func.body))
    return all(as_int(nest.block[2]) is None or as_int(nest.block[2]) <= 64 for nest in nests)


def check_cuda(computation: Computation, schedule: Schedule) -> None:
    """This machine, by g++ with sanitizers, agrees with numpy about the text for NVIDIA GPUs."""
    func = lowered(computation, schedule)
    for results in cuda_results(func, computation.arrays(_SEED)):
        agree(results, expected(computation), "as CUDA on this machine")


def cuda_results(func: PrimFunc, arrays: Sequence[np.ndarray]) -> Iterator[list[np.ndarray]]:
    """The arguments after a call of the text for NVIDIA GPUs, for each of two sanitizers."""
    for sanitizers in ("races", "bounds"):
        module, device = build_on_host([func], sanitizers)
        passed = [refcomp.array(values, device) for values in arrays]
        module[func.name](*passed)
        yield [a.asnumpy() for a in passed]


def check_nvidia(computation: Computation, schedule: Schedule) -> None:
    """The NVIDIA GPU agrees with numpy. UserError when there is none."""
    refcomp.cuda(0).require()
    _check_together([(lowered(computation, schedule), computation)], "cuda")


def _check_together(cases: Sequence[tuple[PrimFunc, Computation]], target: str) -> None:
    module, device = build_functions([func for func, _ in cases], target), refcomp.context(target)
    for func, computation in cases:
        check_module(module, device, func.name, computation)


def check_module(module: Module, device: Device, name: str, computation: Computation) -> None:
    """A function of `module` on `device` agrees with numpy."""
    arrays = [refcomp.array(a, device) for a in computation.arrays(_SEED)]
    module[name](*arrays)
    agree([a.asnumpy() for a in arrays], expected(computation), f"{name} on {device}")
