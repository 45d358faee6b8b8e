"""`refcomp execute` runs module files and loop-IR text, on given and on filled arrays."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from refcomp.cli.arrays import Filling
from refcomp.cli.execute import make_arguments
from refcomp.foundation.artifacts import ScalarParam, Signature, TensorParam
from refcomp.foundation.dtype import as_dtype
from refcomp.foundation.errors import UserError
from refcomp.runtime.device import device
from refcomp.runtime.opencl.driver import _OpenclDevices

Cli = Callable[..., Result]


@pytest.fixture
def module(cli: Cli, add_text: str) -> bytes:
    printed = cli("print", "--all-passes", input=add_text).stdout
    return cli("assemble", input=printed).stdout_bytes


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    path = tmp_path / "in.npz"
    np.savez(path, A=np.arange(3, dtype=np.float32), B=np.full(3, 10, np.float32))
    return path


def test_text_is_interpreted(cli: Cli, add_text: str, inputs: Path) -> None:
    result = cli("execute", "-i", inputs, input=add_text)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "C: f32[3]  min 10  max 12  first 10 11 12\n"


@pytest.mark.llvm
def test_a_module_on_stdin_and_in_a_file(
    cli: Cli, module: bytes, inputs: Path, tmp_path: Path
) -> None:
    path = tmp_path / "module"
    path.write_bytes(module)
    expected = "C: f32[3]  min 10  max 12  first 10 11 12\n"
    assert cli("execute", "-i", inputs, input=module).stdout == expected
    assert cli("execute", path, "-i", inputs).stdout == expected


@pytest.mark.llvm
def test_text_can_be_compiled(cli: Cli, add_text: str, inputs: Path) -> None:
    result = cli("execute", "--target", "llvm", "-i", inputs, input=add_text)
    assert result.stdout == "C: f32[3]  min 10  max 12  first 10 11 12\n"


GPU_SCRIPT = """
import refcomp as rc

def computation():
    n = rc.var("n")
    A, B = (rc.placeholder((n,), "float32", name) for name in "AB")
    C = rc.compute((n,), lambda i: A[i] + B[i], "C")
    s = rc.create_schedule(C)
    for loop, tag in zip(s[C].split(C.op.axis[0], factor=2), ("blockIdx.x", "threadIdx.x")):
        s[C].bind(loop, rc.thread_axis(tag))
    return s, [A, B, C], "add"
