"""One computation, one schedule, every way to run it: all must agree with numpy exactly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import refcomp
from refcomp.driver.pipeline import passes_for
from refcomp.driver.steps import run_pass
from refcomp.ir.func import PrimFunc
from refcomp.oracle.compare import compare
from refcomp.oracle.tensors.evaluate import evaluate
from refcomp.oracle.whole_outputs import interpret_whole
from refcomp.schedule.schedule import Schedule
from tests.strategies.computation import Computation
from tests.strategies.lowered_once import lowered_once

_SEED = 20240


def lowered(computation: Computation, schedule: Schedule) -> PrimFunc:
    """The scheduled computation at the nested level."""
    return lowered_once(schedule, computation.args)


def expected(computation: Computation) -> list[np.ndarray]:
    """All arguments after the call, by numpy."""
    arrays = computation.arrays(_SEED)
    feeds = {
        tensor: array
        for tensor, array in zip(computation.args, arrays, strict=True)
        if tensor in computation.inputs
    }
    results = dict(
        zip(
            computation.outputs,
            evaluate(computation.outputs, feeds, computation.sizes),
            strict=True,
        )
    )
    pairs = zip(computation.args, arrays, strict=True)
    return [results.get(tensor, array) for tensor, array in pairs]


def agree(actual: list[np.ndarray], wanted: list[np.ndarray], where: str) -> None:
    """AssertionError that names the place and the worst element unless all are equal."""
    for mine, theirs in zip(actual, wanted, strict=True):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape, where
        report = compare(mine, theirs, 0.0)
        assert report.agrees, f"{where}: {report}"


def check_interpreted(computation: Computation, schedule: Schedule) -> None:
    """The interpreter agrees with numpy after lowering and after every pass of the host."""
    func, wanted = lowered(computation, schedule), expected(computation)
    _check_level(func, computation, wanted, "after lowering")
    for step in passes_for("llvm"):
        changed = run_pass(step, func)
        if changed is not func:
            _check_level(changed, computation, wanted, f"after {step.name}")
        func = changed


def _check_level(
    func: PrimFunc, computation: Computation, wanted: list[np.ndarray], where: str
) -> None:
    arrays = computation.arrays(_SEED)
    stored = [_as_stored(a, p.dtype) for a, p in zip(arrays, func.buffers, strict=True)]
    interpret_whole(func, stored)
    agree(arrays, wanted, where)


def _as_stored(array: np.ndarray, dtype: refcomp.DType) -> np.ndarray:
    """bf16 arrays as the 16-bit integers that late passes see them as."""
    return array.view(np.uint16) if dtype.kind == "uint" and array.dtype.kind == "V" else array


def check_compiled(computation: Computation, schedule: Schedule) -> None:
    """The machine code agrees with numpy, and writes nothing around its arrays."""
    check_compiled_together([(lowered(computation, schedule), computation)])


def check_compiled_together(cases: Sequence[tuple[PrimFunc, Computation]]) -> None:
    """The machine code of each case agrees with numpy, and writes nothing around its arrays.

    All are built as one module, which takes a fraction of the time. Names of functions differ.
    """
    module = refcomp.build_functions([func for func, _ in cases], target="llvm")
    for func, computation in cases:
        zoned = [RedZoned(array) for array in computation.arrays(_SEED)]
        module[func.name](*(z.array for z in zoned))
        agree([z.array for z in zoned], expected(computation), f"{func.name}, compiled")
        assert all(z.is_intact() for z in zoned), "compiled: memory around an array was written"


class RedZoned:
    """A copy of an array with marked memory before and behind it."""

    _BYTES, _MARK = 1024, 0xA5

    def __init__(self, array: np.ndarray) -> None:
        self._memory = np.full(array.nbytes + 2 * self._BYTES, self._MARK, np.uint8)
        inside = self._memory[self._BYTES : self._BYTES + array.nbytes]
        self.array = inside.view(array.dtype).reshape(array.shape)
        self.array[...] = array

    def is_intact(self) -> bool:
        """Whether the marks are as they were."""
        zones = (self._memory[: self._BYTES], self._memory[self._BYTES + self.array.nbytes :])
        return all(bool((zone == self._MARK).all()) for zone in zones)
