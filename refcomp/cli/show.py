"""`refcomp show`: every stage that a computation passes through, as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import click

from refcomp import toolchain
from refcomp.cli.levels import check_whole, steps_left
from refcomp.cli.options import examples, json_option, target_option
from refcomp.cli.padding import without_padding
from refcomp.cli.passes import run_verified
from refcomp.cli.print import print_source
from refcomp.cli.programs import LoweredFunction, LoweredProgram, load_program
from refcomp.cli.resources import kernel_resources, resources_to_json, resources_to_text
from refcomp.cli.streams import progress, write_json, write_text
from refcomp.driver.compile_kernels import compile_programs, is_device_target
from refcomp.driver.pipeline import passes_for
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import did_you_mean
from refcomp.foundation.target import Target
from refcomp.ir.func import PrimFunc
from refcomp.ir.printer import print_funcs, print_program
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.stage import Stage

_SCHEDULE, _LOOP_IR, _ALL_PASSES = "schedule", "loop-ir", "all-passes"
_AFTER = "after:"
_LINKS = "lines"  # which only programs read
# For highlighting, where a stage is not called by its language.
_LANGUAGES = {"kernels": "python", "metadata": "json", "lines": "json"}


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
    if is_device_target(target):
        check_whole(funcs, "the text")
        return [*stages, *_after_passes(funcs, target)[0], *_of_device(funcs, target)]
    if target.kind != "llvm":
        return stages
    after, ready = _after_passes(funcs, target)
    llvm = Shown("llvm", "llvm", lambda: print_source(ready, target).text)
    return [*stages, *after, llvm, Shown("asm", "gas", partial(_assembly, ready, target))]


def _after_passes(funcs: list[PrimFunc], target: Target) -> tuple[list[Shown], list[PrimFunc]]:
    """What each pass makes of `funcs`, and the functions after all of them."""
    left = [steps_left(func, target.kind) for func in funcs]
    stages = []
    for step in passes_for(target.kind):
        results = [
            run_verified(func, step.function) if step in steps else func
            for func, steps in zip(funcs, left, strict=True)
        ]
        is_unchanged = all(new is old for new, old in zip(results, funcs, strict=True))
        text = partial(print_funcs, results)
        stages.append(Shown(f"{_AFTER}{step.name}", "python", text, is_unchanged))
        funcs = results
    return stages, funcs


def _of_device(funcs: Sequence[PrimFunc], target: Target) -> list[Shown]:
    """The functions split into Programs, and the texts of their kernels."""
    with progress("compiling"):
        compiled = compile_programs(funcs, target)
    programs = "\n".join(map(print_program, compiled.programs))
    stages = [Shown("programs", "python", partial(str, programs))]
    for name, text in compiled.code.sources.items():
        stages.append(Shown(name, _LANGUAGES.get(name, name), partial(str, text)))
    if compiled.code.disassemble is not None:
        disassemble = compiled.code.disassemble
        stages.append(Shown("asm", "gas", lambda: without_padding(disassemble())))
    return stages


def _assembly(funcs: Sequence[PrimFunc], target: Target) -> str:
    source = print_source(funcs, target)
    with progress("compiling"):
        return toolchain.compile_source(source, dict(target.options), "asm").data.decode()


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