"""


@pytest.fixture
def gpu_script(tmp_path: Path) -> Path:
    path = tmp_path / "gpu.py"
    path.write_text(GPU_SCRIPT)
    return path


@pytest.mark.pocl
def test_text_runs_on_a_device(cli: Cli, gpu_script: Path, inputs: Path, tmp_path: Path) -> None:
    text, out = cli("lower", gpu_script).stdout, tmp_path / "out.npz"
    result = cli("execute", "--target", "opencl", "-i", inputs, "-o", out, input=text)
    assert result.stdout == "C: f32[3]  min 10  max 12  first 10 11 12\n", result.stderr
    with np.load(out) as stored:
        assert stored["C"].tolist() == [10, 11, 12]


def test_a_device_that_is_not_there(cli: Cli, gpu_script: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(
        device("opencl").driver, "_found", _OpenclDevices((), "none", "buy one", os.getpid())
    )
    text = cli("lower", gpu_script).stdout
    result = cli("execute", "--target", "opencl", input=text)
    assert result.exit_code == 4
    assert (
        "this machine has no device opencl:0\n  why: none\n  what to do: buy one" in result.stderr
    )


def test_the_programs_that_show_tells_are_interpreted(
    cli: Cli, gpu_script: Path, inputs: Path
) -> None:
    shown = cli("show", gpu_script, "--target", "opencl", "--stage", "programs").stdout
    assert "launch add_kernel0" in shown
    assert cli("check", input=shown).stdout == (
        "add: legal at level launch\nadd_kernel0: legal at level flat\n"
    )
    result = cli("execute", "-i", inputs, input=shown)
    assert result.stdout == "C: f32[3]  min 10  max 12  first 10 11 12\n", result.stderr


@pytest.mark.llvm
def test_interpreter_and_machine_code_agree_on_filled_arrays(
    cli: Cli, module: bytes, add_text: str
) -> None:
    options = ["--symbol", "n=1000", "--seed", "3", "--json"]
    interpreted = cli("execute", *options, input=add_text)
    compiled = cli("execute", *options, input=module)
    assert json.loads(interpreted.stdout) == json.loads(compiled.stdout)
    (output,) = json.loads(compiled.stdout)["outputs"]
    assert (output["name"], output["shape"], output["nans"]) == ("C", [1000], 0)


@pytest.mark.llvm
def test_outputs_are_written(cli: Cli, module: bytes, inputs: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.npz"
    cli("execute", "-i", inputs, "-o", path, input=module)
    with np.load(path) as outputs:
        assert outputs.files == ["C"]
        np.testing.assert_array_equal(outputs["C"], np.array([10, 11, 12], np.float32))


@pytest.mark.parametrize(("mode", "value"), [("zeros", "0"), ("ones", "2")])
def test_fill_modes(cli: Cli, add_text: str, mode: str, value: str) -> None:
    result = cli("execute", "--fill-mode", mode, "--symbol", "n=2", input=add_text)
    assert result.stdout == f"C: f32[2]  min {value}  max {value}  first {value} {value}\n"


def test_symbols_are_one_and_may_be_zero(cli: Cli, add_text: str) -> None:
    assert cli("execute", "--fill-mode", "ones", input=add_text).stdout.startswith("C: f32[1]")
    assert cli("execute", "--symbol", "n=0", input=add_text).stdout == "C: f32[0]  empty\n"


def test_a_scalar_is_given(cli: Cli, scale_text: str) -> None:
    options = ["--fill-mode", "ones", "--scalar", "alpha=2.5"]
    result = cli("execute", *options, input=scale_text)
    assert result.stdout == "B: bf16[1]  min 2.5  max 2.5  first 2.5\n"


def test_lowered_text_is_called_as_before(cli: Cli, scale_text: str) -> None:
    lowered = cli("pass", "--all", input=scale_text).stdout
    options = ["--symbol", "n=50", "--scalar", "alpha=3"]
    plain, host = (cli("execute", *options, input=text) for text in (scale_text, lowered))
    assert plain.stdout == host.stdout != ""


def test_one_of_several_functions_is_chosen(cli: Cli, add_text: str) -> None:
    text = add_text + add_text.replace("add", "more").replace("+", "-")
    first = cli("execute", "--fill-mode", "ones", input=text)
    assert first.stderr == "running add; others: more\n"
    assert "min 2" in first.stdout
    assert "min 0" in cli("execute", "--fill-mode", "ones", "--function", "more", input=text).stdout
    result = cli("execute", "--function", "less", input=text)
    assert result.exit_code == 4
    assert "no function 'less'" in result.stderr
    assert "it has: add, more" in result.stderr


def test_a_computation_that_fails_has_its_own_exit_code(cli: Cli) -> None:
    text = (
        "func f(A: f32[n], B: f32[n] out) { for i in range(n) { B[i] = A[i64(A[i]) + 1000000] } }"
    )
    result = cli("execute", "--json", input=text)
    error = json.loads(result.stderr)["error"]
    assert (result.exit_code, error["exit_code"], error["kind"]) == (1, 1, "InterpretError")
    assert "out of range" in error["what"]


def test_a_damaged_module_is_refused(cli: Cli) -> None:
    result = cli("execute", input=b"PK\x03\x04 no more")
    assert result.exit_code == 4
    assert "is damaged" in result.stderr


def test_a_bare_shared_object_is_refused(cli: Cli) -> None:
    result = cli("execute", input=b"\x7fELF no more")
    assert result.exit_code == 4
    assert "bare shared object" in result.stderr
    assert "code for AMD GPUs, use refcomp.load_code_object" in result.stderr


@pytest.mark.llvm
def test_a_module_has_its_target(cli: Cli, module: bytes) -> None:
    result = cli("execute", "--target", "interp", input=module)
    assert result.exit_code == 4
    assert "<stdin> is compiled already" in result.stderr


def test_llvm_text_is_refused_with_the_next_command(cli: Cli) -> None:
    result = cli("execute", input="; refcomp.target llvm\ndefine ...")
    assert result.exit_code == 4
    assert "send it through `refcomp assemble` first" in result.stderr


def test_lowered_text_is_not_compiled_from_the_middle(cli: Cli, add_text: str) -> None:
    flat = cli("pass", "flatten_storage", input=add_text).stdout
    result = cli("execute", "--target", "llvm", input=flat)
    assert result.exit_code == 4
    assert "levels of its functions: host" in result.stderr


@pytest.mark.parametrize("data", [b"\xff\xfe", b""])
def test_what_is_neither_is_refused(cli: Cli, data: bytes) -> None:
    assert cli("execute", input=data).exit_code == 4


def filling(mode: str = "ones", **symbols: int) -> Filling:
    return Filling(mode, 0, symbols)


def test_scalars_are_of_their_kind_and_a_size_where_they_stand_in_a_shape() -> None:
    signature = Signature(
        "f",
        (
            ScalarParam("n", as_dtype("int64")),
            TensorParam("A", as_dtype("float32"), ("n",)),
            ScalarParam("b", as_dtype("bool")),
            ScalarParam("x", as_dtype("float32")),
        ),
    )
    given = {"A": np.zeros(7, np.float32), "x": np.array(2, np.float64)}
    made = make_arguments(signature, given, filling())
    assert list(made) == ["n", "A", "b", "x"]
    assert (made["n"], made["b"], made["x"]) == (7, True, 2.0)
    assert make_arguments(signature, {}, filling("zeros", n=3))["A"].shape == (3,)


@pytest.mark.parametrize("value", [2.5, float("nan"), float("inf"), np.array(-np.inf)])
def test_what_is_no_whole_number_is_no_integer(value: Any) -> None:
    signature = Signature("f", (ScalarParam("k", as_dtype("int32")),))
    with pytest.raises(UserError, match=rf"argument k is {value}, expected a number of i32"):
        make_arguments(signature, {"k": value}, filling())


@pytest.mark.parametrize("dtype", ["int32", "float32", "bool"])
@pytest.mark.parametrize(
    ("value", "found"),
    [
        (np.zeros(0, np.int32), r"shape \(0,\) and dtype int32"),
        (np.arange(5), r"shape \(5,\) and dtype int64"),
        (np.array("7"), r"shape \(\) and dtype <U1"),
        (np.array(1j), r"shape \(\) and dtype complex128"),
        (np.array("2020-01-01", "datetime64[D]"), r"shape \(\) and dtype datetime64\[D\]"),
    ],
)
def test_an_array_is_a_scalar_when_it_is_one_number(dtype: str, value: Any, found: str) -> None:
    param = ScalarParam("k", as_dtype(dtype))
    message = f"argument k is an array of {found}, expected one number of {param.dtype}"
    with pytest.raises(UserError, match=message):
        make_arguments(Signature("f", (param,)), {"k": value}, filling())


def test_a_number_is_no_tensor(cli: Cli, add_text: str) -> None:
    result = cli("execute", "--scalar", "A=3", input=add_text)
    assert result.exit_code == 4
    assert result.stderr.startswith(
        "error: A is not a scalar\n  where: A: f32[n]\n  what to do: give"
    )


def test_an_unknown_scalar_is_refused_with_what_is_near(cli: Cli, scale_text: str) -> None:
    result = cli("execute", "--scalar", "alfa=3", input=scale_text)
    assert result.exit_code == 4
    assert result.stderr.startswith("error: unknown scalar argument 'alfa'\n")
    assert "what to do: did you mean alpha? scalars: alpha\n" in result.stderr


def test_large_integers_are_exact(cli: Cli) -> None:
    text = "func f(k: i64, A: i64[1] out) {\n  A[0] = k\n}\n"
    result = cli("execute", "--scalar", f"k={2**53 + 1}", input=text)
    assert result.stdout == f"A: i64[1]  min {2**53 + 1}  max {2**53 + 1}  first {2**53 + 1}\n"


def test_a_damaged_module_from_stdin_is_called_so(cli: Cli) -> None:
    result = cli("execute", input=b"PK\x03\x04damaged")
    assert result.exit_code == 4
    assert result.stderr.startswith("error: <stdin> is damaged\n")


@pytest.mark.parametrize("call", ["extern i32 memset(write(B), 0i32, 8)", "packed my.f(read(A))"])
def test_text_that_calls_the_host_is_refused(cli: Cli, call: str) -> None:
    text = f"func f(A: f32[2], B: f32[2] out) {{ B[0] = A[0] {call} }}"
    result = cli("execute", input=text)
    assert result.exit_code == 4 and "a function of this host" in result.stderr
    assert "such a text can do whatever you can" in result.stderr and "--calls" in result.stderr


def test_text_may_call_the_host_when_asked(cli: Cli) -> None:
    text = "func f(B: f32[2] out) { B[1] = 1.0f32 extern i32 memset(write(B), 0i32, 8) }"
    assert "min 0  max 0" in cli("execute", "--calls", input=text).stdout


_SHORTER = "func f(A: f32[n - 2], B: f32[2 * n] out) { for i in range(n - 2) { B[i] = A[i] } }"


@pytest.mark.parametrize("target", ["interp", pytest.param("llvm", marks=pytest.mark.llvm)])
def test_sizes_follow_from_compound_extents(cli: Cli, tmp_path: Path, target: str) -> None:
    path = tmp_path / "in.npz"
    np.savez(path, A=np.float32([1, 2, 3]))
    result = cli("execute", "--target", target, "-i", path, input=_SHORTER)
    assert result.stdout == "B: f32[10]  min 0  max 3  first 1 2 3 0 0 0 ...\n", result.stderr


def test_a_default_size_that_makes_an_extent_negative_is_refused(cli: Cli) -> None:
    result = cli("execute", input=_SHORTER)
    assert result.exit_code == 4
    assert "an extent of A is (n - 2) = -1" in result.stderr
    assert "--symbol n=10" in result.stderr
    assert cli("execute", "--symbol", "n=3", input=_SHORTER).stdout.startswith("B: f32[6]")


def test_a_scalar_argument_is_a_size(cli: Cli) -> None:
    text = (
        "func f(n: i64, A: f32[n - 2], B: f32[n - 2] out) { for i in range(n - 2) { B[i] = A[i] } }"
    )
    result = cli("execute", "--scalar", "n=5", "--fill-mode", "ones", input=text)
    assert result.stdout == "B: f32[3]  min 1  max 1  first 1 1 1\n", result.stderr


@pytest.mark.llvm
@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_what_certainly_leaves_a_buffer_is_not_run(cli: Cli, target: str) -> None:
    text = "func f(A: f32[64], B: f32[65] out) { for i in range(65) { B[i] = A[i] } }"
    result = cli("execute", "--target", target, input=text)
    assert result.exit_code == 4
    assert "f reads index 64 of dimension 0 of A" in result.stderr


@pytest.mark.llvm
@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_sizes_that_do_not_fit_are_refused_at_the_call(cli: Cli, target: str) -> None:
    text = "func f(A: f32[n], B: f32[m] out) { for i in range(m) { B[i] = A[i] } }"
    sizes = ("--symbol", "n=5", "--target", target)
    assert cli("execute", *sizes, "--symbol", "m=5", input=text).exit_code == 0
    result = cli("execute", *sizes, "--symbol", "m=6", input=text)
    assert result.exit_code == 4
    assert result.stderr.startswith(
        "error: `B[i] = A[i]` reads index m - 1 = 5 of dimension 0 of A, which has 5 elements\n"
    )
    assert "(output)), at <stdin>:1\n" in result.stderr


def test_a_default_size_that_does_not_fit_is_chosen_by_an_option(cli: Cli) -> None:
    body = "{ for i in range(n) { B[i] = A[i, 64 * k] } }"
    text = f"func f(A: f32[n, m], k: i64, B: f32[n] out) {body}"
    result = cli("execute", input=text)
    assert result.exit_code == 4
    assert "m is 1 by default" in result.stderr
    assert "what to do: choose --symbol m=100, or access" in result.stderr
    assert cli("execute", "--symbol", "m=100", input=text).exit_code == 0
