"""`refcomp emulate`: runs kernels for AMD and NVIDIA GPUs without a GPU.

It runs one kernel of a code object or of PTX, on arrays from files. Or it runs all kernels of a
program or a model, on arrays that are filled, to profile them or to look for hazards.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.core import ParameterSource

from refcomp.cli.amd_kernels import AmdKernels
from refcomp.cli.arrays import Filling
from refcomp.cli.digest import digest, digest_to_text
from refcomp.cli.group import JSON_ASKED
from refcomp.cli.kernel_arguments import GivenArgument, read_arguments
from refcomp.cli.kernel_file import (
    KernelFile,
    KernelOutcome,
    KernelRequest,
    only_kernel,
)
from refcomp.cli.kernel_listing import (
    ListedKernel,
    listing_to_json,
    listing_to_text,
)
from refcomp.cli.options import (
    NameChoice,
    errors_and_examples,
    inputs_option,
    json_option,
    seed_option,
    symbol_option,
)
from refcomp.cli.outcomes import (
    FAILED,
    FINE,
    ILLEGAL,
    NO_TOOLCHAIN,
    UNSUPPORTED,
    USAGE,
    printable,
)
from refcomp.cli.profile import (
    IN_THE_TERMINAL,
    EmulatedDevice,
    emulate_program,
    is_program,
    page_path,
    print_run,
    profile_to_text,
    reports_to_json,
    write_profile,
)
from refcomp.cli.ptx_kernels import PtxKernels
from refcomp.cli.streams import (
    name_of,
    note,
    progress,
    read_bytes,
    write_bytes,
    write_json,
)
from refcomp.emulator.execution.launch import Extents
from refcomp.emulator.generations.generation import GENERATIONS
from refcomp.emulator.ledger import Entry, read_ledger
from refcomp.emulator.limits import USUAL_SECONDS, USUAL_STEPS, Limits
from refcomp.emulator.observers.hazards import HAZARDS
from refcomp.emulator.ptx.cuda import HOW_TO_GET_PTX
from refcomp.emulator.ptx.ledger import PtxEntry, read_ptx_ledger
from refcomp.foundation.dtype import as_dtype
from refcomp.foundation.errors import UserError
from refcomp.profile.cards import CARDS, find_card
from refcomp.runtime.arrays.npz import read_npz
from refcomp.runtime.cuda.kernels import FATBIN_MAGIC
from refcomp.runtime.device import HostArray

# Parameters that only a file of kernels takes, and those that only a program takes.
_OF_KERNELS = ("kernel", "grid", "block", "arguments", "shared")
_OF_PROGRAMS = ("mcpu", "contract", "inputs", "symbols", "seed")
_USUAL_GPU = "gfx942"
# The machine of an ELF file for NVIDIA GPUs.
_CUDA_MACHINE = (190).to_bytes(2, "little")
# The section of a program, a library or an object file that holds a fatbin.
_FATBIN_SECTION = b".nv_fatbin"
_GIVEN = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


def _extents(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> Extents | None:
    """Parse `64`, `16,16` or `8,8,4`. A missing extent is 1. Raise BadParameter."""
    if value is None:
        return None
    words = value.split(",")
    if len(words) > 3 or not all(word.isdecimal() and int(word) for word in words):
        raise click.BadParameter(
            f"{value!r} is not one to three positive numbers", ctx, param
        )
    x, y, z = [*map(int, words), 1, 1][:3]
    return x, y, z


@dataclass(frozen=True, slots=True)
class _Options:
    """The parameters of the command, under the names of click's parameters."""

    file: str
    kernel: str | None
    grid: Extents | None
    block: Extents | None
    arguments: tuple[str, ...]
    shared: int  # bytes
    max_steps: int
    max_seconds: float
    checks: bool
    hazards: bool
    chosen: tuple[str, ...]  # names of hazards
    page: str | None  # a path, or IN_THE_TERMINAL; None without --profile
    card: str | None
    mcpu: str | None  # the GPU of a program; None for that of `card`, or the usual one
    contract: bool
    inputs: str | None  # the path of an .npz file
    symbols: tuple[tuple[str, int], ...]
    seed: int
    as_json: bool


