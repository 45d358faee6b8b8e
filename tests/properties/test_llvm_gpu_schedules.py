"""Kernels of random GPU schedules, printed as LLVM IR for AMD or NVIDIA, compute what numpy does.

Whether they compile for AMD GPUs is the affair of `test_device_schedules`. They are run on the host
in place of a GPU: through the driver, on a pretended HIP library, whose launches run the printed
text with threads of the system.
"""

import ctypes
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from refcomp.codegen.llvm.kernel_statements import dynamic_shared
from refcomp.codegen.signature import machine_symbol, signature_of
from refcomp.driver.backends import as_target
from refcomp.driver.pipeline import run_device_passes
from refcomp.foundation.artifacts import Binary
from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import Unsupported
from refcomp.foundation.target import limits_of
from refcomp.ir.func import PrimFunc, Program
from refcomp.ir.rewrite import with_fields
from refcomp.runtime.arrays.ndarray import array
from refcomp.runtime.device import Device
from refcomp.runtime.launch import kernel_signature
from refcomp.runtime.programs.program import DeviceCode, ProgramFunction
from refcomp.toolchain.code_object import argument_places
from tests.codegen.amdgpu.kernels import HostSimulation, signatures
from tests.codegen.nvptx.kernels import NvptxOnHost, assemble, compile_ptx
from tests.properties.differential import agree, expected
from tests.properties.targets import is_refused
from tests.runtime.hip.recording_hip import RecordingHip, driver_of
from tests.strategies.computes import DEPENDENT_REDUCTIONS, FEW_STAGES, MORE_SIZES, VECTORS
from tests.strategies.gpu_schedules import GpuCase, gpu_cases

COUNT = 36
# Computations that the usual draws leave out: scans alone have schedules of their own.
NAMED = (*(kind for kind in VECTORS if "scan" not in kind), *MORE_SIZES, *DEPENDENT_REDUCTIONS)
# How the text of each target runs on this machine.
SIMULATIONS = {"rocm": HostSimulation, "nvptx": NvptxOnHost}
_DYNAMIC_BYTES = 16 * 1024  # between the beginnings of shared buffers of unknown size


@dataclass(frozen=True)
class Drawn:
    """A case as a Program for a target; names of kernels are its own."""

    case: GpuCase
    func: PrimFunc
    program: Program


@pytest.mark.llvm
@pytest.mark.parametrize("kinds", [FEW_STAGES, NAMED], ids=["usual", "named"])
@pytest.mark.parametrize("target", ["rocm", pytest.param("nvptx", marks=pytest.mark.nvcc)])
def test_random_schedules_compute(target, kinds, request, tmp_path, record_property):
    drawn = _draw(400 if request.config.getoption("--nightly") else COUNT, target, kinds)
    kernels = [kernel for one in drawn for kernel in one.program.kernels]
    device = _simulated_device(kernels, SIMULATIONS[target](kernels, tmp_path))
    for one in drawn:
        _run(one, device)
    if target == "nvptx":
        _assemble(kernels)
    text = f"{len(drawn)} random GPU schedules, {len(kernels)} kernels, as text of {target}"
    record_property("summary", f"{text}, run on the host")
    assert len(drawn) >= 30


def _assemble(kernels: list[PrimFunc]) -> None:
    ptx = compile_ptx(kernels)
    assert ptx.count(".visible .entry ") == len(kernels)
    assert assemble(ptx).data.startswith(b"\x7fELF")


def _draw(count: int, target: str, kinds: tuple[str, ...]) -> list[Drawn]:
    limits = limits_of(as_target(target))
    found: list[Drawn] = []
    relaxed = [*HealthCheck]

    @settings(max_examples=count, phases=[Phase.generate], suppress_health_check=relaxed)
    @given(gpu_cases(kinds))
    def collect(case):
        name = f"case{len(found)}"
        func = with_fields(case.func, name=name)
        try:
            program = run_device_passes(func, target, limits)
        except Unsupported as error:
            if is_refused(case.computation, error):
                return
            raise
        found.append(Drawn(case, func, program))

    collect()
    return found


def _run(one: Drawn, device: Device) -> None:
    code = DeviceCode(Binary(b"", "hsaco"), signatures(one.program.kernels), device)
    function = ProgramFunction(signature_of(one.func), one.program.host, code)
    arrays = [array(values, device) for values in one.case.arrays()]
    function(*arrays)
    agree([a.asnumpy() for a in arrays], expected(one.case.computation), one.func.name)


def _simulated_device(kernels: list[PrimFunc], simulation: HostSimulation) -> Device:
    recording = RecordingHip()
    begins = {machine_symbol(k.name): _begins(k, simulation) for k in kernels}
    params = {machine_symbol(k.name): kernel_signature(k).params for k in kernels}

    def launch(symbol: str, *rest) -> None:
        *numbers, _, arguments = rest
        values = [*_unpacked(params[symbol], arguments), *begins[symbol]]
        simulation.run(symbol, values, numbers[:3], numbers[3:])

    recording.on_launch = launch
    return Device("rocm", 0, driver_of(recording))


def _begins(kernel: PrimFunc, simulation: HostSimulation) -> list[object]:
    """Where shared buffers of unknown size begin, which kernels for NVIDIA GPUs are passed."""
    count = len(dynamic_shared(kernel.body)) if isinstance(simulation, NvptxOnHost) else 0
    return [ctypes.c_uint64(number * _DYNAMIC_BYTES) for number in range(count)]


def _unpacked(params: tuple[DType | None, ...], arguments: bytes) -> list[object]:
    """The arguments as a kernel reads them from its buffer."""
    pieces = [arguments[offset : offset + size] for offset, size in argument_places(params)]
    return [_c_value(*pair) for pair in zip(params, pieces, strict=True)]


def _c_value(param: DType | None, piece: bytes) -> object:
    if param is None:
        return ctypes.c_void_p(int.from_bytes(piece, "little"))
    floats = {("float", 32): ctypes.c_float, ("float", 64): ctypes.c_double}
    integers = {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32, 8: ctypes.c_uint64}
    return floats.get((param.kind, param.bits), integers[len(piece)]).from_buffer_copy(piece)
