"""Manifests: there and back, and every check with its message."""

import configparser
import gc
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import refcomp
from refcomp.foundation import machine
from refcomp.foundation.artifacts import Binary, ScalarParam, Signature, TensorParam
from refcomp.foundation.dtype import F32, I64
from refcomp.foundation.errors import UserError
from refcomp.runtime.files.manifest import (
    LINKED,
    ModuleContents,
    ObjectContents,
    pack,
    pack_description,
    unpack,
)

SIGNATURES = (
    Signature("f", (TensorParam("A", F32, ("n", ("add", "n", 1)), True),), ("n",)),
    Signature("g", (ScalarParam("k", I64),)),
)
CONTENTS = ModuleContents(
    signatures=SIGNATURES,
    entry="g",
    target="llvm -mcpu=native",
    binary=Binary(b"machine code", "so"),
    symbols={"f": "f", "g": "g_4711"},
    sources={"llvm": "; é\n", "loop_ir": "func f\n\udc80"},
    cpu_features=tuple(sorted(machine.cpu_features()))[:3],
    libraries=("libm.so.6",),
)


def _changed(change: Any, contents: ModuleContents = CONTENTS) -> dict[str, bytes]:
    """The members with `change` applied to the manifest's JSON value."""
    members = pack(contents)
    manifest = json.loads(members["manifest.json"])
    change(manifest)
    return members | {"manifest.json": json.dumps(manifest).encode()}


def _refusal(members: dict[str, bytes]) -> str:
    with pytest.raises(UserError) as caught:
        unpack("file", members)
    assert caught.value.remedy
    return str(caught.value)


def test_there_and_back() -> None:
    assert unpack("file", pack(CONTENTS)) == CONTENTS
    assert list(pack(CONTENTS)) == ["manifest.json", "binary", "sources/llvm", "sources/loop_ir"]


def test_a_description_has_all_but_the_code() -> None:
    members = pack_description(CONTENTS)
    assert list(members) == ["manifest.json", "sources/llvm", "sources/loop_ir"]
    linked = Binary(b"", LINKED)
    assert unpack("file", members) == replace(CONTENTS, binary=linked, libraries=())


def test_a_description_of_code_for_another_machine_names_its_processor() -> None:
    contents = ObjectContents("riscv64-linux-gnu", SIGNATURES, "llvm -mtriple=...", {"llvm": ""})
    members = pack_description(contents)
    manifest = json.loads(members["manifest.json"])
    assert (manifest["machine"], manifest["entry"]) == ("riscv64", "f")
    assert "has code for riscv64, this machine is" in _refusal(members)


def test_the_manifest_tells_what_is_needed() -> None:
    manifest = json.loads(pack(CONTENTS)["manifest.json"])
    assert manifest["refcomp_version"] == refcomp.__version__
    assert manifest["machine"] == machine.machine()
    assert manifest["target"] == "llvm -mcpu=native"
    assert manifest["libraries"] == ["libm.so.6"]
    assert manifest["cpu_features"] == list(CONTENTS.cpu_features)
    assert manifest["members"]["binary"]["size"] == 12
    assert len(manifest["members"]["binary"]["sha256"]) == 64


def test_the_version_is_the_packages() -> None:
    config = configparser.ConfigParser()
    config.read(Path(refcomp.__file__).parents[1] / "setup.cfg", encoding="utf-8")
    declared = config.get("metadata", "version")
    assert declared in (refcomp.__version__, "attr: refcomp.__version__")


def test_another_version() -> None:
    text = _refusal(_changed(lambda m: m.update(refcomp_version="9.9")))
    assert text == (
        f"file was written by refcomp 9.9 (format 1), this is refcomp {refcomp.__version__} "
        "(format 1)\n"
        "  why: the calling convention of machine code may differ between versions\n"
        "  what to do: compile and save the module again, or install refcomp 9.9"
    )
    for change in ({"format_version": 2}, {"format_version": None}, {"refcomp_version": [1]}):
        assert "was written by refcomp" in _refusal(_changed(lambda m, c=change: m.update(c)))


