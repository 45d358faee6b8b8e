"""Each suffix names a form, which a module has or refuses."""

import ctypes
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.artifacts import Binary, Signature, Source
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.runtime.files import code_tools
from refcomp.runtime.files.bundle import decompress_members
from refcomp.runtime.files.manifest import JoinedContents, ObjectContents
from refcomp.runtime.files.program_manifest import ProgramContents, pack_program
from refcomp.runtime.files.suffixes import write_form
from refcomp.toolchain.description import load_description
from refcomp.toolchain.find import find_tool


def program(code: Binary | Source) -> ProgramContents:
    return ProgramContents(
        signatures=(),
        launch="",
        kernels=(),
        device="cuda",
        code=code,
        entry="f",
        target="cuda",
        sources={"loop_ir": "loops"},
        device_sources={"cuda": "kernels", "opencl": "others"},
    )


@pytest.mark.parametrize("suffix, text", [(".cu", b"kernels"), (".cl", b"others")])
def test_texts_of_kernels(suffix: str, text: bytes, tmp_path: Path) -> None:
    write_form(str(tmp_path / f"x{suffix}"), "", "cuda", program(Binary(b"c", "cubin")))
    assert (tmp_path / f"x{suffix}").read_bytes() == text


@pytest.mark.parametrize("form", ["hsaco", "cubin", "fatbin", "ptx"])
def test_code_of_kernels(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{form}"
    write_form(str(path), "", "cuda", program(Binary(b"code", form)))
    assert path.read_bytes() == b"code"


def test_an_object_of_a_device_is_its_description(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described: list[bytes] = []

    def describe(text: str, description: bytes) -> str:
        described.append(description)
        return f"{text}note"

    monkeypatch.setattr(code_tools, "_DESCRIBERS", [describe])
    monkeypatch.setattr(code_tools, "_TOOLS", [lambda *args: str(args).encode()])
    target = "cuda -system-lib=1"
    contents = replace(program(Binary(b"code", "cubin")), target=target)
    write_form(str(tmp_path / "x.o"), "", target, contents)
    assert (tmp_path / "x.o").read_text() == "('note', 'llvm', '.o')"
    assert decompress_members(described[0]) == pack_program(contents)


def test_an_argument_names_the_form_of_any_path(tmp_path: Path) -> None:
    for fmt in ("cu", ".cu"):
        write_form(str(tmp_path / "x.txt"), fmt, "cuda", program(Binary(b"c", "cubin")))
        assert (tmp_path / "x.txt").read_bytes() == b"kernels"
    with pytest.raises(UserError, match="3 is not a suffix"):
        write_form(str(tmp_path / "x"), 3, "cuda", None)


@pytest.mark.parametrize(
    "suffix, message",
    [
        (".tar", r"no form of a module has the suffix \.tar(.|\n)*end in \.refcomp"),
        (".o", r"target cuda has no file \.o(.|\n)*code for processors(.|\n)*'llvm'"),
        (".s", r"has no file \.s"),
        (".bc", r"has no file \.bc"),
        (".ll", r"target cuda has no text for a file \.ll(.|\n)*it has: cuda, opencl"),
        (".ptx", r"no code for a file \.ptx(.|\n)*'cuda -code=ptx'"),
        (".hsaco", "has no code object"),
    ],
)
def test_forms_that_a_module_does_not_have(suffix: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    with pytest.raises(Unsupported, match=message):
        write_form(str(path), "", "cuda", program(Binary(b"code", "cubin")))
    assert not path.exists()


@pytest.mark.llvm
class TestOfThisHost:
    @pytest.fixture
    def module(self) -> rc.runtime.Module:
        A = rc.placeholder((4,), name="A")
        B = rc.compute((4,), lambda i: A[i] + 1.0, name="B")
        return rc.build(rc.create_schedule(B), [A, B], "llvm", name="increment")

    def test_a_shared_object_is_loaded_back(
        self, module: rc.runtime.Module, tmp_path: Path
    ) -> None:
        path = tmp_path / "f.so"
        module.save(path)
        assert path.read_bytes().startswith(module.contents.binary.data)
        loaded = rc.load_module(path)
        loaded(np.ones(4, "f4"), b := np.zeros(4, "f4"))
        assert b.tolist() == [2, 2, 2, 2]
        assert loaded.get_source("llvm") == module.get_source("llvm")
        loaded.export_library(tmp_path / "again.so")
        assert (tmp_path / "again.so").read_bytes() == path.read_bytes()

    def test_a_changed_or_truncated_shared_object_is_refused(
        self, module: rc.runtime.Module, tmp_path: Path
    ) -> None:
        path = tmp_path / "f.so"
        module.save(path)
        raw = path.read_bytes()
        size = len(module.contents.binary.data)
        for place in range(4, size, 97):
            path.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
            with pytest.raises(UserError, match="member binary was changed after saving"):
                rc.load_module(path)
        for end in range(4, len(raw), 97):
            path.write_bytes(raw[:end])
            with pytest.raises(UserError, match="is a bare shared object"):
                rc.load_module(path)
        for rest in (raw[:10] + raw[20:], raw[:4] + raw[size:]):
            path.write_bytes(rest)
            with pytest.raises(UserError):
                rc.load_module(path)

    def test_llvm_ir(self, module: rc.runtime.Module, tmp_path: Path) -> None:
        module.save(tmp_path / "f.ll")
        assert (tmp_path / "f.ll").read_text() == module.get_source("llvm")

    def test_assembly_bitcode_and_an_object(
        self, module: rc.runtime.Module, tmp_path: Path
    ) -> None:
        for suffix, start in ((".o", b"\x7fELF"), (".bc", b"BC\xc0\xde")):
            module.save(tmp_path / f"f{suffix}")
            assert (tmp_path / f"f{suffix}").read_bytes().startswith(start)
        module.export_library(tmp_path / "f.s")
        assert ".globl\tincrement" in (tmp_path / "f.s").read_text()

    def test_a_linked_object_is_the_code_of_the_module(
        self, module: rc.runtime.Module, tmp_path: Path
    ) -> None:
        module.save(tmp_path / "f.o")
        lld = find_tool(load_description("llvm"), "lld")
        subprocess.run([lld, "-shared", tmp_path / "f.o", "-o", tmp_path / "f.so"], check=True)
        contents = replace(module.contents, binary=Binary((tmp_path / "f.so").read_bytes(), "so"))
        rc.runtime.Module.from_contents(contents)(np.ones(4, "f4"), b := np.zeros(4, "f4"))
        assert b.tolist() == [2, 2, 2, 2]

    def test_without_tools_the_command_is_named(
        self, module: rc.runtime.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(code_tools, "_TOOLS", [])
        message = r"cannot write the file \.o(.|\n)*save\(\"x\.ll\"\), and then llc -O2"
        with pytest.raises(Unsupported, match=message):
            module.save(tmp_path / "f.o")

    def test_a_description_needs_the_tools_of_a_build(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        contents = ObjectContents("riscv64-linux-gnu", (Signature("f", ()),), "", {"llvm": "text"})
        target = "llvm -mtriple=riscv64-linux-gnu -system-lib=1"
        path = tmp_path / "f.ll"
        write_form(str(path), "", target, contents)
        assert path.read_text().startswith("text")
        assert 'section ".note.refcomp"' in path.read_text()
        monkeypatch.setattr(code_tools, "_DESCRIBERS", [])
        message = r"cannot write the description of functions(.|\n)*the program that builds it"
        for suffix in (".ll", ".o"):
            with pytest.raises(Unsupported, match=message):
                write_form(str(tmp_path / f"g{suffix}"), "", target, contents)
        assert list(tmp_path.iterdir()) == [path]

    def test_a_description_is_of_one_target(self, tmp_path: Path) -> None:
        contents = JoinedContents((("llvm -system-lib=1", {"llvm": "text"}), ("opencl", {})))
        with pytest.raises(Unsupported, match="no text that describes its functions(.|\n)*each of"):
            write_form(str(tmp_path / "f.ll"), "", "llvm -system-lib=1, opencl", contents)

    @pytest.mark.parametrize("suffix", [".o", ".s", ".bc", ".ll"])
    def test_files_for_compilers_are_not_loaded(
        self, suffix: str, module: rc.runtime.Module, tmp_path: Path
    ) -> None:
        module.save(tmp_path / f"f{suffix}")
        with pytest.raises(UserError, match=r'for compilers(.|\n)*module\.save\("x\.so"\)'):
            rc.load_module(tmp_path / f"f{suffix}")


def test_a_program_without_tools_writes_no_code_of_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_tools, "_HOLDERS", [])
    with pytest.raises(Unsupported, match=r"has no tools(.|\n)*module\.save\(path\)"):
        write_form(str(tmp_path / "x.so"), "", "cuda", program(Binary(b"code", "cubin")))


@pytest.mark.llvm
class TestDeviceCodeInSharedObjects:
    def built(self, target: str) -> rc.runtime.Module:
        A = rc.placeholder((8,), name="A")
        B = rc.compute((8,), lambda i: A[i] + 1.0, name="B")
        s = rc.create_schedule(B)
        s[B].bind(B.op.axis[0], rc.thread_axis("threadIdx.x"))
        return rc.build(s, [A, B], target, name="increment")

    def check(self, loaded: rc.runtime.Module, device: rc.runtime.Device) -> None:
        a = rc.array(np.arange(8, dtype="f4"), device)
        b = rc.empty((8,), "float32", device)
        loaded["increment"].on(device)(a, b)
        assert b.asnumpy().tolist() == [1, 2, 3, 4, 5, 6, 7, 8]

    @pytest.mark.pocl
    def test_opencl(self, tmp_path: Path) -> None:
        module = self.built("opencl")
        path = tmp_path / "f.so"
        module.export_library(path)
        text = module.imported_modules[0].get_source("opencl").encode()
        library = ctypes.CDLL(str(path))
        size = ctypes.c_int64.in_dll(library, "refcomp_device_code_size").value
        held = (ctypes.c_char * size).in_dll(library, "refcomp_device_code").raw
        assert held == text
        loaded = rc.load_module(path)
        self.check(loaded, rc.opencl())
        loaded.save(tmp_path / "again.refcomp")
        module.save(tmp_path / "first.refcomp")
        again, first = (tmp_path / f"{name}.refcomp" for name in ("again", "first"))
        assert again.read_bytes() == first.read_bytes()

    @pytest.mark.rocm
    def test_an_emulated_gpu(self, tmp_path: Path) -> None:
        self.built("rocm -mcpu=gfx942").export_library(tmp_path / "f.so")
        self.check(rc.load_module(tmp_path / "f.so"), rc.rocm_emulator("gfx942"))

    @pytest.mark.pocl
    def test_a_changed_file_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "f.so"
        self.built("opencl").export_library(path)
        raw = path.read_bytes()
        for place in range(5, raw.index(b"PK\3\4"), 211):
            path.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
            with pytest.raises(UserError, match="member binary was changed after saving"):
                rc.load_module(path)
