"""`refcomp show`: every stage that a computation passes through, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import click

from refcomp.cli.levels import check_whole, steps_left
from refcomp.cli.options import examples, json_option, target_option
from refcomp.cli.passes import run_verified_step
from refcomp.cli.programs import LoweredFunction, LoweredProgram, load_program
from refcomp.cli.resources import kernel_resources, resources_to_json, resources_to_text
from refcomp.cli.streams import progress, write_json, write_text
from refcomp.driver.backends import backend_of
from refcomp.driver.backends.loading import device_limits
from refcomp.driver.compile import texts_of
from refcomp.driver.pipeline import steps_for
from refcomp.driver.steps import Made, print_made
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import did_you_mean
from refcomp.foundation.target import Target
from refcomp.ir.func import PrimFunc, Program
from refcomp.ir.printer import print_funcs, print_program
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.stage import Stage

_SCHEDULE, _LOOP_IR, _ALL_PASSES = "schedule", "loop-ir", "all-passes"
_AFTER = "after:"
_LINKS = "lines"  # which only programs read
# For highlighting, where a stage is not called by its language.
_LANGUAGES = {"kernels": "python", "metadata": "json", "lines": "json", "asm": "gas"}


@dataclass(frozen=True, slots=True)
class Shown:
    """A stage: its name, the language for highlighting, and how its text is made.

    `is_unchanged` says that the text is that of the stage before.
    """

    name: str
    language: str
    text: Callable[[], str]
    is_unchanged: bool = False


@click.command(
    "show",
    epilog=examples(
        "refcomp show matmul.py:matmul --stage asm",
        "refcomp show gemm.py --target 'rocm -mcpu=gfx942' --resources",
    ),
)
@click.argument("program", metavar="SCRIPT.py[:NAME]|MODEL.onnx|TEXT")
@click.option(
    "--stage",
    metavar="STAGE",
    help="schedule, loop-ir, after:PASS, all-passes, llvm, asm; of a model graph or "
    "optimized-graph, too; for a device programs, and opencl, or llvm, kernels, metadata, lines "
    "and asm (default: all of them but lines).",
)
@click.option(
    "--resources",
    is_flag=True,
    help="Only what each kernel takes of an AMD GPU: registers, memory, waves at a time.",
)
@target_option()
@json_option
def command(
    program: str, stage: str | None, resources: bool, target: Target, as_json: bool
) -> None:
    """Show every stage of a computation.

    Its schedule, its loop IR as lowered and after each pass, its LLVM IR and its assembly; of a
    model its graph, too. TEXT is a file of loop-IR text, or - for stdin.
    """
    if resources:
        _show_resources(load_program(program, target), target, as_json)
        return
    with progress("loading"):
        chosen = _choose(_parts(load_program(program, target), target), stage)
    if as_json:
        listed = [
            {"stage": s.name, "language": s.language, "text": s.text()} for s in chosen
        ]
        write_json(listed)
    elif len(chosen) == 1:
        write_text(chosen[0].text(), language=chosen[0].language)
    else:
        for shown in chosen:
            _write_one_of_several(shown)


def _show_resources(program: LoweredProgram, target: Target, as_json: bool) -> None:
    with progress("compiling"):
        found = kernel_resources([piece.func for piece in program.pieces], target)
    if as_json:
        write_json(resources_to_json(found))
    else:
        write_text(resources_to_text(found))


def _write_one_of_several(shown: Shown) -> None:
    click.secho(f"== {shown.name} ==", bold=True)
    text = "(changes nothing)\n" if shown.is_unchanged else shown.text()
    write_text(text + "\n", language="" if shown.is_unchanged else shown.language)


def _parts(program: LoweredProgram, target: Target) -> Iterator[list[Shown]]:
    """Yield all stages in order, in four parts: before the passes, after each, programs, texts.

    Each part takes more work than those before it, which alone are made for a stage of theirs.
    """
    funcs = [piece.func for piece in program.pieces]
    scheduled = [piece for piece in program.pieces if piece.schedule is not None]
    stages = [
        Shown(name, "python", partial(str, text)) for name, text in program.graphs
    ]
    if scheduled:
        stages.append(
            Shown(_SCHEDULE, "python", partial(_schedules_to_text, scheduled))
        )
    stages.append(Shown(_LOOP_IR, "python", partial(print_funcs, funcs)))
    yield stages
    if backend_of(target).compile is None:
        return
    if backend_of(target).has_kernels:
        check_whole(funcs, "the text")
    after, made = _after_steps(funcs, target)
    yield after
    programs = [one for one in made if isinstance(one, Program)]
    text = "\n".join(map(print_program, programs))
    yield [Shown("programs", "python", partial(str, text))] if programs else []
    yield _texts(made, target)


def _after_steps(
    funcs: Sequence[PrimFunc], target: Target
) -> tuple[list[Shown], list[Made]]:
    """Return a stage for each step of the pipeline, and what all of them make of `funcs`."""
    left = [steps_left(func, target.kind) for func in funcs]
    limits = device_limits(target) if backend_of(target).has_kernels else None
    made: list[Made] = [*funcs]
    stages = []
    for step in steps_for(target.kind):
        results = [
            run_verified_step(one, step, limits) if step in steps else one
            for one, steps in zip(made, left, strict=True)
        ]
        is_unchanged = all(new is old for new, old in zip(results, made, strict=True))
        text = partial(print_made, results)
        stages.append(Shown(f"{_AFTER}{step.name}", "python", text, is_unchanged))
        made = results
    return stages, made


def _texts(made: Sequence[Made], target: Target) -> list[Shown]:
    """Return a stage for each text behind the pipeline."""
    return [
        Shown(name, _LANGUAGES.get(name, name), partial(_make_text, text))
        for name, text in texts_of(made, target).items()
    ]


def _make_text(text: Callable[[], str]) -> str:
    with progress("compiling"):
        return text()


def _schedules_to_text(pieces: Sequence[LoweredFunction]) -> str:
    return "\n".join(
        _schedule_to_text(p.func.name, p.schedule) for p in pieces if p.schedule
    )


def _schedule_to_text(name: str, schedule: Schedule) -> str:
    lines = [f"# schedule of {name}"]
    lines += [f"{step}  # {step.line}" for step in schedule.steps] or [
        "# no primitives"
    ]
    loops = ((stage, _loops(stage)) for stage in schedule.stages)
    lines += [f"# stage {stage.name}: {text}" for stage, text in loops if text]
    return "\n".join(lines) + "\n"


def _loops(stage: Stage) -> str:
    """The loops of a stage from the outermost, '' for a placeholder."""
    if stage.placement == "inline":
        return "inlined"
    loops = stage.loops
    named = (
        f"{axis.name} {loops.marks.get(axis, '')}".strip() for axis in loops.leaves
    )
    return ", ".join(named)


def _choose(parts: Iterator[list[Shown]], name: str | None) -> list[Shown]:
    if name is None:
        return [stage for part in parts for stage in part if stage.name != _LINKS]
    others: list[str] = []
    for part in parts:
        if chosen := [stage for stage in part if _is_meant(stage, name)]:
            return chosen
        others += [stage.name for stage in part]
    if name == _ALL_PASSES:
        return []
    raise _unknown_stage(name, [*others, _ALL_PASSES])


def _is_meant(stage: Shown, name: str) -> bool:
    return stage.name.startswith(_AFTER) if name == _ALL_PASSES else stage.name == name


def _unknown_stage(name: str, names: Sequence[str]) -> UserError:
    """Name near stages, and the others but for those after a pass, which are many."""
    known = list(dict.fromkeys(names))
    passes = [stage for stage in known if stage.startswith(_AFTER)]
    words = [stage for stage in known if stage not in passes]
    if passes:
        words.append(
            f"{_AFTER}PASS, such as {passes[0]} (--stage {_ALL_PASSES} shows each)"
        )
    near = did_you_mean(name, known) or did_you_mean(f"{_AFTER}{name}", passes)
    remedy = f"{near} stages: {', '.join(words)}".strip()
    return UserError(f"this computation has no stage {name!r}", remedy=remedy)
