"""Is an operator its meaning? Samples of it run on a target, and are judged by derived bounds.

The legal results of a sample follow from the te compute (`refcomp.oracle.bound_errors`). The numpy
meaning must be among them, and so must be what each target computes. Nothing is compared with a
tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

import refcomp
from refcomp.ir.func import PrimFunc
from refcomp.oracle.compare import judge_bounded
from refcomp.oracle.floats.error_bounds import Bounded, bound_errors
from refcomp.runtime.device import Device
from refcomp.schedule.schedule import Schedule
from refcomp.te.operation import placeholder, reachable_operations
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import Operator
from refcomp.topi.schedules.gpu import schedule_gpu
from refcomp.topi.schedules.llvm import schedule_llvm


@dataclass(frozen=True, slots=True)
class Way:
    """A way to run: a target, its schedules, and where its arrays are."""

    target: str
    schedule: Callable[[Sequence[Tensor]], Schedule]
    device: Callable[[], Device]


def _emulated(gpu: str) -> Way:
    return Way(f"rocm -mcpu={gpu}", schedule_gpu, lambda: refcomp.rocm_emulator(gpu, hazards=True))


WAYS = {
    "interp": Way("interp", schedule_llvm, refcomp.cpu),
    "llvm": Way("llvm", schedule_llvm, refcomp.cpu),
    "opencl": Way("opencl", schedule_gpu, lambda: refcomp.opencl(0)),
    "gfx942": _emulated("gfx942"),
    "gfx1100": _emulated("gfx1100"),
    "sm_90": Way(
        "nvptx -code=ptx -arch=sm_90",
        schedule_gpu,
        lambda: refcomp.cuda_emulator("sm_90", hazards=True),
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A sample as a te computation, with its legal results. Nothing writes to its arrays."""

    name: str
    sample: Sample
    inputs: tuple[Tensor, ...]
    arrays: tuple[np.ndarray, ...]
    outputs: tuple[Tensor, ...]
    legal: tuple[Bounded, ...]

    @property
    def read(self) -> dict[Tensor, np.ndarray]:
        """The array of each input that a result needs: not a part of no elements, for instance."""
        operations = reachable_operations([output.op for output in self.outputs])
        pairs = zip(self.inputs, self.arrays, strict=True)
        return {tensor: array for tensor, array in pairs if tensor.op in operations}

    def __str__(self) -> str:
        shown = [
            f"{a.dtype}{list(a.shape)}" if a is not None else "-" for a in self.sample.operands
        ]
        return f"{self.name} of {', '.join(shown)} {dict(self.sample.attributes)}"


@lru_cache(maxsize=16)  # all GPUs run the same samples
def make_case(operator: Operator, seed: int) -> Case:
    """Return a sample whose numpy meaning is among the legal results; AssertionError otherwise."""
    sample = operator.sample(Draws(seed))
    operands = [
        None if array is None else placeholder(array.shape, array.dtype, name=f"p{place}")
        for place, array in enumerate(sample.operands)
    ]
    made = operator.compute(*operands, **sample.attributes)
    outputs = tuple(made if isinstance(made, list) else [made])
    inputs = tuple(tensor for tensor in operands if tensor is not None)
    arrays = tuple(array for array in sample.operands if array is not None)
    legal = tuple(bound_errors(outputs, dict(zip(inputs, arrays, strict=True))))
    case = Case(f"{operator.name}_{seed}", sample, inputs, arrays, outputs, legal)
    with np.errstate(all="ignore"):
        meant = operator.numpy(*sample.operands, **sample.attributes)
    _judge(case, meant if isinstance(meant, list) else [meant], "the numpy meaning")
    return case


def _judge(case: Case, results: Sequence[np.ndarray], who: str) -> None:
    assert len(results) == len(case.outputs)
    for result, output, legal in zip(results, case.outputs, case.legal, strict=True):
        assert result.dtype == output.dtype.dtype, f"{who}: {case}"
        assert result.shape == legal.value.shape, f"{who}: {case}"
        report = judge_bounded(result, legal)
        assert report.agrees, f"{who}: {case}\n{report}"


def check_on(way: Way, cases: Sequence[Case]) -> None:
    """AssertionError unless every case computes a legal result in this way.

    All are built as one module, which takes a fraction of the time.
    """
    funcs = [_lowered(case, way.schedule) for case in cases]
    module = refcomp.build_functions(funcs, target=way.target)
    device = way.device()
    for case in cases:
        given = [refcomp.array(array, device) for array in case.read.values()]
        results = [
            refcomp.array(_unwritten(output, legal), device)
            for output, legal in zip(case.outputs, case.legal, strict=True)
        ]
        module[case.name](*given, *results)
        _judge(case, [array.asnumpy() for array in results], way.target)


@lru_cache(maxsize=16)
def _lowered(case: Case, schedule: Callable[[Sequence[Tensor]], Schedule]) -> PrimFunc:
    return refcomp.lower(schedule(case.outputs), [*case.read, *case.outputs], case.name)


def _unwritten(output: Tensor, legal: Bounded) -> np.ndarray:
    """Return an array for a result, with a value that no case means."""
    return np.full(legal.value.shape, 77).astype(output.dtype.dtype)
