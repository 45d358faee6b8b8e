"""`refcomp assemble`: LLVM IR text, as `refcomp print` writes it, to machine code."""

from __future__ import annotations

import click

from refcomp import toolchain
from refcomp.cli.headers import Header, check_header, read_header
from refcomp.cli.options import examples, json_option
from refcomp.cli.streams import (
    STANDARD,
    name_of,
    progress,
    read_text,
    refuse_terminal,
    write_bytes,
    write_json,
    write_text,
)
from refcomp.foundation.artifacts import Source
from refcomp.foundation.errors import UserError
from refcomp.foundation.private_folder import private_folder
from refcomp.runtime.module import Module


@click.command(
    "assemble",
    epilog=examples(
        "refcomp assemble matmul.ll -o matmul.module",
        "refcomp assemble matmul.ll --format asm",
    ),
)
@click.argument("file", default="-")
@click.option(
    "-o", "--output", default="-", metavar="FILE", help="Where the result goes."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["module", "so", "asm"]),
    default="module",
    show_default=True,
    help="A module file, a bare shared object, or assembly text.",
)
@json_option
def command(file: str, output: str, form: str, as_json: bool) -> None:
    """Make machine code of LLVM IR that `refcomp print` wrote.

    FILE is - (stdin) by default. The target and the signatures stand in the text's first lines,
    and are checked against the functions. --json reports what was made, and needs -o.
    """
    if as_json and output == STANDARD:
        raise UserError(
            "--json and the result would both go to stdout", remedy="give -o FILE"
        )
    if form != "asm":
        refuse_terminal(
            output, "give -o FILE, or send stdout to a file or to `refcomp execute`"
        )
    text = read_text(file)
    header = read_header(text, name_of(file))
    check_header(header, text, name_of(file))
    with progress("assembling"):
        made = _make(text, header, form)
    if form == "asm":
        write_text(made.decode(), output, "gas")
    else:
        write_bytes(made, output)
    if as_json:
        names = [signature.name for signature in header.signatures]
        write_json(
            {"format": form, "bytes": len(made), "file": output, "functions": names}
        )


def _make(text: str, header: Header, form: str) -> bytes:
    source = Source(text, "llvm", requires=header.requires)
    options = dict(header.target.options)
    binary = toolchain.compile_source(source, options, "asm" if form == "asm" else "so")
    if form != "module":
        return binary.data
    module = Module.from_binary(
        binary, header.signatures, target=str(header.target), sources={"llvm": text}
    )
    with private_folder() as folder:
        path = folder / "module"
        module.save(path)
        return path.read_bytes()
