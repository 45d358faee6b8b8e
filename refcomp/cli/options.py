"""Options that several commands share, and the end of a command's help page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from shlex import quote
from typing import TYPE_CHECKING, TypeVar

import click

from refcomp.driver.backends import Target, as_target
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import did_you_mean
from refcomp.foundation.snippets import Snippet

if TYPE_CHECKING:
    _NameChoice = click.Choice[str]
    _TargetParam = click.ParamType[Target]
else:  # generic since click 8.4 only
    _NameChoice = click.Choice
    _TargetParam = click.ParamType

_Command = TypeVar("_Command", bound=Callable[..., object])


def errors_and_examples(errors: Mapping[int, str], *examples: str) -> str:
    """Return the end of a help page: when the command fails with which exit code, and examples.

    The tests run all examples. A line that ends in a backslash goes on in the next one.
    """
    # click does not wrap the lines of a paragraph that begins with \b.
    lines = ["\b", "Exit codes other than 0:"]
    for code, meaning in sorted(errors.items()):
        first, *rest = meaning.splitlines()
        lines.append(f"  {code}  {first}")
        lines += [f"     {line}" for line in rest]
    return "\n".join([*lines, "", "\b", "Examples:", *(f"  {e}" for e in examples)])


class NameChoice(_NameChoice):
    """One of several words. The refusal of another word suggests the nearest ones."""

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return `value`. Raise click.BadParameter if it is not one of the words."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            near = did_you_mean(value, self.choices)
            if not near:
                raise
            message = f"{error.message.rstrip('.')}; {near}"
            raise click.BadParameter(message, ctx, param) from error


json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the report as JSON on stdout, and errors as JSON on stderr.",
)


class _TargetType(_TargetParam):
    """The text of a target. The refusal of a wrong text marks it in the command line."""

    name = "target"

    def convert(
        self,
        value: Target | str,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Target:
        """Return the Target that `value` means."""
        try:
            return as_target(value)
        except UserError as error:
            before = f"{ctx.command_path if ctx else 'refcomp'} ... --target "
            word = quote(str(value))
            columns = len(before), len(before) + len(word)
            error.at = Snippet("command line", "", before + word, columns)
            raise


def target_option(
    meaning: str = "What to compile for", default: str | None = "llvm"
) -> Callable[[_Command], _Command]:
    """Return the decorator that adds `--target`. The command gets a Target, or None."""
    return click.option(
        "--target",
        type=_TargetType(),
        default=default,
        show_default=default is not None,
        metavar="TARGET",
        help=f"{meaning}, such as 'llvm -mcpu=x86-64-v3' or 'interp'.",
    )


def pair_of(
    convert_value: Callable[[str], float],
) -> Callable[[str], tuple[str, float]]:
    """Return a reader of NAME=VALUE.

    The reader raises UserError if `convert_value` raises ValueError.
    """

    def convert(text: str) -> tuple[str, float]:
        name, _, value = text.partition("=")
        try:
            return name, convert_value(value)
        except ValueError as error:
            kind = "an integer" if convert_value is int else "a number"
            raise UserError(
                f"{text!r} is not NAME=VALUE with {kind} behind the =",
                remedy="write it without spaces, such as n=100",
            ) from error

    return convert


def number_of(text: str) -> int | float:
    """Return the number that `text` spells. Raise ValueError if it does not spell one."""
    try:
        # A float would round integers beyond 2**53.
        return int(text)
    except ValueError:
        return float(text)


symbol_option = click.option(
    "--symbol",
    "symbols",
    type=pair_of(int),
    multiple=True,
    metavar="NAME=SIZE",
    help="The size of a symbolic dimension, in elements. By default it follows from the arrays "
    "that are given, and is 1 if they do not determine it. May be repeated.",
)
fill_mode_option = click.option(
    "--fill-mode",
    type=NameChoice(["random", "zeros", "ones"]),
    default="random",
    show_default=True,
    help="How to fill inputs that the .npz file does not have. Random floats are in [-1, 1), "
    "random integers in [0, 16).",
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="SEED",
    help="The seed of random inputs.",
)
inputs_option = click.option(
    "-i",
    "--inputs",
    metavar="NPZ",
    help="An .npz file with the inputs by name. Inputs that it does not have are filled.",
)
output_option = click.option(
    "-o",
    "--output",
    default="-",
    show_default=True,
    metavar="FILE",
    help="The file to write to; - is stdout.",
)
outputs_option = click.option(
    "-o", "--outputs", metavar="NPZ", help="The .npz file to write the outputs to."
)
