"""$REFCOMP_KEEP: inputs, outputs and commands that make the one of the other, elsewhere, too."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from refcomp.foundation.artifacts import Source
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.toolchain import compile_source, load_description
from refcomp.toolchain.keep import keep_run
from tests.codegen.amdgpu.kernels import compile_kernels
from tests.codegen.device_kernels import device_kernel

SOURCE = Source("one\ntwo\n", "llvm", ("A[i] = 1", ""))


def _fail() -> None:
    with pytest.raises(ToolchainError, match="opt failed"):
        compile_source(SOURCE, {}, "so")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where runs are kept, which is not there yet."""
    folder = tmp_path / "deep" / "kept"
    monkeypatch.setenv("REFCOMP_KEEP", str(folder))
    return folder


@pytest.mark.rocm
def test_the_commands_make_the_outputs_again(kept: Path, tmp_path: Path) -> None:
    code = compile_kernels([device_kernel("softmax")], "gfx90a")
    (folder,) = kept.iterdir()
    assert folder.name.startswith("rocm-")
    names = {path.name for path in folder.iterdir()}
    assert names == {
        *("kernel.ll", "link_library.bc", "optimize.bc", "emit_object.o", "link.hsaco"),
        "commands.sh",
    }
    elsewhere = tmp_path / "else where"
    shutil.copytree(folder, elsewhere)
    for path in elsewhere.iterdir():
        if path.name not in ("kernel.ll", "commands.sh"):
            path.unlink()
    subprocess.run([elsewhere / "commands.sh"], cwd="/", check=True, timeout=60)
    assert (elsewhere / "link.hsaco").read_bytes() == code.data
    assert str(tmp_path / "temporary") not in (folder / "commands.sh").read_text()


@pytest.mark.rocm
def test_nothing_is_taken_from_the_cache_and_equal_runs_are_kept_once(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REFCOMP_KEEP")
    first = compile_kernels([device_kernel("matmul")])
    monkeypatch.setenv("REFCOMP_KEEP", str(kept))
    for _ in range(2):
        assert compile_kernels([device_kernel("matmul")]) == first
    assert len(list(kept.iterdir())) == 1
    compile_kernels([device_kernel("matmul")], "gfx1100")
    assert len(list(kept.iterdir())) == 2


def test_variables_that_a_tool_reads_itself_are_in_the_script(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    description = replace(load_description("cuda"), environment=("NVCC_CCBIN", "OTHER"))
    monkeypatch.setenv("NVCC_CCBIN", "/usr/bin/g++ 12")
    source = tmp_path / "in" / "kernel.cu"
    source.parent.mkdir()
    source.touch()
    keep_run([source], description, [("nvcc", str(source))])
    (script,) = kept.glob("cuda-*/commands.sh")
    assert "export NVCC_CCBIN='/usr/bin/g++ 12'\nnvcc kernel.cu" in script.read_text()
    assert "OTHER" not in script.read_text()


def test_what_failed_is_kept_too(fake_tools, kept: Path) -> None:
    fake_tools.add_all()
    fake_tools.add("opt", body='case "$*" in *--version*) ;; *) exit 1 ;; esac')
    _fail()
    (folder,) = kept.iterdir()
    assert {path.name for path in folder.iterdir()} == {"kernel.ll", "commands.sh"}
    last = (folder / "commands.sh").read_text().splitlines()[-1]
    assert last.startswith(f"{fake_tools.bin}/opt ") and " kernel.ll " in last


@pytest.mark.search
def test_a_folder_that_cannot_be_written(fake_tools, tmp_path: Path, monkeypatch) -> None:
    fake_tools.add_all()
    (tmp_path / "file").touch()
    monkeypatch.setenv("REFCOMP_KEEP", str(tmp_path / "file"))
    with pytest.raises(UserError, match="what was run cannot be kept in") as caught:
        compile_source(SOURCE, {"mcpu": "native"}, "so")
    assert "environment variable REFCOMP_KEEP" in str(caught.value)
