"""`refcomp check`: checks syntax, names, types, level and ranges of loop-IR text."""

from __future__ import annotations

from typing import TypedDict

import click

from refcomp.cli.levels import check_level, level_of
from refcomp.cli.options import NameChoice, errors_and_examples, json_option
from refcomp.cli.outcomes import ILLEGAL
from refcomp.cli.streams import read_text, write_json
from refcomp.cli.texts import text_to_checked_funcs
from refcomp.ir.printer import print_requirement
from refcomp.ir.verify import Level


class CheckedFunction(TypedDict):
    """The report on one function, as JSON."""

    name: str
    level: str
    # Conditions on the arguments of a call, so that no access leaves a buffer.
    requires: list[str]


@click.command(
    "check",
    epilog=errors_and_examples(
        {
            ILLEGAL: "the text does not parse, a function is not legal at the level,\n"
            "or an access leaves its buffer for all sizes"
        },
        "refcomp check matmul.ir",
        "refcomp check matmul.ir --level nested",
    ),
)
@click.argument("file", default="-")
@click.option(
    "--level",
    type=NameChoice(list(map(str, Level))),
    help="The level at which each function must be legal. By default any level will do.",
)
@json_option
def command(file: str, level: str | None, as_json: bool) -> None:
    """Check loop-IR text: syntax, names, types, level, ranges.

    FILE is loop-IR text; - (the default) is stdin. `refcomp lower` writes such text.

    Prints the level of each function. An access that leaves its buffer for all sizes is refused. If
    it leaves the buffer for some sizes, a line `requires CONDITION` says what each call must
    fulfil.
    """
    report: list[CheckedFunction] = []
    for func in text_to_checked_funcs(read_text(file), file):
        if level is not None:
            check_level(func, level)
        found = level or level_of(func)
        requires = [print_requirement(one) for one in func.requires]
        report.append({"name": func.name, "level": found, "requires": requires})
    if as_json:
        write_json(report)
        return
    for entry in report:
        click.echo(f"{entry['name']}: legal at level {entry['level']}")
        for condition in entry["requires"]:
            click.echo(f"  requires {condition}")