def test_another_machine() -> None:
    assert _refusal(_changed(lambda m: m.update(machine="vax"))) == (
        f"file has code for vax, this machine is {machine.machine()}\n"
        "  what to do: compile and save the module on this machine"
    )


def test_a_processor_that_can_less() -> None:
    contents = replace(CONTENTS, cpu_features=(*CONTENTS.cpu_features, "warp9", "time_travel"))
    text = _refusal(pack(contents))
    assert text.startswith(
        "file was compiled for a processor with time_travel, warp9, which this one lacks\n"
        f"  why: this machine has {machine.cpu_name()}; the target was llvm -mcpu=native\n"
    )
    assert "-mcpu=x86-64-v2" in text


def test_changed_members() -> None:
    members = pack(CONTENTS)
    for name in ("binary", "sources/llvm"):
        text = _refusal(members | {name: members[name] + b"!"})
        assert f"file is damaged\n  why: member {name} was changed after saving" in text


def test_missing_and_added_members() -> None:
    members = pack(CONTENTS)
    without = {name: data for name, data in members.items() if name != "binary"}
    for changed, name in ((without, "binary"), (members | {"sources/x": b""}, "sources/x")):
        assert f"manifest and members differ in {name}" in _refusal(changed)


@pytest.mark.parametrize("raw", [b"[]", b'{"format": "zip"}', b"null"])
def test_foreign_manifests(raw: bytes) -> None:
    text = _refusal({"manifest.json": raw})
    assert "file is a zip archive, but not a module file" in text
    assert "does not say 'refcomp module'" in text


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff\xfe\x00", b"[" * 100_000, b'{"a": 1' * 3])
def test_manifests_that_are_no_json(raw: bytes) -> None:
    assert "file is damaged\n  why: its manifest is malformed" in _refusal({"manifest.json": raw})


@pytest.mark.search
def test_no_finalizer_runs_deep_within_a_manifest(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would fail there, for want of stack."""
    failed: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", failed.append)
    room = sys.getrecursionlimit()

    class Cyclic:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            json.loads("[" * (room // 2) + "]" * (room // 2))

    threshold = gc.get_threshold()
    try:
        gc.collect()
        Cyclic()
        gc.set_threshold(room * 2 // 3)  # the collector runs so many lists further on
        _refusal({"manifest.json": b"[" * 100_000})
    finally:
        gc.set_threshold(*threshold)
    gc.collect()
    assert failed == []


def _fields() -> list[str]:
    return list(json.loads(pack(CONTENTS)["manifest.json"]))


@pytest.mark.parametrize("field", _fields())
def test_no_field_may_be_missing_or_of_another_type(field: str) -> None:
    _refusal(_changed(lambda m: m.pop(field)))
    for value in (None, 1, [1], {"a": 1}, "text", [["x"]], [{}]):
        try:
            unpack("file", _changed(lambda m, v=value: m.update({field: v})))
        except UserError:
            continue
        is_allowed = isinstance(value, str) or (field, value) == ("format_version", 1)
        assert is_allowed, f"{field} may not be {value!r}"


@pytest.mark.parametrize(
    "signature",
    [
        {},
        {"name": "f", "params": [{}], "symbols": []},
        {"name": "f", "params": [{"name": "A", "dtype": "f99"}], "symbols": []},
        {
            "name": "f",
            "params": [{"name": "A", "dtype": "f32", "shape": [["pow", 1, 2]], "is_output": 1}],
            "symbols": [],
        },
    ],
)
def test_malformed_signatures(signature: Any) -> None:
    members = _changed(lambda m: m["functions"][0].update(signature=signature))
    assert "file is damaged\n  why: its manifest is malformed: " in _refusal(members)


def test_deeply_nested_dimensions_do_not_exhaust_the_stack() -> None:
    depth = 20_000
    members = pack(CONTENTS)
    nested = b'["add",1,' * depth + b"1" + b"]" * depth
    raw = members["manifest.json"].replace(b'"shape": [', b'"shape": [' + nested + b",")
    assert raw != members["manifest.json"]
    assert "is damaged" in _refusal(members | {"manifest.json": raw})
