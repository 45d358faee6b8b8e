"""Contents of module files for devices: there and back, and every refusal."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from refcomp.foundation.artifacts import Binary
from refcomp.foundation.errors import RefcompError, UserError
from refcomp.ir.printer import print_func
from refcomp.ir.structure import structurally_equal
from refcomp.runtime.files import program_manifest
from refcomp.runtime.files.manifest import checked_manifest
from refcomp.runtime.files.program_manifest import (
    LAUNCH_LIMIT,
    ProgramContents,
    pack_program,
    read_hosts,
    unpack_program,
)
from refcomp.runtime.launch import AlignedBuffer
from refcomp.runtime.programs.host_walk import compile_host
from tests.runtime.device_programs import (
    ADD,
    ADD_OPENCL,
    ADD_SIGNATURE,
    STEPS,
    STEPS_SIGNATURE,
    signatures_of,
)
from tests.runtime.programs.test_host_walk import Recorder

CONTENTS = ProgramContents(
    signatures=(ADD_SIGNATURE, STEPS_SIGNATURE),
    launch=f"{print_func(ADD.host)}\n{print_func(STEPS.host)}",
    kernels=signatures_of(ADD) + signatures_of(STEPS),
    device="opencl",
    code=replace(ADD_OPENCL, line_map=()),
    entry="add",
    target="opencl",
    sources={"loop_ir": "func é"},
    device_sources={"opencl": ADD_OPENCL.text},
)
_KERNEL = {"name": "k", "symbol": "k", "params": ["buffer"], "loops": []}


def _unpack(members: dict[str, bytes]) -> ProgramContents:
    return unpack_program("file", checked_manifest("file", members), members)


def _read(contents: ProgramContents) -> None:
    read_hosts("file", contents)


def _changed(change: Callable[[dict[str, Any]], Any]) -> dict[str, bytes]:
    members = pack_program(CONTENTS)
    manifest = json.loads(members["manifest.json"])
    change(manifest)
    return members | {"manifest.json": json.dumps(manifest).encode()}


def test_there_and_back() -> None:
    members = pack_program(CONTENTS)
    assert list(members) == [
        "manifest.json",
        "binary",
        "launch",
        "sources/loop_ir",
        "device/opencl",
    ]
    assert _unpack(members) == CONTENTS
    binary = replace(CONTENTS, code=Binary(b"\x7fELF", "hsaco"))
    assert _unpack(pack_program(binary)) == binary
    first, *others = CONTENTS.kernels
    wide = replace(first, aligned=(AlignedBuffer(2, "C", 16),))
    aligned = replace(CONTENTS, kernels=(wide, *others))
    assert _unpack(pack_program(aligned)) == aligned
    assert any(kernel.read_only for kernel in CONTENTS.kernels)


def test_a_file_of_an_earlier_version_says_less_of_buffers() -> None:
    def forget(manifest: dict[str, Any]) -> None:
        for kernel in manifest["kernels"]:
            del kernel["aligned"], kernel["read_only"]

    found = _unpack(_changed(forget)).kernels
    assert [(one.aligned, one.read_only) for one in found] == [((), ())] * len(found)


def test_host_functions_are_read_back() -> None:
    hosts = read_hosts("file", CONTENTS)
    assert [host.name for host in hosts] == ["add", "steps"]
    assert structurally_equal(hosts[0], ADD.host)
    assert structurally_equal(hosts[1], STEPS.host)


def test_an_unknown_kind_of_device() -> None:
    for kind in ("abacus", "cpu"):
        with pytest.raises(UserError) as caught:
            _unpack(_changed(lambda m, kind=kind: m.update(device=kind)))
        assert f"file has kernels for an unknown kind of device '{kind}'" in str(caught.value)
        assert "build the module for one of: cuda, opencl" in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {"device": None},
        {"code": 7},
        {"entry": ["add"]},
        {"functions": 3},
        {"functions": [{"name": "add"}]},
        {"kernels": [{"name": "k"}]},
        {"kernels": [{"name": "k", "symbol": 1, "params": [], "loops": []}]},
        {"kernels": [{"name": "k", "symbol": "k", "params": ["f32x4"], "loops": []}]},
        {"kernels": [{"name": "k", "symbol": "k", "params": ["bf16"], "loops": []}]},
        {"kernels": [{"name": "k", "symbol": "k", "params": ["what"], "loops": []}]},
        {"kernels": [{"name": "k", "symbol": "k", "params": [], "loops": [["x"]]}]},
        {"kernels": [_KERNEL | {"aligned": [["1", "A", "16"]]}]},
        {"kernels": [_KERNEL | {"aligned": [["0", "A", "0"]]}]},
        {"kernels": [_KERNEL | {"aligned": [["0", "A"]]}]},
        {"kernels": [_KERNEL | {"params": ["i64"], "aligned": [["0", "A", "16"]]}]},
        {"kernels": [_KERNEL | {"params": ["i64"], "read_only": ["0"]}]},
        {"kernels": [_KERNEL | {"read_only": ["1"]}]},
        {"kernels": [_KERNEL | {"read_only": ["-1"]}]},
        {"kernels": [_KERNEL | {"read_only": [0]}]},
        {"languages": ["nothing"]},
        {"device_languages": "opencl"},
        {"target": {"kind": "opencl"}},
    ],
    ids=str,
)
def test_malformed_manifests(change: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="file is damaged\n  why: its manifest is malformed"):
        _unpack(_changed(lambda m: m.update(change)))


@pytest.mark.parametrize("key", ["device", "code", "is_binary", "entry", "kernels", "languages"])
def test_missing_entries(key: str) -> None:
    with pytest.raises(UserError, match="its manifest is malformed: KeyError"):
        _unpack(_changed(lambda m: m.pop(key)))


def test_missing_members() -> None:
    for name in ("binary", "launch"):
        members = pack_program(CONTENTS)
        manifest = json.loads(members["manifest.json"])
        del members[name], manifest["members"][name]
        with pytest.raises(UserError, match=f"malformed: KeyError: '{name}'"):
            _unpack(members | {"manifest.json": json.dumps(manifest).encode()})


def test_host_functions_that_are_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        UserError, match=rf"have \d+ bytes of text, and cannot be saved(.|\n)*{1 << 20}"
    ):
        pack_program(replace(CONTENTS, launch=" " * (LAUNCH_LIMIT + 1)))
    members = pack_program(CONTENTS)
    monkeypatch.setattr(program_manifest, "LAUNCH_LIMIT", 10)
    with pytest.raises(UserError, match="malformed: ValueError: host functions of .* more than 10"):
        _unpack(members)


def _checked(host: str) -> str:
    """The function with one parameter more, the status of an access that it checks."""
    text = json.dumps("reads\nA\n0\nn\ni\nB[i] = A[i]\n")
    return host.replace(") {", f", faults: i64[1, 3] out) check {text} {{", 1)


@pytest.mark.parametrize(
    ("launch", "why"),
    [
        ("func f(", "its host functions cannot be read: file: launch:1:8: "),
        ("\x00", "its host functions cannot be read"),
        ("", "it has 0 host functions for 2 signatures"),
        (print_func(ADD.host), "it has 1 host functions for 2 signatures"),
        (
            f"{print_func(ADD.kernels[0])}\n{print_func(STEPS.host)}",
            "its host function add_kernel is not legal: ",
        ),
        (
            f"{print_func(STEPS.host)}\n{print_func(ADD.host)}",
            r"its host function steps does not fit add\(A: f32\[n\]",
        ),
        (
            f"{_checked(print_func(ADD.host))}\n{print_func(STEPS.host)}",
            r"its host function add does not fit add\(A: f32\[n\]",
        ),
    ],
)
def test_host_functions_that_do_not_fit(launch: str, why: str) -> None:
    with pytest.raises(UserError, match=f"file is damaged\n  why: {why}"):
        _read(replace(CONTENTS, launch=launch))


@pytest.mark.search
def test_every_changed_byte_of_the_host_functions_is_survived() -> None:
    """Whoever changes the hashes too gets a UserError or another program, never another error."""
    text = CONTENTS.launch
    kernels = {kernel.name: kernel for kernel in CONTENTS.kernels}
    refused = 0
    for place in range(len(text)):
        for letter in "{9-":
            changed = replace(CONTENTS, launch=text[:place] + letter + text[place + 1 :])
            try:
                for host in read_hosts("file", changed):
                    compile_host(host, kernels, Recorder())
            except RefcompError:
                refused += 1
    assert refused > len(text)


def test_deep_host_functions() -> None:
    deep = "".join(f"if (n > {k}) {{\n" for k in range(1000))
    launch = "launch add_kernel (A, B, C, n) grid (1, 1, 1) block (1, 1, 1)\n"
    head = "func add(A: f32[n], B: f32[n], C: f32[n] out) {\n"
    text = f"{head}{deep}{launch}{'}' * 1001}"
    contents = replace(CONTENTS, signatures=(ADD_SIGNATURE,), launch=text)
    (host,) = read_hosts("file", contents)
    actions = Recorder()
    walk = compile_host(host, {kernel.name: kernel for kernel in CONTENTS.kernels}, actions)
    walk.run([None, None, None, 2000])
    walk.run([None, None, None, 500])
    assert len(actions.launches) == 1


@pytest.mark.parametrize(
    "place", [[0], "text", [0, "1"], [-1, 2], [0, -1], [3, 9], [9, 0], [True, 1]]
)
def test_a_place_of_code_beyond_its_shared_object_is_refused(place):
    with pytest.raises((TypeError, ValueError), match="place of code|no code of"):
        program_manifest._held_code(b"12345", place)
    assert program_manifest._held_code(b"12345", [1, 3]) == b"234"
