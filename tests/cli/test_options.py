"""Options are read, and refused with what would be right."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from refcomp.cli.options import number_of, pair_of
from refcomp.foundation.errors import UserError

Cli = Callable[..., Result]


def test_pairs_have_a_name_and_a_number() -> None:
    assert pair_of(int)("n=1000") == ("n", 1000)
    assert pair_of(number_of)("alpha=-2.5") == ("alpha", -2.5)


def test_whole_numbers_are_exact() -> None:
    assert number_of(str(2**53 + 1)) == 2**53 + 1
    with pytest.raises(UserError, match="'alpha=many' is not NAME=VALUE with a number behind"):
        pair_of(number_of)("alpha=many")


@pytest.mark.parametrize("text", ["n", "n=", "n=many", "n=1.5"])
def test_what_is_no_pair_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=f"'{text}' is not NAME=VALUE with an integer"):
        pair_of(int)(text)


def test_an_unknown_target_is_refused_with_those_that_are_known(cli: Cli, script: Path) -> None:
    result = cli("show", script, "--target", "lvm")
    assert result.exit_code == 4
    assert "unknown target 'lvm'" in result.stderr
    assert "llvm: machine code for this host" in result.stderr


@pytest.mark.parametrize(
    ("target", "near"),
    [
        ("lvm", "did you mean llvm?"),
        ("opencl2", "did you mean opencl?"),
        ("llvm -mpcu=znver4", "did you mean mcpu?"),
    ],
)
def test_a_near_miss_of_a_target_is_named(cli: Cli, script: Path, target: str, near: str) -> None:
    result = cli("show", script, "--target", target)
    assert result.exit_code == 4
    assert f"what to do: {near}" in result.stderr


@pytest.mark.llvm
def test_a_near_miss_of_an_architecture_is_named(cli: Cli, script: Path) -> None:
    result = cli("show", script, "--target", "llvm -mcpu=znver44", "--stage", "asm")
    assert result.exit_code == 4
    assert "what to do: did you mean znver4" in result.stderr


def test_an_error_in_another_option_is_told_in_json(cli: Cli, script: Path) -> None:
    result = cli("show", script, "--target", "lvm", "--json")
    assert json.loads(result.stderr)["error"]["what"] == "unknown target 'lvm'"


def test_a_wrong_target_is_marked_in_the_command_line(cli: Cli, script: Path) -> None:
    result = cli("show", script, "--target", "llmv -mcpu=native")
    what, place, line, mark, _ = result.stderr.splitlines()[:5]
    assert what == "error: unknown target 'llmv -mcpu=native'"
    assert place == "  --> command line"
    assert line.endswith(" show ... --target 'llmv -mcpu=native'")
    assert mark == f"   |{' ' * (line.index(chr(39)) - 4)}{'^' * len(repr('llmv -mcpu=native'))}"
