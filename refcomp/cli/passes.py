"""`refcomp pass`: passes over loop-IR text, one after the other.

Each result is verified. Where a pass changes the types of arguments, the text that comes out tells
in a comment how the function is called, so that later commands know.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import click

from refcomp.cli.headers import read_header, signature_lines
from refcomp.cli.levels import level_of, steps_left
from refcomp.cli.options import examples, json_option, target_option
from refcomp.cli.streams import name_of, read_text, write_json, write_text
from refcomp.cli.texts import text_to_checked_funcs
from refcomp.codegen.signature import signature_of
from refcomp.driver.backends import backend_of
from refcomp.driver.backends.loading import device_limits
from refcomp.driver.pipeline import find_pass, steps_for
from refcomp.driver.steps import Made, Pass, PipelineStep, Scope, print_made, run_step
from refcomp.foundation.artifacts import Signature
from refcomp.foundation.dtype import as_dtype
from refcomp.foundation.errors import CompilerBug, UserError
from refcomp.foundation.python_limits import deep_recursion
from refcomp.foundation.target import DeviceLimits, Target
from refcomp.ir.func import PrimFunc
from refcomp.ir.verify import verify

_BF16 = as_dtype("bfloat16")
_U16 = as_dtype("uint16")


@click.command(
    "pass",
    epilog=examples(
        "refcomp pass --all -i matmul.ir -o passed.ir", "refcomp pass --list"
    ),
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "-i", "--input", "file", default="-", metavar="FILE", help="Where the text is from."
)
@click.option(
    "-o", "--output", default="-", metavar="FILE", help="Where the text goes."
)
@click.option(
    "--all", "run_all", is_flag=True, help="All that the target has still to run."
)
@click.option(
    "--list", "list_only", is_flag=True, help="Only tell the passes of the target."
)
@target_option("Whose passes are meant by --all and --list")
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

    Reads stdin and writes stdout; of several functions in the text, each goes through the passes.
    """
    if list_only:
        _write_list(target, as_json)
        return
    if run_all == bool(names):
        raise click.UsageError(
            "give either names of passes or --all; --list tells the names"
        )
    chosen = [find_pass(name) for name in names]
    text = read_text(file)
    funcs = text_to_checked_funcs(text, file)
    results = [
        _run(func, chosen) if names else _run_all(func, target) for func in funcs
    ]
    signatures = changed_signatures(text, name_of(file), funcs, results)
    if as_json:
        pairs = zip(funcs, results, strict=True)
        write_json(
            [{"name": f.name, "loop_ir": print_made([made])} for f, made in pairs],
            output,
        )
    else:
        write_text(
            signature_lines(signatures, "#") + print_made(results), output, "python"
        )


def _write_list(target: Target, as_json: bool) -> None:
    steps = steps_for(target.kind)
    if as_json:
        keys = ("name", "scope", "level", "reason")
        write_json([{key: str(getattr(step, key)) for key in keys} for step in steps])
        return
    for step in steps:
        click.echo(f"{step.name:22} {step.scope:8} -> {step.level:7} {step.reason}")


def _run_all(func: PrimFunc, target: Target) -> Made:
    """Run all steps that are left."""
    made: Made = func
    limits = device_limits(target) if backend_of(target).has_kernels else None
    for step in steps_left(func, target.kind):
        made = run_verified_step(made, step, limits)
    return made


def _run(func: PrimFunc, chosen: Sequence[Pass]) -> PrimFunc:
    level_of(func)  # refuses an illegal text before a pass meets it
    for run in chosen:
        func = run_verified(func, run)
    return func


def run_verified_step(
    made: Made, step: PipelineStep, limits: DeviceLimits | None = None
) -> Made:
    """Run one step. CompilerBug when that made something illegal."""
    if isinstance(made, PrimFunc) and step.scope == Scope.FUNCTION:
        return run_verified(made, step.function)
    return run_step(step, made, limits)


@deep_recursion()
def run_verified(func: PrimFunc, run: Pass) -> PrimFunc:
    """`func` after one pass. CompilerBug when that made something illegal of it."""
    result = run(func)
    try:
        level_of(result)
    except UserError as error:
        verify(result, "flat")
        raise CompilerBug(f"{run.__name__} broke {func.name}: {error.what}") from error
    return result


def changed_signatures(
    text: str, name: str, funcs: Sequence[PrimFunc], results: Sequence[Made]
) -> list[Signature]:
    """How functions are called that the types of their arguments do not tell any more."""
    kept = called_signatures(text, name, funcs)
    now = [
        signature_of(made if isinstance(made, PrimFunc) else made.host)
        for made in results
    ]
    return [old for old, new in zip(kept, now, strict=True) if old.params != new.params]


def called_signatures(
    text: str, name: str, funcs: Sequence[PrimFunc]
) -> list[Signature]:
    """How each of `funcs`, which were read from `text`, is called. UserError when `text` tells it
    otherwise than by the types that lowering changes."""
    told = {
        signature.name: signature for signature in read_header(text, name).signatures
    }
    plain = [signature_of(func) for func in funcs]
    for signature in plain:
        if not _is_lowered(told.get(signature.name, signature), signature):
            raise UserError(
                f"the comment on how {signature.name} is called does not fit the function",
                where=f"{name} says {told[signature.name]}",
                why=f"the function is {signature}",
                remedy="remove the line `# refcomp.signature ...`, or mend the function",
            )
    return [
        replace(told.get(signature.name, signature), checks=signature.checks)
        for signature in plain
    ]


def _is_lowered(before: Signature, after: Signature) -> bool:
    """Whether lowering may have made one signature of the other: bfloat16 becomes u16."""
    if len(before.params) != len(after.params):
        return False
    pairs = zip(before.params, after.params, strict=True)
    params = tuple(
        replace(old, dtype=new.dtype)
        if (old.dtype, new.dtype) == (_BF16, _U16)
        else old
        for old, new in pairs
    )
    return replace(before, params=params, checks=after.checks) == after
