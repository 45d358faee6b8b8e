"""Every command's help page teaches: its examples run, and it says which errors end it how."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result

from refcomp.cli import main
from refcomp.cli.group import COMMANDS
from refcomp.cli.outcomes import FINE, MEANINGS

Cli = Callable[..., Result]
ROOT = Path(__file__).parents[2]


def help_page(name: str) -> str:
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    return result.stdout


def examples_of(name: str) -> list[str]:
    text = help_page(name).partition("\n  Examples:\n")[2]
    return text.replace("\\\n", "").strip().splitlines()


def examples() -> Iterator[object]:
    """Each example, with the mark of the tools that it needs."""
    for name in COMMANDS:
        for line in map(str.strip, examples_of(name)):
            mark = pytest.mark.rocm if "scale." in line else pytest.mark.llvm
            mark = pytest.mark.nvcc if "cuda" in line else mark
            yield pytest.param(line, marks=mark, id=re.sub(r"\s+", " ", line))


def shell(folder: Path, line: str) -> None:
    """Run commands of a shell, in which `refcomp` is this checkout's."""
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["sh", "-e", "-c", line], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == FINE, done.stdout + done.stderr


def write_programs(folder: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    matmul, scale = re.findall(r"(?ms)^```python\n(.*?)^```$", readme)[:2]
    (folder / "matmul.py").write_text(matmul, encoding="utf-8")
    (folder / "scale.py").write_text(scale, encoding="utf-8")
    (double,) = re.findall(r"(?ms)double\.py:\n(.*?)\n\n", help_page("lower"))
    (folder / "double.py").write_text(textwrap.dedent(double), encoding="utf-8")
    shutil.copy(ROOT / "scripts" / "data" / "digits" / "digits.onnx", folder)
    (folder / "bin").mkdir()
    command = folder / "bin" / "refcomp"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m refcomp "$@"\n')
    command.chmod(0o755)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the examples read."""
    folder = tmp_path_factory.mktemp("examples")
    write_programs(folder)
    rng = np.random.default_rng(0)
    a, b = (rng.random(shape, np.float32) for shape in ((10, 64), (64, 16)))
    np.savez(folder / "in.npz", A=a, B=b)
    np.savez(folder / "out.npz", C=a @ b)
    np.savez(folder / "images.npz", image=rng.random((3, 1, 8, 8), np.float32))
    shell(
        folder,
        "refcomp lower matmul.py:matmul -o matmul.ir\n"
        "refcomp print --all-passes matmul.ir -o matmul.ll\n"
        "refcomp assemble matmul.ll -o matmul.module",
    )
    return folder


@pytest.mark.parametrize("line", list(examples()))
def test_the_example_runs(inputs: Path, tmp_path: Path, line: str) -> None:
    folder = tmp_path / "folder"
    shutil.copytree(inputs, folder)
    if ".hsaco" in line or ".ptx" in line:
        shell(folder, f"{shlex.quote(sys.executable)} scale.py")
    if ".ptx" in line:
        stage = "refcomp show scale.py:scale --target nvptx --stage ptx"
        shell(folder, f"{stage} > scale.ptx")
    shell(folder, line)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_page_has_errors_and_examples_and_fits(name: str) -> None:
    text = help_page(name)
    assert all(len(line) <= 80 for line in text.splitlines())
    errors = text.partition("\n  Exit codes other than 0:\n")[2].partition("\n  Examples:\n")[0]
    codes = [int(code) for code in re.findall(r"(?m)^    (\d+)  \S", errors)]
    assert codes and set(codes) <= set(MEANINGS) - {FINE}
    assert examples_of(name)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument_and_option_is_explained(name: str) -> None:
    text = " ".join(help_page(name).split())
    command = import_module(f"refcomp.cli.{COMMANDS[name][0]}").command
    for param in command.params:
        if isinstance(param, click.Option):
            assert param.help and param.help.endswith("."), param.opts
            if isinstance(param.default, int | float | str) and not param.is_flag:
                assert param.show_default, param.opts
            continue
        for word in re.findall(r"[A-Z]{4,}", param.metavar or param.name.upper()):
            assert text.count(word) > 1, word  # in the usage, and where it is explained


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["lowre"], "did you mean lower?"),
        (["asemble", "x.ll"], "did you mean assemble?"),
        (["assemble", "--format", "modul"], "did you mean module?"),
        (["check", "--level", "nestd"], "did you mean nested?"),
        (["run", "m.onnx", "--fill-mode", "zeroes"], "did you mean zeros or ones?"),
        (["mutate", "--of", "loops-ir"], "did you mean loop-ir?"),
        (["emulate", "k.hsaco", "--hazard", "race"], "did you mean races?"),
    ],
)
def test_a_near_miss_on_the_command_line_is_named(cli: Cli, words: list[str], near: str) -> None:
    result = cli(*words)
    assert result.exit_code == 2
    assert near in result.stderr
    assert near in cli(*words, "--json").stderr


def test_words_that_are_near_to_nothing_get_no_suggestion(cli: Cli) -> None:
    assert "did you mean" not in cli("banana").stderr
    assert "did you mean" not in cli("check", "--level", "banana").stderr
