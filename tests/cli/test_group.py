"""The group finds commands lazily, and turns every failure into an exit code and a text."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from inspect import getsourcelines
from pathlib import Path

import click
import pytest
from click.testing import Result

from refcomp.cli import group
from refcomp.cli.outcomes import MEANINGS
from refcomp.foundation.errors import CompilerBug, Unsupported

Cli = Callable[..., Result]


def failing(error: BaseException) -> click.Command:
    @click.command()
    @click.option("--json", is_flag=True)
    def command(json: bool) -> None:
        raise error  # the line that messages quote

    return command


_NUMBER = getsourcelines(failing)[1] + 4
_QUOTED = f"{__file__}:{_NUMBER}"


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


@pytest.mark.parametrize("name", group.COMMANDS)
def test_every_command_has_examples_that_can_be_read(cli: Cli, name: str) -> None:
    result = cli(name, "--help")
    _, head, examples = result.stdout.partition("\n  Examples:\n")
    assert result.exit_code == 0 and head
    command = import_module(f"refcomp.cli.{group.COMMANDS[name][0]}").command
    for line in examples.replace("\\\n", "").strip().splitlines():
        program, called, *words = shlex.split(line)
        assert (program, called) == ("refcomp", name)
        assert command.make_context(name, words).params


def test_help_tells_every_command_and_every_exit_code(cli: Cli) -> None:
    text = cli("--help").stdout
    for name, (_, line) in group.COMMANDS.items():
        assert f"  {name:9}  {line}\n" in text
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
        (
            Unsupported("no such thing", why="a limit"),
            5,
            f"error: no such thing\n  --> {_QUOTED}\n"
            "   |     raise error  # the line that messages quote\n"
            "   |     ^^^^^^^^^^^\n"
            "  why: a limit\n",
        ),
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
    parts["line"] = _QUOTED
    assert json.loads(result.stderr) == {"error": parts}


@pytest.mark.parametrize(
    ("words", "kind", "what"),
    [
        (["emulate", "--json", "k.hsaco", "--card", "MI300X"], "UsageError", "add --profile"),
        (["show", "--stage", "--json"], "MissingParameter", "SCRIPT.py"),
        (["lower", "--jsn", "a.py", "--json"], "NoSuchOption", "--jsn"),
        (["run", "m.onnx", "--repeat", "0", "--json"], "BadParameter", "x>=1"),
        (["lowre", "--json"], "NoSuchCommand", "lowre"),
    ],
)
def test_a_wrong_command_line_is_told_in_json_too(
    cli: Cli, words: list[str], kind: str, what: str
) -> None:
    result = cli(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    told = json.loads(result.stderr)["error"]
    assert (told["exit_code"], told["kind"]) == (2, kind)
    assert what in told["what"] and told["remedy"].startswith("see `")


def test_the_options_of_a_foreign_command_are_its_own(cli: Cli) -> None:
    result = cli("judge", "--seed", "x", "program.py", "--", "tool", "--json")
    assert result.exit_code == 2 and "Error: Invalid value for '--seed'" in result.stderr


def test_an_option_before_the_command_is_told_where_to_stand(cli: Cli) -> None:
    result = cli("--target", "llvm", "show", "a.py")
    assert result.exit_code == 2
    assert "No such option" in result.stderr
    assert "; options of a command stand behind its name" in result.stderr


@pytest.mark.tools
def test_a_full_disk_is_no_bug(tmp_path: Path) -> None:
    """Nor does Python complain at its end of what it could not write."""
    path = tmp_path / "add.txt"
    path.write_text("func add(A: f32[4] out) {\n  A[0] = 1.0f32\n}\n")
    command = [sys.executable, "-m", "refcomp.cli", "check", str(path)]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    told = "error: what is computed cannot be written: [Errno 28] No space left on device\n"
    assert (done.returncode, done.stderr) == (1, told)


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
