"""The group of commands: which there are, how one is loaded, and what happens when one fails.

A command's module is imported when the command is called: `refcomp --help` reads only the table
below. Failures end with the exit codes of outcomes.py, told in text or, under --json, in JSON on
stderr; a reader that closes the pipe ends a command quietly.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper, UnsupportedOperation
from typing import Any

import click

from refcomp import __version__
from refcomp.cli.outcomes import (
    FINE,
    INTERRUPTED,
    MEANINGS,
    error_to_json,
    error_to_text,
    exit_code,
    is_of_the_machine,
    printable,
    usage_to_json,
)

# Name of the command: its module (in refcomp.cli, with a function `command`), and its first line.
COMMANDS = {
    "doctor": ("doctor", "Tell which tools were found and which targets work."),
    "run": ("run", "Run an ONNX model."),
    "show": ("show", "Show every stage of a computation."),
    "lower": ("lower", "Lower a Python program or an ONNX model to loop-IR text."),
    "check": ("check", "Check loop-IR text: syntax, names, types, level, ranges."),
    "pass": ("passes", "Run passes over loop-IR text."),
    "certify": (
        "certify",
        "Compare a program's schedules with what they compute, exactly.",
    ),
    "judge": ("judge", "Judge arrays that another backend computed."),
    "mutate": ("mutate", "See which comparisons notice wrong code."),
    "print": ("print", "Print loop-IR text as LLVM IR."),
    "assemble": (
        "assemble",
        "Make machine code of LLVM IR that `refcomp print` wrote.",
    ),
    "execute": (
        "execute",
        "Run a compiled module, or loop-IR text by the interpreter.",
    ),
    "emulate": ("emulate", "Run a kernel of an AMD code object without a GPU."),
}
JSON_ASKED = "refcomp.cli.json"

_EPILOG = "\n".join(
    [
        "\b",
        "Each stage reads and writes text, so that stages chain:",
        "  refcomp lower matmul.py | refcomp pass --all | refcomp print",
        "    | refcomp assemble | refcomp execute",
        "",
        "\b",
        "Exit codes:",
        *(f"  {code:>3}  {meaning}" for code, meaning in MEANINGS.items()),
    ]
)


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported; None when there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(
            f"refcomp.cli.{COMMANDS[cmd_name][0]}"
        ).command
        return command

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """The list of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Which command is meant. Whether JSON is wanted must be known before its words are read:
        one of them may be wrong."""
        ours = args[: args.index("--")] if "--" in args else args
        ctx.meta[JSON_ASKED] = "--json" in ours
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            told = f"{error.message.rstrip('.')}; options of a command stand behind its name"
            raise click.NoSuchOption(
                error.option_name, told, error.possibilities, ctx
            ) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; its failures become exit codes."""
        if isinstance(sys.stdout, TextIOWrapper):
            # Names may hold any character.
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            super().invoke(ctx)
            sys.stdout.flush()
        except (click.exceptions.Exit, click.Abort):
            raise
        except click.ClickException as error:
            if not ctx.meta[JSON_ASKED]:
                raise
            click.echo(json.dumps(usage_to_json(error)), err=True)
            ctx.exit(error.exit_code)
        except BrokenPipeError:
            _close_stdout()
            ctx.exit(FINE)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)
        except Exception as error:
            _tell(ctx, error)
            if is_of_the_machine(error):
                _close_stdout()
            ctx.exit(exit_code(error))


def _close_stdout() -> None:
    """Point stdout at nothing: Python flushes it at its end, which would fail again."""
    with suppress(UnsupportedOperation, OSError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)


def _tell(ctx: click.Context, error: Exception) -> None:
    if ctx.params.get("show_traceback"):
        click.echo(printable("".join(traceback.format_exception(error))), err=True)
    told = (
        json.dumps(error_to_json(error))
        if ctx.meta[JSON_ASKED]
        else error_to_text(error)
    )
    click.echo(told, err=True)


@click.group(
    cls=LazyGroup,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="refcomp")
@click.option(
    "--traceback",
    "show_traceback",
    is_flag=True,
    help="Show where in refcomp an error arose.",
)
def main(show_traceback: bool) -> None:
    """A small tensor compiler: each stage of it is a command."""
