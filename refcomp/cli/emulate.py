"""`refcomp emulate`: a kernel of a code object, run without a GPU, on arrays from files; or all
kernels of a program or a model, on arrays that are filled in, to profile them."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import click
import numpy as np
from click.core import ParameterSource

from refcomp import toolchain
from refcomp.artifacts import Binary
from refcomp.cli.arrays import Filling
from refcomp.cli.digest import digest, digest_to_text
from refcomp.cli.group import JSON_ASKED
from refcomp.cli.options import examples, json_option, seed_option, symbol_option
from refcomp.cli.outcomes import FAILED, FINE, printable
from refcomp.cli.profile import (
    IN_THE_TERMINAL,
    is_program,
    page_path,
    profile_program,
    profile_to_text,
    reports_to_json,
    tell_profile,
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
from refcomp.dtype import as_dtype, to_numpy
from refcomp.emulator import EmulatedGpu, LaunchReport
from refcomp.emulator.counting import Profile
from refcomp.emulator.generation import GENERATIONS
from refcomp.emulator.hazards import HAZARDS
from refcomp.emulator.launch import Extents, LoadedCode
from refcomp.emulator.ledger import Entry, not_compared, read_ledger
from refcomp.emulator.limits import USUAL_SECONDS, USUAL_STEPS, Limits
from refcomp.errors import RefcompError, UserError
from refcomp.local_memory import LocalMemory
from refcomp.profile.cards import CARDS, card_for
from refcomp.profile.report import Report, report_of

_NUMBER = re.compile(r"(\w+):(\w+)=(.+)")
_LOCAL = re.compile(r"local:(-?\w+)")
_ARGUMENTS = (
    "an array is FILE.npy as numpy.save writes it, out:FILE.npy where the kernel writes it, "
    "a number NAME:DTYPE=VALUE, such as n:i32=1000, and local memory local:BYTES"
)
# Parameters that only a code object's kernel takes, and those that only a program takes.
_OF_KERNELS = (
    *("kernel", "grid", "block", "arguments", "shared", "max_steps", "max_seconds"),
    *("checks", "hazards", "chosen"),
)
_OF_PROGRAMS = "mcpu", "contract", "symbols", "seed"
_ASKED = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


@dataclass(frozen=True, slots=True)
class _Given:
    """An argument; `path` is where an array that the kernel writes goes."""

    name: str
    value: Any
    path: str | None


def _extents(ctx: click.Context, param: click.Parameter, value: str | None) -> Extents | None:
    """`64`, `16,16` or `8,8,4`."""
    if value is None:
        return None
    words = value.split(",")
    if len(words) > 3 or not all(word.isdecimal() and int(word) for word in words):
        raise click.BadParameter(f"{value!r} is not one to three positive numbers", ctx, param)
    x, y, z = (*map(int, words), *(1,) * (3 - len(words)))
    return x, y, z


_SHAPE: dict[str, Any] = {"callback": _extents, "metavar": "X[,Y[,Z]]"}


@click.command(
    "emulate",
    epilog=examples(
        "refcomp emulate add.hsaco --grid 2 --block 64 --hazards \\",
        "  --arg a.npy --arg b.npy --arg out:c.npy --arg n:i64=100",
        "refcomp emulate gemm.py:gemm --profile page.html --card MI300X",
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
@click.option("--hazards", is_flag=True, help=f"Look for hazards: {', '.join(HAZARDS)}.")
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
    "--gpu", "mcpu", default="gfx942", show_default=True, help="What a program is compiled for."
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
def command(
    ctx: click.Context,
    file: str,
    kernel: str | None,
    grid: Extents | None,
    block: Extents | None,
    arguments: tuple[str, ...],
    shared: int,
    max_steps: int,
    max_seconds: float,
    checks: bool,
    hazards: bool,
    chosen: tuple[str, ...],
    page: str | None,
    card: str | None,
    mcpu: str,
    contract: bool,
    symbols: tuple[tuple[str, int], ...],
    seed: int,
    as_json: bool,
) -> None:
    """Run a kernel of an AMD code object without a GPU.

    Prints what was written, and what is wrong with the kernel: accesses out of bounds, and what
    depends on bits that nothing wrote; and which instructions never ran in a kernel whose results
    were compared with a reference. Exits with 1 if something is. GPUs: gfx942, gfx90a, gfx1100.

    A program or a model is compiled and called on arrays that are filled in, only to be profiled.
    """
    if _runs_program(ctx, file):
        filling = Filling("random", seed, dict(symbols))
        reports = profile_program(file, mcpu, filling, contract=contract, card=card)
        tell_profile(reports, page or IN_THE_TERMINAL, as_json=as_json)
        ctx.exit(FINE)
    if grid is None or block is None:
        raise click.UsageError("--grid and --block say how a kernel is launched", ctx)
    given, profile = _read_all(arguments), Profile()
    with progress(f"emulating {file}"):
        data = read_bytes(file)
        gpu = EmulatedGpu(_disassemble, is_watched=checks, hazards=hazards or chosen)
        gpu.observers += () if page is None else (profile,)
        loaded = _load(gpu, data, file, card)
        name = kernel or _only(list(loaded.code.kernels))
        values = [one.value for one in given]
        limits = Limits(max_steps, max_seconds)
        report = gpu.run(loaded, name, grid, block, values, shared_bytes=shared, limits=limits)
    reports = [report_of(one, Binary(data, "hsaco"), card=card) for one in profile.kernels]
    unsure = not_compared(loaded.executed, loaded.generation)
    _tell(name, report, [one for one in given if one.path], reports, unsure, as_json)
    if page is not None:
        write_profile(reports, page)
    ctx.exit(FAILED if report.findings else FINE)


def _runs_program(ctx: click.Context, file: str) -> bool:
    """Whether `file` is a program. UsageError for what was asked for, and would do nothing."""
    names = _OF_KERNELS if is_program(file) else _OF_PROGRAMS
    asked = {name for name in names if ctx.get_parameter_source(name) in _ASKED}
    idle = [one.opts[0] for one in ctx.command.params if one.name in asked]
    if idle:
        kinds = ("code object", "program") if is_program(file) else ("program", "code object")
        told = "for a {} only, this is a {}".format(*kinds)
        raise click.UsageError(f"{', '.join(idle)}: {told}", ctx)
    if ctx.params["card"] and not ctx.params["page"] and not is_program(file):
        raise click.UsageError("--card: an estimate is part of a profile; add --profile", ctx)
    return is_program(file)


def _tell(
    kernel: str,
    report: LaunchReport,
    outputs: list[_Given],
    reports: list[Report],
    unsure: tuple[str, ...],
    as_json: bool,
) -> None:
    for one in outputs:
        _save(str(one.path), one.value)
    if not outputs:
        note("nothing is kept of what the kernel wrote: say which array it writes, out:FILE.npy")
    findings = [str(finding) for finding in report.findings]
    digests = [digest(one.name, _as_numbers(one.value)) for one in outputs]
    if as_json:
        told = {"kernel": kernel, "steps": report.steps, "outputs": digests, "findings": findings}
        told |= {"profile": reports_to_json(reports)} if reports else {}
        write_json(told | {"not_compared": unsure})
        return
    doubt = [f"never compared with a reference: {'; '.join(unsure)}"] if unsure else []
    if lines := [*map(digest_to_text, digests), *findings, *doubt]:
        click.echo(printable("\n".join(lines)))
    if reports:
        click.echo(profile_to_text(reports), nl=False)


def _as_numbers(array: Any) -> Any:
    """What is of no type that is known as the integers that it would be, or as bytes: numpy reads
    its files of bfloat16 so, too."""
    with suppress(UserError):
        as_dtype(array.dtype)
        return array
    width = array.dtype.itemsize
    return array.view(f"u{width}") if width in (1, 2, 4, 8) else array.reshape(-1).view(np.uint8)


def _save(path: str, array: Any) -> None:
    """To that very path: np.save itself puts .npy behind another name."""
    content = BytesIO()
    np.save(content, array, allow_pickle=False)
    write_bytes(content.getvalue(), path)


def _print_ledger(ctx: click.Context) -> None:
    pages = {generation.name: read_ledger(generation) for generation in GENERATIONS.values()}
    if ctx.meta[JSON_ASKED]:  # the flag itself is not read yet
        write_json({name: [_entry_to_json(e) for e in page] for name, page in pages.items()})
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


def _load(gpu: EmulatedGpu, data: bytes, file: str, card: str | None) -> LoadedCode:
    try:
        loaded = gpu.load(data)
    except RefcompError as error:
        error.where = error.where or name_of(file)
        raise
    card_for(loaded.generation.name, card)  # refuses a wrong one before anything runs
    return loaded


def _disassemble(code: bytes) -> str:
    return toolchain.disassemble(Binary(code, "hsaco"))


def _only(names: list[str]) -> str:
    if not names:
        raise UserError("the code object has no kernel", remedy="give one that has")
    if len(names) > 1:
        known = ", ".join(sorted(names))
        remedy = f"name one by --kernel: {known}"
        raise UserError("which kernel is to run?", why=f"there are {len(names)}", remedy=remedy)
    return names[0]


def _read_all(arguments: tuple[str, ...]) -> list[_Given]:
    """What `--arg` says, each time: no file can keep what two arguments become."""
    given = [_read(text) for text in arguments]
    outputs = [one.path for one in given if one.path]
    if twice := sorted({path for path in outputs if outputs.count(path) > 1}):
        remedy = "name a file for each: copies will do"
        raise UserError(f"out:{twice[0]} is given for several arguments", remedy=remedy)
    return given


def _read(text: str) -> _Given:
    """What `--arg` says."""
    if match := _NUMBER.fullmatch(text):
        return _Given(match[1], _number(match[2], match[3], text), None)
    if match := _LOCAL.fullmatch(text):
        return _Given(text, _local(match[1], text), None)
    path = text.removeprefix("out:")
    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        why = error.strerror or str(error)
        raise UserError(f"{path} cannot be read", why=why, remedy=_ARGUMENTS) from error
    except (ValueError, EOFError) as error:
        # Not numpy's own words: they tell how to load what is hostile.
        why = "it is damaged, of another kind, or holds Python objects"
        what = f"{path} is no .npy file of a plain array"
        raise UserError(what, why=why, remedy=_ARGUMENTS) from error
    if not isinstance(array, np.ndarray):
        raise UserError(f"{path} holds several arrays", remedy=_ARGUMENTS)
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
    is_output = text != path
    array.flags.writeable = is_output
    return _Given(path, array, path if is_output else None)


def _local(size: str, text: str) -> LocalMemory:
    try:
        return LocalMemory(int(size, 0))
    except (ValueError, UserError) as error:
        why = "its size is a number of bytes, at least 1"
        raise UserError(f"--arg {text} is not local memory", why=why, remedy=_ARGUMENTS) from error


def _number(dtype: str, value: str, text: str) -> Any:
    kind = as_dtype(dtype)
    if kind.lanes > 1:
        raise _no_number(text, f"{kind} has {kind.lanes} of them")
    try:
        return to_numpy(kind).type(float(value) if kind.is_float else int(value, 0))
    except (ValueError, OverflowError) as error:
        raise _no_number(text, str(error)) from error


def _no_number(text: str, why: str) -> UserError:
    return UserError(f"--arg {text} is no number of that type", why=why, remedy=_ARGUMENTS)
