"""Runs products of matrices, those that follow one another by one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from refcomp.emulator.machine.registers import FIRST_VECTOR
from refcomp.emulator.machine.waves import Run, Waves
from refcomp.emulator.translation.compilation import Compilable
from refcomp.emulator.translation.costs import compile_matrix_ns, interpret_matrix_ns
from refcomp.emulator.translation.host_state import define_whole, state_of
from refcomp.emulator.translation.matrices import (
    MatrixShape,
    MatrixStep,
    print_matrix,
)
from refcomp.emulator.translation.printer import Variant

# The variant of what does not depend on EXEC.
_ALL_LANES = Variant(is_masked=False, is_checked=False, has_shadow=False)
# Adds what the interpreter spends on a variant of some code, in nanoseconds.
Spend = Callable[[Compilable, Variant, int], None]


class ShapeFunction(Compilable):
    """The function of all products of matrices of a shape."""

    numbers = (
        2  # how many products follow one another, and the address of their registers
    )

    def __init__(self, shape: MatrixShape, spend: Spend) -> None:
        super().__init__(compile_matrix_ns(shape.product.multiply_adds))
        self._shape = shape
        self._spend = spend

    def text(self, variant: Variant, name: str, width: int) -> str:
        """Return the text of the function."""
        return print_matrix(self._shape, name, width)

    def function(self, waves: Waves, products: int) -> Callable[..., int] | None:
        """Return the function, or None as long as it is not compiled."""
        function = self.functions.get(_ALL_LANES)
        if function is None:
            sums = self._shape.product.multiply_adds * waves.count()
            self._spend(self, _ALL_LANES, products * interpret_matrix_ns(sums))
            function = self.functions.get(_ALL_LANES)
        return function


class MatrixRun:
    """Runs products of one shape, one after the other: by its function, or by the interpreter."""

    def __init__(
        self, steps: Sequence[MatrixStep], runs: Sequence[Run], shape: ShapeFunction
    ) -> None:
        self._runs = tuple(runs)
        self._shape = shape
        inputs: set[int] = set()
        outputs: set[int] = set()
        for step in steps:
            inputs |= step.inputs - outputs
            outputs |= step.outputs
        self._inputs = frozenset(inputs)
        self._outputs = frozenset(outputs)
        self._registers = max(inputs | outputs) - FIRST_VECTOR + 1
        numbers = [number for one in steps for number in (one.a, one.b, one.c, one.d)]
        self._numbers = np.array(numbers, np.int64)
        self._address = self._numbers.ctypes.data
        # Undefined factors of one product do not hold up the others.
        self._singles: tuple[MatrixRun, ...] = ()
        if len(steps) > 1:
            pairs = zip(steps, runs, strict=True)
            self._singles = tuple(
                MatrixRun([step], [run], shape) for step, run in pairs
            )
        self.calls = 0

    def __call__(self, waves: Waves) -> None:
        is_defined = waves.dirty.isdisjoint(self._inputs)
        if not is_defined and self._singles:
            for one in self._singles:
                one(waves)
            return
        function = None
        if is_defined and self._registers <= len(waves.values.v):
            function = self._shape.function(waves, len(self._runs))
        if function is None:
            for run in self._runs:
                run(waves)
            return
        function(state_of(waves).address_for(waves), len(self._runs), self._address)
        self.calls += 1
        if not waves.dirty.isdisjoint(self._outputs):
            # All lanes were written, whatever EXEC holds.
            define_whole(waves, self._outputs)
