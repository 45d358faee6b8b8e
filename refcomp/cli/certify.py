"""`refcomp certify`: checks that schedules and passes kept the results of a program."""

from __future__ import annotations

import click

from refcomp.certificates import Certificate, certify
from refcomp.cli.options import errors_and_examples, json_option
from refcomp.cli.outcomes import FAILED, ILLEGAL
from refcomp.cli.programs import load_program
from refcomp.cli.streams import write_json
from refcomp.foundation.errors import UserError


@click.command(
    "certify",
    epilog=errors_and_examples(
        {
            FAILED: "a step changed the results",
            ILLEGAL: "the program fails, or returns something without a schedule",
        },
        "refcomp certify matmul.py:matmul",
        "refcomp certify double.py --every-step",
    ),
)
@click.argument("program", metavar="SCRIPT.py[:NAME]")
@click.option(
    "--every-step",
    is_flag=True,
    help="Compare after each primitive and each pass, not only at the end.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    metavar="SEED",
    help="The seed of the random inputs.",
)
@json_option
@click.pass_context
def command(
    context: click.Context, program: str, every_step: bool, seed: int, as_json: bool
) -> None:
    """Compare a scheduled program with its definition, exactly.

    SCRIPT.py is run, and then its function NAME (default: computation) is called. It returns
    (schedule, [arguments]), or a list of such.

    An interpreter runs the scheduled program, and what all passes make of it, on small sizes. The
    results are compared with the tensor expressions: exactly on elements of a finite field, within
    error bounds on floats. If they differ, the report names the first step that changed them.

    The report says how many programs were compared, on which sizes and data. It counts the accesses
    that are proved to be in range, those that each call checks at entry, and those that depend on
    data. With REFCOMP_CERTIFY=1 in the environment, each build does the same and prints a line on
    stderr.
    """
    found = []
    for piece in load_program(program).pieces:
        name = piece.func.name
        if piece.schedule is None:
            raise UserError(
                f"{name} cannot be certified",
                why="it has no schedule, and so nothing to be compared with",
                remedy="return (schedule, [arguments])",
            )
        certificate = certify(
            piece.schedule, piece.args, name=name, every_step=every_step, seed=seed
        )
        found.append(certificate)
    if as_json:
        write_json([_to_json(certificate) for certificate in found])
    else:
        click.echo("\n".join(certificate.report() for certificate in found))
    if not all(certificate.holds for certificate in found):
        context.exit(FAILED)


def _to_json(certificate: Certificate) -> dict[str, object]:
    return {
        "name": certificate.name,
        "holds": certificate.holds,
        "guilty": certificate.guilty or None,  # the first step that changed results
        "difference": str(certificate.difference) if certificate.difference else None,
        "sizes": dict(certificate.sizes),  # symbol -> its size in the failed trial
        "compared": list(certificate.compared),  # programs, once for each trial
        "trials": [trial.to_json() for trial in certificate.trials],
        "steps": certificate.steps,
        "passes": list(certificate.passes),
        "bounds": certificate.bounds.to_json() if certificate.bounds else None,
        "notes": list(certificate.notes),
    }
