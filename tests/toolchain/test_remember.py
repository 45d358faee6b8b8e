"""Results are made once per inputs and tools, and serve without tools."""

import shutil

import pytest

from refcomp.foundation.cache import Cache, default_cache
from refcomp.foundation.errors import ToolchainError
from refcomp.toolchain.description import load_description
from refcomp.toolchain.find import FoundTools
from refcomp.toolchain.remember import recall

LLVM = load_description("llvm")


class Maker:
    """Makes numbered results, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, tools: FoundTools) -> bytes:
        self.count += 1
        return f"{self.count} by {tools.version[0]}".encode()


def test_made_once_per_inputs(fake_tools) -> None:
    fake_tools.add_all()
    make = Maker()
    assert recall(default_cache(), LLVM, ("a",), make) == b"1 by 19"
    assert recall(default_cache(), LLVM, ("a",), make) == b"1 by 19"
    assert recall(default_cache(), LLVM, ("b",), make) == b"2 by 19"


def test_made_again_for_other_tools(fake_tools, as_another_process) -> None:
    make = Maker()
    fake_tools.add_all(version="16.0.6")
    assert recall(default_cache(), LLVM, ("a",), make) == b"1 by 16"
    fake_tools.add_all(version="19.1.7")
    as_another_process()
    assert recall(default_cache(), LLVM, ("a",), make) == b"2 by 19"


def test_without_tools_the_last_result_serves(fake_tools, as_another_process) -> None:
    make = Maker()
    for version in ("16.0.6", "19.1.7"):
        fake_tools.add_all(version=version)
        as_another_process()
        recall(default_cache(), LLVM, ("a",), make)
    shutil.rmtree(fake_tools.bin)
    as_another_process()
    assert recall(default_cache(), LLVM, ("a",), make) == b"2 by 19"
    with pytest.raises(ToolchainError, match="no usable"):
        recall(default_cache(), LLVM, ("b",), make)
    assert make.count == 2


def test_without_tools_and_with_a_lost_result_the_tools_are_asked_for(
    fake_tools, as_another_process
) -> None:
    fake_tools.add_all()
    cache = default_cache()
    recall(cache, LLVM, ("a",), lambda tools: b"x" * 1000)
    for path in cache.root.glob("entries/*/*"):
        if path.stat().st_size > 1000:
            path.unlink()
    shutil.rmtree(fake_tools.bin)
    as_another_process()
    with pytest.raises(ToolchainError, match="no usable"):
        recall(cache, LLVM, ("a",), Maker())


def test_without_a_cache_everything_is_made(fake_tools, tmp_path) -> None:
    fake_tools.add_all()
    (tmp_path / "file").touch()
    make = Maker()
    for _ in range(2):
        recall(Cache(tmp_path / "file" / "below"), LLVM, ("a",), make)
    assert make.count == 2


def test_a_failure_is_not_kept(fake_tools) -> None:
    fake_tools.add_all()

    def fail(tools: FoundTools) -> bytes:
        raise ToolchainError("failed")

    with pytest.raises(ToolchainError, match="failed"):
        recall(default_cache(), LLVM, ("a",), fail)
    assert recall(default_cache(), LLVM, ("a",), Maker()) == b"1 by 19"
