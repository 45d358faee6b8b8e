"""The toolchain of AMD GPUs: one LLVM, the device library only where it is needed, known GPUs."""

from pathlib import Path

import pytest

from refcomp.codegen.debug_locations import add_debug_locations
from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.toolchain import compile_source, disassemble, load_description
from refcomp.toolchain.find import find_file, find_tool, find_tools
from tests.codegen.amdgpu.kernels import print_kernels, with_llvm
from tests.codegen.device_kernels import device_kernel
from tests.toolchain.conftest import COPY

PLAIN = Source("text\n", "llvm", entries=("f", "g"))
MATHS = Source("text\n", "llvm", requires=frozenset({"ocml"}), entries=("f",))
HELP = """case "$*" in *mcpu=help*)
  echo "  gfx90a - Select the gfx90a processor."
  echo "  bonaire - Select the bonaire processor."
  echo "  sramecc - Enable something."; exit 0 ;; esac
"""


@pytest.fixture
def rocm_tools(fake_tools, tmp_path, monkeypatch):
    """Fake tools and a device library."""
    monkeypatch.setenv("REFCOMP_ROCM_LLVM", str(tmp_path / "fake"))
    fake_tools.add_all("-19")
    fake_tools.add("llvm-link-19")
    fake_tools.add("llc-19", body=HELP + COPY)
    library = tmp_path / "bitcode"
    library.mkdir()
    (library / "ocml.bc").touch()
    monkeypatch.setenv("HIP_DEVICE_LIB_PATH", str(library))
    return fake_tools


def build(source: Source, **options: str) -> bytes:
    return compile_source(source, options, "hsaco", description="rocm").data


def runs(tools) -> list[str]:
    return [start for start in tools.starts() if "--version" not in start and "=help" not in start]


def test_a_text_without_maths_is_not_linked_with_the_library(rocm_tools) -> None:
    assert build(PLAIN) == b"text\n"
    assert [start.split()[0] for start in runs(rocm_tools)] == ["opt-19", "llc-19", "ld.lld-19"]
    first, second, third = runs(rocm_tools)
    assert "-passes=internalize,default<O3> -internalize-public-api-list=f,g" in first
    assert "-mcpu=gfx90a -mattr= -verify-machineinstrs=1 --amdhsa-code-object-version=4" in second
    assert "-shared --no-undefined" in third


def test_other_entries_are_another_result(rocm_tools) -> None:
    build(PLAIN)
    build(Source(PLAIN.text, "llvm", entries=("f",)))
    assert len(runs(rocm_tools)) == 6
    build(PLAIN)
    assert len(runs(rocm_tools)) == 6


def test_a_text_with_maths_is(rocm_tools, tmp_path: Path) -> None:
    build(MATHS, code_object="5")
    first, second, *rest = runs(rocm_tools)
    assert first.startswith("llvm-link-19 -only-needed ")
    assert f" {tmp_path}/bitcode/ocml.bc -o " in first
    assert second.startswith("opt-19") and "--amdhsa-code-object-version=5" in rest[0]


def test_a_missing_library_is_named_with_where_it_was_sought(rocm_tools, tmp_path, monkeypatch):
    monkeypatch.setenv("HIP_DEVICE_LIB_PATH", str(tmp_path / "gone"))
    build(PLAIN)
    with pytest.raises(ToolchainError, match="ocml was not found") as caught:
        build(MATHS)
    assert f"HIP_DEVICE_LIB_PATH={tmp_path}/gone: ocml.bc" in str(caught.value)
    assert "rocm-device-libs" in str(caught.value)


def test_libraries_of_both_generations_are_found(rocm_tools, tmp_path, monkeypatch) -> None:
    for name, folder in (("ocml.amdgcn.bc", "lib"), ("ocml.bc", "amdgcn/bitcode")):
        root = tmp_path / f"rocm-{name}"
        (root / folder).mkdir(parents=True)
        (root / folder / name).touch()
        monkeypatch.delenv("HIP_DEVICE_LIB_PATH", raising=False)
        monkeypatch.setenv("ROCM_PATH", str(root))
        assert find_file(load_description("rocm"), "ocml") == str(root / folder / name)
        monkeypatch.setenv("HIP_DEVICE_LIB_PATH", str(root / folder))
        assert find_file(load_description("rocm"), "ocml") == str(root / folder / name)


def test_a_library_that_is_newer_than_its_reader(rocm_tools) -> None:
    told = "Unknown attribute kind (86) (Producer: 'LLVM20.0.0' Reader: 'LLVM 19.1.7')"
    rocm_tools.add("llvm-link-19", body=f'echo "{told}" >&2; exit 1')
    with pytest.raises(ToolchainError, match="llvm-link-19 failed") as caught:
        build(MATHS)
    assert "the device library was written by a newer LLVM than reads it" in str(caught.value)
    assert "set HIP_DEVICE_LIB_PATH" in str(caught.value)


@pytest.mark.rocm
def test_the_same_text_gives_the_same_bytes_in_every_folder(tmp_path, monkeypatch) -> None:
    results = set()
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv("REFCOMP_CACHE_DIR", str(tmp_path / name / "cache"))
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / name))
        kernels = [device_kernel(name) for name in ("blocked", "softmax")]
        source, _ = add_debug_locations(print_kernels(kernels), kernels)
        results.add(build(source))
    (result,) = results
    assert str(tmp_path).encode() not in result


def test_a_missing_linker_of_bitcode_hinders_nothing_else(rocm_tools) -> None:
    (rocm_tools.bin / "llvm-link-19").unlink()
    build(PLAIN)
    with pytest.raises(ToolchainError, match="no usable llvm-link for the rocm toolchain"):
        build(MATHS)


def test_an_unknown_gpu_is_refused_with_the_known_ones(rocm_tools) -> None:
    with pytest.raises(UserError, match="mcpu 'gfx90b' is unknown to the rocm toolchain") as caught:
        build(PLAIN, mcpu="gfx90b")
    assert "knows: gfx90a\n" in str(caught.value)
    assert "use one of them" in str(caught.value) and "host" not in str(caught.value)


def test_all_tools_are_of_one_llvm(rocm_tools) -> None:
    rocm_tools.add("llc-20", version="20.1.0")
    rocm_tools.add("opt-20", version="20.1.0")
    chain = load_description("rocm")
    found = find_tools(chain)
    assert found.version == (19, 1, 7)
    assert {Path(path).name for path in found.paths.values()} == {"llc-19", "opt-19", "ld.lld-19"}
    assert Path(find_tool(chain, "link")).name == "llvm-link-19"


@pytest.mark.rocm
@pytest.mark.parametrize("llvm", [with_llvm(llvm) for llvm in ("15", "16", "19")])
def test_a_folder_of_tools_is_chosen_by_its_variable(llvm, monkeypatch) -> None:
    monkeypatch.setenv("REFCOMP_ROCM_LLVM", f"/usr/lib/llvm-{llvm}/bin")
    found = find_tools(load_description("rocm"))
    assert found.version[0] == int(llvm)
    assert {str(Path(path).parent) for path in found.paths.values()} == {
        f"/usr/lib/llvm-{llvm}/bin"
    }


def test_what_is_no_machine_code_is_not_disassembled() -> None:
    with pytest.raises(UserError, match="a binary of format 'banana' cannot be disassembled"):
        disassemble(Binary(b"", "banana"))
