"""The texts of a module: which is the default, and what is made only when asked for."""

import pytest

from refcomp.foundation.errors import UserError
from refcomp.runtime.sources import Sources


def test_the_default_is_the_nearest_to_the_target() -> None:
    assert Sources({"loop_ir": "a"}).get() == "a"
    assert Sources({"loop_ir": "a", "cuda": "b"}).get() == "b"
    assert Sources({"loop_ir": "a", "cuda": "b"}).get("loop_ir") == "a"
    assert Sources({"asm": "a", "loop_ir": "b"}, lambda: "c").get() == "a"


def test_assembly_is_made_once() -> None:
    made: list[int] = []
    sources = Sources({}, lambda: f"text {made.append(1)}")
    assert sources.get("asm") == sources.get("asm") == "text None"
    assert made == [1]
    assert Sources({"asm": "given"}, lambda: "made").get("asm") == "given"


def test_classic_names_of_formats() -> None:
    sources = Sources({"llvm": "define"}, lambda: "ret")
    assert (sources.get("ll"), sources.get("s")) == ("define", "ret")
    assert Sources({"llvm": ""}, lambda: "made").get() == ""  # None is no name


def test_unknown_formats() -> None:
    with pytest.raises(UserError, match=r"no source of format 'ptx'\n.*it has: llvm, asm"):
        Sources({"llvm": ""}, lambda: "").get("ptx")
    with pytest.raises(UserError, match=r"no source of format 'loop_ir'\n.*it has: none"):
        Sources({}).get()
