"""`refcomp lower`: lowers a Python program or an ONNX model to loop-IR text."""

from __future__ import annotations

import click

from refcomp.cli.options import errors_and_examples, json_option, output_option
from refcomp.cli.outcomes import ILLEGAL, UNSUPPORTED
from refcomp.cli.programs import load_program
from refcomp.cli.streams import write_json, write_text
from refcomp.codegen.signature import signature_of
from refcomp.ir.printer import print_func, print_funcs


@click.command(
    "lower",
    epilog=errors_and_examples(
        {
            ILLEGAL: "the program or the model cannot be read, fails, or is illegal",
            UNSUPPORTED: "the model has an operator that refcomp does not know",
        },
        "refcomp lower double.py",
        "refcomp lower matmul.py:matmul -o matmul.ir",
    ),
)
@click.argument("program", metavar="SCRIPT.py[:NAME]|MODEL.onnx")
@output_option
@json_option
def command(program: str, output: str, as_json: bool) -> None:
    """Lower a Python program or an ONNX model to loop-IR text.

    SCRIPT.py is run with your rights, and then its function NAME (default: computation) is called.
    It returns (schedule, [arguments]), a PrimFunc, or a list of such. Its own output goes to
    stderr. MODEL.onnx is optimized first, and then all its kernels are lowered.

    \b
    A whole program, double.py:
        import refcomp as rc
        def computation():
            A = rc.placeholder((8,), "float32", "A")
            B = rc.compute(A.shape, lambda i: A[i] + A[i], "B")
            return rc.create_schedule(B), [A, B]

    With --json, the report lists name, signature, schedule and loop IR of each function.
    """
    pieces = load_program(program).pieces
    if not as_json:
        write_text(print_funcs(piece.func for piece in pieces), output, "python")
        return
    report = []
    for piece in pieces:
        steps = piece.schedule.steps if piece.schedule else None
        entry = {
            "name": piece.func.name,
            "signature": signature_of(piece.func).to_json(),
            "schedule": None if steps is None else [str(step) for step in steps],
            "loop_ir": print_func(piece.func),
        }
        report.append(entry)
    write_json(report, output)
