"""`refcomp lower`: a Python program or an ONNX model to loop-IR text."""

from __future__ import annotations

from typing import Any

import click

from refcomp.cli.options import examples, json_option
from refcomp.cli.programs import LoweredFunction, load_program
from refcomp.cli.streams import write_json, write_text
from refcomp.codegen.signature import signature_of
from refcomp.ir.printer import print_func, print_funcs


@click.command("lower", epilog=examples("refcomp lower matmul.py:matmul -o matmul.ir"))
@click.argument("program", metavar="SCRIPT.py[:NAME]|MODEL.onnx")
@click.option(
    "-o", "--output", default="-", metavar="FILE", help="Where the text goes."
)
@json_option
def command(program: str, output: str, as_json: bool) -> None:
    """Lower a Python program or an ONNX model to loop-IR text.

    The Python program is run, as your own; then its function NAME (default: computation) is
    called. It returns (schedule, [arguments]), a PrimFunc, or a list of such. What it prints goes
    to stderr. Of a model, all kernels are lowered.
    """
    pieces = load_program(program).pieces
    if as_json:
        write_json([_to_json(piece) for piece in pieces], output)
    else:
        write_text(print_funcs(piece.func for piece in pieces), output, "python")


def _to_json(piece: LoweredFunction) -> dict[str, Any]:
    return {
        "name": piece.func.name,
        "signature": signature_of(piece.func).to_json(),
        "schedule": [str(step) for step in piece.schedule.steps]
        if piece.schedule
        else None,
        "loop_ir": print_func(piece.func),
    }
