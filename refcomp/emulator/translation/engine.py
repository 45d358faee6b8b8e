"""Runs blocks by translated code once they are hot, and by the interpreter before.

A block counts its lane instructions. When it is warm it is divided into units. When the units of a
program are hot they are compiled, in the variants that were asked for, all in one module. A unit
that is often held up, by accesses that only the interpreter can judge, is interpreted from then on.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from refcomp.emulator.generations.generation import Generation
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.registers import FIRST_VECTOR
from refcomp.emulator.machine.waves import Run, Waves
from refcomp.emulator.translation.matrices import (
    MatrixShape,
    MatrixStep,
    decode_matrix,
    print_matrix,
)
from refcomp.emulator.translation.printer import (
    FIELDS,
    Variant,
    print_module,
    print_unit,
)
from refcomp.emulator.translation.units import (
    BoundRun,
    CodeUnit,
    scalars,
    units_of,
    vectors,
)
from refcomp.foundation.errors import ToolchainError

# Lane instructions of a block before it is divided into units.
_WARM = 500_000
# Lane instructions of a unit before it is compiled: about as long as a compilation takes.
HOT = 8_000_000
# Times that a unit may be held up before that is compared with its calls.
_MAX_STOPS = 16
# The variant of what does not depend on EXEC.
_ALL_LANES = Variant(is_masked=False, is_checked=False, has_shadow=False)
_LOG = logging.getLogger("refcomp.emulator")
_FIELD = {name: number for number, name in enumerate(FIELDS)}


class HostLibrary(Protocol):
    """A loaded library, whose functions are found by their names."""

    def __getitem__(self, name: str) -> Callable[..., int]: ...


@dataclass(frozen=True, slots=True)
class HostTools:
    """The tools that translation needs.

    Attributes:
        compile: compiles LLVM IR without a target, and loads it. ToolchainError if it cannot.
        width: returns the lanes in a vector of the host, a multiple of 8. ToolchainError, too.
        hot: lane instructions that the interpreter runs of a unit before it is compiled.
    """

    compile: Callable[[str], HostLibrary]
    width: Callable[[], int]
    hot: int = HOT


class Translator:
    """The translations of one program, for waves of `lanes` lanes."""

    def __init__(self, tools: HostTools, generation: Generation, lanes: int) -> None:
        self.generation = generation
        self.lanes = lanes
        self.hot = tools.hot
        self._tools = tools
        self._units: list[UnitRun | ShapeFunction] = []
        self._shapes: dict[MatrixShape, ShapeFunction] = {}
        self._is_broken = False  # a tool is missing or failed: never try again

    def block(self, bound: Sequence[BoundRun]) -> Callable[[Waves], None]:
        """Return what runs the instructions of a block."""
        return BlockRun(tuple(bound), self)

    def parts(self, bound: Sequence[BoundRun]) -> list[Callable[[Waves], None]]:
        """Divide a block into units, and what the interpreter runs between them."""
        found: list[Callable[[Waves], None]] = []
        for part in units_of(bound, self.generation, self.lanes):
            if isinstance(part, BoundRun):
                found.append(self._single(part))
                continue
            unit = UnitRun(part, self)
            self._units.append(unit)
            found.append(unit)
        return found

    def _single(self, bound: BoundRun) -> Callable[[Waves], None]:
        """Return what runs an instruction that is in no unit."""
        step = None
        if not bound.is_indexed:
            step = decode_matrix(bound.instruction, self.generation)
        if step is None:
            return bound.run
        shape = step.shape
        if shape not in self._shapes:
            self._shapes[shape] = ShapeFunction(shape, self)
            self._units.append(self._shapes[shape])
        return MatrixRun(step, bound.run, self._shapes[shape])

    def compile(self) -> None:
        """Compile all units in the variants that were asked for so far."""
        if self._is_broken:
            return
        wanted = [
            (unit, variant) for unit in self._units for variant in unit.take_wanted()
        ]
        names = [f"unit{number}" for number in range(len(wanted))]
        try:
            width = self._tools.width()
            texts = [
                unit.text(variant, name, width)
                for (unit, variant), name in zip(wanted, names, strict=True)
            ]
            library = self._tools.compile(print_module(texts, width))
        except ToolchainError as error:
            _LOG.warning("all emulated code is interpreted, which is slow: %s", error)
            self._is_broken = True
            return
        for (unit, variant), name in zip(wanted, names, strict=True):
            function = library[name]
            function.restype = ctypes.c_int64  # type: ignore[attr-defined]
            numbers = [ctypes.c_int64] * unit.numbers
            function.argtypes = [ctypes.c_void_p, *numbers]  # type: ignore[attr-defined]
            unit.functions[variant] = function


class BlockRun:
    """Runs the instructions of a block, and divides it into units once it is warm."""

    def __init__(self, bound: tuple[BoundRun, ...], translator: Translator) -> None:
        self._bound = bound
        self._translator = translator
        self._heat = 0
        self._parts: list[Callable[[Waves], None]] = [one.run for one in bound]
        self._is_divided = False

    def __call__(self, waves: Waves) -> None:
        if not self._is_divided:
            self._heat += len(self._bound) * waves.count() * waves.lanes
            if self._heat > min(_WARM, self._translator.hot):
                self._is_divided = True
                self._parts = self._translator.parts(self._bound)
        for part in self._parts:
            part(waves)


class UnitRun:
    """Runs a unit: by its function, or by the interpreter."""

    numbers = 0  # that a function takes beside the state

    def __init__(self, unit: CodeUnit, translator: Translator) -> None:
        self.unit = unit
        self.functions: dict[Variant, Callable[..., int]] = {}
        self._translator = translator
        self._heat: dict[Variant, int] = {}
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
            self._warm(variant, waves)
            self._interpret(waves)
            return
        count = waves.count()
        done = function(_state_of(waves).address_for(waves))
        self.calls += 1
        if done < count:
            self._finish(waves, done)
        elif waves.dirty:
            self._define(waves, variant)

    def take_wanted(self) -> list[Variant]:
        """Return the variants that were asked for and are not compiled yet."""
        return [variant for variant in self._heat if variant not in self.functions]

    def text(self, variant: Variant, name: str, width: int) -> str:
        """Return the text of a function."""
        return print_unit(self.unit, variant, name, width)

    def _warm(self, variant: Variant, waves: Waves) -> None:
        steps = len(self.unit.steps) * waves.count() * waves.lanes
        heat = self._heat.get(variant, 0) + steps
        self._heat[variant] = heat
        if heat > self._translator.hot:
            self._translator.compile()
            self._heat[variant] = 0

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
        """Mark what the unit wrote as written, after it ran for all waves."""
        outputs = self.unit.outputs
        if waves.dirty.isdisjoint(outputs):
            return
        if not variant.has_shadow:
            waves.define(outputs)
            return
        waves.define(scalars(outputs))
        if waves.covers:
            _define_whole(waves, vectors(outputs))

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


class ShapeFunction:
    """The function of all products of matrices of a shape."""

    numbers = 4  # the offsets of A, B, C and D

    def __init__(self, shape: MatrixShape, translator: Translator) -> None:
        self._shape = shape
        self._translator = translator
        self._heat = 0
        self.functions: dict[Variant, Callable[..., int]] = {}

    def take_wanted(self) -> list[Variant]:
        """Return the only variant, if it was asked for and is not compiled yet."""
        is_wanted = self._heat and not self.functions
        return [_ALL_LANES] if is_wanted else []

    def text(self, variant: Variant, name: str, width: int) -> str:
        """Return the text of the function."""
        return print_matrix(self._shape, name, width)

    def function(self, waves: Waves) -> Callable[..., int] | None:
        """Return the function, or None as long as it is not compiled."""
        if not self.functions:
            product = self._shape.product
            sums = product.blocks * product.rows * product.rows * product.depth
            self._heat += sums * waves.count()
            if self._heat > self._translator.hot:
                self._translator.compile()
                self._heat = 1
        return self.functions.get(_ALL_LANES)


class MatrixRun:
    """Runs a product of matrices: by the function of its shape, or by the interpreter."""

    def __init__(self, step: MatrixStep, run: Run, shape: ShapeFunction) -> None:
        self._step = step
        self._run = run
        self._shape = shape
        self._inputs = step.inputs
        self._outputs = step.outputs
        self._registers = max(self._inputs | self._outputs) - FIRST_VECTOR + 1
        self.calls = 0

    def __call__(self, waves: Waves) -> None:
        function = None
        if waves.dirty.isdisjoint(self._inputs):
            function = self._shape.function(waves)
        if function is None or self._registers > len(waves.values.v):
            self._run(waves)
            return
        step = self._step
        stride = waves.values.v.strides[0]
        places = (stride * first for first in (step.a, step.b, step.c, step.d))
        function(_state_of(waves).address_for(waves), *places)
        self.calls += 1
        if waves.dirty.isdisjoint(self._outputs):
            return
        # All lanes were written, whatever EXEC holds.
        _define_whole(waves, self._outputs)


class _HostState:
    """The addresses of the state of waves, as functions of units take them."""

    def __init__(self, waves: Waves) -> None:
        arena = waves.around.arena
        places = arena.live_places()
        values, shadow = waves.values, waves.shadow
        self._all = np.arange(waves.waves, dtype=np.int64)
        self._all_address = self._all.ctypes.data
        self._base = waves.shared_base.reshape(-1).astype(np.int64)
        self._kept = (places, self._base)  # alive while their addresses are used
        self._fields = np.zeros(len(FIELDS), np.int64)
        self._address = self._fields.ctypes.data
        self._rows: Array = self._all
        given = {
            "v": _address_of(values.v),
            "u": 0 if shadow is None else _address_of(shadow.v),
            "s": _address_of(values.s),
            "scc": _address_of(values.scc),
            "v.stride": values.v.strides[0],
            "s.stride": values.s.strides[0],
            "arena": _address_of(arena.bytes.data),
            "arena.known": _address_of(arena.bytes.known),
            "shared.data": _address_of(waves.shared.data),
            "shared.shadow": _address_of(waves.shared.known),
            "shared.bases": _address_of(self._base),
            "shared.limit": waves.around.shared_bytes,
            "starts": _address_of(places.starts),
            "ends": _address_of(places.ends),
            "allocations": len(places.starts),
        }
        for name, value in given.items():
            self._fields[_FIELD[name]] = value

    def address_for(self, waves: Waves) -> int:
        """Return the address of the fields, for the waves that run."""
        rows = waves.rows
        if isinstance(rows, slice):
            address = self._all_address
        else:
            self._rows = np.ascontiguousarray(rows, np.int64)
            address = self._rows.ctypes.data
        self._fields[_FIELD["rows"]] = address
        self._fields[_FIELD["count"]] = waves.count()
        return self._address


def _define_whole(waves: Waves, numbers: Collection[int]) -> None:
    """Mark vector registers as written in all lanes, also in those without a work item."""
    assert waves.shadow is not None
    for number in waves.dirty.intersection(numbers):
        waves.shadow.v[number - FIRST_VECTOR, waves.rows] = 0
    if isinstance(waves.rows, slice):
        waves.dirty.difference_update(numbers)


def _address_of(array: Array | None) -> int:
    return 0 if array is None else array.ctypes.data


def _state_of(waves: Waves) -> _HostState:
    state = waves.host_state
    if not isinstance(state, _HostState):
        state = waves.host_state = _HostState(waves)
    return state
