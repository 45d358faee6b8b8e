"""The state of tools: what changes the result of a search is watched."""

import os

import pytest

from refcomp.foundation.surroundings import state_of
from refcomp.toolchain import find, load_description
from refcomp.toolchain.tools_state import _with_parents, tools_state


def _now(state):
    return state_of(state.variables, state.paths)


def test_a_toolchain_has_the_identity_of_its_tools(fake_tools):
    fake_tools.add_all()
    state = tools_state(["llvm"])
    assert find.find_tools(load_description("llvm")).identity in state.identity.replace("\\n", "\n")
    assert "PATH" in state.variables and "REFCOMP_LLC" in state.variables


def test_a_tool_that_is_added_or_replaced_is_seen(fake_tools, monkeypatch):
    fake_tools.add_all()
    state = tools_state(["llvm"])
    before = _now(state)
    assert _now(state) == before
    folder = os.path.dirname(find.find_tools(load_description("llvm")).paths["llc"])
    assert folder in state.paths
    os.utime(folder, (1, 1))
    touched = _now(state)
    monkeypatch.setenv("REFCOMP_OPT", "/another/opt")
    assert len({before, touched, _now(state)}) == 3


def test_tools_that_are_missing_have_no_identity(monkeypatch):
    monkeypatch.setenv("REFCOMP_LLVM", "/nowhere")
    state = tools_state(["llvm"])
    assert state.identity == "" and "REFCOMP_LLVM" in state.variables
    assert "/nowhere/bin" in state.paths


def test_one_complete_toolchain_of_several_is_enough(fake_tools, monkeypatch):
    fake_tools.add_all()
    monkeypatch.setenv("REFCOMP_PTXAS", "/nowhere/ptxas")
    assert tools_state(["llvm", "ptxas"]).identity
    assert "/nowhere/ptxas" in tools_state(["llvm", "ptxas"]).paths


def test_variables_that_tools_read_count(monkeypatch):
    monkeypatch.setenv("REFCOMP_NVCC", "/nowhere/nvcc")
    assert "NVCC_APPEND_FLAGS" in tools_state(["cuda"]).variables


@pytest.mark.parametrize("below", ["cuda-12/bin", "cuda-13"])
def test_a_match_of_a_glob_that_appears_is_seen(tmp_path, below):
    (tmp_path / "cuda-12").mkdir()
    os.utime(tmp_path / "cuda-12", (1, 1))
    os.utime(tmp_path, (1, 1))
    paths = list(_with_parents([f"{tmp_path}/cuda-*/bin"]))
    before = state_of([], paths)
    (tmp_path / below).mkdir(parents=True)
    assert state_of([], paths) != before
