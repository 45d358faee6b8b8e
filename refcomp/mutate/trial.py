"""One right program, and what kills its mutants.

Our comparison kills a mutant in one of three ways:

1. The interpreter refuses it.
2. On elements of a prime field its results are not those of the tensor expressions. The inputs are
   random; a few values many times, for ties; rising and falling, so that the first and the last are
   extremes; and zeros.
3. On floats its results are not legal. If mutants may add in another order, an error bound decides;
   otherwise every bit counts, also for inputs that are equal, infinite or NaN.

Outputs begin with very large or very small numbers, which no program writes.

A tolerance kills a mutant whose floats differ from the right ones by more than this part of them,
as numpy's assert_allclose compares. It also kills programs that the interpreter refuses, as if they
had crashed. Races are the exception: results do not show them reliably.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.errors import RefcompError, Unsupported
from refcomp.foundation.python_limits import deep_recursion
from refcomp.ir.expr import IntImm
from refcomp.ir.func import PrimFunc
from refcomp.ir.structure import structurally_equal
from refcomp.mutate.mutant import TOLERANCES, tolerances_exceeded
from refcomp.mutate.subjects import Subject
from refcomp.oracle.compare import judge_bounded
from refcomp.oracle.exact.field import P, field_dtype, tensors_to_field, to_field
from refcomp.oracle.floats.error_bounds import Bounded, bound_errors
from refcomp.oracle.interpreter.expressions import Frame
from refcomp.oracle.interpreter.interpret import bind_arguments
from refcomp.oracle.interpreter.memory import Memory
from refcomp.oracle.interpreter.scalars import Scalar
from refcomp.oracle.interpreter.statements import run_to_end
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.oracle.tensors.arrays import Array
from refcomp.oracle.tensors.evaluate import evaluate
from refcomp.oracle.tensors.lane_axes import scalar_tensors
from refcomp.passes.simplify_expressions import simplify_expressions
from refcomp.te.tensor import Tensor


class _Inputs(StrEnum):
    """A way to draw inputs: the first two give floats, the others field elements."""

    FLOATS = "floats"
    SPECIAL = "special floats"
    RANDOM = "random"
    TIES = "ties"
    RISING = "rising"
    FALLING = "falling"
    ZEROS = "zeros"


_FIELD_INPUTS = tuple(_Inputs)[2:]
_SPECIAL_FLOATS = (0.0, -0.0, 1.0, 1.0, 2.5, np.inf, -np.inf, np.nan)
_UNWRITTEN = 77_777_777  # what outputs begin with, or its negative
_NEGATIVE_OUTPUTS = (_Inputs.TIES, _Inputs.FALLING, _Inputs.ZEROS)
_RACES = ("a race on", "another thread may write it")  # in the interpreter's errors
_SEED = 7
_MORE_SEEDS = range(100, 110)
_Writes = set[tuple[int, str]]  # position and value


class MutantTrial:
    """The right program `func`, with its results."""

    def __init__(self, subject: Subject, func: PrimFunc, is_free: bool) -> None:
        """Run the right program. If `is_free`, mutants may add in another order."""
        self.subject = subject
        self.func = func
        # As functions take them: vectors are the last dimension of their tensor.
        scalars = scalar_tensors(subject.args)
        self._args = [scalars.get(arg, arg) for arg in subject.args]
        self._outputs = [k for k, arg in enumerate(self._args) if arg.op.inputs]
        # None where the program looks at the bits of floats, which field elements do not have.
        self.field: PrimFunc | None = None
        with suppress(Unsupported):
            self.field = to_field(func)
        self._in_field = {inputs: self._evaluated(inputs) for inputs in _FIELD_INPUTS}
        self._bounded = self._bounds() if is_free else None
        self._floats = self._arrays(_Inputs.FLOATS)
        interpret(func, self._floats)

    def difference(self, mutated: PrimFunc) -> str:
        """Return how our comparison sees that `mutated` is wrong; '' if it survives."""
        if self.field is not None:
            for inputs, expected in self._in_field.items():
                arrays = self._arrays(inputs)
                difference = self._compare(to_field(mutated), arrays, expected)
                if difference:
                    return difference
        arrays = self._arrays(_Inputs.FLOATS)
        if self._bounded is None:
            difference = self._compare(mutated, arrays, self._floats)
            return difference or self._compare_special_floats(mutated, (_SEED,))
        interpret(mutated, arrays)  # raises nothing: it ran in the field
        for k, bounded in self._bounded.items():
            report = judge_bounded(arrays[k], bounded)
            if not report.agrees:
                return str(report)
        return ""

    def killing_tolerances(self, mutated: PrimFunc) -> set[str]:
        """Return the names of the tolerances that kill `mutated`."""
        arrays = self._arrays(_Inputs.FLOATS)
        for k in self._outputs:
            arrays[k][...] = 0  # as in a usual test
        try:
            interpret(mutated, arrays)
        except RefcompError as error:
            is_race = any(text in str(error) for text in _RACES)
            return set() if is_race else set(TOLERANCES)
        return tolerances_exceeded((arrays[k], self._floats[k]) for k in self._outputs)

    @deep_recursion()
    def is_same_simplified(self, mutated: PrimFunc) -> bool:
        """Return True if `mutated` and the right program have the same simplified form."""
        try:
            simplified = simplify_expressions(mutated)
            return structurally_equal(simplified, simplify_expressions(self.func))
        except RefcompError:
            return False

    def makes_same_writes(self, mutated: PrimFunc) -> bool:
        """Return True if `mutated` writes the same values to the same elements, in any order.

        The values are field elements where the program has a meaning in the field.
        """
        if self.field is None:
            right, inputs = self.func, _Inputs.FLOATS
        else:
            right, inputs = self.field, _Inputs.RANDOM
            mutated = to_field(mutated)
        writes = _writes(mutated, self._arrays(inputs))
        return writes == _writes(right, self._arrays(inputs))

    def differs_on_more_inputs(self, mutated: PrimFunc) -> bool:
        """Return True if many more inputs show that `mutated` is wrong.

        They are field elements; where every bit counts also special floats.
        """
        if self._bounded is None and self._compare_special_floats(mutated, _MORE_SEEDS):
            return True
        if self.field is None:
            return not self.makes_same_writes(mutated)
        mutated = to_field(mutated)
        for seed in _MORE_SEEDS:
            for inputs in (_Inputs.RANDOM, _Inputs.TIES):
                expected = self._evaluated(inputs, seed)
                if self._compare(mutated, self._arrays(inputs, seed), expected):
                    return True
        return False

    def _compare(
        self, func: PrimFunc, arrays: list[Array], expected: Sequence[Array]
    ) -> str:
        """Run `func` on `arrays`; return the difference of its outputs, '' for none."""
        try:
            interpret(func, arrays)
        except RefcompError as error:
            return error.what
        for k in self._outputs:
            if not np.array_equal(arrays[k], expected[k], equal_nan=True):
                return "another result"
        return ""

    def _compare_special_floats(self, mutated: PrimFunc, seeds: Iterable[int]) -> str:
        for seed in seeds:
            expected = self._arrays(_Inputs.SPECIAL, seed)
            interpret(self.func, expected)
            arrays = self._arrays(_Inputs.SPECIAL, seed)
            difference = self._compare(mutated, arrays, expected)
            if difference:
                return difference
        return ""

    def _bounds(self) -> dict[int, Bounded]:
        """Return the legal floats of each output, by the position of its argument."""
        outputs = [self._args[k] for k in self._outputs]
        found = bound_errors(outputs, self._feeds(self._arrays(_Inputs.FLOATS)))
        return dict(zip(self._outputs, found, strict=True))

    def _feeds(self, arrays: Sequence[Array]) -> dict[Tensor, Array]:
        pairs = zip(self._args, arrays, strict=True)
        return {arg: array for arg, array in pairs if not arg.op.inputs}

    def _evaluated(self, inputs: _Inputs, seed: int = _SEED) -> list[Array]:
        """Return the arguments after the tensor expressions are evaluated in the field."""
        arrays = self._arrays(inputs, seed)
        outputs = [self._args[k] for k in self._outputs]
        in_field, replaced = tensors_to_field(outputs)
        feeds = {replaced[t]: array for t, array in self._feeds(arrays).items()}
        values = evaluate(in_field, feeds)
        for k, value in zip(self._outputs, values, strict=True):
            arrays[k] = value
        return arrays

    def _arrays(self, inputs: _Inputs, seed: int = _SEED) -> list[Array]:
        """Return fresh arguments, the same on every call."""
        rng = np.random.default_rng(seed)
        return [_array(arg, inputs, rng) for arg in self._args]


def _array(tensor: Tensor, inputs: _Inputs, rng: np.random.Generator) -> Array:
    shape = tuple(dim.value for dim in tensor.shape if isinstance(dim, IntImm))
    dtype = tensor.dtype
    if inputs in _FIELD_INPUTS:
        dtype = field_dtype(dtype)
    values: npt.ArrayLike
    if tensor.op.inputs:
        is_negative = inputs in _NEGATIVE_OUTPUTS
        values = np.full(shape, -_UNWRITTEN if is_negative else _UNWRITTEN)
    elif inputs == _Inputs.FLOATS:
        values = rng.standard_normal(shape)
    elif inputs == _Inputs.SPECIAL:
        # Few different ones at a time, as all of them at once make most sums NaN.
        values = rng.choice(rng.choice(_SPECIAL_FLOATS, 3), shape)
    else:
        end = {_Inputs.TIES: 3, _Inputs.ZEROS: 1}.get(inputs, P)
        values = rng.integers(0, end, shape)
        if inputs in (_Inputs.RISING, _Inputs.FALLING):
            values = np.sort(values, axis=None).reshape(shape)
        if inputs == _Inputs.FALLING:
            values = np.flip(values)
    return np.asarray(values).astype(to_numpy(dtype))


class _WriteLog(Memory):
    """Memory that keeps what was written to it."""

    writes: _Writes

    def _set(self, index: int, value: Scalar) -> None:
        super()._set(index, value)
        self.writes.add((index, str(value)))


@deep_recursion()
def _writes(func: PrimFunc, args: Sequence[Array]) -> list[_Writes]:
    """Run `func`, and return what it writes to each argument."""
    frame = Frame(num_tasks=3)
    bind_arguments(frame, func, args)
    logs = []
    for buffer, memory in list(frame.memory.items()):
        log = _WriteLog(buffer, memory.shape, memory.array)
        log.writes = set()
        frame.memory[buffer] = log
        logs.append(log)
    with np.errstate(all="ignore"):
        run_to_end(frame, func.body)
    return [log.writes for log in logs]
