"""What is known of one right program before its mutants are tried, and what tells them from it.

A mutant is killed

- by ours, when the interpreter refuses it, when it differs from the tensor expressions on elements
  of a prime field (random ones; a few values many times, as ties need them; rising and falling
  ones, so that the first and the last are extremes; zeros), or on floats: what may add up in
  another order by more than the bound of any legal one, what must not by one bit, on equal and
  infinite ones and on NaN, too. Outputs begin with numbers that no program writes, great or small;
- by a tolerance, when its floats differ from the right ones by more than that part of them
  (numpy's assert_allclose, as peers compare). A broken rule counts as noticed as well, as if it
  crashed, but for races: numbers do not show them reliably.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from refcomp.foundation.dtype import DType, to_numpy
from refcomp.foundation.errors import RefcompError, Unsupported
from refcomp.foundation.python_limits import deep_recursion
from refcomp.ir.func import PrimFunc
from refcomp.ir.structure import structurally_equal
from refcomp.mutate.mutant import POLICIES, TOLERANCES
from refcomp.mutate.subjects import Subject
from refcomp.oracle.compare import judge_bounded
from refcomp.oracle.exact.field import P, field_dtype, tensors_to_field, to_field
from refcomp.oracle.floats.error_bounds import Bounded, bound_errors
from refcomp.oracle.interpreter.expressions import Frame
from refcomp.oracle.interpreter.interpret import bind_arguments
from refcomp.oracle.interpreter.memory import Memory
from refcomp.oracle.interpreter.statements import run_to_end
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.oracle.tensors.evaluate import evaluate
from refcomp.passes.simplify_expressions import simplify_expressions
from refcomp.te.tensor import Tensor

_FLOATS, _RANDOM, _SPECIAL = "floats", "random", "special"
_SPECIAL_FLOATS = (0.0, -0.0, 1.0, 1.0, 2.5, np.inf, -np.inf, np.nan)
_FIELD_MODES = (_RANDOM, "ties", "rising", "falling", "zeros")
# Where outputs begin with a very small number, not a great one.
_BELOW = ("ties", "falling", "zeros")
_RACES = ("a race on", "another thread may write it")
_SEED = 7
_MORE_SEEDS = range(100, 110)


class MutantTrial:
    """One right program `func`; `is_free`: mutants may add up in another order."""

    def __init__(self, subject: Subject, func: PrimFunc, is_free: bool) -> None:
        self.subject, self.func = subject, func
        self.field = _in_field(func)
        self.wanted = {mode: self._expected(mode) for mode in _FIELD_MODES}
        self.bounded = self._bounds() if is_free else None
        self.floats = self._arrays(_FLOATS)
        interpret(func, self.floats)

    def difference(self, mutated: PrimFunc) -> str:
        """By what ours tells `mutated` from the right program; '' where it does not."""
        if self.field is not None:
            for mode, wanted in self.wanted.items():
                told = _compared(
                    to_field(mutated), self._arrays(mode), wanted, self._outputs()
                )
                if told:
                    return told
        if self.bounded is None:
            told = _compared(
                mutated, self._arrays(_FLOATS), self.floats, self._outputs()
            )
            return told or self._on_special_floats(mutated, (_SEED,))
        arrays = self._arrays(_FLOATS)
        interpret(mutated, arrays)  # no rule is broken: it ran in the field
        reports = [judge_bounded(arrays[k], b) for k, b in self.bounded.items()]
        return next((str(report) for report in reports if not report.agrees), "")

    def _bounds(self) -> dict[int, Bounded]:
        """The outputs on floats, by their place, with a bound of what another order may give."""
        args, arrays = self.subject.args, self._arrays(_FLOATS)
        feeds = {t: a for t, a in zip(args, arrays, strict=True) if not _is_computed(t)}
        outputs = self._outputs()
        found = bound_errors([args[k] for k in outputs], feeds)
        return dict(zip(outputs, found, strict=True))

    def noticed_by_tolerances(self, mutated: PrimFunc) -> set[str]:
        """The tolerances that do."""
        arrays = self._arrays(_FLOATS)
        for k in self._outputs():
            arrays[k][...] = 0  # as who compares like that begins
        try:
            interpret(mutated, arrays)
        except RefcompError as error:
            is_race = any(text in str(error) for text in _RACES)
            return set() if is_race else set(POLICIES[1:])
        return {
            policy
            for policy, tolerance in zip(POLICIES[1:], TOLERANCES, strict=True)
            if not all(
                np.allclose(
                    arrays[k], self.floats[k], rtol=tolerance, atol=0, equal_nan=True
                )
                for k in self._outputs()
            )
        }

    def is_same(self, mutated: PrimFunc) -> bool:
        """Whether it is the same program after simplification."""
        return _is_same(mutated, self.func)

    def writes_the_same(self, mutated: PrimFunc) -> bool:
        """Whether it writes the same field elements to the same places, in whatever order."""
        func, mode = (
            (self.func, _FLOATS) if self.field is None else (self.field, _RANDOM)
        )
        changed = mutated if self.field is None else to_field(mutated)
        return _writes(changed, self._arrays(mode)) == _writes(func, self._arrays(mode))

    def differs_elsewhere(self, mutated: PrimFunc) -> bool:
        """Whether any of many more inputs in the field tells it from the right program; or floats
        of which many are equal, zero, infinite or no numbers, where no order is free."""
        if self.bounded is None and self._on_special_floats(mutated, _MORE_SEEDS):
            return True
        if self.field is None:
            return not self.writes_the_same(mutated)
        fielded = to_field(mutated)
        return any(
            bool(_compared(fielded, self._arrays(mode, seed), wanted, self._outputs()))
            for seed in _MORE_SEEDS
            for mode in (_RANDOM, "ties")
            for wanted in [self._expected(mode, seed)]
        )

    def _on_special_floats(self, mutated: PrimFunc, seeds: Iterable[int]) -> str:
        """By what it is told on floats of which many are equal, zero, infinite or no numbers."""
        for seed in seeds:
            wanted = self._arrays(_SPECIAL, seed)
            interpret(self.func, wanted)
            told = _compared(
                mutated, self._arrays(_SPECIAL, seed), wanted, self._outputs()
            )
            if told:
                return told
        return ""

    def _outputs(self) -> list[int]:
        return [k for k, arg in enumerate(self.subject.args) if _is_computed(arg)]

    def _expected(self, mode: str, seed: int = _SEED) -> list[Any]:
        """The arguments after the tensor expressions are evaluated on field elements."""
        args, arrays = self.subject.args, self._arrays(mode, seed)
        outputs = [args[k] for k in self._outputs()]
        fielded, places = tensors_to_field(outputs)
        feeds = {
            places[t]: a
            for t, a in zip(args, arrays, strict=True)
            if not _is_computed(t)
        }
        values = evaluate(fielded, feeds)
        for k, value in zip(self._outputs(), values, strict=True):
            arrays[k] = value
        return arrays

    def _arrays(self, mode: str, seed: int = _SEED) -> list[Any]:
        """Fresh arguments, the same on every call."""
        rng = np.random.default_rng(seed)
        return [_array(arg, mode, rng) for arg in self.subject.args]


def _array(tensor: Tensor, mode: str, rng: np.random.Generator) -> Any:
    shape = tuple(getattr(dim, "value", 0) for dim in tensor.shape)
    dtype: DType = (
        tensor.dtype if mode in (_FLOATS, _SPECIAL) else field_dtype(tensor.dtype)
    )
    if _is_computed(tensor):
        values: Any = np.full(shape, -77_777_777 if mode in _BELOW else 77_777_777)
    elif mode == _FLOATS:
        values = rng.standard_normal(shape)
    elif mode == _SPECIAL:
        # Few different ones at a time, as all of them at once make most sums NaN.
        values = rng.choice(rng.choice(_SPECIAL_FLOATS, 3), shape)
    else:
        values = rng.integers(0, {"ties": 3, "zeros": 1}.get(mode, P), shape)
    if not _is_computed(tensor) and mode in ("rising", "falling"):
        values = np.sort(values, axis=None).reshape(shape)
        values = values if mode == "rising" else np.flip(values)
    return np.asarray(values).astype(to_numpy(dtype))


def _is_computed(tensor: Tensor) -> bool:
    return bool(tensor.op.inputs)


def _in_field(func: PrimFunc) -> PrimFunc | None:
    """None where the program looks at the bits of floats, and has no meaning in the field."""
    try:
        return to_field(func)
    except Unsupported:
        return None


def _compared(
    func: PrimFunc, arrays: list[Any], wanted: Sequence[Any], outputs: Sequence[int]
) -> str:
    try:
        interpret(func, arrays)
    except RefcompError as error:
        return error.what
    same = all(np.array_equal(arrays[k], wanted[k], equal_nan=True) for k in outputs)
    return "" if same else "another result"


@deep_recursion()
def _is_same(a: PrimFunc, b: PrimFunc) -> bool:
    try:
        return structurally_equal(simplify_expressions(a), simplify_expressions(b))
    except RefcompError:
        return False


class _Traced(Memory):
    """Memory that remembers all that is written to it."""

    writes: set[Any]

    def _set(self, index: int, value: Any) -> None:
        super()._set(index, value)
        self.writes.add((index, str(value)))


@deep_recursion()
def _writes(func: PrimFunc, args: Sequence[Any]) -> list[set[Any]]:
    """What is written to each argument: pairs of a position and a value."""
    frame = Frame(num_tasks=3)
    bind_arguments(frame, func, args)
    for buffer, plain in list(frame.memory.items()):
        traced = _Traced(buffer, plain.shape, plain.array)
        traced.writes = set()
        frame.memory[buffer] = traced
    memories = list(frame.memory.values())
    with np.errstate(all="ignore"):
        run_to_end(frame, func.body)
    return [memory.writes for memory in memories if isinstance(memory, _Traced)]
