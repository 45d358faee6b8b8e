"""`refcomp emulate`: a kernel of a code object, run without a GPU, on arrays from files; or all
kernels of a program or a model, on arrays that are filled in, to profile them or to look for
hazards."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import click
import numpy as np
from click.core import ParameterSource

from refcomp import toolchain
from refcomp.cli.arrays import Filling
from refcomp.cli.digest import digest, digest_to_text
from refcomp.cli.group import JSON_ASKED
from refcomp.cli.kernel_arguments import GivenArgument, read_arguments
from refcomp.cli.kernel_listing import listing_to_json, listing_to_text
from refcomp.cli.options import examples, json_option, seed_option, symbol_option
from refcomp.cli.outcomes import FAILED, FINE, printable
from refcomp.cli.profile import (
    IN_THE_TERMINAL,
    EmulatedDevice,
    emulate_program,
    is_program,
    page_path,
    profile_to_text,
    reports_to_json,
    tell_program,
    write_profile,
)
from refcomp.cli.streams import (
    name_of,
    note,
    progress,
    read_bytes,
    write_bytes,
    write_json,
)
from refcomp.emulator import EmulatedGpu, LaunchReport
from refcomp.emulator.code.code_object import CodeObject, KernelEntry, read_code_object
from refcomp.emulator.execution.launch import Extents, LoadedCode
from refcomp.emulator.generations.generation import GENERATIONS
from refcomp.emulator.ledger import Entry, not_compared, read_ledger
from refcomp.emulator.limits import USUAL_SECONDS, USUAL_STEPS, Limits
from refcomp.emulator.observers.counting import Profile
from refcomp.emulator.observers.hazards import HAZARDS
from refcomp.emulator.run import explicit_arguments
from refcomp.foundation.artifacts import Binary
from refcomp.foundation.dtype import as_dtype
from refcomp.foundation.errors import RefcompError, UserError
from refcomp.foundation.unlinked import refuse_unlinked
from refcomp.profile.cards import CARDS, card_for
from refcomp.profile.report import ProfileReport, report_of

# Parameters that only a code object's kernel takes, and those that only a program takes.
_OF_KERNELS = "kernel", "grid", "block", "arguments", "shared"
_OF_PROGRAMS = "mcpu", "contract", "symbols", "seed"
_ASKED = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


def _extents(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> Extents | None:
    """`64`, `16,16` or `8,8,4`."""
    if value is None:
        return None
    words = value.split(",")
    if len(words) > 3 or not all(word.isdecimal() and int(word) for word in words):
        raise click.BadParameter(
            f"{value!r} is not one to three positive numbers", ctx, param
        )
    x, y, z = (*map(int, words), *(1,) * (3 - len(words)))
    return x, y, z


@dataclass(frozen=True, slots=True)
class _Asked:
    """The options of the command, by the names of its parameters."""

    file: str
    kernel: str | None
    grid: Extents | None
    block: Extents | None
    arguments: tuple[str, ...]
    shared: int
    max_steps: int
    max_seconds: float
    checks: bool
    hazards: bool
    chosen: tuple[str, ...]
    page: str | None
    card: str | None
    mcpu: str
    contract: bool
    symbols: tuple[tuple[str, int], ...]
    seed: int
    as_json: bool


_SHAPE: dict[str, Any] = {"callback": _extents, "metavar": "X[,Y[,Z]]"}


@click.command(
    "emulate",
    epilog=examples(
        "refcomp emulate add.hsaco --grid 2 --block 64 --hazards \\",
        "  --arg a.npy --arg b.npy --arg out:c.npy --arg n:i64=100",
        "refcomp emulate gemm.py:gemm --profile page.html --card MI300X",
        "refcomp emulate scale.py:scale --symbol n=1000 --hazards",
        "refcomp emulate add.hsaco",
    ),
)
@click.argument("file", metavar="KERNEL.hsaco|SCRIPT.py[:NAME]|MODEL.onnx")
@click.option("--kernel", help="Which kernel; needed where there are several.")
@click.option("--grid", **_SHAPE, help="How many groups, such as 4 or 16,16.")
@click.option("--block", **_SHAPE, help="How many threads in a group, such as 64.")
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="ARG",
    help="The kernel's arguments, in order: a.npy, out:c.npy (written back), n:i32=1000, "
    "local:256 (bytes of a group's local memory).",
)
@click.option(
    "--shared",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Bytes of shared memory beyond the kernel's own.",
)
@click.option(
    "--max-steps",
    type=click.IntRange(min=1),
    default=USUAL_STEPS,
    show_default=True,
    help="Give up when no wave has ended for so many instructions; each wave counts.",
)
@click.option(
    "--max-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=USUAL_SECONDS,
    show_default=True,
    help="Give up when no wave has ended for so long.",
)
@click.option(
    "--checks/--no-checks",
    default=True,
    help="Look for bits that nothing wrote: takes up to half as long again.",
)
@click.option(
    "--hazards", is_flag=True, help=f"Look for hazards: {', '.join(HAZARDS)}."
)
@click.option(
    "--hazard",
    "chosen",
    multiple=True,
    type=click.Choice(HAZARDS),
    help="Look for one hazard, or several of them.",
)
@click.option(
    "--profile",
    "page",
    is_flag=False,
    flag_value=IN_THE_TERMINAL,
    callback=page_path,
    metavar="[PAGE.html]",
    help="Count what each instruction and access does, and tell what it means for a card; "
    "PAGE.html has schedule, loop IR, LLVM IR and machine code side by side.",
)
@click.option("--card", help=f"Which card an estimate is for: {', '.join(CARDS)}.")
@click.option(
    "--gpu",
    "mcpu",
    default="gfx942",
    show_default=True,
    help="What a program is compiled for.",
)
@click.option("--contract", is_flag=True, help="Let a program round a * b + c once.")
@symbol_option
@seed_option
@click.option(
    "--ledger",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, param, value: _print_ledger(ctx) if value else None,
    help="Print which instructions are known, and which were compared with a reference.",
)
@json_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Run a kernel of an AMD code object without a GPU.

    Prints what was written, and what is wrong with the kernel: accesses out of bounds, and what
    depends on bits that nothing wrote; and which instructions never ran in a kernel whose results
    were compared with a reference. Exits with 1 if something is. GPUs: gfx942, gfx90a, gfx1100.
    Without --arg, lists the kernels, their arguments and a command that runs one.

    A program or a model is compiled and called on arrays that are filled in: to be profiled, or,
    with --hazards, to be looked for hazards.
    """
    asked = _Asked(**options)
    if _runs_program(ctx, asked.file):
        ctx.exit(_emulate_program(asked))
    data = read_bytes(asked.file)
    code = _code_object(data, asked.file)
    if listed := _kernels_to_list(code, asked):
        _list(code, listed, asked)
        ctx.exit(FINE)
    if asked.grid is None or asked.block is None:
        raise click.UsageError("--grid and --block say how a kernel is launched", ctx)
    ctx.exit(_emulate_kernel(asked, data, asked.grid, asked.block))


