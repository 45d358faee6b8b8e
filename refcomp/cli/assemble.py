"""`refcomp assemble`: compiles LLVM IR text of `refcomp print` to machine code."""

from __future__ import annotations

import click

from refcomp import toolchain
from refcomp.cli.headers import Header, check_header, read_header
from refcomp.cli.options import (
    NameChoice,
    errors_and_examples,
    json_option,
    output_option,
)
from refcomp.cli.outcomes import ILLEGAL, NO_TOOLCHAIN
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
from refcomp.foundation.target import foreign_triple
from refcomp.runtime.module import Module


@click.command(
    "assemble",
    epilog=errors_and_examples(
        {
            NO_TOOLCHAIN: "an LLVM tool is missing, or refuses the text",
            ILLEGAL: "the first lines are missing, or do not fit the functions;\n"
            "or the result would go to a terminal",
        },
        "refcomp assemble matmul.ll -o matmul.module",
        "refcomp assemble matmul.ll --format asm",
    ),
)
@click.argument("file", default="-")
@output_option
@click.option(
    "--format",
    "form",
    type=NameChoice(["module", "so", "asm"]),
    default="module",
    show_default=True,
    help="module: a module file, which `refcomp execute` and `refcomp.load_module` load; so: the "
    "bare shared object; asm: assembly text.",
)
@json_option
def command(file: str, output: str, form: str, as_json: bool) -> None:
    """Compile LLVM IR of `refcomp print` to machine code.

    FILE is LLVM IR text; - (the default) is stdin. Its first lines name the target, and how each
    function is called. These lines are checked against the functions. They contain all options, so
    that none has to be repeated here.

    With --json, the report lists format, size in bytes, file and functions. It needs -o.
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
        made = _assemble(text, header, form)
    if form == "asm":
        write_text(made.decode(), output, "gas")
    else:
        write_bytes(made, output)
    if as_json:
        names = [signature.name for signature in header.signatures]
        write_json(
            {"format": form, "bytes": len(made), "file": output, "functions": names}
        )


def _assemble(text: str, header: Header, form: str) -> bytes:
    triple = foreign_triple(header.target)
    if triple and form != "asm":
        raise UserError(
            f"{header.target} names another machine, whose linker and libraries are not here",
            remedy=f"use --format asm, and link the text there, such as by {triple}-gcc",
        )
    source = Source(text, "llvm", requires=header.requires)
    options = toolchain.llvm_options(header.target)
    binary = toolchain.compile_source(source, options, "asm" if form == "asm" else "so")
    if form != "module":
        return binary.data
    module = Module.from_binary(
        binary, header.signatures, target=str(header.target), sources={"llvm": text}
    )
    # `save` writes a file by its name, and the output may be a pipe.
    with private_folder() as folder:
        path = folder / "module"
        module.save(path)
        return path.read_bytes()
