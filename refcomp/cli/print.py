"""`refcomp print`: prints loop-IR text as LLVM IR, with the signatures that `assemble` needs."""

from __future__ import annotations

from dataclasses import replace

import click

from refcomp.cli.headers import with_header
from refcomp.cli.levels import steps_left
from refcomp.cli.options import (
    errors_and_examples,
    json_option,
    output_option,
    target_option,
)
from refcomp.cli.outcomes import ILLEGAL, UNSUPPORTED
from refcomp.cli.passes import called_signatures, run_verified
from refcomp.cli.streams import name_of, read_text, write_json, write_text
from refcomp.cli.texts import text_to_checked_funcs
from refcomp.codegen.signature import checks_of
from refcomp.driver.compile import printer_of
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.foundation.target import Target


@click.command(
    "print",
    epilog=errors_and_examples(
        {
            ILLEGAL: "the text is illegal, or passes are missing",
            UNSUPPORTED: "the target is not printed as LLVM IR",
        },
        "refcomp print --all-passes matmul.ir -o matmul.ll",
        "refcomp print --all-passes matmul.ir --target 'llvm -mcpu=x86-64-v3'",
    ),
)
@click.argument("file", default="-")
@output_option
@click.option(
    "--all-passes", is_flag=True, help="Run the passes that are missing first."
)
@target_option()
@json_option
def command(
    file: str, output: str, all_passes: bool, target: Target, as_json: bool
) -> None:
    """Print loop-IR text as LLVM IR.

    FILE is loop-IR text; - (the default) is stdin. It must have been through all passes of the
    target, unless --all-passes is given. Comment lines on top say for `refcomp assemble` how each
    function is called.
    """
    print_text = printer_of(target)
    text = read_text(file)
    funcs = text_to_checked_funcs(text, file)
    signatures = called_signatures(text, name_of(file), funcs)
    ready = []
    for func in funcs:
        missing = steps_left(func, target.kind)
        if missing and not all_passes:
            names = ", ".join(step.name for step in missing)
            raise UserError(
                f"{func.name} is not ready to be printed for {target.kind}",
                why=f"these passes are missing: {names}",
                remedy="run them by `refcomp pass --all`, or give --all-passes",
            )
        for step in missing:
            func = run_verified(func, step.function)
        ready.append(func)
    # The passes may have inserted bounds checks, which change how a function is called.
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
