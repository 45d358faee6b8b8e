"""One small program of a user's per mistake, and what it is told: what, where, why, what to do."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.cache import Cache
from refcomp.foundation.errors import RefcompError
from refcomp.toolchain import find_tools, host_triple_and_layout, load_description, vector_bits
from tests.quotations import QUOTATION

DIGITS = Path(__file__).parents[2] / "scripts" / "data" / "digits"

N = rc.var("n")
A = rc.placeholder((N, 8), name="A")
B = rc.compute((N, 8), lambda i, j: A[i, j] * 2, name="B")
OTHER = rc.compute((4,), lambda i: i, name="other")
CALLED = rc.build(rc.create_schedule(B), [A, B], target="interp", name="double")
X = np.ones((4, 8), np.float32)
SIGNATURE = r"double\(A: f32\[n, 8\], B: f32\[n, 8\] \(output\)\)"


def scheduled() -> Any:
    """The stage of B in a fresh schedule, and its axes."""
    stage = rc.create_schedule(B)[B]
    return stage, *stage.leaf_iter_vars


def text(line: str) -> Callable[[], Any]:
    return lambda: rc.parse_func(f"func f(A: f32[n], B: f32[8] out) {{\n  {line}\n}}")


CALLS = {
    "number": (lambda: CALLED(X), rf"takes 2 arguments, not 1\n  where: {SIGNATURE}"),
    "kind": (lambda: CALLED([1], X), r"A \(1 of 2\) is a list, expected an array(.|\n)*array\(v"),
    "dtype": (lambda: CALLED(X.astype("f8"), X), r"has dtype float64, expected float32(.|\n)*asty"),
    "rank": (lambda: CALLED(X[0], X), r"has rank 1 \(shape \(8,\)\), expected rank 2 \(\[n, 8\]"),
    "extent": (lambda: CALLED(X[:, :7].copy(), X), "dimension 1 of argument A .* is 7, expected 8"),
    "symbol": (
        lambda: CALLED(X, np.ones((5, 8), np.float32)),
        r"dimension 0 of argument B .* is 5, expected n = 4(.|\n)*n is 4 by dimension 0 of A",
    ),
    "layout": (lambda: CALLED(X[:, ::-1], X), r"not C-contiguous(.|\n)*pass a compact copy"),
    "overlap": (lambda: CALLED(X, X), r"B \(2 of 2\) is an output and shares memory with argume"),
    "kind of device": (lambda: rc.device("tpu"), "unknown kind of device 'tpu'\n.*use one of: cpu"),
    "number of device": (lambda: rc.empty((2,), device=rc.cpu(3)), "no device cpu:3(.|\n)*cpu:0"),
}
EXPRESSIONS = {
    "chained": (
        lambda: rc.compute((8,), lambda i: rc.select(0 < i < 4, 1, 2)),
        r"no truth value(.|\n)*chained comparisons such as(.|\n)*refcomp\.all\(a, b\)",
    ),
    "and": (
        lambda: rc.compute((8,), lambda i: rc.select((i > 0) and (i < 4), 1, 2)),
        r"no truth value(.|\n)*`and`, `or`, `not`(.|\n)*refcomp\.all\(a, b\)",
    ),
    "indices": (lambda: A[1] + 1, "A has 2 dimensions and is read with 1 index"),
    "float index": (lambda: A[0.5, 0], r"0\.5 is not an index or extent\n.*use an integer"),
    "dtype": (lambda: rc.placeholder((4,), "float33"), r"unknown dtype 'float33'\n.*use one of bo"),
    "negative extent": (lambda: rc.compute((-4,), lambda i: i), "dimension cannot be negative: -4"),
}
SCHEDULES = {
    "tensor of another": (
        lambda: rc.create_schedule(B)[OTHER],
        "other is not part of this schedule\n  where: the schedule has the stages A, B\n  why: it",
    ),
    "axis of another": (
        lambda: scheduled()[0].split(OTHER.op.axis[0], factor=2),
        rf"cannot split axis i of stage B\n{QUOTATION}  where: stage B, .*\n  why: it is no",
    ),
    "argument of another": (
        lambda: rc.lower(rc.create_schedule(B), [A, B, OTHER]),
        "other is not part of this schedule",
    ),
    "argument left out": (
        lambda: rc.lower(rc.create_schedule(B), [B]),
        "the arguments lack A(.|\n)*what to do: add them",
    ),
    "vector length of a symbol": (
        lambda: (s := scheduled())[0].vectorize(s[1]),
        r"cannot vectorize axis i(.|\n)*not a constant known when(.|\n)*split it by a factor and",
    ),
    "negative vector length": (
        lambda: (s := scheduled())[0].split(s[2], factor=-4),
        r"with factor -4(.|\n)*factor must be an int of at least 1, known when the schedule is",
    ),
    "target": (
        lambda: rc.build(rc.create_schedule(B), [A, B], target="lvm"),
        "unknown target 'lvm'\n  what to do: did you mean llvm\\? use one of\n    llvm: machine",
    ),
}
TEXTS = {
    "end": (text("B[0] ="), r"^expected an expression, found `}`\n  --> <stdin>:3:1\n"),
    "name": (text("B[0] = b"), r"^unknown variable `b`\n  --> <stdin>:2:10\n"),
    "type": (
        text("B[0] = 1"),
        r"^a value of dtype i64 is stored to B, which holds f32\n  --> <stdin>:2:3\n",
    ),
    "negative lanes": (
        text("B@[ramp(0, 1, -8)] = 1.0f32"),
        r"^expected the number.*\n  --> <stdin>:2:17\n",
    ),
    "lanes of a symbol": (
        text("B@[ramp(0, 1, n)] = 1.0f32"),
        r"^.*, a constant, f.*\n  --> <stdin>:2:17\n",
    ),
    "vector length of a symbol": (
        text("for i in range(n) vectorized { B[0] = 1.0f32 }"),
        r"^the extent of a loop that is vectorized must be a constant.*\n  --> <stdin>:2:3\n",
    ),
}
CASES = [
    pytest.param(program, message, id=f"{group}: {name}")
    for group, cases in (
        ("call", CALLS),
        ("expression", EXPRESSIONS),
        ("schedule", SCHEDULES),
        ("text", TEXTS),
    )
    for name, (program, message) in cases.items()
]


@pytest.mark.parametrize(("program", "message"), CASES)
def test_a_mistake_is_told(program: Callable[[], Any], message: str) -> None:
    with pytest.raises(rc.UserError, match=message):
        program()


def add(name: str = "add") -> Any:
    a = rc.placeholder((N,), name="A")
    b = rc.compute((N,), lambda i: a[i] + 1, name="B")
    return rc.build(rc.create_schedule(b), [a, b], target="llvm", name=name)


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("", r"llc: none found(.|\n)*what to do: apt-get install llvm"),
        ("LLVM version 3.4.2", r"3\.4\.2(.|\n)*what to do: apt-get install llvm"),
    ],
    ids=["missing", "too old"],
)
def test_a_tool_that_cannot_be_used(
    version: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("llc", "opt", "ld.lld") if version else ():
        (tools / name).write_text(f"#!/bin/sh\necho '{version}'\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("REFCOMP_LLVM", str(tools))
    monkeypatch.setenv("REFCOMP_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(rc.ToolchainError, match=message) as caught:
        add()
    assert str(tools) in str(caught.value)


@pytest.mark.llvm
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "echo 'opt: out of luck' >&2; exit 3",
            r"^opt failed(.|\n)*exit status 3(.|\n)*out of luck",
        ),
        ("sleep 600", r"^opt was not done after 0\.5 s(.|\n)*REFCOMP_TOOL_TIMEOUT"),
    ],
    ids=["fails", "hangs"],
)
def test_a_step_that_goes_wrong(
    body: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opt = find_tools(load_description("llvm")).paths["opt"]
    script = tmp_path / "opt"
    script.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then exec {opt} "$@"; fi\n{body}\n')
    script.chmod(0o755)
    monkeypatch.setenv("REFCOMP_OPT", str(script))
    monkeypatch.setenv("REFCOMP_CACHE_DIR", str(tmp_path / "cache"))
    vector_bits("native")  # asked now, so that only the script meets the time limit
    host_triple_and_layout()
    monkeypatch.setenv("REFCOMP_TOOL_TIMEOUT", "0.5" if "sleep" in body else "60")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(rc.ToolchainError, match=message) as caught:
        add("unlucky")
    error = caught.value
    assert error.command[0] == str(script)
    assert error.kept is not None
    assert "@unlucky(" in (error.kept / "kernel.ll").read_text(encoding="utf-8")
    assert f"kept: {error.kept}" in str(error)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda data: data[: len(data) // 2],
            r"this is not an ONNX model, or a damaged one\n  why: ",
        ),
        (lambda data: b"GIF89a" + data[:99], r"not an ONNX model(.|\n)*download it again"),
        (lambda data: b"", "the model is empty"),
    ],
    ids=["truncated", "foreign", "empty"],
)
def test_a_damaged_model(damage: Callable[[bytes], bytes], message: str) -> None:
    pytest.importorskip("onnx")
    with pytest.raises(rc.UserError, match=message):
        rc.from_onnx(damage((DIGITS / "digits.onnx").read_bytes()))


@pytest.mark.search
def test_an_input_that_is_not_there() -> None:
    pytest.importorskip("onnx")
    graph = rc.from_onnx(DIGITS / "digits.onnx")
    executor = rc.GraphExecutor(rc.compile_graph(graph, "interp"))
    image = np.zeros((1, 1, 8, 8), np.float32)
    with pytest.raises(rc.UserError, match=r"no input 'picture'\n.*image: f32\[N, 1, 8, 8\]"):
        executor.run(picture=image)
    with pytest.raises(rc.UserError, match=r"no value is given for input 'image'"):
        executor.run()


@pytest.mark.llvm
def test_damaged_cache_entries_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFCOMP_CACHE_DIR", str(tmp_path))
    add()
    entries = [path for path in Cache(tmp_path).root.glob("entries/*/*") if path.is_file()]
    assert entries
    kept = {path: path.read_bytes() for path in entries}
    for path, data in kept.items():
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    result = np.zeros(3, np.float32)
    add()(np.arange(3, dtype=np.float32), result)
    assert result.tolist() == [1, 2, 3]
    code = max(entries, key=lambda path: len(kept[path]))
    assert code.read_bytes() == kept[code]


@pytest.mark.llvm
@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (
            "refcomp_version",
            "99.0",
            r"was written by refcomp 99\.0 (.|\n)*compile and save the mod",
        ),
        (
            "machine",
            "vax",
            r"has code for vax, this machine is (.|\n)*save the module on this ma",
        ),
        ("cpu_features", ["avx9000"], "a processor with avx9000, which this one lacks"),
    ],
)
def test_a_module_file_from_elsewhere(field: str, value: Any, message: str, tmp_path: Path) -> None:
    add().save(tmp_path / "module")
    with zipfile.ZipFile(tmp_path / "module") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["manifest.json"]) | {field: value}
    with zipfile.ZipFile(tmp_path / "changed", "w") as archive:
        for name, data in (members | {"manifest.json": json.dumps(manifest).encode()}).items():
            archive.writestr(name, data)
    with pytest.raises(rc.UserError, match=message):
        rc.load_module(tmp_path / "changed")


def test_every_deliberate_failure_has_one_base() -> None:
    for kind in (rc.UserError, rc.Unsupported, rc.ToolchainError, rc.CompilerBug):
        assert issubclass(kind, RefcompError)
