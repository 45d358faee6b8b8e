"""`refcomp show`: every stage that a computation passes through, as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import click

from refcomp.cli.levels import check_whole, steps_left
from refcomp.cli.options import examples, json_option, target_option
from refcomp.cli.padding import without_padding
from refcomp.cli.passes import run_verified_step
from refcomp.cli.programs import LoweredFunction, LoweredProgram, load_program
from refcomp.cli.resources import kernel_resources, resources_to_json, resources_to_text
from refcomp.cli.streams import progress, write_json, write_text
from refcomp.driver.backends import backend_of
from refcomp.driver.compile import device_limits, texts_of
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
_AFTER, _ASM = "after:", "asm"
_LINKS = "lines"  # which only programs read
# For highlighting, where a stage is not called by its language.
_LANGUAGES = {"kernels": "python", "metadata": "json", "lines": "json", _ASM: "gas"}


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
        chosen = _choose(_stages(load_program(program, target), target), stage)
    if as_json:
        listed = [{"stage": s.name, "language": s.language, "text": s.text()} for s in chosen]
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


def _stages(program: LoweredProgram, target: Target) -> list[Shown]:
    funcs = [piece.func for piece in program.pieces]
    scheduled = [piece for piece in program.pieces if piece.schedule is not None]
    stages = [Shown(name, "python", partial(str, text)) for name, text in program.graphs]
    if scheduled:
        stages.append(Shown(_SCHEDULE, "python", partial(_schedules_to_text, scheduled)))
    stages.append(Shown(_LOOP_IR, "python", partial(print_funcs, funcs)))
    if backend_of(target).compile is None:
        return stages
    if backend_of(target).has_kernels:
        check_whole(funcs, "the text")
    after, made = _after_steps(funcs, target)
    stages += after
    programs = [one for one in made if isinstance(one, Program)]
    if programs:
        text = "\n".join(map(print_program, programs))
        stages.append(Shown("programs", "python", partial(str, text)))
    texts = _texts(made, target)
    return [*stages, *(Shown(name, _LANGUAGES.get(name, name), text) for name, text in texts)]


def _after_steps(funcs: Sequence[PrimFunc], target: Target) -> tuple[list[Shown], list[Made]]:
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


def _texts(made: Sequence[Made], target: Target) -> list[tuple[str, Callable[[], str]]]:
    """The texts behind the pipeline, by stage."""
    with progress("compiling"):
        texts = texts_of(made, target)
    if _ASM not in texts:
        return [*texts.items()]
    assembly = texts[_ASM]
    return [*{**texts, _ASM: lambda: without_padding(assembly())}.items()]


def _schedules_to_text(pieces: Sequence[LoweredFunction]) -> str:
    return "\n".join(_schedule_to_text(p.func.name, p.schedule) for p in pieces if p.schedule)


def _schedule_to_text(name: str, schedule: Schedule) -> str:
    lines = [f"# schedule of {name}"]
    lines += [f"{step}  # {step.line}" for step in schedule.steps] or ["# no primitives"]
    loops = ((stage, _loops(stage)) for stage in schedule.stages)
    lines += [f"# stage {stage.name}: {text}" for stage, text in loops if text]
    return "\n".join(lines) + "\n"


def _loops(stage: Stage) -> str:
    """The loops of a stage from the outermost, '' for a placeholder."""
    if stage.placement == "inline":
        return "inlined"
    loops = stage.loops
    named = (f"{axis.name} {loops.marks.get(axis, '')}".strip() for axis in loops.leaves)
    return ", ".join(named)


def _choose(stages: Sequence[Shown], name: str | None) -> list[Shown]:
    if name is None:
        return [stage for stage in stages if stage.name != _LINKS]
    if name == _ALL_PASSES:
        return [stage for stage in stages if stage.name.startswith(_AFTER)]
    chosen = [stage for stage in stages if stage.name == name]
    if not chosen:
        raise _unknown_stage(name, [*(stage.name for stage in stages), _ALL_PASSES])
    return chosen


def _unknown_stage(name: str, names: Sequence[str]) -> UserError:
    """Name near stages, and the others but for those after a pass, which are many."""
    known = list(dict.fromkeys(names))
    passes = [stage for stage in known if stage.startswith(_AFTER)]
    words = [stage for stage in known if stage not in passes]
    if passes:
        words.append(f"{_AFTER}PASS, such as {passes[0]} (--stage {_ALL_PASSES} shows each)")
    near = did_you_mean(name, known) or did_you_mean(f"{_AFTER}{name}", passes)
    remedy = f"{near} stages: {', '.join(words)}".strip()
    return UserError(f"this computation has no stage {name!r}", remedy=remedy)
