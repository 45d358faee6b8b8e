"""Mutants of loop IR.

Every subject is lowered and taken through the passes of its target. The result of lowering and the
result of each pass are mutated at places chosen at random. `mutate.trial` says what kills a mutant.

A mutant that survives our comparison is equivalent in three cases:

1. It is the same program after simplification.
2. The mutation changed only indices, and the mutant writes the same field elements to the same
   places, in any order, some perhaps repeatedly. This holds for all data, since no index depends
   on data.
3. Both programs compute polynomials, and these agree on many more random elements of the field of
   2^31 - 1.

Equivalent mutants do not count. The other survivors are listed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from math import ceil

from refcomp.driver.pipeline import passes_for
from refcomp.driver.steps import run_pass
from refcomp.foundation.errors import UserError
from refcomp.ir.constants import as_ints
from refcomp.ir.func import PrimFunc
from refcomp.lowering.lower import lower
from refcomp.mutate.mutant import MORE_DATA, NO_DATA, OURS, Mutant, first_line
from refcomp.mutate.mutations import (
    ROUNDING_OPERATORS,
    Mutation,
    draw,
    is_polynomial,
    mutations_of,
)
from refcomp.mutate.subjects import Subject
from refcomp.mutate.trial import MutantTrial
from refcomp.te.tensor import Tensor

LOWERING = "lowering"


def score_loop_ir(
    subjects: Sequence[Subject], count: int, seed: int = 0
) -> Iterator[Mutant]:
    """Yield at least `count` mutants, or all, spread evenly over the subjects and stages.

    Raises UserError for a subject whose extents are not constant.
    """
    for subject in subjects:
        check_subject(subject)
    rng = random.Random(seed)
    stages = [(subject, *stage) for subject in subjects for stage in stages_of(subject)]
    per_stage = ceil(count / max(1, len(stages)))
    for subject, name, func in stages:
        trial = MutantTrial(subject, func, is_free=name == LOWERING)
        for mutation in draw(list(mutations_of(func)), per_stage, rng):
            yield tried(mutation, trial, name)


def tried(mutation: Mutation, trial: MutantTrial, stage: str) -> Mutant:
    """Return the mutant that `mutation` makes of the program of `trial`, a result of `stage`."""
    mutated = mutation.apply(trial.func)
    killed_by = trial.killing_tolerances(mutated)
    symptom = trial.difference(mutated)
    equivalent = reason = ""
    if symptom:
        killed_by.add(OURS)
    else:
        equivalent = _equivalence(trial, mutation, mutated)
        if not equivalent:
            reason = MORE_DATA if trial.differs_on_more_inputs(mutated) else NO_DATA
    before = first_line(mutation.node)
    after = first_line(mutation.replacement)
    return Mutant(
        subject=trial.subject.name,
        stage=stage,
        operator=mutation.operator,
        change=f"{before}  ->  {after}",
        killed_by=frozenset(killed_by),
        symptom=symptom,
        equivalent=equivalent,
        reason=reason,
    )


def _equivalence(trial: MutantTrial, mutation: Mutation, mutated: PrimFunc) -> str:
    """Return why the survivor `mutated` is equivalent; '' if it is not known to be."""
    if trial.is_same_simplified(mutated):
        return "the same program after simplification"
    if mutation.on_indices and trial.makes_same_writes(mutated):
        return "the same writes, some more than once perhaps, whatever the data"
    if mutation.operator in ROUNDING_OPERATORS:
        return ""
    if not (is_polynomial(trial.func) and is_polynomial(mutated)):
        return ""
    if trial.differs_on_more_inputs(mutated):
        return ""
    return "the same polynomial of all data"


def check_subject(subject: Subject) -> None:
    """Raise UserError for a subject with an argument that is not a tensor of constant shape."""
    for arg in subject.args:
        if not isinstance(arg, Tensor) or as_ints(arg.shape) is None:
            raise UserError(
                f"{subject.name} cannot be mutated",
                why=f"argument {arg.name} is not a tensor of constant shape",
                remedy="give every extent a small number",
            )


def stages_of(subject: Subject) -> list[tuple[str, PrimFunc]]:
    """Return the results of lowering and of each pass that changes something, by name.

    The interpreter cannot run kernels without barriers: where a pass inserts them, its result
    stands for that of lowering.
    """
    func = lower(subject.schedule, subject.args, "subject")
    steps = passes_for(subject.kind)
    has_kernels = any(step.name == "insert_barriers" for step in steps)
    stages = [] if has_kernels else [(LOWERING, func)]
    for step in steps:
        changed = run_pass(step, func)
        if step.name == "insert_barriers":
            stages = [(LOWERING, changed)]
        elif changed is not func and stages:
            stages.append((step.name, changed))
        func = changed
    return stages
