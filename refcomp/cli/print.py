"""`refcomp print`: loop-IR text to LLVM IR text, with the signatures that `assemble` needs."""

from __future__ import annotations

from dataclasses import replace

import click

from refcomp.cli.headers import with_header
from refcomp.cli.levels import steps_left
from refcomp.cli.options import examples, json_option, target_option
from refcomp.cli.passes import called_signatures, run_verified
from refcomp.cli.streams import name_of, read_text, write_json, write_text
from refcomp.cli.texts import text_to_checked_funcs
from refcomp.codegen.signature import checks_of
from refcomp.driver.compile import printer_of
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.foundation.target import Target
from refcomp.ir.func import PrimFunc


@click.command(
    "print", epilog=examples("refcomp print --all-passes matmul.ir -o matmul.ll")
)
@click.argument("file", default="-")
@click.option(
    "-o", "--output", default="-", metavar="FILE", help="Where the text goes."
)
@click.option(
    "--all-passes", is_flag=True, help="First run the passes that are missing."
)
@target_option()
@json_option
def command(
    file: str, output: str, all_passes: bool, target: Target, as_json: bool
) -> None:
    """Print loop-IR text as LLVM IR.

    Prints what it is given: text that has not been through all passes is refused, unless
    --all-passes is given. FILE is - (stdin) by default. The comment lines on top tell `refcomp
    assemble` how each function is called.
    """
    print_text = printer_of(target)
    text = read_text(file)
    funcs = text_to_checked_funcs(text, file)
    signatures = called_signatures(text, name_of(file), funcs)
    ready = [_ready(func, target, all_passes) for func in funcs]
    signatures = [
        replace(signature, checks=checks_of(func))
        for signature, func in zip(signatures, ready, strict=True)
    ]
    source = print_text(ready, target)
    if source.language != "llvm":
        raise Unsupported(
            f"the target {target.kind} prints {source.language}, and not LLVM IR",
            why="`refcomp assemble` reads LLVM IR alone, with comment lines of its own",
            remedy="`refcomp show` shows the text",
        )
    printed = with_header(source, target, signatures)
    if as_json:
        listed = [signature.to_json() for signature in signatures]
        report = {"language": source.language, "signatures": listed, "text": printed}
        write_json(report, output)
    else:
        write_text(printed, output, "llvm")


def _ready(func: PrimFunc, target: Target, all_passes: bool) -> PrimFunc:
    missing = steps_left(func, target.kind)
    if missing and not all_passes:
        raise UserError(
            f"{func.name} is not ready to be printed for {target.kind}",
            why=f"these passes are missing: {', '.join(step.name for step in missing)}",
            remedy="run them by `refcomp pass --all`, or give --all-passes",
        )
    for step in missing:
        func = run_verified(func, step.function)
    return func
