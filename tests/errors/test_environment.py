"""Every environment variable that refcomp reads: a value that makes no sense is refused by name."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import refcomp as rc
from refcomp.driver.progress import build_progress
from refcomp.foundation.cache import default_cache
from refcomp.foundation.errors import RefcompError
from refcomp.foundation.options import current_options
from refcomp.runtime.cuda.library import import_pycuda
from refcomp.runtime.hip.library import load_hip
from refcomp.runtime.host.threads import set_thread_count
from refcomp.toolchain import find_tools, load_description
from refcomp.toolchain.find import find_tool
from refcomp.toolchain.run import tool_timeout_s

ROOT = Path(__file__).parents[2]


def build() -> None:
    a = rc.placeholder((4,), name="A")
    b = rc.compute((4,), lambda i: a[i] + 1, name="B")
    rc.build(rc.create_schedule(b), [a, b], "llvm")


def tools(name: str) -> Callable[[], Any]:
    return lambda: find_tools(load_description(name))


def tool(name: str, key: str) -> Callable[[], Any]:
    return lambda: find_tool(load_description(name), key)


# Name: what reads it, and values that make no sense.
REFUSED: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "REFCOMP_BUILD_CACHE": (build, ("yes", "2")),
    "REFCOMP_CACHE_LIMIT": (default_cache, ("2G", "-1", "9" * 5000)),
    "REFCOMP_CERTIFY": (current_options, ("yes", "2")),
    "REFCOMP_CHECK_BOUNDS": (current_options, ("yes", "2")),
    "REFCOMP_CLANG": (tools("opencl_c"), ("/nowhere",)),
    "REFCOMP_CUDA": (import_pycuda, ("gpu", "emulator:sm_1", "emulator:sm_90:odd")),
    "REFCOMP_CUOBJDUMP": (tool("sass", "cuobjdump"), ("/nowhere",)),
    "REFCOMP_LLC": (tools("llvm"), ("/nowhere", "/bin/true")),
    "REFCOMP_LLD": (tools("llvm"), ("/nowhere",)),
    "REFCOMP_LLVM": (tools("llvm"), ("/nowhere", "/etc/passwd")),
    "REFCOMP_NUM_THREADS": (lambda: set_thread_count(None), ("0", "many", "9" * 5000)),
    "REFCOMP_NVCC": (tools("cuda"), ("/nowhere",)),
    "REFCOMP_NVDISASM": (tools("sass"), ("/nowhere",)),
    "REFCOMP_NVPTX_LLVM": (tools("nvptx"), ("/nowhere",)),
    "REFCOMP_OCLGRIND": (tools("opencl"), ("/nowhere",)),
    "REFCOMP_OPT": (tools("llvm"), ("/nowhere",)),
    "REFCOMP_PROGRESS": (lambda: build_progress(1).__enter__(), ("no", "2")),
    "REFCOMP_PTXAS": (tools("ptxas"), ("/nowhere",)),
    "REFCOMP_ROCM": (load_hip, ("gpu", "emulator:gfx1", "emulator:gfx942:odd")),
    "REFCOMP_ROCM_LLVM": (tools("rocm"), ("/nowhere",)),
    "REFCOMP_TOOL_TIMEOUT": (tool_timeout_s, ("soon", "-1", "1e308", "9" * 5000)),
    "REFCOMP_VERIFY_STEPS": (current_options, ("yes", "2")),
}
# Read where a build goes through tools; a folder that cannot be written is refused.
FOLDERS = ("REFCOMP_DUMP", "REFCOMP_KEEP")
# Any text is a folder: where it cannot be written, refcomp works without a cache.
NEVER_REFUSED = ("REFCOMP_CACHE_DIR",)
# Shown beside an error, which it must not replace: tests/foundation/test_tracebacks.py.
TOLD_WITH_ANOTHER = ("REFCOMP_TRACEBACK",)

CASES = [(name, value) for name, (_, values) in REFUSED.items() for value in values]


@pytest.mark.tools
@pytest.mark.parametrize(("name", "value"), CASES, ids=lambda text: text[:20])
def test_a_value_without_sense_is_refused_by_the_name_of_its_variable(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(RefcompError) as caught:
        REFUSED[name][0]()
    assert name in str(caught.value)
    assert caught.value.remedy


@pytest.mark.llvm
@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_that_cannot_be_written_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("here is no folder")
    monkeypatch.setenv("REFCOMP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv(name, str(tmp_path / "file"))
    with pytest.raises(RefcompError, match=f"environment variable {name}(.|\n)*unset it"):
        build()


def test_no_variable_is_forgotten() -> None:
    files = [*(ROOT / "refcomp").rglob("*.py"), *(ROOT / "toolchains").glob("*.toml")]
    named = {name for file in files for name in re.findall(r"REFCOMP_[A-Z_]+", file.read_text())}
    known = {*REFUSED, *FOLDERS, *NEVER_REFUSED, *TOLD_WITH_ANOTHER}
    assert named - {"REFCOMP_NAMES"} == known
