"""`refcomp check` tells the level of a text, or what is wrong and where."""

import json
from collections.abc import Callable

from click.testing import Result

Cli = Callable[..., Result]


def test_the_level_of_each_function_is_told(cli: Cli, add_text: str) -> None:
    result = cli("check", input=add_text + "func f(A: f32[1] out) { A@[0] = 1.0f32 }")
    assert result.exit_code == 0
    assert result.stdout == "add: legal at level nested\nf: legal at level host\n"


def test_a_level_can_be_demanded(cli: Cli, add_text: str) -> None:
    assert cli("check", "--level", "nested", input=add_text).exit_code == 0
    result = cli("check", "--level", "host", input=add_text)
    assert result.exit_code == 4
    assert "add is not legal at level host" in result.stderr


def test_json(cli: Cli, add_text: str) -> None:
    result = cli("check", "--json", input=add_text)
    assert json.loads(result.stdout) == [{"name": "add", "level": "nested", "requires": []}]


def test_a_syntax_error_tells_line_and_column(cli: Cli) -> None:
    result = cli("check", input="func f() {\n  for i in rnge(3) {}\n}\n")
    assert result.exit_code == 4
    assert "\n  --> <stdin>:2:12\n   |     for i in rnge(3) {}\n" in result.stderr


def test_a_syntax_error_in_json(cli: Cli) -> None:
    result = cli("check", "--json", input="func f( {")
    error = json.loads(result.stderr)["error"]
    assert (error["kind"], error["exit_code"]) == ("UserError", 4)
    assert error["line"] == "<stdin>:1:9"


def test_a_level_that_is_not_there_is_a_usage_error(cli: Cli, add_text: str) -> None:
    result = cli("check", "--level", "high", input=add_text)
    assert result.exit_code == 2
    assert "'nested', 'flat', 'host'" in result.stderr


def test_an_access_that_leaves_its_buffer_is_refused(cli: Cli) -> None:
    text = """func f(A: f32[8, 64], C: f32[8] out) {
      for i in range(8) { C[i] = 0.0f32 for k in range(65) { C[i] = C[i] + A[i, k] } }
    }"""
    result = cli("check", input=text)
    assert result.exit_code == 4
    assert result.stderr == (
        "error: f reads index 64 of dimension 1 of A\n"
        "  --> <stdin>:2\n"
        "  where: C[i] = C[i] + A[i, k], in for k in range(65)\n"
        "  why: that dimension has the elements 0 .. 63\n"
        "  what to do: shorten the loops around A[i, k], or access it under a condition\n"
    )


def test_what_a_call_must_fulfil_is_printed(cli: Cli) -> None:
    text = "func f(A: f32[n], C: f32[m] out) { for i in range(m) { C[i] = A[i + 1] } }"
    assert cli("check", input=text).stdout == (
        "f: legal at level nested\n  requires m <= 0 or m < n\n"
    )
    (entry,) = json.loads(cli("check", "--json", input=text).stdout)
    assert entry["requires"] == ["m <= 0 or m < n"]