@click.command(
    "emulate",
    epilog=errors_and_examples(
        {
            FAILED: "something is wrong with a kernel",
            USAGE: "an option does not apply to this kind of file",
            NO_TOOLCHAIN: "an LLVM tool is missing",
            ILLEGAL: "the file or an argument is illegal",
            UNSUPPORTED: "the kernel needs what the emulator does not have",
        },
        "refcomp emulate scale.hsaco",
        "refcomp emulate scale.hsaco --grid 2 --block 64 --hazards \\",
        "  --arg out:b.npy --arg a.npy --arg n:i64=100",
        "refcomp emulate scale.ptx --grid 2 --block 64 \\",
        "  --arg out:b.npy --arg a.npy --arg n:i64=100",
        "refcomp emulate scale.py:scale --symbol n=1000 --hazards",
        "refcomp emulate scale.py:scale --symbol n=1000 --profile page.html",
        "refcomp emulate digits.onnx --profile page.html --card MI300X",
        "refcomp emulate scale.py:scale --symbol n=1000 --profile --gpu sm_90",
    ),
)
@click.argument("file", metavar="KERNEL.hsaco|KERNEL.ptx|SCRIPT.py[:NAME]|MODEL.onnx")
@click.option(
    "--kernel", metavar="NAME", help="The kernel to run. Needed if there are several."
)
@click.option(
    "--grid",
    callback=_extents,
    metavar="X[,Y[,Z]]",
    help="How many groups (NVIDIA: blocks) to run, such as 4 or 16,16.",
)
@click.option(
    "--block",
    callback=_extents,
    metavar="X[,Y[,Z]]",
    help="How many threads a group has, such as 64 or 16,16.",
)
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="ARG",
    help="An argument of the kernel; repeat it in their order. a.npy: an array to read; "
    "out:c.npy: an array to write, the file is written back; n:i32=1000: a number; local:256, in a "
    "code object: so many bytes of a group's local memory.",
)
@click.option(
    "--shared",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="BYTES",
    help="Bytes of shared memory of a group beyond the kernel's own: in CUDA C, of its extern "
    "__shared__ arrays.",
)
@click.option(
    "--max-steps",
    type=click.IntRange(min=1),
    default=USUAL_STEPS,
    show_default=True,
    metavar="N",
    help="Stop when no wave has ended for so many instructions, summed over the waves. On NVIDIA "
    "GPUs: when no thread has, summed over the warps.",
)
@click.option(
    "--max-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=USUAL_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="Stop when no wave (NVIDIA: no thread) has ended for so many seconds.",
)
@click.option(
    "--checks/--no-checks",
    default=True,
    help="Look for results that depend on bits which nothing wrote (default). A run takes up to "
    "half as long again.",
)
@click.option(
    "--hazards",
    is_flag=True,
    help=f"Look for all hazards. AMD GPUs: {', '.join(HAZARDS)}. NVIDIA GPUs: read-only and races; "
    "waits, barriers and alignment are checked in any case.",
)
@click.option(
    "--hazard",
    "chosen",
    multiple=True,
    type=NameChoice(HAZARDS),
    help="Look for this hazard. May be repeated. NVIDIA GPUs have no wait-states.",
)
@click.option(
    "--profile",
    "page",
    is_flag=False,
    flag_value=IN_THE_TERMINAL,
    callback=page_path,
    metavar="[PAGE.html]",
    help="Count the instructions and memory accesses, and estimate what limits the kernel on a "
    "card. PAGE.html shows schedule, loop IR, LLVM IR and machine code (NVIDIA: PTX) side by "
    "side. With a page, the terminal gets only the tables of all kernels and layers of a model.",
)
@click.option(
    "--card",
    metavar="CARD",
    help=f"The card that estimates are for: {', '.join(CARDS)}.",
)
@click.option(
    "--gpu",
    "mcpu",
    metavar="GPU",
    help=f"The GPU that a program is compiled for: {', '.join(GENERATIONS)}, or one of NVIDIA, "
    f"such as sm_90. Default: that of --card, or {_USUAL_GPU}.",
)
@click.option(
    "--contract", is_flag=True, help="Let a program round a * b + c only once."
)
@inputs_option
@symbol_option
@seed_option
@click.option(
    "--ledger",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, param, value: _print_ledger(ctx) if value else None,
    help="Only list the instructions that are known, and which were compared with a reference.",
)
@json_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Run kernels for AMD and NVIDIA GPUs without a GPU.

    KERNEL.hsaco is a code object for gfx942, gfx90a or gfx1100, and KERNEL.ptx a PTX file, of any
    compiler. Without --arg, its kernels are listed with their arguments and a command that runs
    one.

    SCRIPT.py is run, and its function NAME (default: computation) returns what `refcomp lower`
    takes. Such a program, or the model MODEL.onnx, is compiled and called once, on arrays of an
    .npz file (-i) and filled ones. It is profiled or, with --hazards, checked for hazards. The
    profile of a model also has the least time of each layer on a card, by an estimate, what limits
    it, and what to change.

    Prints a summary of each output, and what is wrong: accesses out of bounds, results that depend
    on bits which nothing wrote, and hazards. A last line lists the instructions that ran, but that
    never ran in a kernel whose results were compared with a reference.
    """
    asked = _Options(**options)
    _refuse_idle_options(ctx, asked)
    if is_program(asked.file):
        ctx.exit(_emulate_program(asked))
    kernels = _open_kernels(read_bytes(asked.file), name_of(asked.file))
    if listed := _kernels_to_list(kernels, asked):
        listing = kernels.listing
        if asked.as_json:
            write_json(listing_to_json(listing, listed))
        else:
            click.echo(listing_to_text(listing, listed, asked.file), nl=False)
        ctx.exit(FINE)
    if asked.grid is None or asked.block is None:
        raise click.UsageError("--grid and --block say how a kernel is launched", ctx)
    ctx.exit(_emulate_kernel(asked, kernels, asked.grid, asked.block))


def _refuse_idle_options(ctx: click.Context, asked: _Options) -> None:
    """Raise UsageError for options that are given, but would do nothing."""
    names = _OF_KERNELS if is_program(asked.file) else _OF_PROGRAMS
    given = [name for name in names if ctx.get_parameter_source(name) in _GIVEN]
    idle = [param.opts[0] for param in ctx.command.params if param.name in given]
    if idle:
        reason = "for a program only, this is a file of kernels"
        if is_program(asked.file):
            reason = "for a file of kernels only, this is a program"
        raise click.UsageError(f"{', '.join(idle)}: {reason}", ctx)
    if asked.card and not asked.page:
        # A program is profiled by default.
        looks_for_hazards = asked.hazards or asked.chosen
        if looks_for_hazards or not is_program(asked.file):
            raise click.UsageError(
                "--card: an estimate is part of a profile; add --profile", ctx
            )


def _emulate_program(asked: _Options) -> int:
    """Run all kernels of a program or a model; return the exit code."""
    device = EmulatedDevice(
        gpu=_gpu_of(asked),
        hazards=asked.hazards or asked.chosen,
        is_watched=asked.checks,
        max_steps=asked.max_steps,
        max_seconds=asked.max_seconds,
    )
    filling = Filling("random", asked.seed, dict(asked.symbols))
    run = emulate_program(
        asked.file,
        device,
        filling,
        given=read_npz(asked.inputs),
        contract=asked.contract,
        card=asked.card,
    )
    is_profiled = asked.page is not None or not device.hazards
    page = asked.page or IN_THE_TERMINAL
    print_run(run, page, is_profiled=is_profiled, as_json=asked.as_json)
    return FAILED if run.failures else FINE


def _gpu_of(asked: _Options) -> str:
    """Return the GPU that a program is compiled for. Raise UserError for an unknown card."""
    if asked.mcpu is not None:
        return asked.mcpu
    return find_card(asked.card).mcpu if asked.card else _USUAL_GPU


def _emulate_kernel(
    asked: _Options, kernels: KernelFile, grid: Extents, block: Extents
) -> int:
    """Run one kernel of a file; return the exit code."""
    given = read_arguments(asked.arguments, kernels.listing.argument_forms)
    kernel = asked.kernel or only_kernel(kernels.listing)
    request = KernelRequest(
        kernel=kernel,
        grid=grid,
        block=block,
        arguments=given,
        shared_bytes=asked.shared,
        limits=Limits(asked.max_steps, asked.max_seconds),
        is_watched=asked.checks,
        hazards=asked.hazards or asked.chosen,
        is_profiled=asked.page is not None,
        card=asked.card,
    )
    with progress(f"emulating {asked.file}"):
        outcome = kernels.run(request)
    outputs = [one for one in given if one.path]
    for one in outputs:
        _save(one)
    if not outputs:
        note(
            "nothing is kept of what the kernel wrote: "
            "say which array it writes, out:FILE.npy"
        )
    for text in outcome.notes:
        note(text)
    _print(kernel, outcome, outputs, as_json=asked.as_json)
    if asked.page is not None:
        write_profile(outcome.profiles, asked.page, asked.file)
    return FAILED if outcome.findings else FINE


def _open_kernels(data: bytes, file: str) -> KernelFile:
    """Read a file of kernels. Raise UserError, with the name of the file."""
    is_elf = data.startswith(b"\x7fELF")
    if is_elf and data[18:20] == _CUDA_MACHINE:
        raise UserError(
            f"{file} is machine code for NVIDIA GPUs (a cubin)",
            why="its form is not published; the emulator runs PTX",
            remedy=HOW_TO_GET_PTX,
        )
    if data.startswith(FATBIN_MAGIC) or (is_elf and _FATBIN_SECTION in data):
        raise UserError(
            f"{file} holds code for NVIDIA GPUs in a fatbin",
            why="the emulator runs PTX that is a file of its own",
            remedy=HOW_TO_GET_PTX,
        )
    if Path(file).suffix == ".ptx" or (not is_elf and b".version" in data):
        return PtxKernels(data, file)
    return AmdKernels(data, file)


def _kernels_to_list(kernels: KernelFile, asked: _Options) -> list[ListedKernel]:
    """Return the kernels for which arguments or extents are missing; none if one can run."""
    chosen = list(kernels.listing.kernels.values())
    if asked.kernel is not None:
        chosen = [kernels.find(asked.kernel)]
    if asked.arguments:
        return []
    takes_arguments = any(kernel.arguments for kernel in chosen)
    has_extents = asked.grid is not None or asked.block is not None
    return [] if has_extents and not takes_arguments else chosen


def _print(
    kernel: str,
    outcome: KernelOutcome,
    outputs: list[GivenArgument],
    *,
    as_json: bool,
) -> None:
    """Print the outcome of a run."""
    digests = []
    for one in outputs:
        assert isinstance(one.value, np.ndarray)
        digests.append(digest(one.name, _as_numbers(one.value)))
    unsure = outcome.not_compared
    if as_json:
        value: dict[str, object] = {
            "kernel": kernel,
            "steps": outcome.steps,
            "outputs": digests,
            "findings": list(outcome.findings),
        }
        if outcome.profiles:
            value["profile"] = reports_to_json(outcome.profiles)
        value["not_compared"] = unsure
        value["notes"] = outcome.notes
        write_json(value)
        return
    lines = [*map(digest_to_text, digests), *outcome.findings]
    if unsure:
        lines.append(f"never compared with a reference: {'; '.join(unsure)}")
    if lines:
        click.echo(printable("\n".join(lines)))
    if outcome.profiles:
        click.echo(profile_to_text(outcome.profiles), nl=False)


def _as_numbers(array: HostArray) -> HostArray:
    """View an array of an unsupported dtype as unsigned integers of the same width, or as bytes.

    numpy does the same when it loads files of bfloat16.
    """
    with suppress(UserError):
        as_dtype(array.dtype)
        return array
    width = array.dtype.itemsize
    if width in (1, 2, 4, 8):
        return array.view(f"u{width}")
    return array.reshape(-1).view(np.uint8)


def _save(output: GivenArgument) -> None:
    """Write an output back to its file."""
    assert output.path is not None and isinstance(output.value, np.ndarray)
    # To a buffer first: np.save appends .npy to any other file name.
    content = BytesIO()
    np.save(content, output.value, allow_pickle=False)
    write_bytes(content.getvalue(), output.path)


def _print_ledger(ctx: click.Context) -> None:
    pages: dict[str, tuple[Entry | PtxEntry, ...]] = {
        one.name: read_ledger(one) for one in GENERATIONS.values()
    }
    pages["ptx"] = read_ptx_ledger()
    # An eager option runs before --json is read.
    if ctx.meta[JSON_ASKED]:
        write_json({name: [*map(_entry_to_json, page)] for name, page in pages.items()})
        ctx.exit(FINE)
    for name, page in pages.items():
        click.echo("\n".join([f"{name}:", *map(str, page)]))
    ctx.exit(FINE)


def _entry_to_json(entry: Entry | PtxEntry) -> dict[str, object]:
    if isinstance(entry, PtxEntry):
        return {
            "mnemonic": entry.name,
            "compared": entry.is_compared,
            "references": {
                reference: sorted(names) for reference, names in entry.modifiers.items()
            },
        }
    return {
        "mnemonic": entry.mnemonic,
        "compared": entry.is_compared,
        "approximate": entry.is_approximate,
        "lacks": entry.lacks,
        "modifiers": sorted(entry.seen.modifiers) if entry.seen else [],
    }
