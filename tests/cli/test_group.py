"""The group finds commands lazily, and turns every failure into an exit code and a text."""

import json
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import Result

from refcomp.cli import group
from refcomp.cli.outcomes import MEANINGS
from refcomp.errors import CompilerBug, Unsupported

Cli = Callable[..., Result]


def failing(error: BaseException) -> click.Command:
    @click.command()
    @click.option("--json", is_flag=True)
    @click.pass_context
    def command(ctx: click.Context, json: bool) -> None:
        ctx.meta[group.JSON_ASKED] = json
        raise error

    return command


@pytest.mark.parametrize("name", group.COMMANDS)
def test_the_listed_line_is_the_first_of_the_commands_own_help(name: str) -> None:
    module, line = group.COMMANDS[name]
    command = import_module(f"refcomp.cli.{module}").command
    assert command.name == name
    assert command.help.splitlines()[0] == line


@pytest.mark.parametrize("name", group.COMMANDS)
def test_every_command_reports_in_json(name: str) -> None:
    command = import_module(f"refcomp.cli.{group.COMMANDS[name][0]}").command
    assert "--json" in {option for param in command.params for option in param.opts}


def test_help_tells_every_command_and_every_exit_code(cli: Cli) -> None:
    text = cli("--help").stdout
    for name, (_, line) in group.COMMANDS.items():
        assert f"  {name:8}  {line}\n" in text
    for code, meaning in MEANINGS.items():
        assert f"{code:>5}  {meaning}\n" in text


def test_help_imports_neither_numpy_nor_rich_nor_a_command() -> None:
    code = (
        "import sys; from refcomp.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print({'numpy', 'rich', 'jinja2', 'refcomp.cli.run'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr == "set()\n"


def test_an_unknown_command_is_a_usage_error(cli: Cli) -> None:
    result = cli("lowre")
    assert result.exit_code == 2
    assert "No such command 'lowre'" in result.stderr


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (Unsupported("no such thing", why="a limit"), 5, "error: no such thing\n  why: a limit\n"),
        (CompilerBug("broken"), 70, "error: broken\n"),
        (ValueError("inside"), 70, "error: a bug in refcomp: ValueError: inside\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (BrokenPipeError(), 0, ""),
    ],
)
def test_failures_end_with_their_code_and_without_a_traceback(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, text: str
) -> None:
    monkeypatch.setattr(group.LazyGroup, "get_command", lambda *_: failing(error))
    result = cli("run")
    assert result.exit_code == code
    assert result.stderr.startswith(text)
    assert "Traceback" not in result.stderr


def test_json_errors_go_to_stderr(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    error = Unsupported("no such thing", why="a limit")
    monkeypatch.setattr(group.LazyGroup, "get_command", lambda *_: failing(error))
    result = cli("run", "--json")
    assert result.stdout == ""
    parts = {"kind": "Unsupported", "exit_code": 5, "what": "no such thing", "why": "a limit"}
    assert json.loads(result.stderr) == {"error": parts}


def test_any_name_can_be_printed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def command() -> None:
        sys.stdout.write("name \udcff")

    monkeypatch.setattr(group.LazyGroup, "get_command", lambda *_: command)
    result = cli("run")
    assert (result.exit_code, result.stdout) == (0, "name \\udcff")


def test_traceback_shows_where_the_error_arose(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group.LazyGroup, "get_command", lambda *_: failing(CompilerBug("broken")))
    result = cli("--traceback", "run")
    assert result.exit_code == 70
    assert "Traceback" in result.stderr
    assert Path(__file__).name in result.stderr
