"""`refcomp operators` lists what topi has, and shows pages."""

import json
from collections.abc import Callable

from click.testing import Result

from refcomp import topi
from refcomp.topi.sources import OPERATOR_HOMES

Cli = Callable[..., Result]


def test_all_operators_are_listed(cli: Cli) -> None:
    result = cli("operators")
    assert (result.exit_code, result.stderr) == (0, "")
    assert all(f"| `{name}` |" in result.stdout for name in OPERATOR_HOMES)


def test_a_page_is_shown(cli: Cli) -> None:
    result = cli("operators", "softmax")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] in topi.softmax.__doc__ and "Example::" in result.stdout


def test_the_list_as_json(cli: Cli) -> None:
    found = json.loads(cli("operators", "--json").stdout)
    assert [entry["name"] for entry in found] == list(OPERATOR_HOMES)
    (entry,) = json.loads(cli("operators", "softmax", "--json").stdout)
    assert (entry["inputs"], entry["attributes"]) == (["data"], ["[axis]"])


def test_unknown_operator_is_refused(cli: Cli) -> None:
    result = cli("operators", "softmx")
    assert result.exit_code == 4 and "unknown operator 'softmx'" in result.stderr
    assert "softmax" in result.stderr
