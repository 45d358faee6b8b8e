"""Descriptions in objects: a note of ELF, which linkers keep and put beside others."""

import subprocess
from pathlib import Path

import pytest

from refcomp.codegen.llvm.linked_description import with_description
from refcomp.driver.text_forms import make_code
from refcomp.foundation.elf import ElfFile
from refcomp.toolchain.description import load_description
from refcomp.toolchain.find import find_tool


def text_of(name: str, triple: str = "x86_64-pc-linux-gnu") -> str:
    return f'target triple = "{triple}"\n\ndefine i32 @{name}() {{\n  ret i32 7\n}}\n'


def test_a_note_follows_the_text() -> None:
    text = with_description(text_of("f"), b"ab\0\xff!")
    assert text.startswith(text_of("f"))
    assert text.splitlines()[-2:] == [
        "@refcomp.description = internal constant <{ i32, i32, i32, [8 x i8], [8 x i8] }> "
        '<{ i32 8, i32 5, i32 1, [8 x i8] c"refcomp\\00", '
        '[8 x i8] c"\\61\\62\\00\\ff\\21\\00\\00\\00" }>, section ".note.refcomp", align 4',
        "@llvm.compiler.used = appending global [1 x ptr] [ptr @refcomp.description], "
        'section "llvm.metadata"',
    ]


def test_a_list_of_the_users_own_text_is_extended() -> None:
    own = (
        '@llvm.compiler.used = appending global [1 x ptr] [ptr @own], section "llvm.metadata"\n'
        "@own = internal global i32 1\n"
    )
    text = with_description(own, b"text")
    assert "[2 x ptr] [ptr @own, ptr @refcomp.description]" in text
    assert text.count("\n@llvm.compiler.used") + text.startswith("@llvm.compiler.used") == 1


@pytest.mark.llvm
def test_a_linker_keeps_the_notes_of_all_objects(tmp_path: Path) -> None:
    descriptions = {"f": b"first", "g": b"the second one"}
    for name, description in descriptions.items():
        text = with_description(text_of(name), description)
        (tmp_path / f"{name}.o").write_bytes(make_code(text, "llvm", ".o"))
    lld = find_tool(load_description("llvm"), "lld")
    arguments = ["-shared", "--gc-sections", "--strip-all", "f.o", "g.o", "-o", "lib.so"]
    subprocess.run([lld, *arguments], check=True, cwd=tmp_path)
    notes = (
        b"\x08\0\0\0\x05\0\0\0\x01\0\0\0refcomp\0first\0\0\0"
        b"\x08\0\0\0\x0e\0\0\0\x01\0\0\0refcomp\0the second one\0\0"
    )
    file = ElfFile((tmp_path / "lib.so").read_bytes())
    segments = list(file._segment_headers("PT_NOTE"))
    data = file._data
    assert [data[s["p_offset"] : s["p_offset"] + s["p_filesz"]] for s in segments] == [notes]


@pytest.mark.llvm
@pytest.mark.parametrize("triple", ["aarch64-linux-gnu", "riscv64-linux-gnu"])
def test_objects_for_other_machines_have_the_note(triple: str) -> None:
    text = with_description(text_of("f", triple), b"text")
    data = make_code(text, f"llvm -mtriple={triple}", ".o")
    assert b"\x08\0\0\0\x04\0\0\0\x01\0\0\0refcomp\0text" in data
