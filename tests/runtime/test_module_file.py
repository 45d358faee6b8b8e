"""Module files: what was saved is loaded again, and nothing is loaded that was not checked."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import refcomp
from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.ir.printer import print_funcs
from refcomp.runtime import module_file
from refcomp.runtime.files.archive import read_archive, write_archive
from refcomp.runtime.files.manifest import _fingerprint
from refcomp.runtime.module import Module
from refcomp.runtime.module_file import load_module
from tests.runtime.device_programs import (
    ADD,
    ADD_OPENCL,
    ADD_SIGNATURE,
    STEPS,
    STEPS_OPENCL,
    STEPS_SIGNATURE,
)

pytestmark = pytest.mark.llvm


@pytest.fixture
def path(module: Module, tmp_path: Path) -> Path:
    saved = tmp_path / "add.refcomp"
    module.save(saved)
    return saved


@pytest.fixture
def rewrite(path: Path) -> Callable[[Callable[[dict[str, Any]], None]], None]:
    """Applies a change to the manifest of the saved file."""

    def apply(change: Callable[[dict[str, Any]], None]) -> None:
        members = read_archive(str(path))
        manifest = json.loads(members["manifest.json"])
        change(manifest)
        write_archive(str(path), members | {"manifest.json": json.dumps(manifest).encode()})

    return apply


@pytest.fixture
def nothing_is_loaded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From when the file has been saved."""

    def refuse(*_: object) -> None:
        raise AssertionError("loaded before it was checked")

    monkeypatch.setattr(module_file.Module, "from_contents", refuse)


def test_there_and_back(module: Module, path: Path) -> None:
    loaded = load_module(path)
    assert loaded.signatures == module.signatures
    assert loaded.entry_name == module.entry_name
    assert loaded.target == module.target
    for language in ("loop_ir", "llvm"):
        assert loaded.get_source(language) == module.get_source(language)
    out = np.zeros(3, np.float32)
    loaded(np.ones(3, np.float32), np.ones(3, np.float32), out)
    assert out.tolist() == [2, 2, 2]
    loaded["threads"](seen := np.zeros(1, np.int32))
    assert seen[0] >= 1


def test_a_loaded_module_can_be_saved_again(path: Path, tmp_path: Path) -> None:
    load_module(str(path)).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_assembly_of_a_loaded_module(path: Path, binary: Binary) -> None:
    with pytest.raises(UserError, match="no source of format 'asm'"):
        load_module(path).get_source("asm")
    loaded = load_module(path, disassemble=lambda b: f"{len(b.data)} bytes of {b.format}")
    assert loaded.get_source("asm") == f"{len(binary.data)} bytes of so"


