"""Toolchains made of small scripts, an own cache, and an environment without settings."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from refcomp.toolchain import find

# Answers --version, notes each start in $LOG, and copies its first file to the output.
_FAKE_TOOL = """\
#!/bin/sh
echo "$(basename "$0")" "$@" >> "{log}"
if [ "$1" = --version ]; then echo "LLVM version {version}"; exit 0; fi
{body}
"""
COPY = """
while [ $# -gt 0 ]; do
  case "$1" in -o) output="$2"; shift;; /*) [ -n "$input" ] || input="$1";; esac
  shift
done
cp "$input" "$output"
"""


class FakeTools:
    """A folder of fake tools, and how often they were started."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        self.log = folder / "log"

    def add(self, name: str, version: str = "19.1.7", body: str = COPY) -> Path:
        """Write the tool `name`."""
        path = self.bin / name
        path.write_text(_FAKE_TOOL.format(log=self.log, version=version, body=body))
        path.chmod(0o755)
        return path

    def add_all(self, suffix: str = "", version: str = "19.1.7") -> None:
        """Write opt, llc and ld.lld."""
        for name in ("opt", "llc", "ld.lld"):
            self.add(name + suffix, version)

    def starts(self) -> list[str]:
        """The command line of each start so far, without folders of the tools."""
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture(autouse=True)
def own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache, nothing remembered, and no variable that chooses tools."""
    for name in [name for name in os.environ if name.startswith("REFCOMP_")]:
        monkeypatch.delenv(name)
    for name in ("ROCM_PATH", "CUDA_HOME", "CUDA_PATH", "HIP_DEVICE_LIB_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("REFCOMP_CACHE_DIR", str(tmp_path / "cache"))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))


@pytest.fixture
def fake_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTools:
    """An empty folder for fake tools, which is the only place where tools are sought."""
    tools = FakeTools(tmp_path / "fake")
    monkeypatch.setenv("REFCOMP_LLVM", str(tmp_path / "fake"))
    return tools


@pytest.fixture
def as_another_process(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Forget what this process has found, as if the next call were the first of another."""

    def forget() -> None:
        monkeypatch.setattr(find, "_FOUND", {})
        monkeypatch.setattr(find, "_FOUND_FILES", {})

    return forget
