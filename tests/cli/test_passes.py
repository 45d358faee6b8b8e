"""`refcomp pass` runs passes over text, and keeps how the functions are called."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from refcomp.cli import passes
from refcomp.cli.headers import read_header
from refcomp.cli.levels import level_of
from refcomp.driver.pipeline import all_passes, passes_for
from refcomp.foundation.errors import CompilerBug
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func, parse_funcs

Cli = Callable[..., Result]


def test_one_pass(cli: Cli, add_text: str) -> None:
    result = cli("pass", "flatten_storage", input=add_text)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "C@[i] = A@[i] + B@[i]" in result.stdout


def test_several_passes_on_several_functions(cli: Cli, add_text: str) -> None:
    text = add_text.replace("range(n) {", "range(2, extent=1) unrolled {")
    text += text.replace("add", "more")
    result = cli("pass", "flatten_storage", "unroll_loops", input=text)
    assert [func.name for func in parse_funcs(result.stdout)] == ["add", "more"]
    assert "for" not in result.stdout
    assert result.stdout.count("C@[") == 2


def test_all_brings_each_function_to_the_host_level(cli: Cli, add_text: str) -> None:
    flat = cli("pass", "flatten_storage", input=add_text).stdout.replace("add", "flat")
    result = cli("pass", "--all", input=add_text + flat)
    assert [level_of(func) for func in parse_funcs(result.stdout)] == ["host", "host"]
    assert cli("pass", "--all", input=result.stdout).stdout == result.stdout


def test_changed_arguments_leave_a_signature_behind(cli: Cli, scale_text: str) -> None:
    text = cli("pass", "--all", input=scale_text).stdout
    (signature,) = read_header(text, "").signatures
    assert str(signature) == "scale(A: bf16[n], B: bf16[n] (output), alpha: f32)"
    assert "A: u16[n]" in text
    again = cli("pass", "simplify_expressions", input=text).stdout
    assert read_header(again, "").signatures == (signature,)


@pytest.mark.parametrize(
    "params", ["A: u16[n, 2], B: u16[n] out, alpha: f32", "A: u16[n], B: u16[n] out", "A: i16[n]"]
)
def test_a_signature_that_does_not_fit_any_more_is_refused(
    cli: Cli, scale_text: str, params: str
) -> None:
    lowered = cli("pass", "--all", input=scale_text).stdout
    comment = lowered[: lowered.index("func")]
    result = cli("pass", "--all", input=f"{comment}func scale({params}) {{}}")
    assert result.exit_code == 4
    assert "comment on how scale is called does not fit the function" in result.stderr


def test_unchanged_arguments_need_none(cli: Cli, add_text: str) -> None:
    assert "#" not in cli("pass", "--all", input=add_text).stdout


def test_list_tells_the_passes_in_order_with_reasons(cli: Cli) -> None:
    lines = cli("pass", "--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [step.name for step in passes_for("llvm")]
    listed = json.loads(cli("pass", "--list", "--json").stdout)
    assert [entry["reason"] for entry in listed] == [step.reason for step in passes_for("llvm")]


def test_json_has_each_function(cli: Cli, add_text: str) -> None:
    (entry,) = json.loads(cli("pass", "flatten_storage", "--json", input=add_text).stdout)
    assert entry["name"] == "add"
    assert level_of(parse_func(entry["loop_ir"])) == "host"


def test_an_unknown_pass_is_refused_with_those_there_are(cli: Cli, add_text: str) -> None:
    result = cli("pass", "flaten", input=add_text)
    assert result.exit_code == 4
    assert "'flaten' is not a pass" in result.stderr
    assert "flatten_storage" in result.stderr
    near = cli("pass", "flatten_storrage", input=add_text).stderr
    assert "what to do: did you mean flatten_storage or reuse_storage? passes: " in near


@pytest.mark.parametrize("arguments", [[], ["flatten_storage", "--all"]])
def test_names_and_all_exclude_each_other(cli: Cli, arguments: list[str]) -> None:
    result = cli("pass", *arguments, input="")
    assert result.exit_code == 2
    assert "give either names of passes or --all; --list prints the names" in result.stderr


def test_illegal_text_is_refused_before_a_pass_meets_it(cli: Cli) -> None:
    text = "func f(A: f32[n], B: f32[n] out) { B[0] = A@[0] }"
    result = cli("pass", "flatten_storage", input=text)
    assert result.exit_code == 4
    assert "f is not legal at level nested" in result.stderr


def test_a_pass_that_breaks_the_function_is_a_bug(add_text: str) -> None:
    func = parse_func(add_text)

    def break_it(func: PrimFunc) -> PrimFunc:
        return PrimFunc(func.name, func.params[:1], func.body, func.outputs)

    with pytest.raises(CompilerBug, match="not"):
        passes.run_verified(func, break_it)


@pytest.mark.search
@pytest.mark.parametrize("name", all_passes())
def test_no_pass_ends_in_a_traceback_on_any_level(cli: Cli, scale_text: str, name: str) -> None:
    text = scale_text
    for before in ([], ["flatten_storage"], ["--all"]):
        text = cli("pass", *before, input=text).stdout if before else text
        result = cli("pass", name, input=text)
        assert "a bug in refcomp" not in result.stderr


@pytest.mark.llvm
def test_what_a_text_needs_goes_through_passes_and_print(cli: Cli, tmp_path: Path) -> None:
    """A bfloat16 buffer has a comment on how the function is called, which has conditions, too."""
    text = "func f(A: bf16[n], C: bf16[m] out) {\n  for i in range(m) {\n C[i] = A[i] } }"
    first = cli("pass", "simplify_expressions", input=text).stdout
    assert first.startswith("func f(A: bf16[n], C: bf16[m] out) requires (m - 1 < n) {")
    lowered = cli("pass", "--all", input=first).stdout
    assert "# refcomp.signature" in lowered and "requires (m - 1 < n)" in lowered
    printed = cli("print", input=lowered)
    assert printed.exit_code == 0, printed.stderr
    (tmp_path / "f.ll").write_text(printed.stdout)
    assert cli("assemble", tmp_path / "f.ll", "-o", tmp_path / "f.module").exit_code == 0
    assert (
        cli("execute", tmp_path / "f.module", "--symbol", "n=5", "--symbol", "m=5").exit_code == 0
    )
    result = cli("execute", tmp_path / "f.module", "--symbol", "n=5", "--symbol", "m=6")
    assert result.exit_code == 4
    assert "reads index m - 1 = 5 of dimension 0 of A" in result.stderr
