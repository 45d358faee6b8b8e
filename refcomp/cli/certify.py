"""`refcomp certify`: whether schedules and passes left the results of a program alone."""

from __future__ import annotations

from typing import Any

import click

from refcomp.certificates import Certificate, certify
from refcomp.cli.options import examples, json_option
from refcomp.cli.outcomes import FAILED
from refcomp.cli.programs import LoweredFunction, load_program
from refcomp.cli.streams import write_json
from refcomp.foundation.errors import UserError


@click.command(
    "certify", epilog=examples("refcomp certify matmul.py:matmul --every-step")
)
@click.argument("program", metavar="SCRIPT.py[:NAME]")
@click.option(
    "--every-step", is_flag=True, help="Compare after each primitive and each pass."
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Of the random inputs."
)
@json_option
@click.pass_context
def command(
    context: click.Context, program: str, every_step: bool, seed: int, as_json: bool
) -> None:
    """Compare a program's schedules with what they compute, exactly.

    Its function NAME (default: computation) returns (schedule, [arguments]) or a list of such. The
    scheduled program and what all passes make of it are interpreted on small sizes, and compared
    with the tensor expressions: exactly on elements of a field, within error bounds on floats.
    Where they differ, the first guilty step is named. The report says how many programs were
    compared, on which sizes and data. It counts the accesses that are proved to be in range, those
    that are checked at entry, and those that depend on data. REFCOMP_CERTIFY=1 does so in each
    build, in a line on stderr.
    """
    found = [
        _certify(piece, every_step, seed) for piece in load_program(program).pieces
    ]
    if as_json:
        write_json([_to_json(certificate) for certificate in found])
    else:
        click.echo("\n".join(certificate.report() for certificate in found))
    if not all(certificate.holds for certificate in found):
        context.exit(FAILED)


def _certify(piece: LoweredFunction, every_step: bool, seed: int) -> Certificate:
    if piece.schedule is None:
        raise UserError(
            f"{piece.func.name} cannot be certified",
            why="it has no schedule, and so nothing to be compared with",
            remedy="return (schedule, [arguments])",
        )
    name = piece.func.name
    return certify(
        piece.schedule, piece.args, name=name, every_step=every_step, seed=seed
    )


def _to_json(certificate: Certificate) -> dict[str, Any]:
    return {
        "name": certificate.name,
        "holds": certificate.holds,
        "guilty": certificate.guilty or None,
        "difference": str(certificate.difference) if certificate.difference else None,
        "sizes": dict(certificate.sizes),
        "compared": list(certificate.compared),
        "trials": [trial.to_json() for trial in certificate.trials],
        "steps": certificate.steps,
        "passes": list(certificate.passes),
        "bounds": certificate.bounds.to_json() if certificate.bounds else None,
    }
