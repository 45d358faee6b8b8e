"""`refcomp operators`: lists the operators of topi, or shows the manual page of one."""

from __future__ import annotations

from dataclasses import asdict

import click

from refcomp.cli.options import errors_and_examples, json_option
from refcomp.cli.outcomes import ILLEGAL
from refcomp.cli.streams import write_json, write_text
from refcomp.topi.inventory import inventory, page_of, to_markdown


@click.command(
    "operators",
    epilog=errors_and_examples(
        {ILLEGAL: "the operator is unknown"},
        "refcomp operators",
        "refcomp operators softmax",
        "refcomp operators --json",
    ),
)
@click.argument("name", metavar="[NAME]", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """List the operators, or show the manual page of one.

    With NAME, its page is shown. The list is a Markdown page: a table for each family, with inputs,
    attributes and the meaning.
    The JSON is a list of objects with the fields name, family, inputs, attributes and summary.
    """
    entries = inventory()
    if name is not None:
        page = page_of(name)
        entries = [entry for entry in entries if entry.name == name]
        if not as_json:
            write_text(f"{page}\n")
            return
    if as_json:
        write_json([asdict(entry) for entry in entries])
    else:
        write_text(to_markdown(entries))
