"""`refcomp check`: syntax, names, types, level and ranges of loop-IR text."""

from __future__ import annotations

from typing import Any

import click

from refcomp.cli.levels import check_level, level_of
from refcomp.cli.options import examples, json_option
from refcomp.cli.streams import read_text, write_json
from refcomp.cli.texts import text_to_checked_funcs
from refcomp.ir.func import PrimFunc
from refcomp.ir.printer import print_expr
from refcomp.ir.verify import LEVELS


@click.command("check", epilog=examples("refcomp check matmul.ir --level nested"))
@click.argument("file", default="-")
@click.option(
    "--level", type=click.Choice(LEVELS), help="The level it must be legal at."
)
@json_option
def command(file: str, level: str | None, as_json: bool) -> None:
    """Check loop-IR text: syntax, names, types, level, ranges.

    FILE is - (stdin) by default. Without --level, any level will do, and is printed. An access that
    leaves its buffer whatever the sizes are is refused. What a call must fulfil, so that none does,
    is printed after `requires`.
    """
    report = [
        _check(func, level) for func in text_to_checked_funcs(read_text(file), file)
    ]
    if as_json:
        write_json(report)
        return
    for entry in report:
        click.echo(f"{entry['name']}: legal at level {entry['level']}")
        for condition in entry["requires"]:
            click.echo(f"  requires {condition}")


def _check(func: PrimFunc, level: str | None) -> dict[str, Any]:
    if level is not None:
        check_level(func, level)
    found = level_of(func) if level is None else level
    conditions = [print_expr(requirement.condition) for requirement in func.requires]
    return {"name": func.name, "level": found, "requires": conditions}
