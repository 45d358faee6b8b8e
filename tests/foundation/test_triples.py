"""Triples: which machines code is made for, and which of them is this one."""

import pytest

from refcomp.foundation import triples
from refcomp.foundation.errors import UserError
from refcomp.foundation.triples import (
    ARCHITECTURES,
    architecture_of,
    check_attributes,
    is_this_host,
)


@pytest.mark.parametrize(
    "triple, name",
    [
        ("x86_64-pc-linux-gnu", "x86_64"),
        ("arm64-linux-gnu", "aarch64"),
        ("aarch64-linux-android", "aarch64"),
        ("armv7l-linux-gnueabihf", "arm"),
        ("thumbv7-unknown-linux-gnueabi", "arm"),
        ("arm-linux-gnueabihf", "arm"),
        ("riscv64-unknown-linux-gnu", "riscv64"),
        ("powerpc64le-linux-gnu", "ppc64le"),
        *((known.example, known.name) for known in ARCHITECTURES),
    ],
)
def test_the_architecture_of_a_triple(triple: str, name: str) -> None:
    assert architecture_of(triple).name == name


@pytest.mark.parametrize(
    "triple, message",
    [
        ("arm64-apple-darwin", "system is not Linux(.|\n)*such as aarch64-linux-gnu"),
        ("armv7", "system is not Linux"),
        ("i686-linux-gnu", "does not know that floats and memory of 'i686' fit"),
        ("amdgcn", "of 'amdgcn' fit(.|\n)*targets of their own, such as rocm and cuda"),
        ("aarch64_be-linux-gnu", "of 'aarch64_be' fit"),
        ("armv6-linux-gnueabihf", "of 'armv6' fit(.|\n)*armv7-linux-gnueabihf"),
        ("x", "no code can be made for the machine 'x'"),
    ],
)
def test_machines_without_code(triple: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        architecture_of(triple)


def test_the_triple_of_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triples, "machine", lambda: "aarch64")
    for triple in ("aarch64-linux-gnu", "arm64-unknown-linux-gnu", "aarch64-linux"):
        assert is_this_host(triple)
    for triple in ("aarch64-linux-android", "aarch64-linux-musl", "x86_64-linux-gnu"):
        assert not is_this_host(triple)


def test_features_belong_to_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triples, "machine", lambda: "x86_64")
    check_attributes("+neon,-crypto", "aarch64-linux-gnu")
    for triple in ("", "x86_64-linux-gnu"):
        with pytest.raises(UserError, match=r"\+avx is an option of code for another machine"):
            check_attributes("+avx", triple)
    for wrong in ("neon", "+", "+a,,+b", "+a b", "+ä"):
        with pytest.raises(UserError, match=r"is not a list of features(.|\n)*\+neon,-crypto"):
            check_attributes(wrong, "aarch64-linux-gnu")
