"""Options that several commands have, as click decorators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from refcomp.driver.backends import as_target
from refcomp.foundation.errors import UserError

_Command = TypeVar("_Command", bound=Callable[..., Any])


def examples(*lines: str) -> str:
    """What stands at the end of a command's help."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Report in JSON; errors too, on stderr."
)


def target_option(
    meaning: str = "What to compile for", default: str | None = "llvm"
) -> Callable[[_Command], _Command]:
    """--target, read to a Target; None where no default is wanted and none is given."""
    return click.option(
        "--target",
        type=as_target,
        default=default,
        show_default=default is not None,
        metavar="TARGET",
        help=f"{meaning}, such as 'llvm -mcpu=x86-64-v3' or 'interp'.",
    )


def pair_of(
    convert_value: Callable[[str], float],
) -> Callable[[str], tuple[str, float]]:
    """What reads NAME=VALUE; UserError when the value is not what `convert_value` takes."""

    def convert(text: str) -> tuple[str, float]:
        name, _, value = text.partition("=")
        try:
            return name, convert_value(value)
        except ValueError as error:
            kind = "an integer" if convert_value is int else "a number"
            raise UserError(
                f"{text!r} is not NAME=VALUE with {kind} behind the ="
            ) from error

    return convert


def number_of(text: str) -> int | float:
    """The number that `text` spells: whole ones exactly. ValueError when it spells none."""
    try:
        return int(text)
    except ValueError:
        return float(text)


symbol_option = click.option(
    "--symbol",
    "symbols",
    type=pair_of(int),
    multiple=True,
    metavar="NAME=SIZE",
    help="The size of a symbolic dimension; else it follows from given arrays, else it is 1.",
)
fill_mode_option = click.option(
    "--fill-mode",
    type=click.Choice(["random", "zeros", "ones"]),
    default="random",
    show_default=True,
    help="What inputs hold that are not in the .npz file.",
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="For random inputs.",
)
inputs_option = click.option("-i", "--inputs", metavar="NPZ", help="Inputs by name.")
outputs_option = click.option(
    "-o", "--outputs", metavar="NPZ", help="Where outputs go, by name."
)
