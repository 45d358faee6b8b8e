"""Which comparisons notice wrong code: ours, and two tolerances.

Every subject is lowered and led through the passes of its target. What lowering made, and what
every pass changed, is mutated in places that are drawn. A mutant is killed

- by ours, when the interpreter refuses it, when it differs from the tensor expressions on elements
  of a prime field (random ones; a few values many times, as ties need them; rising and falling
  ones, so that the first and the last are extremes; zeros), or on floats: what lowering made by
  more than the bound of any legal order, what a pass made by one bit. Outputs begin with numbers
  that no program writes, great or small;
- by a tolerance, when its floats differ from the right ones by more than that part of them
  (numpy's assert_allclose, as peers compare). A broken rule counts as noticed as well, as if it
  crashed, but for races: numbers do not show them reliably.

A survivor is equivalent when it is the same program after simplification, or when only integers
that no data decides on changed, and it writes the same field elements to the same places (in
another order, or some of them again): then it does so for all data. Equivalent mutants are no wrong
code and count for nobody; other survivors are listed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from refcomp.dtype import DType, to_numpy
from refcomp.errors import RefcompError, Unsupported, UserError
from refcomp.ir.expr import IntImm
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.structure import structurally_equal
from refcomp.lower.lower import lower
from refcomp.mutate.mutations import Mutation, draw, mutations_of
from refcomp.mutate.subjects import Subject
from refcomp.oracle.compare import judge_bounded
from refcomp.oracle.error_bounds import Bounded, bound_errors
from refcomp.oracle.evaluate import evaluate
from refcomp.oracle.expressions import Frame
from refcomp.oracle.field import P, field_dtype, tensors_to_field, to_field
from refcomp.oracle.interpret import bind_arguments, interpret
from refcomp.oracle.memory import Memory
from refcomp.oracle.statements import run_to_end
from refcomp.passes.simplify_expressions import simplify_expressions
from refcomp.pipeline import passes_for, run_pass
from refcomp.python_limits import deep_recursion
from refcomp.te.tensor import Tensor

TOLERANCES = (1e-2, 1e-3)
OURS = "ours"
POLICIES = (OURS, *(f"rtol {tolerance:.0e}" for tolerance in TOLERANCES))
_FIRST = "lowering"
_FLOATS, _RANDOM = "floats", "random"
_FIELD_MODES = (_RANDOM, "ties", "rising", "falling", "zeros")
_BELOW = (
    "ties",
    "falling",
    "zeros",
)  # where outputs begin with a very small number, not a great one
_RACES = ("a race on", "another thread may write it")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mutation of what `stage` of `subject` made: which of POLICIES notice it, by what ours
    did, and why it is no wrong code ('' when it is)."""

    subject: str
    stage: str
    mutation: Mutation
    noticed: frozenset[str]
    told: str = ""
    equivalent: str = ""

    def __str__(self) -> str:
        change = f"{_first_line(self.mutation.node)}  ->  {_first_line(self.mutation.replacement)}"
        return f"{self.subject}, {self.stage}: {self.mutation.kind}: {change}"


def _first_line(node: Node) -> str:
    return (str(node).splitlines() or ["nothing"])[0].strip() or "nothing"


def score(subjects: Sequence[Subject], count: int, seed: int = 0) -> Iterator[Mutant]:
    """At least `count` mutants where there are as many, spread over all subjects and stages.
    Raises UserError for a subject whose extents are not constant."""
    for subject in subjects:
        _check(subject)
    rng = random.Random(seed)
    stages = [(subject, *stage) for subject in subjects for stage in _stages(subject)]
    each = ceil(count / max(1, len(stages)))
    for subject, name, func in stages:
        trial = _Trial(subject, name, func)
        for mutation in draw(list(mutations_of(func)), each, rng):
            yield trial.mutant(mutation)


def _check(subject: Subject) -> None:
    for arg in subject.args:
        if not isinstance(arg, Tensor) or not all(isinstance(dim, IntImm) for dim in arg.shape):
            raise UserError(
                f"{subject.name} cannot be mutated",
                why=f"argument {arg.name} is no tensor of constant shape",
                remedy="give every extent a small number",
            )


