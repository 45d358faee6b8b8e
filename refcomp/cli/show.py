"""`refcomp show`: shows every stage that a computation goes through, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import click

from refcomp.cli.levels import check_unpassed, steps_left
from refcomp.cli.options import (
    errors_and_examples,
    json_option,
    symbol_option,
    target_option,
)
from refcomp.cli.outcomes import ILLEGAL, NO_TOOLCHAIN, UNSUPPORTED
from refcomp.cli.passes import run_verified_step
from refcomp.cli.programs import GRAPH_PASS, LoweredProgram, load_program
from refcomp.cli.resources import kernel_resources, resources_to_json, resources_to_text
from refcomp.cli.streams import note, progress, write_json, write_text
from refcomp.driver.backends import backend_of
from refcomp.driver.backends.loading import device_limits
from refcomp.driver.compile import texts_of
from refcomp.driver.pipeline import steps_for
from refcomp.driver.steps import FuncOrProgram, print_made
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import did_you_mean
from refcomp.foundation.target import Target
from refcomp.graph.debug.memory import MemoryMap
from refcomp.graph.debug.pictures import save_memory
from refcomp.ir.func import PrimFunc, Program
from refcomp.ir.printer import print_funcs, print_program
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.stage import Stage

_SCHEDULE = "schedule"
_LOOP_IR = "loop-ir"
_ALL_PASSES = "all-passes"
_AFTER = "after:"
_MEMORY = "memory"
_LINKS = "lines"  # for programs: which line of one stage became which of another
# For highlighting, where a stage is not called by its language.
_LANGUAGES = {"kernels": "python", "metadata": "json", "lines": "json", "asm": "gas"}


@dataclass(frozen=True, slots=True)
class Shown:
    """A stage of a computation."""

    name: str
    language: str  # for highlighting
    text: Callable[[], str]  # makes the text, which may take a compiler
    is_unchanged: bool = False  # the text is that of the stage before


@click.command(
    "show",
    epilog=errors_and_examples(
        {
            NO_TOOLCHAIN: "a tool of the target is missing",
            ILLEGAL: "the program fails or is illegal, or does not have the stage",
            UNSUPPORTED: "the target cannot compile the program, or has no --resources",
        },
        "refcomp show matmul.py:matmul --stage asm",
        "refcomp show digits.onnx --stage memory --symbol N=64",
        "refcomp show matmul.py:matmul --stage after:vectorize_loops",
        "refcomp show scale.py:scale --target 'rocm -mcpu=gfx942' --resources",
        "refcomp show scale.py:scale --target 'cuda -arch=sm_80' --resources",
    ),
)
@click.argument("program", metavar="SCRIPT.py[:NAME]|MODEL.onnx|TEXT")
@click.option(
    "--stage",
    metavar="STAGE",
    help="schedule, loop-ir, after:PASS, all-passes, llvm, asm. Models also have graph, "
    "graph-pass:PASS for each pass that changes it, optimized-graph, and memory (the bytes that "
    "each value has while it lives). Devices have programs and "
    "opencl; or programs, kernels, llvm, metadata, lines and asm; or programs, cuda, ptx, ptxas "
    "and asm. Default: all but lines, graph-pass and memory.",
)
@click.option(
    "--resources",
    is_flag=True,
    help="Show only the resources that each kernel takes of a GPU: registers, bytes of memory, how "
    "many waves fit on a SIMD (AMD) or blocks on a multiprocessor (NVIDIA), and which loop to "
    "change (NVIDIA).",
)
@click.option(
    "--png",
    metavar="FILE",
    help="Also draw the stage memory to a PNG file, by matplotlib.",
)
@target_option()
@symbol_option
@json_option
def command(
    program: str,
    stage: str | None,
    resources: bool,
    png: str | None,
    target: Target,
    symbols: tuple[tuple[str, int], ...],
    as_json: bool,
) -> None:
    """Show every stage of a computation.

    The stages are its schedule, its loop IR as lowered and after each pass, its LLVM IR and its
    assembly. A model also has graphs.

    SCRIPT.py is run, and its function NAME (default: computation) returns what `refcomp lower`
    takes. MODEL.onnx is an ONNX model, TEXT a file of loop-IR text, or - for stdin.

    With --json, the report lists name, language and text of each stage.
    """
    if png is not None and stage != _MEMORY:
        raise UserError(
            "only the memory of a model is drawn",
            remedy=f"refcomp show MODEL.onnx --stage {_MEMORY} --png {png}",
        )
    with progress("loading"):
        loaded = load_program(program, target)
    if resources:
        with progress("compiling"):
            found = kernel_resources([piece.func for piece in loaded.pieces], target)
        if as_json:
            write_json(resources_to_json(found))
        else:
            write_text(resources_to_text(found))
        return
    with progress("running passes"):
        chosen = _choose(_parts(loaded, target, dict(symbols)), stage)
    if png is not None and loaded.map_memory is not None:
        save_memory(loaded.map_memory(dict(symbols)), png)
        note(f"wrote {png}")
    if as_json:
        listed = [
            {"stage": s.name, "language": s.language, "text": s.text()} for s in chosen
        ]
        write_json(listed)
        return
    if len(chosen) == 1:
        write_text(chosen[0].text(), language=chosen[0].language)
        return
    for shown in chosen:
        click.secho(f"== {shown.name} ==", bold=True)
        if shown.is_unchanged:
            write_text("(changes nothing)\n\n")
        else:
            write_text(shown.text() + "\n", language=shown.language)


def _parts(
    program: LoweredProgram, target: Target, symbols: Mapping[str, int]
) -> Iterator[list[Shown]]:
    """Yield all stages in order, in four parts: before the passes, after each, programs, texts.

    A part is made only when it is asked for: a stage of an early part takes no pass, and no tool.
    """
    funcs = [piece.func for piece in program.pieces]
    schedules = [(p.func.name, p.schedule) for p in program.pieces if p.schedule]
    stages = [
        Shown(name, "python", partial(str, text)) for name, text in program.graphs
    ]
    if not funcs:  # a run decides which kernels there are
        yield stages
        return
    if program.map_memory is not None:
        text = partial(_memory_to_text, program.map_memory, symbols)
        stages.append(Shown(_MEMORY, "text", text))
    if schedules:
        text = partial(_schedules_to_text, schedules)
        stages.append(Shown(_SCHEDULE, "python", text))
    stages.append(Shown(_LOOP_IR, "python", partial(print_funcs, funcs)))
    yield stages
    if backend_of(target).compile is None:
        return
    if backend_of(target).has_kernels:
        check_unpassed(funcs, "the text")
    after, made = _after_steps(funcs, target)
    yield after
    programs = [one for one in made if isinstance(one, Program)]
    if programs:
        printed = "\n".join(map(print_program, programs))
        yield [Shown("programs", "python", partial(str, printed))]
    yield [
        Shown(name, _LANGUAGES.get(name, name), partial(_make_text, make))
        for name, make in texts_of(made, target).items()
    ]


def _after_steps(
    funcs: Sequence[PrimFunc], target: Target
) -> tuple[list[Shown], list[FuncOrProgram]]:
    """Return a stage for each step of the pipeline, and what all of them make of `funcs`."""
    left = [steps_left(func, target.kind) for func in funcs]
    limits = device_limits(target) if backend_of(target).has_kernels else None
    made: list[FuncOrProgram] = [*funcs]
    stages = []
    for step in steps_for(target.kind):
        # Functions of one text may be at different levels, and so need different steps.
        results = [
            run_verified_step(one, step, limits) if step in steps else one
            for one, steps in zip(made, left, strict=True)
        ]
        is_unchanged = all(new is old for new, old in zip(results, made, strict=True))
        text = partial(print_made, results)
        stages.append(Shown(f"{_AFTER}{step.name}", "python", text, is_unchanged))
        made = results
    return stages, made


def _memory_to_text(
    make: Callable[[Mapping[str, int]], MemoryMap], symbols: Mapping[str, int]
) -> str:
    return f"{make(symbols)}\n"


def _make_text(text: Callable[[], str]) -> str:
    with progress("compiling"):
        return text()


def _schedules_to_text(schedules: Sequence[tuple[str, Schedule]]) -> str:
    """Return, for each named schedule, the primitives with their lines, and the loops of stages."""
    texts = []
    for name, schedule in schedules:
        lines = [f"# schedule of {name}"]
        lines += [f"{step}  # {step.line}" for step in schedule.steps]
        if not schedule.steps:
            lines.append("# no primitives")
        for stage in schedule.stages:
            if loops := _loops(stage):
                lines.append(f"# stage {stage.name}: {loops}")
        texts.append("\n".join(lines) + "\n")
    return "\n".join(texts)


def _loops(stage: Stage) -> str:
    """Return the loops of a stage from the outermost, '' for a placeholder."""
    if stage.placement == "inline":
        return "inlined"
    loops = stage.loops
    named = [f"{axis.name} {loops.marks.get(axis, '')}" for axis in loops.leaves]
    return ", ".join(map(str.strip, named))


def _choose(parts: Iterator[list[Shown]], name: str | None) -> list[Shown]:
    """Return the stages that `--stage name` means, all but the links if `name` is None."""
    if name is None:
        return [stage for part in parts for stage in part if not _is_on_request(stage)]
    others: list[str] = []
    for part in parts:
        if name == _ALL_PASSES:
            chosen = [stage for stage in part if stage.name.startswith(_AFTER)]
        else:
            chosen = [stage for stage in part if stage.name == name]
        if chosen:
            return chosen
        others += [stage.name for stage in part]
    if name == _ALL_PASSES:
        return []  # the interpreter's target has none
    raise _unknown_stage(name, [*others, _ALL_PASSES])


def _is_on_request(stage: Shown) -> bool:
    """Return True for a stage that is shown only if it is asked for."""
    return stage.name in (_LINKS, _MEMORY) or stage.name.startswith(GRAPH_PASS)


def _unknown_stage(name: str, names: Sequence[str]) -> UserError:
    """Return the error. It lists one stage behind a pass only, as these are many."""
    known = list(dict.fromkeys(names))
    passes = [stage for stage in known if stage.startswith(_AFTER)]
    of_graphs = [stage for stage in known if stage.startswith(GRAPH_PASS)]
    words = [stage for stage in known if stage not in (*passes, *of_graphs)]
    if of_graphs:
        words.append(f"{GRAPH_PASS}PASS, such as {of_graphs[0]}")
    if passes:
        words.append(
            f"{_AFTER}PASS, such as {passes[0]} (--stage {_ALL_PASSES} shows each)"
        )
    near = (
        did_you_mean(name, known)
        or did_you_mean(f"{_AFTER}{name}", passes)
        or did_you_mean(f"{GRAPH_PASS}{name}", of_graphs)
    )
    remedy = f"{near} stages: {', '.join(words)}".strip()
    return UserError(f"this computation has no stage {name!r}", remedy=remedy)
