"""Runs blocks by translated code once they are hot, and by the interpreter before.

Blocks and units add up the time that the interpreter spends on them, by the estimates of `costs`.
When a block is warm it is divided into units. A unit is hot, in a variant, when the interpreter has
spent on it the time that compiling it takes. Hot units wait until they have cost as much again as
starting the tools does. Then all that are hot are compiled in one module. A unit that is often held
up, by accesses that only the interpreter can judge, is interpreted from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from refcomp.emulator.generations.generation import Generation
from refcomp.emulator.instructions.matrix.layouts import product_of
from refcomp.emulator.machine.registers import FIRST_VECTOR
from refcomp.emulator.machine.waves import Waves
from refcomp.emulator.translation.compilation import (
    Compilable,
    Compilations,
    HostTools,
    WantedVariant,
)
from refcomp.emulator.translation.costs import (
    DIVISION_NS,
    STARTUP_NS,
    compile_ns,
    interpret_matrix_ns,
    interpret_ns,
    weight_of,
)
from refcomp.emulator.translation.host_state import define_whole, state_of
from refcomp.emulator.translation.matrices import MatrixShape, MatrixStep, decode_matrix
from refcomp.emulator.translation.matrix_runs import MatrixRun, ShapeFunction
from refcomp.emulator.translation.printer import Variant, print_unit
from refcomp.emulator.translation.units import (
    BoundRun,
    CodeUnit,
    scalars,
    units_of,
    vectors,
)

# Times that a unit may be held up before that is compared with its calls.
_MAX_STOPS = 16


class Translator:
    """The translations of one program, for waves of `lanes` lanes."""

    def __init__(self, tools: HostTools, generation: Generation, lanes: int) -> None:
        self.generation = generation
        self.lanes = lanes
        self.hot = tools.hot
        self._compilations = Compilations(tools)
        self._units: list[Compilable] = []
        self._shapes: dict[MatrixShape, ShapeFunction] = {}
        self._waited_ns = 0  # that the interpreter spent on hot units

    @property
    def is_broken(self) -> bool:
        """True if a tool is missing or failed, so that all is interpreted."""
        return self._compilations.is_broken

    def block(self, bound: Sequence[BoundRun]) -> Callable[[Waves], None]:
        """Return what runs the instructions of a block."""
        return BlockRun(tuple(bound), self)

    def parts(self, bound: Sequence[BoundRun]) -> list[Callable[[Waves], None]]:
        """Divide a block into units and the instructions between them, which are interpreted."""
        found: list[Callable[[Waves], None]] = []
        products: list[tuple[MatrixStep, BoundRun]] = []  # of one shape
        for part in units_of(bound, self.generation, self.lanes):
            step = self._product(part) if isinstance(part, BoundRun) else None
            if products and (step is None or step.shape != products[0][0].shape):
                found.append(self._products(products))
                products = []
            if isinstance(part, CodeUnit):
                unit = UnitRun(part, self)
                self._units.append(unit)
                found.append(unit)
            elif step is None:
                found.append(part.run)
            else:
                products.append((step, part))
        if products:
            found.append(self._products(products))
        return found

    def _product(self, bound: BoundRun) -> MatrixStep | None:
        """Return the product of matrices that translated code can compute."""
        if bound.is_indexed:
            return None
        return decode_matrix(bound.instruction, self.generation)

    def _products(self, products: Sequence[tuple[MatrixStep, BoundRun]]) -> MatrixRun:
        shape = products[0][0].shape
        if shape not in self._shapes:
            self._shapes[shape] = ShapeFunction(shape, self.spend)
            self._units.append(self._shapes[shape])
        steps = [step for step, _ in products]
        runs = [bound.run for _, bound in products]
        return MatrixRun(steps, runs, self._shapes[shape])

    def spend(self, unit: Compilable, variant: Variant, spent_ns: int) -> None:
        """Add the time that the interpreter spends on a variant, and compile hot units if it pays.

        The counts do not depend on when a compilation ends. So each run of a program makes the same
        modules, and a later run finds them in the cache.
        """
        if variant in unit.begun:
            self._compilations.collect()
            return
        total_ns = unit.spent_ns.get(variant, 0) + spent_ns
        unit.spent_ns[variant] = total_ns
        if total_ns <= self.hot * unit.cost_ns:
            return
        self._waited_ns += spent_ns
        if self._waited_ns > self.hot * STARTUP_NS:
            self._waited_ns = 0
            self._begin(self.hot)

    def compile(self) -> None:
        """Compile all units in the variants that were asked for so far, and wait for the end."""
        self._begin(0)
        self._compilations.collect(is_waiting=True)

    def _begin(self, hot: float) -> None:
        self._compilations.begin(
            [
                WantedVariant(unit, variant)
                for unit in self._units
                for variant in unit.wanted(hot)
            ]
        )


class BlockRun:
    """Runs the instructions of a block, and divides it into units once it is warm."""

    def __init__(self, bound: tuple[BoundRun, ...], translator: Translator) -> None:
        self._bound = bound
        self._translator = translator
        self._spent_ns = 0
        self._division_ns = translator.hot * DIVISION_NS * len(bound)
        products = (product_of(one.instruction.mnemonic) for one in bound)
        # Multiply-adds of a wave, in products of matrices.
        self._products = [one.multiply_adds for one in products if one is not None]
        self._parts: list[Callable[[Waves], None]] = [one.run for one in bound]
        self._is_divided = False

    def __call__(self, waves: Waves) -> None:
        if not self._is_divided:
            self._spent_ns += self._interpret_ns(waves)
            if self._spent_ns > self._division_ns:
                self._is_divided = True
                self._parts = self._translator.parts(self._bound)
        for part in self._parts:
            part(waves)

    def _interpret_ns(self, waves: Waves) -> int:
        """Return about how long the interpreter takes."""
        count = waves.count()
        others = len(self._bound) - len(self._products)
        return interpret_ns(others, count * waves.lanes) + sum(
            interpret_matrix_ns(one * count) for one in self._products
        )


class UnitRun(Compilable):
    """Runs a unit: by its function, or by the interpreter."""

    def __init__(self, unit: CodeUnit, translator: Translator) -> None:
        self._weight = weight_of(unit.steps)
        super().__init__(compile_ns(self._weight))
        self.unit = unit
        self._translator = translator
        self.calls = 0  # of functions
        self.stops = 0  # calls in which a wave was held up
        self._is_given_up = False
        self._scalar_inputs = scalars(unit.inputs)
        self._vector_inputs = vectors(unit.inputs)
        # How many vector registers there must be.
        self._registers = max(
            (n - FIRST_VECTOR + 1 for n in vectors(unit.inputs | unit.outputs)),
            default=0,
        )

    def __call__(self, waves: Waves) -> None:
        variant = None if self._is_given_up else self._variant(waves)
        if variant is None or self._registers > len(waves.values.v):
            self._interpret(waves)
            return
        function = self.functions.get(variant)
        if function is None:
            lanes = waves.count() * waves.lanes
            spent_ns = interpret_ns(self._weight, lanes)
            self._translator.spend(self, variant, spent_ns)
            self._interpret(waves)
            return
        count = waves.count()
        done = function(state_of(waves).address_for(waves))
        self.calls += 1
        if done < count:
            self._finish(waves, done)
        elif waves.dirty:
            self._define(waves, variant)

    def text(self, variant: Variant, name: str, width: int) -> str:
        """Return the text of a function."""
        return print_unit(self.unit, variant, name, width)

    def _interpret(self, waves: Waves) -> None:
        for run in self.unit.runs:
            run(waves)

    def _variant(self, waves: Waves) -> Variant | None:
        """Return how the unit can run now; None if only the interpreter can run it."""
        is_masked = not waves.is_full
        shadow = waves.shadow
        if shadow is None:
            return Variant(is_masked, False, False)
        if not waves.dirty or waves.dirty.isdisjoint(self.unit.inputs):
            if not is_masked:
                return Variant(False, True, False)
        else:
            for number in self._scalar_inputs:
                if number in waves.dirty and self._is_undefined(waves, number):
                    return None
            # The interpreter computes undefined bits of lanes without a work item, too.
            if is_masked and waves.covers and self._reaches_idle(waves):
                return None
        return Variant(True, True, True)

    def _is_undefined(self, waves: Waves, number: int) -> bool:
        assert waves.shadow is not None
        if number < len(waves.shadow.s):
            return bool(waves.shadow.s[number, waves.rows].any())
        return bool(waves.shadow.scc[waves.rows].any())

    def _reaches_idle(self, waves: Waves) -> bool:
        """Return True if an input is undefined in lanes that have no work item."""
        assert waves.shadow is not None
        idle = ~waves.existing[waves.rows]
        return any(
            waves.shadow.v[number - FIRST_VECTOR, waves.rows][idle].any()
            for number in waves.dirty.intersection(self._vector_inputs)
        )

    def _define(self, waves: Waves, variant: Variant) -> None:
        """Mark the registers that the unit writes as written, after it ran for all waves."""
        outputs = self.unit.outputs
        if waves.dirty.isdisjoint(outputs):
            return
        if not variant.has_shadow:
            waves.define(outputs)
            return
        waves.define(scalars(outputs))
        if waves.covers:
            define_whole(waves, vectors(outputs))

    def _finish(self, waves: Waves, done: int) -> None:
        """Let the interpreter run the unit for the waves from number `done` on."""
        self.stops += 1
        self._is_given_up = self.stops > _MAX_STOPS and 4 * self.stops > self.calls
        rows = waves.rows
        numbers = np.arange(waves.waves)[rows]
        if done:
            waves.select(numbers[:done])
            if waves.dirty:
                waves.define(self.unit.outputs)
            waves.select(numbers[done:])
        self._interpret(waves)
        waves.select(rows)