def _emulate_program(asked: _Asked) -> int:
    """Run all kernels of a program or a model; return the exit code."""
    device = EmulatedDevice(
        gpu=asked.mcpu,
        hazards=asked.hazards or asked.chosen,
        is_watched=asked.checks,
        max_steps=asked.max_steps,
        max_seconds=asked.max_seconds,
    )
    filling = Filling("random", asked.seed, dict(asked.symbols))
    run = emulate_program(
        asked.file, device, filling, contract=asked.contract, card=asked.card
    )
    is_profiled = asked.page is not None or not device.hazards
    tell_program(
        run,
        asked.page or IN_THE_TERMINAL,
        is_profiled=is_profiled,
        as_json=asked.as_json,
    )
    return FAILED if run.failures else FINE


def _emulate_kernel(asked: _Asked, data: bytes, grid: Extents, block: Extents) -> int:
    """Run one kernel of a code object; return the exit code."""
    given = read_arguments(asked.arguments)
    profile = Profile()
    with progress(f"emulating {asked.file}"):
        hazards = asked.hazards or asked.chosen
        gpu = EmulatedGpu(_disassemble, is_watched=asked.checks, hazards=hazards)
        gpu.observers += () if asked.page is None else (profile,)
        loaded = _load(gpu, data, asked)
        name = asked.kernel or _only(list(loaded.code.kernels))
        report = gpu.run(
            loaded,
            name,
            grid,
            block,
            [one.value for one in given],
            shared_bytes=asked.shared,
            limits=Limits(asked.max_steps, asked.max_seconds),
        )
    reports = [
        report_of(one, Binary(data, "hsaco"), card=asked.card)
        for one in profile.kernels
    ]
    unsure = not_compared(loaded.executed, loaded.generation)
    _tell(
        name, report, [one for one in given if one.path], reports, unsure, asked.as_json
    )
    if asked.page is not None:
        write_profile(reports, asked.page)
    return FAILED if report.findings else FINE


def _code_object(data: bytes, file: str) -> CodeObject:
    """Read a code object. UserError, with the name of the file."""
    refuse_unlinked(data, name_of(file))
    try:
        return read_code_object(data)
    except RefcompError as error:
        error.where = error.where or name_of(file)
        raise


def _kernels_to_list(code: CodeObject, asked: _Asked) -> list[KernelEntry]:
    """Return the kernels that a request is not complete for; none where one can be launched."""
    chosen = (
        [*code.kernels.values()]
        if asked.kernel is None
        else [code.kernel(asked.kernel)]
    )
    if asked.arguments or not chosen:
        return []
    takes_arguments = any(explicit_arguments(kernel) for kernel in chosen)
    is_shaped = asked.grid is not None or asked.block is not None
    return [] if is_shaped and not takes_arguments else chosen


