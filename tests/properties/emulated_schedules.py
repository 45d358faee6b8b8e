"""Random GPU schedules on an emulated GPU: what is drawn, built together, run and counted.

Each case goes through the whole compiler, the runtime and its driver. Where the threads of its
kernels can exchange values, it is run once more with exchanges put in, as no schedule makes them
by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import refcomp
from refcomp.codegen.signature import signature_of
from refcomp.driver.compile import compile_functions
from refcomp.driver.devices import rocm_emulator
from refcomp.foundation.artifacts import Binary
from refcomp.ir.func import PrimFunc, Program
from refcomp.ir.node import Node
from refcomp.ir.rewrite import walk, with_fields
from refcomp.ir.stmt import VTHREAD, Allocate, AtomicUpdate, Barrier, For
from refcomp.runtime.device import Device
from refcomp.runtime.programs.program import DeviceCode, ProgramFunction
from tests.codegen.amdgpu.kernels import compile_kernels, signatures
from tests.properties.differential import agree, expected
from tests.properties.histogram import Histogram
from tests.strategies.computes import COMPUTES, MORE
from tests.strategies.gpu_attempts import attempted_cases
from tests.strategies.gpu_schedules import GpuCase, gpu_cases
from tests.strategies.shuffles import with_shuffles


@dataclass(frozen=True)
class Drawn:
    """A case, lowered under a name of its own."""

    case: GpuCase
    func: PrimFunc


def draw_cases(count: int, number: int) -> list[Drawn]:
    """The `count` cases of the seed `number`; of an odd one, scans and blocks are among them."""
    cases = gpu_cases(COMPUTES)
    if number % 2:
        cases = st.one_of(cases, cases, attempted_cases())
    return _draw(cases, count, number)


def draw_more_cases(count: int, number: int) -> list[Drawn]:
    """The same of computations that are drawn where they are named; most groups have several
    waves."""
    wide = [gpu_cases(kinds, is_wide=True) for kinds in (MORE, COMPUTES)]
    return _draw(st.one_of(gpu_cases(MORE), *wide), count, number)


def _draw(cases: st.SearchStrategy[GpuCase], count: int, number: int) -> list[Drawn]:
    found: list[Drawn] = []

    @seed(number)
    @settings(max_examples=count, phases=[Phase.generate], suppress_health_check=[*HealthCheck])
    @given(cases)
    def collect(case: GpuCase) -> None:
        name = f"case{len(found)}"
        found.append(Drawn(case, with_fields(case.func, name=name)))

    collect()
    return found


def check_emulated(drawn: Sequence[Drawn], gpu: str, wavefront: int = 0) -> Histogram:
    """All agree with numpy on the emulated GPU, which finds nothing wrong and no hazards, with
    waves of so many lanes where that is said. What was drawn."""
    asked = f" -wavefront={wavefront}" if wavefront else ""
    target, histogram = f"rocm -mcpu={gpu}{asked}", Histogram()
    compiled = compile_functions([one.func for one in drawn], target)
    assert isinstance(compiled.code.code, Binary)
    _check(drawn, compiled.made, compiled.code.code, gpu)
    changed = [_shuffled(program) for program in compiled.made]
    pairs = [(one, program) for one, program in zip(drawn, changed, strict=True) if program]
    programs = [program for _, program in pairs]
    kernels = [kernel for program in programs for kernel in program.kernels]
    binary = compile_kernels(kernels, gpu, {"wavefront": wavefront})
    _check([one for one, _ in pairs], programs, binary, gpu)
    for one, program, shuffled in zip(drawn, compiled.made, changed, strict=True):
        found = {*_features(one, program), *(["exchanges among threads"] if shuffled else [])}
        histogram.add(one.case.computation.kind, one.case.schedule, found)
    return histogram


def _shuffled(program: Program) -> Program | None:
    changed = [with_shuffles(kernel) for kernel in program.kernels]
    kernels = tuple(kernel for kernel, _ in changed)
    return Program(program.host, kernels) if any(count for _, count in changed) else None


def _check(drawn: Sequence[Drawn], programs: Sequence[Program], binary: Binary, gpu: str) -> None:
    device = rocm_emulator(gpu, hazards=True)
    kernels = [kernel for program in programs for kernel in program.kernels]
    code = DeviceCode(binary, signatures(kernels), device)
    for one, program in zip(drawn, programs, strict=True):
        function = ProgramFunction(signature_of(one.func), program.host, code)
        _run(function, one, device)


def _run(function: ProgramFunction, one: Drawn, device: Device) -> None:
    arrays = [refcomp.array(values, device) for values in one.case.arrays()]
    function(*arrays)
    results = [a.asnumpy() for a in arrays]
    agree(results, expected(one.case.computation), f"{one.func}\n{one.func.name}")


def _features(one: Drawn, program: Program) -> Iterator[str]:
    yield from ("several groups",) if one.case.has_groups else ()
    yield from ("several kernels",) if len(program.kernels) > 1 else ()
    for root in (one.func.body, *(kernel.body for kernel in program.kernels)):
        for node in walk(root):
            yield from _features_of(node)


def _features_of(node: Node) -> Iterator[str]:
    match node:
        case Allocate():
            yield f"{node.buffer.scope} memory"
        case For(kind=kind) if kind == VTHREAD:
            yield "virtual threads"
        case Barrier():
            yield "barriers"
        case AtomicUpdate():
            yield "atomics"
