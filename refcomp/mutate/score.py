"""Mutants of loop IR: which comparisons notice them.

Every subject is lowered and led through the passes of its target. What lowering made, and what
every pass changed, is mutated in places that are drawn. What kills a mutant: `mutate.trial`.

A survivor is equivalent when it is the same program after simplification, or when only integers
that no data decides on changed, and it writes the same field elements to the same places (in
another order, or some of them again): then it does so for all data. So is one that computes the
same polynomial: nothing is compared, and many more random elements of the field, of 2^31, agree.
Equivalent mutants are no wrong code and count for nobody; other survivors are listed.
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
    ROUNDING_KINDS,
    Mutation,
    draw,
    hangs_on_no_data,
    mutations_of,
)
from refcomp.mutate.subjects import Subject
from refcomp.mutate.trial import MutantTrial
from refcomp.te.tensor import Tensor

LOWERING = "lowering"


def score(subjects: Sequence[Subject], count: int, seed: int = 0) -> Iterator[Mutant]:
    """At least `count` mutants where there are as many, spread over all subjects and stages.
    Raises UserError for a subject whose extents are not constant."""
    for subject in subjects:
        check_subject(subject)
    rng = random.Random(seed)
    stages = [(subject, *stage) for subject in subjects for stage in stages_of(subject)]
    each = ceil(count / max(1, len(stages)))
    for subject, name, func in stages:
        trial = MutantTrial(subject, func, is_free=name == LOWERING)
        for mutation in draw(list(mutations_of(func)), each, rng):
            yield mutant_of(trial, name, mutation)


def mutant_of(trial: MutantTrial, stage: str, mutation: Mutation) -> Mutant:
    """What becomes of the program of `trial`, which `stage` made, with the mutation."""
    mutated = mutation.apply(trial.func)
    told = trial.difference(mutated)
    noticed = trial.noticed_by_tolerances(mutated) | ({OURS} if told else set())
    equivalent = "" if told else _equivalence(trial, mutation, mutated)
    change = f"{first_line(mutation.node)}  ->  {first_line(mutation.replacement)}"
    reason = "" if told or equivalent else _reason(trial, mutated)
    return Mutant(
        trial.subject.name,
        stage,
        mutation.kind,
        change,
        frozenset(noticed),
        told,
        equivalent,
        reason=reason,
    )


def _reason(trial: MutantTrial, mutated: PrimFunc) -> str:
    return MORE_DATA if trial.differs_elsewhere(mutated) else NO_DATA


def _equivalence(trial: MutantTrial, mutation: Mutation, mutated: PrimFunc) -> str:
    if trial.is_same(mutated):
        return "the same program after simplification"
    if mutation.on_integers and trial.writes_the_same(mutated):
        return "the same writes, some more than once perhaps, whatever the data"
    is_exact = mutation.kind not in ROUNDING_KINDS
    if is_exact and all(map(hangs_on_no_data, (trial.func, mutated))):
        return (
            ""
            if trial.differs_elsewhere(mutated)
            else "the same polynomial of all data"
        )
    return ""


def check_subject(subject: Subject) -> None:
    """UserError for a subject with an argument that no array of known shape can be made for."""
    for arg in subject.args:
        if not isinstance(arg, Tensor) or as_ints(arg.shape) is None:
            raise UserError(
                f"{subject.name} cannot be mutated",
                why=f"argument {arg.name} is no tensor of constant shape",
                remedy="give every extent a small number",
            )


def stages_of(subject: Subject) -> list[tuple[str, PrimFunc]]:
    """What lowering made (with barriers in place, so that it can be run), and each pass then."""
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