def _list(code: CodeObject, kernels: list[KernelEntry], asked: _Asked) -> None:
    if asked.as_json:
        write_json(listing_to_json(code, kernels))
    else:
        click.echo(listing_to_text(code, kernels, asked.file), nl=False)


def _runs_program(ctx: click.Context, file: str) -> bool:
    """Whether `file` is a program. UsageError for what was asked for, and would do nothing."""
    names = _OF_KERNELS if is_program(file) else _OF_PROGRAMS
    asked = {name for name in names if ctx.get_parameter_source(name) in _ASKED}
    idle = [one.opts[0] for one in ctx.command.params if one.name in asked]
    if idle:
        kinds = (
            ("code object", "program")
            if is_program(file)
            else ("program", "code object")
        )
        told = "for a {} only, this is a {}".format(*kinds)
        raise click.UsageError(f"{', '.join(idle)}: {told}", ctx)
    looks_for_hazards = ctx.params["hazards"] or ctx.params["chosen"]
    is_profiled = ctx.params["page"] or (is_program(file) and not looks_for_hazards)
    if ctx.params["card"] and not is_profiled:
        raise click.UsageError(
            "--card: an estimate is part of a profile; add --profile", ctx
        )
    return is_program(file)


def _tell(
    kernel: str,
    report: LaunchReport,
    outputs: list[GivenArgument],
    reports: list[ProfileReport],
    unsure: tuple[str, ...],
    as_json: bool,
) -> None:
    for one in outputs:
        _save(str(one.path), one.value)
    if not outputs:
        note(
            "nothing is kept of what the kernel wrote: say which array it writes, out:FILE.npy"
        )
    findings = [str(finding) for finding in report.findings]
    digests = [digest(one.name, _as_numbers(one.value)) for one in outputs]
    if as_json:
        told = {
            "kernel": kernel,
            "steps": report.steps,
            "outputs": digests,
            "findings": findings,
        }
        told |= {"profile": reports_to_json(reports)} if reports else {}
        write_json(told | {"not_compared": unsure})
        return
    doubt = [f"never compared with a reference: {'; '.join(unsure)}"] if unsure else []
    if lines := [*map(digest_to_text, digests), *findings, *doubt]:
        click.echo(printable("\n".join(lines)))
    if reports:
        click.echo(profile_to_text(reports), nl=False)


def _as_numbers(array: Any) -> Any:
    """View an array of an unsupported dtype as unsigned integers of the same width, or as bytes.

    numpy does the same when it loads files of bfloat16.
    """
    with suppress(UserError):
        as_dtype(array.dtype)
        return array
    width = array.dtype.itemsize
    return (
        array.view(f"u{width}")
        if width in (1, 2, 4, 8)
        else array.reshape(-1).view(np.uint8)
    )


def _save(path: str, array: Any) -> None:
    """To that very path: np.save itself puts .npy behind another name."""
    content = BytesIO()
    np.save(content, array, allow_pickle=False)
    write_bytes(content.getvalue(), path)


def _print_ledger(ctx: click.Context) -> None:
    pages = {
        generation.name: read_ledger(generation) for generation in GENERATIONS.values()
    }
    if ctx.meta[JSON_ASKED]:  # the flag itself is not read yet
        write_json(
            {name: [_entry_to_json(e) for e in page] for name, page in pages.items()}
        )
        ctx.exit(FINE)
    for name, page in pages.items():
        click.echo("\n".join([f"{name}:", *map(str, page)]))
    ctx.exit(FINE)


def _entry_to_json(entry: Entry) -> dict[str, Any]:
    return {
        "mnemonic": entry.mnemonic,
        "compared": entry.is_compared,
        "approximate": entry.is_approximate,
        "lacks": entry.lacks,
        "modifiers": sorted(entry.seen.modifiers) if entry.seen else [],
    }


def _load(gpu: EmulatedGpu, data: bytes, asked: _Asked) -> LoadedCode:
    try:
        loaded = gpu.load(data)
    except RefcompError as error:
        error.where = error.where or name_of(asked.file)
        raise
    # Refuses a wrong one before anything runs.
    card_for(loaded.generation.name, asked.card)
    return loaded


def _disassemble(code: bytes) -> str:
    return toolchain.disassemble(Binary(code, "hsaco"))


def _only(names: list[str]) -> str:
    if not names:
        raise UserError("the code object has no kernel", remedy="give one that has")
    if len(names) > 1:
        known = ", ".join(sorted(names))
        remedy = f"name one by --kernel: {known}"
        raise UserError(
            "which kernel is to run?", why=f"there are {len(names)}", remedy=remedy
        )
    return names[0]
