"""Kernels of random GPU schedules compute what numpy does on the emulated GPU, as machine code.

All that a user meets is under test but the silicon: printer, LLVM, the runtime, its driver. Bits
that nothing wrote and accesses out of bounds are failures, too.
"""

import pytest
from hypothesis import HealthCheck, Phase, given, settings

import refcomp
from refcomp.build import build_functions
from refcomp.devices import rocm_emulator
from refcomp.ir.func import PrimFunc
from tests.properties.differential import agree, expected
from tests.strategies.computes import Computation
from tests.strategies.gpu_schedules import gpu_cases

COUNT = 36
_SEED = 20240  # as in differential.expected


@pytest.mark.rocm
def test_random_schedules_compute_on_the_emulated_gpu(request, record_property):
    drawn = _draw(400 if request.config.getoption("--nightly") else COUNT)
    module = build_functions([func for func, _ in drawn], "rocm -mcpu=gfx942")
    for func, computation in drawn:
        _run(module, func, computation)
    record_property("summary", f"{len(drawn)} random GPU schedules on the emulated GPU")
    assert len(drawn) >= 30


def _draw(count: int) -> list[tuple[PrimFunc, Computation]]:
    found: list[tuple[PrimFunc, Computation]] = []
    relaxed = [*HealthCheck]

    @settings(max_examples=count, phases=[Phase.generate], suppress_health_check=relaxed)
    @given(gpu_cases())
    def collect(case):
        name = f"case{len(found)}"
        func = refcomp.lower(case.schedule, case.computation.args, name)
        found.append((func, case.computation))

    collect()
    return found


def _run(module, func: PrimFunc, computation: Computation) -> None:
    device = rocm_emulator("gfx942")
    arrays = [refcomp.array(values, device) for values in computation.arrays(_SEED)]
    module[func.name](*arrays)
    agree([a.asnumpy() for a in arrays], expected(computation), func.name)