def _stages(subject: Subject) -> list[tuple[str, PrimFunc]]:
    """What lowering made (with barriers in place, so that it can be run), and each pass then."""
    func = lower(subject.schedule, subject.args, "subject")
    steps = passes_for(subject.kind)
    has_kernels = any(step.name == "insert_barriers" for step in steps)
    stages = [] if has_kernels else [(_FIRST, func)]
    for step in steps:
        changed = run_pass(step, func)
        if step.name == "insert_barriers":
            stages = [(_FIRST, changed)]
        elif changed is not func and stages:
            stages.append((step.name, changed))
        func = changed
    return stages


class _Trial:
    """What is to be known of one right program before its mutants are tried."""

    def __init__(self, subject: Subject, stage: str, func: PrimFunc) -> None:
        self.subject, self.stage, self.func = subject, stage, func
        self.field = _in_field(func)
        self.wanted = {mode: self._expected(mode) for mode in _FIELD_MODES}
        self.bounded = self._bounds() if stage == _FIRST else None
        self.floats = self._arrays(_FLOATS)
        interpret(func, self.floats)

    def mutant(self, mutation: Mutation) -> Mutant:
        """What becomes of the program with the mutation."""
        mutated = mutation.apply(self.func)
        told = self._difference(mutated)
        noticed = self._noticed_by_tolerances(mutated) | ({OURS} if told else set())
        equivalent = "" if told else self._equivalence(mutation, mutated)
        return Mutant(self.subject.name, self.stage, mutation, frozenset(noticed), told, equivalent)

    def _difference(self, mutated: PrimFunc) -> str:
        if self.field is not None:
            for mode, wanted in self.wanted.items():
                told = _compared(to_field(mutated), self._arrays(mode), wanted, self._outputs())
                if told:
                    return told
        if self.bounded is None:
            return _compared(mutated, self._arrays(_FLOATS), self.floats, self._outputs())
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

    def _noticed_by_tolerances(self, mutated: PrimFunc) -> set[str]:
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
                np.allclose(arrays[k], self.floats[k], rtol=tolerance, atol=0, equal_nan=True)
                for k in self._outputs()
            )
        }

    def _equivalence(self, mutation: Mutation, mutated: PrimFunc) -> str:
        if _is_same(mutated, self.func):
            return "the same program after simplification"
        if mutation.on_integers:
            func, mode = (self.func, _FLOATS) if self.field is None else (self.field, _RANDOM)
            changed = mutated if self.field is None else to_field(mutated)
            if _writes(changed, self._arrays(mode)) == _writes(func, self._arrays(mode)):
                return "the same writes, some more than once perhaps, whatever the data"
        return ""

    def _outputs(self) -> list[int]:
        return [k for k, arg in enumerate(self.subject.args) if _is_computed(arg)]

    def _expected(self, mode: str) -> list[Any]:
        """The arguments after the tensor expressions are evaluated on field elements."""
        args, arrays = self.subject.args, self._arrays(mode)
        outputs = [args[k] for k in self._outputs()]
        fielded, places = tensors_to_field(outputs)
        feeds = {places[t]: a for t, a in zip(args, arrays, strict=True) if not _is_computed(t)}
        values = evaluate(fielded, feeds)
        for k, value in zip(self._outputs(), values, strict=True):
            arrays[k] = value
        return arrays

    def _arrays(self, mode: str) -> list[Any]:
        """Fresh arguments, the same on every call."""
        rng = np.random.default_rng(7)
        return [_array(arg, mode, rng) for arg in self.subject.args]


def _array(tensor: Tensor, mode: str, rng: np.random.Generator) -> Any:
    shape = tuple(getattr(dim, "value", 0) for dim in tensor.shape)
    dtype: DType = tensor.dtype if mode == _FLOATS else field_dtype(tensor.dtype)
    if _is_computed(tensor):
        values: Any = np.full(shape, -77_777_777 if mode in _BELOW else 77_777_777)
    elif mode == _FLOATS:
        values = rng.standard_normal(shape)
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
