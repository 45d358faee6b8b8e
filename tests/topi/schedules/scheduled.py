"""Scheduled computations on all kinds of target, judged by derived bounds, and their profiles."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pytest

import refcomp
from refcomp.ir.func import PrimFunc
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Allocate, For
from refcomp.lowering.lower import lower
from refcomp.oracle.floats.error_bounds import bound_errors
from refcomp.profile.report import ProfileReport, report_of
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Sample
from refcomp.topi.schedules.gpu import schedule_gpu
from tests.strategies.operands import integers
from tests.topi.agreement import WAYS, Case, Way, check_on

# The interpreter runs the schedule for GPUs, too: it finds races.
_WAYS = WAYS | {"interp": Way("interp", schedule_gpu, refcomp.cpu)}
EVERYWHERE = [
    pytest.param("interp", marks=pytest.mark.search),
    pytest.param("opencl", marks=pytest.mark.pocl),
    pytest.param("gfx942", marks=pytest.mark.rocm),
    pytest.param("gfx1100", marks=pytest.mark.rocm),
]


def operands(inputs: Sequence[Tensor]) -> list[np.ndarray]:
    """Whole numbers of -4 to 4, whose sums are exact in any order."""
    made = []
    for place, tensor in enumerate(inputs):
        shape = [extent.value for extent in tensor.shape]
        made.append(integers(5 + place, *shape).astype(tensor.dtype.dtype))
    return made


def case_of(inputs: Sequence[Tensor], output: Tensor, arrays=None) -> Case:
    """A computation with its legal results."""
    arrays = operands(inputs) if arrays is None else arrays
    legal = bound_errors([output], dict(zip(inputs, arrays, strict=True)))
    return Case(
        output.op.name, Sample(tuple(arrays)), tuple(inputs), tuple(arrays), (output,), tuple(legal)
    )


def check(way: str, inputs: Sequence[Tensor], output: Tensor) -> None:
    """AssertionError unless the computation has a legal result on `way` of EVERYWHERE."""
    check_on(_WAYS[way], [_known_case(output, *inputs)])


@lru_cache(maxsize=2)  # all ways run a case one after another
def _known_case(output: Tensor, *inputs: Tensor) -> Case:
    return case_of(inputs, output)


def lowered(inputs: Sequence[Tensor], output: Tensor) -> PrimFunc:
    return lower(schedule_gpu([output]), [*inputs, output], "f")


def loops(func: PrimFunc, kind: str) -> list[int | None]:
    """The extents of the loops of a kind; None for a symbolic one."""
    found = [node for node in walk(func.body) if isinstance(node, For) and node.kind == kind]
    return [getattr(loop.extent, "value", None) for loop in found]


def scope_of(func: PrimFunc, name: str) -> str | None:
    """The scope of the memory of that name; None if it has none."""
    buffers = [node.buffer for node in walk(func.body) if isinstance(node, Allocate)]
    return next((str(buffer.scope) for buffer in buffers if buffer.name == name), None)


def profiled(
    inputs: Sequence[Tensor], output: Tensor, gpu: str, arrays=None
) -> tuple[np.ndarray, list[ProfileReport]]:
    """The result on an emulated GPU, and the report on each kernel."""
    profile = refcomp.Profile()
    device = refcomp.rocm_emulator(gpu, profile=profile)
    schedule = schedule_gpu([output])
    module = refcomp.build(schedule, [*inputs, output], f"rocm -mcpu={gpu}", name="f")
    given = operands(inputs) if arrays is None else arrays
    there = [refcomp.array(array, device) for array in given]
    shape = [extent.value for extent in output.shape]
    result = refcomp.empty(tuple(shape), output.dtype.dtype.name, device)
    module(*there, result)
    return result.asnumpy(), [report_of(counts, module, schedule) for counts in profile.kernels]


def conflicts(report: ProfileReport) -> int:
    """Clocks that bank conflicts of shared memory took."""
    accesses = report.counts.accesses("shared")
    return sum(one.access.conflicts for one in accesses if one.access)