@pytest.mark.usefixtures("nothing_is_loaded")
class TestRefusals:
    """Each before anything of the file is loaded."""

    def test_a_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="nowhere cannot be read"):
            load_module(tmp_path / "nowhere")

    def test_a_bare_shared_object(self, module: Module, tmp_path: Path) -> None:
        (tmp_path / "bare.so").write_bytes(module.contents.binary.data)
        with pytest.raises(UserError, match=r"is a bare shared object(.|\n)*module.save\(path\)"):
            load_module(tmp_path / "bare.so")

    def test_another_version(self, path: Path, rewrite) -> None:
        rewrite(lambda m: m.update(refcomp_version="0.0.1"))
        with pytest.raises(UserError, match=r"add.refcomp was written by refcomp 0\.0\.1"):
            load_module(path)

    def test_another_machine(self, path: Path, rewrite) -> None:
        rewrite(lambda m: m.update(machine="pdp11"))
        with pytest.raises(UserError, match="add.refcomp has code for pdp11, this machine is"):
            load_module(path)

    def test_a_lesser_processor(self, path: Path, rewrite) -> None:
        rewrite(lambda m: m["cpu_features"].append("avx4096"))
        with pytest.raises(UserError, match="for a processor with avx4096, which this one lacks"):
            load_module(path)

    def test_changed_code(self, path: Path) -> None:
        members = read_archive(str(path))
        code = bytearray(members["binary"])
        code[-1] ^= 1
        write_archive(str(path), members | {"binary": bytes(code)})
        with pytest.raises(UserError, match="member binary was changed after saving"):
            load_module(path)

    def test_every_truncation(self, path: Path) -> None:
        raw = path.read_bytes()
        for size in range(0, len(raw), 101):
            path.write_bytes(raw[:size])
            with pytest.raises(UserError, match="add.refcomp is (damaged|not a module file)"):
                load_module(path)

    def test_a_foreign_archive(self, path: Path) -> None:
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("word/document.xml", "<xml/>")
        with pytest.raises(UserError, match="a zip archive, but not a module file"):
            load_module(path)

    def test_libraries_that_the_code_does_not_name(self, path: Path, rewrite) -> None:
        rewrite(lambda m: m.update(libraries=["libevil.so"]))
        with pytest.raises(UserError, match="its manifest and its code need different libraries"):
            load_module(path)

    def test_a_library_that_is_not_there(
        self, path: Path, rewrite, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rewrite(lambda m: m.update(libraries=["libnowhere.so.1"]))
        monkeypatch.setattr(module_file, "needed_libraries", lambda data: ("libnowhere.so.1",))
        with pytest.raises(ToolchainError, match="needs the library libnowhere.so.1"):
            load_module(path)


@pytest.mark.pocl
class TestForDevices:
    """Files whose kernels run on a device; these hold OpenCL text, compiled when loaded."""

    @pytest.fixture
    def saved(self, tmp_path: Path) -> Path:
        module = Module.from_programs(
            [(STEPS_SIGNATURE, STEPS), (ADD_SIGNATURE, ADD)],
            Source(ADD_OPENCL.text + STEPS_OPENCL.text, "opencl"),
            target="opencl",
            device=refcomp.opencl(),
            sources={"loop_ir": "func add"},
            device_sources={"opencl": "text"},
        )
        module.save(tmp_path / "add.refcomp")
        return tmp_path / "add.refcomp"

    def test_there_and_back(self, saved: Path) -> None:
        module = load_module(saved)
        assert module.entry.name == "steps"
        assert module.get_source("loop_ir") == "func add"
        assert module.get_source() == print_funcs([STEPS.host, ADD.host])
        assert module.imported_modules[0].get_source() == "text"
        a, b, c = (refcomp.array(np.full(70, k, np.float32), refcomp.opencl()) for k in range(3))
        module["add"](a, b, c)
        module(c, 3)
        assert c.asnumpy().tolist() == [4] * 70

    def test_a_loaded_module_can_be_saved_again(self, saved: Path, tmp_path: Path) -> None:
        load_module(saved).save(tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == saved.read_bytes()

    def test_text_is_not_disassembled(self, saved: Path) -> None:
        module = load_module(saved, disassemble=lambda b: "made")
        with pytest.raises(UserError, match="no source of format 'asm'"):
            module.imported_modules[0].get_source("asm")

    def test_changed_and_truncated_files(self, saved: Path) -> None:
        members = read_archive(str(saved))
        for name in ("binary", "launch", "device/opencl"):
            write_archive(str(saved), members | {name: members[name] + b" "})
            with pytest.raises(UserError, match=f"member {name} was changed after saving"):
                load_module(saved)
        raw = saved.read_bytes()
        for size in range(0, len(raw), 67):
            saved.write_bytes(raw[:size])
            with pytest.raises(UserError, match="add.refcomp is (damaged|not a module file)"):
                load_module(saved)

    def test_kernels_that_the_compiler_refuses(self, saved: Path) -> None:
        contents = read_archive(str(saved))
        manifest = json.loads(contents["manifest.json"])
        manifest["members"]["binary"] = _fingerprint(b"what is this?")
        raw = json.dumps(manifest).encode()
        write_archive(str(saved), contents | {"manifest.json": raw, "binary": b"what is this?"})
        with pytest.raises(ToolchainError, match="the OpenCL compiler of .* refuses the kernels"):
            load_module(saved)

    def test_a_device_that_is_not_there(self, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module_file, "device", lambda kind: refcomp.opencl(99))
        module = load_module(saved)
        assert module.imported_modules[0].get_source() == "text"
        arrays = [np.zeros(3, np.float32) for _ in range(3)]
        with pytest.raises(UserError, match="this machine has no device opencl:99"):
            module["add"](*arrays)


def test_functions_that_the_code_does_not_have(path: Path, rewrite) -> None:
    rewrite(lambda m: m["functions"][0].update(symbol="nothing"))
    with pytest.raises(UserError, match="the shared object has no function 'nothing'"):
        load_module(path)


def test_an_entry_that_is_not_there(path: Path, rewrite) -> None:
    rewrite(lambda m: m.update(entry="nothing"))
    with pytest.raises(UserError, match="the entry function 'nothing' is not in the module"):
        load_module(path)
