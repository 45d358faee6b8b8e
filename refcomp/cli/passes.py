"""`refcomp pass`: runs passes over loop-IR text, one after the other.

Each result is verified. If a pass changes the types of arguments, a comment in the resulting text
keeps the signature for later commands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import click

from refcomp.cli.headers import read_header, signature_lines
from refcomp.cli.levels import level_of, steps_left
from refcomp.cli.options import (
    errors_and_examples,
    json_option,
    output_option,
    target_option,
)
from refcomp.cli.outcomes import BUG, ILLEGAL, USAGE
from refcomp.cli.streams import name_of, read_text, write_json, write_text
from refcomp.cli.texts import text_to_checked_funcs
from refcomp.codegen.signature import signature_of
from refcomp.driver.backends import backend_of
from refcomp.driver.backends.loading import device_limits
from refcomp.driver.pipeline import find_pass, steps_for
from refcomp.driver.steps import (
    FuncOrProgram,
    Pass,
    PipelineStep,
    Scope,
    print_made,
    run_step,
)
from refcomp.foundation.artifacts import Signature
from refcomp.foundation.dtype import as_dtype
from refcomp.foundation.errors import CompilerBug, UserError
from refcomp.foundation.options import build_options
from refcomp.foundation.python_limits import deep_recursion
from refcomp.foundation.target import Target
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.ir.func import PrimFunc
from refcomp.ir.verify import Level, verify

_BF16 = as_dtype("bfloat16")
_U16 = as_dtype("uint16")


@click.command(
    "pass",
    epilog=errors_and_examples(
        {
            USAGE: "neither passes nor --all are given, or both",
            ILLEGAL: "the text is illegal, or a pass is unknown or refuses the text",
            BUG: "a pass made illegal text",
        },
        "refcomp pass --all -i matmul.ir -o passed.ir",
        "refcomp pass simplify_expressions partition_loops -i matmul.ir",
        "refcomp pass --list",
    ),
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "-i",
    "--input",
    "file",
    default="-",
    show_default=True,
    metavar="FILE",
    help="The loop-IR text to read; - is stdin.",
)
@output_option
@click.option(
    "--all", "run_all", is_flag=True, help="Run all passes that the target still needs."
)
@click.option(
    "--list",
    "list_only",
    is_flag=True,
    help="Only list the passes of the target, in order, each with its reason.",
)
@target_option("The target whose passes --all and --list mean")
@json_option
def command(
    names: tuple[str, ...],
    file: str,
    output: str,
    run_all: bool,
    list_only: bool,
    target: Target,
    as_json: bool,
) -> None:
    """Run passes over loop-IR text.

    NAME is the name of a pass, and several passes run in the order given. Each function of the text
    goes through them. Each result is verified.

    With --json, the report lists name and loop IR of each function, or the passes for --list.
    """
    if list_only:
        _write_list(target, as_json)
        return
    if run_all == bool(names):
        raise click.UsageError(
            "give either names of passes or --all; --list prints the names"
        )
    chosen = [find_pass(name) for name in names]
    text = read_text(file)
    funcs = text_to_checked_funcs(text, file)
    results: list[FuncOrProgram] = []
    for func in funcs:
        if run_all:
            results.append(_run_all(func, target))
            continue
        level_of(func)  # refuses an illegal text before a pass meets it
        for run in chosen:
            func = run_verified(func, run)
        results.append(func)
    signatures = _changed_signatures(text, name_of(file), funcs, results)
    if as_json:
        pairs = zip(funcs, results, strict=True)
        report = [{"name": f.name, "loop_ir": print_made([made])} for f, made in pairs]
        write_json(report, output)
    else:
        printed = signature_lines(signatures, "#") + print_made(results)
        write_text(printed, output, "python")


def _write_list(target: Target, as_json: bool) -> None:
    steps = steps_for(target.kind)
    if as_json:
        keys = ("name", "scope", "level", "reason")
        write_json([{key: str(getattr(step, key)) for key in keys} for step in steps])
        return
    for step in steps:
        click.echo(f"{step.name:22} {step.scope:8} -> {step.level:7} {step.reason}")


def _run_all(func: PrimFunc, target: Target) -> FuncOrProgram:
    """Run all steps that are left."""
    made: FuncOrProgram = func
    limits = device_limits(target) if backend_of(target).has_kernels else None
    for step in steps_left(func, target.kind):
        made = run_verified_step(made, step, limits)
    return made


def run_verified_step(
    made: FuncOrProgram, step: PipelineStep, limits: DeviceLimits | None = None
) -> FuncOrProgram:
    """Return the result of one step. Raise CompilerBug if it is illegal."""
    if isinstance(made, PrimFunc) and step.scope == Scope.FUNCTION:
        return run_verified(made, step.function)
    with build_options(verify_steps=True):
        return run_step(step, made, limits)


@deep_recursion()
def run_verified(func: PrimFunc, run: Pass) -> PrimFunc:
    """Return `func` after one pass. Raise CompilerBug if the result is illegal."""
    result = run(func)
    try:
        level_of(result)
    except UserError as error:
        # If the flat level is broken, too, the CompilerBug of `verify` has the statement.
        verify(result, Level.FLAT)
        raise CompilerBug(f"{run.__name__} broke {func.name}: {error.what}") from error
    return result


def _changed_signatures(
    text: str, name: str, funcs: Sequence[PrimFunc], results: Sequence[FuncOrProgram]
) -> list[Signature]:
    """Return the signatures that do not follow from the types in `results` any more."""
    changed = []
    kept = called_signatures(text, name, funcs)
    for signature, made in zip(kept, results, strict=True):
        func = made if isinstance(made, PrimFunc) else made.host
        if signature.params != signature_of(func).params:
            changed.append(signature)
    return changed


def called_signatures(
    text: str, name: str, funcs: Sequence[PrimFunc]
) -> list[Signature]:
    """Return how each of `funcs` is called, which were read from `text`.

    A comment in the text takes precedence over the types of the arguments. Raise UserError, which
    names the text `name`, if they differ by more than lowering changes.
    """
    commented = {s.name: s for s in read_header(text, name).signatures}
    called = []
    for func in funcs:
        plain = signature_of(func)
        signature = commented.get(func.name, plain)
        if not _is_lowered(signature, plain):
            raise UserError(
                f"the comment on how {func.name} is called does not fit the function",
                where=f"{name} says {signature}",
                why=f"the function is {plain}",
                remedy="remove the line `# refcomp.signature ...`, or correct the function",
            )
        called.append(replace(signature, checks=plain.checks))
    return called


def _is_lowered(before: Signature, after: Signature) -> bool:
    """Return True if lowering may change `before` to `after`: bfloat16 becomes u16."""
    if len(before.params) != len(after.params):
        return False
    params = []
    for old, new in zip(before.params, after.params, strict=True):
        is_lowered = (old.dtype, new.dtype) == (_BF16, _U16)
        params.append(replace(old, dtype=new.dtype) if is_lowered else old)
    return replace(before, params=tuple(params), checks=after.checks) == after
