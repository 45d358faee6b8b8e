"""Certificates of schedules, of functions of the loop IR, and of builds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence

from refcomp.certificates.arguments import MAX_INTEGERS, Argument, Arguments, size_sets
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
from refcomp.certificates.versions import Version, in_order, versions
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
from refcomp.lowering.lower import argument_notes, checked_args, lower
from refcomp.oracle.exact.stand_ins import with_stand_ins
from refcomp.oracle.interpreter.failure import InterpretError
from refcomp.oracle.tensors.evaluate import EvaluateError
from refcomp.oracle.tensors.lane_axes import scalar_tensors
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.stage import Tensorized
from refcomp.te.tensor import Tensor

_MAX_POINTS = 200_000  # some seconds of interpreting
_MAX_BUILD_POINTS = 20_000  # some tenths of a second


def certify(
    schedule: Schedule,
    args: Sequence[Tensor | Var] | None = None,
    *,
    name: str = "main",
    every_step: bool = False,
    seed: int = 0,
    kind: str = "",
    max_points: int = _MAX_POINTS,
) -> Certificate:
    """Return the Certificate of `schedule` and of the passes behind it.

    The schedule's steps and the passes are applied one after the other. Each program runs on random
    inputs and must give the result of the tensor expressions. It is computed in exact arithmetic
    where the operations allow this, else within proved error bounds.

    Args:
        schedule: the schedule; its tensors have any extents.
        args: the arguments, as for `build`.
        name: the name of the function.
        every_step: True to compare after each primitive and each pass. By default this happens only
            if the last program is wrong.
        seed: the seed of the random inputs, an int.
        kind: the kind of targets whose passes run; by default `opencl` where loops are bound to
            threads, else `llvm`.
        max_points: a computation that combines more values is replaced by a smaller one, a stand-in
            whose extents the certificate lists.

    Raises:
        UserError: the arguments are wrong.
        Unsupported: the schedule cannot be certified, for example because it is too large.

    Example::

        >>> n = rc.var("n")
        >>> A = rc.placeholder((n,), name="A")
        >>> k = rc.reduce_axis((0, n), name="k")
        >>> B = rc.compute((1,), lambda i: rc.sum(A[k], axis=k), name="B")
        >>> s = rc.create_schedule(B)
        >>> outer, inner = s[B].split(k, factor=4)
        >>> print(rc.certify(s, [A, B], name="total"))
        total: certified, 4 programs agree
    """
    args = _checked(schedule, args)
    lowered = lower(schedule, args, name)
    subject = _subject(schedule, tuple(args), max_points, lowered.requires)
    kind = kind or _kind_of(lowered)
    compared: list[str] = []
    trials: list[Trial] = []

    def lower_again(prefix: Schedule) -> PrimFunc:
        return lower(prefix, subject.args, name)

    # No version depends on sizes: all trials run the same programs.
    made: tuple[Version, ...] = ()
    for sizes in size_sets(subject.args, factors_of(schedule), lowered.requires):
        if compared and points_of(subject.schedule, sizes) > max_points:
            continue
        judge = _judge(judge_of_tensors, _of_scalars(subject.args), sizes, seed)
        if not made:
            is_itself = subject.schedule is schedule
            func = lowered if is_itself else lower_again(subject.schedule)
            made = tuple(versions(func, kind))
        search = Search(made, kind, judge, compared, subject.schedule, lower_again)
        before = len(compared)
        found = search.find(every_step)
        trials.append(judge.trial(len(compared) - before))
        if found is not None:
            break
    guilty, difference = found or ("", None)
    return Certificate(
        name=name,
        compared=tuple(compared),
        guilty=guilty,
        difference=difference,
        sizes=(_by_name(sizes) if found else {}) | dict(subject.extents),
        trials=tuple(trials),
        steps=len(schedule.steps),
        passes=tuple(version.name for version in made[1:]),
        bounds=None if found else bounds_of(lowered),
        notes=argument_notes(schedule, args),
    )


def certify_function(
    func: PrimFunc, *, every_step: bool = False, seed: int = 0, kind: str = ""
) -> Certificate:
    """Return the Certificate of the passes for targets of `kind` on `func`.

    `func` itself is the specification. Raises UserError if it breaks a rule of the interpreter;
    Unsupported if it is too large, or gives a function the address of an element.
    """
    func = with_entry_conditions(func)
    (sizes,) = size_sets(func.params, (), func.requires)
    trips = trips_of(func.body, sizes)
    if trips > _MAX_POINTS:
        raise _too_large(func.name, trips, "write it with symbolic extents, or smaller")
    kind = kind or _kind_of(func)
    specification = with_stand_ins(in_order(func, passes_for(kind)))

    def make(arguments: Arguments) -> Judge:
        return judge_of_program(specification, arguments)

    try:
        judge = _judge(make, func.params, sizes, seed)
    except InterpretError as error:
        raise UserError(
            f"{func.name} cannot be certified: it breaks a rule of the interpreter",
            why=str(error),
            remedy="`refcomp execute` runs it by the interpreter",
        ) from error
    compared: list[str] = []
    made = tuple(versions(func, kind))
    search = Search(made, kind, judge, compared)
    found = search.find(every_step)
    guilty, difference = found or ("", None)
    return Certificate(
        name=func.name,
        compared=tuple(compared),
        guilty=guilty,
        difference=difference,
        sizes=_by_name(sizes) if found else {},
        trials=(judge.trial(len(compared)),),
        passes=tuple(version.name for version in made[1:]),
        bounds=None if found else bounds_of(func),
    )


def certify_build(
    inputs: Schedule | PrimFunc, args: Sequence[Tensor | Var], name: str, kind: str
) -> None:
    """Certify a build on small sizes, for the build option `certify`.

    Writes one line to stderr if the environment asks for certificates. Raises CompilerBug with the
    guilty step if the certificate does not hold; Unsupported if there can be none.
    """
    try:
        if isinstance(inputs, Schedule):
            found = certify(
                inputs, args, name=name, kind=kind, max_points=_MAX_BUILD_POINTS
            )
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


def _by_name(sizes: Mapping[Var, int]) -> dict[str, int]:
    return {var.name: size for var, size in sizes.items()}


def _judge(
    make: Callable[[Arguments], Judge],
    args: Sequence[Argument],
    sizes: Mapping[Var, int],
    seed: int,
) -> Judge:
    """Return the judge on the first random integers that are in range where they are indices."""
    for max_integer in MAX_INTEGERS[:-1]:
        try:
            return make(Arguments(tuple(args), sizes, seed, max_integer))
        except (EvaluateError, InterpretError):
            continue
    return make(Arguments(tuple(args), sizes, seed, MAX_INTEGERS[-1]))


def _of_scalars(args: Sequence[Tensor | Var]) -> list[Tensor | Var]:
    """Return tensors of scalars in place of tensors of vectors, as functions take them."""
    scalars = scalar_tensors([arg for arg in args if isinstance(arg, Tensor)])
    return [scalars.get(arg, arg) if isinstance(arg, Tensor) else arg for arg in args]


def _subject(
    schedule: Schedule,
    args: tuple[Tensor | Var, ...],
    max_points: int,
    requires: Sequence[Requirement],
) -> StandIn:
    """Return the computation to interpret: the schedule's own, or a stand-in if it is too large."""
    sizes = size_sets(args, (), requires)[0]
    points = points_of(schedule, sizes)
    if points <= max_points:
        return StandIn(schedule, args, {})
    found = find_stand_in(schedule, args, sizes, max_points)
    if found is None and points > _MAX_POINTS:
        names = ", ".join(stage.name for stage in schedule.stages if stage.is_output)
        remedy = "declare it with symbolic extents (refcomp.var), or smaller"
        raise _too_large(names, points, remedy)
    return found or StandIn(schedule, args, {})


def _too_large(name: str, points: int, remedy: str) -> Unsupported:
    return Unsupported(
        f"{name} computes {points} values, too many to interpret",
        why=f"a certificate interprets every program, of at most {_MAX_POINTS} values, and no "
        "smaller computation can stand in for it",
        remedy=remedy,
    )


def _checked(
    schedule: Schedule, args: Sequence[Tensor | Var] | None
) -> Sequence[Tensor | Var]:
    """Return `args`. Raises UserError or Unsupported for what cannot be certified."""
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
    for stage in schedule.stages:
        if _calls_functions(stage.loops.tensorized):
            raise Unsupported(
                f"stage {stage.name} is tensorized by functions, and cannot be certified",
                why="what a function outside of the loop IR does to field elements is not known",
                remedy="certify it with an intrinsic that is written in loops",
            )
    return args


def _calls_functions(tensorized: Tensorized | None) -> bool:
    if tensorized is None:
        return False
    intrin = tensorized.intrin
    for part in (intrin.body, intrin.reset, intrin.update):
        if part and any(isinstance(node, CALLS) for node in walk(part)):
            return True
    return False
