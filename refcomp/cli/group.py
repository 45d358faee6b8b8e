"""The group of commands: finds and loads a command, and reports its failure.

The module of a command is imported when the command is called: `refcomp --help` reads only the
table below. A failure ends with an exit code of outcomes.py. Its message goes to stderr, as text
or, under --json, as JSON. If the reader of a pipe closes it, the command ends quietly.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper, UnsupportedOperation

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
from refcomp.foundation.near_misses import did_you_mean

# Name of the command: its module (in refcomp.cli, with a function `command`), and its first line.
COMMANDS = {
    "doctor": ("doctor", "List the tools that are found and the targets that work."),
    "operators": ("operators", "List the operators, or show the manual page of one."),
    "cache": ("cache", "List or delete what the cache holds."),
    "run": ("run", "Run an ONNX model."),
    "show": ("show", "Show every stage of a computation."),
    "lower": ("lower", "Lower a Python program or an ONNX model to loop-IR text."),
    "check": ("check", "Check loop-IR text: syntax, names, types, level, ranges."),
    "pass": ("passes", "Run passes over loop-IR text."),
    "certify": ("certify", "Compare a scheduled program with its definition, exactly."),
    "judge": ("judge", "Judge arrays that another backend computed."),
    "debug": ("debug", "Name the first node of a model whose output leaves its bound."),
    "profile": (
        "profile_model",
        "Measure the nodes of a model beside the machine's peaks.",
    ),
    "mutate": ("mutate", "Measure which comparisons notice wrong code."),
    "print": ("print", "Print loop-IR text as LLVM IR."),
    "assemble": ("assemble", "Compile LLVM IR of `refcomp print` to machine code."),
    "execute": ("execute", "Run a module file, or interpret loop-IR text."),
    "emulate": ("emulate", "Run kernels for AMD and NVIDIA GPUs without a GPU."),
}
JSON_ASKED = "refcomp.cli.json"

# click wraps the lines of a paragraph, unless it begins with a line \b.
_EPILOG = "\n".join(
    [
        "\b",
        "Each stage reads and writes text, so that stages chain:",
        "  refcomp lower matmul.py | refcomp pass --all | refcomp print",
        "    | refcomp assemble | refcomp execute",
        "",
        "\b",
        "`refcomp COMMAND --help` explains a command, with examples. They use the",
        "programs matmul.py and scale.py of README.md, and the model digits.onnx of",
        "scripts/data/digits. `refcomp lower --help` has double.py.",
        "",
        "\b",
        "Exit codes:",
        *(f"  {code:>3}  {meaning}" for code, meaning in MEANINGS.items()),
    ]
)


class NoSuchCommand(click.UsageError):
    """An unknown command. click's own error of this name suggests no commands of a lazy group."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command, or return None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"refcomp.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return name, command and other arguments. Raise NoSuchCommand."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            near = did_you_mean(name, COMMANDS) or "`refcomp --help` lists them"
            raise NoSuchCommand(f"No such command {name!r}; {near}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the list of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options that stand before the command."""
        # --json belongs to the command, but an error may be found before it is parsed. What stands
        # behind `--` belongs to a foreign command.
        ours = args[: args.index("--")] if "--" in args else args
        ctx.meta[JSON_ASKED] = "--json" in ours
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            message = error.message.rstrip(".")
            raise click.NoSuchOption(
                error.option_name,
                f"{message}; options of a command stand behind its name",
                error.possibilities,
                ctx,
            ) from error

    def invoke(self, ctx: click.Context) -> None:
        """Run the command. Turn each failure into an exit code and a message."""
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
            _report(ctx, error)
            if is_of_the_machine(error):
                _close_stdout()
            ctx.exit(exit_code(error))


def _close_stdout() -> None:
    """Redirect stdout to the null device: Python flushes it when it ends, which would fail."""
    with suppress(UnsupportedOperation, OSError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)


def _report(ctx: click.Context, error: Exception) -> None:
    if ctx.params.get("show_traceback"):
        click.echo(printable("".join(traceback.format_exception(error))), err=True)
    if ctx.meta[JSON_ASKED]:
        click.echo(json.dumps(error_to_json(error)), err=True)
    else:
        click.echo(error_to_text(error), err=True)


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
    help="Print where in refcomp an error arose.",
)
def main(show_traceback: bool) -> None:
    """Compile tensor programs: each stage of the compiler is a command."""
