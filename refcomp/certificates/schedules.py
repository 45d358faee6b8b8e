"""Certificates of schedules, of functions of the loop IR, and of what is built of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence

from refcomp.certificates.arguments import GREATEST, Argument, Arguments, size_sets
from refcomp.certificates.bounds import bounds_of
from refcomp.certificates.certificate import Certificate
from refcomp.certificates.judge import Judge, judge_of_program, judge_of_tensors
from refcomp.certificates.search import Search
from refcomp.certificates.stand_in import (
    StandIn,
    factors_of,
    find_stand_in,
    points_of,
    trips_of,
)
from refcomp.certificates.trial import Trial
from refcomp.certificates.versions import in_order
from refcomp.driver.backend import usual_backend
from refcomp.driver.pipeline import passes_for
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.foundation.options import is_certify_in_environment
from refcomp.ir.expr import Var
from refcomp.ir.func import PrimFunc, Requirement
from refcomp.ir.kernels import kernels_in
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import CALLS
from refcomp.lowering.entry_conditions import with_entry_conditions
from refcomp.lowering.lower import checked_args, lower
from refcomp.oracle.exact.stand_ins import with_stand_ins
from refcomp.oracle.interpreter.failure import InterpretError
from refcomp.oracle.tensors.evaluate import EvaluateError
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.stage import Tensorized
from refcomp.te.tensor import Tensor

_MOST_POINTS = 200_000  # some seconds of interpreting
_MOST_TINY = 20_000  # some tenths


def certify(
    schedule: Schedule,
    args: Sequence[Tensor | Var] | None = None,
    *,
    name: str = "main",
    every_step: bool = False,
    seed: int = 0,
    kind: str = "",
    most: int = _MOST_POINTS,
) -> Certificate:
    """The Certificate of `schedule` on `args` and of the passes for targets of `kind`; without one,
    of `llvm`, or of `opencl` where loops are bound to threads.

    A computation that combines more than `most` values is stood in for by a smaller one, which the
    certificate names by its extents. Unsupported for what cannot be certified.
    """
    args = _checked(schedule, args)
    lowered = lower(schedule, args, name)
    subject = _subject(schedule, tuple(args), most, lowered.requires)
    own_kind = kind or _kind_of(lowered)
    compared: list[str] = []
    trials: list[Trial] = []

    def lower_again(prefix: Schedule) -> PrimFunc:
        return lower(prefix, subject.args, name)

    for sizes in size_sets(subject.args, factors_of(schedule), lowered.requires):
        if compared and points_of(subject.schedule, sizes) > most:
            continue
        judge = _judge(judge_of_tensors, subject.args, sizes, seed)
        func = lower_again(subject.schedule)
        search = Search(func, own_kind, judge, compared, subject.schedule, lower_again)
        before = len(compared)
        found = search.find(every_step)
        trials.append(judge.trial(len(compared) - before))
        if found is not None:
            break
    guilty, difference = found or ("", None)
    failed_at = _told(sizes) if found else {}
    return Certificate(
        name,
        tuple(compared),
        guilty,
        difference,
        failed_at | dict(subject.extents),
        trials=tuple(trials),
        steps=len(schedule.steps),
        passes=tuple(search.passes),
        bounds=None if found else bounds_of(lowered),
    )


def certify_function(
    func: PrimFunc, *, every_step: bool = False, seed: int = 0, kind: str = ""
) -> Certificate:
    """The Certificate of the passes for targets of `kind` on `func`, which says itself what is
    right. UserError where it breaks a rule of its own; Unsupported where it is too large, or gives
    a function the address of an element."""
    func = with_entry_conditions(func)
    (sizes,) = size_sets(func.params, (), func.requires)
    trips = trips_of(func.body, sizes)
    if trips > _MOST_POINTS:
        raise _too_large(func.name, trips, "write it with symbolic extents, or smaller")
    ready = with_stand_ins(in_order(func, passes_for(kind or _kind_of(func))))
    compared: list[str] = []
    try:
        judge = _judge(
            lambda given: judge_of_program(ready, given), func.params, sizes, seed
        )
    except InterpretError as error:
        raise UserError(
            f"{func.name} cannot be certified: it breaks a rule by itself",
            why=str(error),
            remedy="`refcomp execute` runs it by the interpreter",
        ) from error
    search = Search(func, kind or _kind_of(func), judge, compared)
    found = search.find(every_step)
    guilty, difference = found or ("", None)
    return Certificate(
        func.name,
        tuple(compared),
        guilty,
        difference,
        _told(sizes) if found else {},
        trials=(judge.trial(len(compared)),),
        passes=tuple(search.passes),
        bounds=None if found else bounds_of(func),
    )


def certify_build(
    inputs: Schedule | PrimFunc, args: Sequence[Tensor | Var], name: str, kind: str
) -> None:
    """What the build option `certify` asks of each build: CompilerBug that names the guilty step
    unless a certificate holds, on small sizes; Unsupported where there can be none. Writes one line
    to stderr where the environment asks for certificates."""
    try:
        if isinstance(inputs, Schedule):
            found = certify(inputs, args, name=name, kind=kind, most=_MOST_TINY)
        else:
            found = certify_function(inputs, kind=kind)
    except Unsupported as error:
        error.remedy = f"{error.remedy}; or build it without the build option certify"
        raise
    found.require()
    if is_certify_in_environment():
        print(f"refcomp: {found.brief()}", file=sys.stderr)


def _kind_of(func: PrimFunc) -> str:
    return usual_backend(any(kernels_in(func.body))).name


def _told(sizes: Mapping[Var, int]) -> dict[str, int]:
    return {var.name: size for var, size in sizes.items()}


def _judge(
    make: Callable[[Arguments], Judge],
    args: Sequence[Argument],
    sizes: Mapping[Var, int],
    seed: int,
) -> Judge:
    """The judge on the first random integers that are in range where they are indices."""
    for greatest in GREATEST[:-1]:
        try:
            return make(Arguments(tuple(args), sizes, seed, greatest))
        except (EvaluateError, InterpretError):
            pass
    return make(Arguments(tuple(args), sizes, seed, GREATEST[-1]))


def _subject(
    schedule: Schedule,
    args: tuple[Tensor | Var, ...],
    most: int,
    requires: Sequence[Requirement],
) -> StandIn:
    """What is interpreted: the computation itself, or its stand-in where it is too large."""
    sizes = size_sets(args, (), requires)[0]
    points = points_of(schedule, sizes)
    if points <= most:
        return StandIn(schedule, args, {})
    found = find_stand_in(schedule, args, sizes, most)
    if found is None and points > _MOST_POINTS:
        what = ", ".join(stage.name for stage in schedule.stages if stage.is_output)
        raise _too_large(
            what, points, "declare it with symbolic extents (refcomp.var), or smaller"
        )
    return found or StandIn(schedule, args, {})


def _too_large(what: str, points: int, remedy: str) -> Unsupported:
    return Unsupported(
        f"{what} computes {points} values, too many to interpret",
        why=f"a certificate interprets every program; {_MOST_POINTS} values are the most, and no "
        "smaller computation can stand in for it",
        remedy=remedy,
    )


def _checked(
    schedule: Schedule, args: Sequence[Tensor | Var] | None
) -> Sequence[Tensor | Var]:
    """Return `args`. UserError or Unsupported for what cannot be certified."""
    if not isinstance(schedule, Schedule):
        raise UserError(f"{schedule!r} cannot be certified", remedy="pass a schedule")
    if args is None:
        names = ", ".join(stage.op.name for stage in schedule.stages)
        raise UserError(
            "a schedule is certified without its arguments",
            where=f"the schedule has the stages {names}",
            why="the arguments and their order are those of the function that is lowered",
            remedy="pass the tensors that build() would take: certify(s, [A, B, C])",
        )
    checked_args(schedule, args)
    calling = [
        stage for stage in schedule.stages if _calls_functions(stage.loops.tensorized)
    ]
    if calling:
        raise Unsupported(
            f"stage {calling[0].name} is tensorized by functions, and cannot be certified",
            why="what a function outside of the loop IR does to field elements is not known",
            remedy="certify it with an intrinsic that is written in loops",
        )
    return args


def _calls_functions(wish: Tensorized | None) -> bool:
    intrin = None if wish is None else wish.intrin
    parts = () if intrin is None else (intrin.body, intrin.reset, intrin.update)
    return any(isinstance(item, CALLS) for part in parts if part for item in walk(part))
