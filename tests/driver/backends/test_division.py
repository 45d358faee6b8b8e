"""The bounds of parts: by the size of functions, and by what they share."""

from dataclasses import replace

import pytest

from refcomp.driver.backends import division
from refcomp.driver.backends.division import Division, begin_build
from refcomp.ir.parser import parse_func
from refcomp.ir.rewrite import walk
from refcomp.toolchain import parts


def _func(name, value="1.0f32"):
    return parse_func(f"func {name}(A: f32[n] out) {{ for i in range(n) {{ A[i] = {value} }} }}")


def _divided(funcs):
    divided = Division()
    parts = [divided.add(func) for func in funcs]
    return [[func.name for func in part] for part in (*parts, divided.rest) if part]


@pytest.fixture(autouse=True)
def two_functions(monkeypatch):
    """A part is complete with two functions of this size."""
    nodes = len(list(walk(_func("f").body)))
    monkeypatch.setattr(division, "PART_NODES", nodes + 1)


def test_a_part_is_complete_as_soon_as_it_is_large_enough():
    funcs = [_func(name) for name in "abcde"]
    assert _divided(funcs) == [["a", "b"], ["c", "d"], ["e"]]
    assert _divided(funcs[:4]) == [["a", "b"], ["c", "d"]]
    assert _divided(funcs[:1]) == [["a"]]


def test_a_part_is_returned_only_if_there_is_another_function():
    """Then a module of one part is known to be one, and compiled as one text."""
    divided = Division()
    assert divided.add(_func("a")) == [] and divided.add(_func("b")) == []
    assert len(divided.rest) == 2


@pytest.mark.parametrize("call", ["extern f32 sqrtf(2.0f32)", "extern f32 sinf(2.0f32)"])
def test_all_functions_behind_a_call_out_are_one_part(call):
    funcs = [_func("a"), _func("b"), _func("c", call), *map(_func, "defg")]
    assert _divided(funcs) == [["a", "b"], ["c", "d", "e", "f", "g"]]


def test_imported_functions_are_shared_and_intrinsics_are_not():
    importer = replace(_func("c"), imports=("define void @g() {\n}",))
    assert _divided([importer, *map(_func, "defg")]) == [["c", "d", "e", "f", "g"]]
    own = _func("c", "extern f32 llvm.sqrt.f32(2.0f32)")
    assert len(_divided([own, *map(_func, "defg")])) > 1


def test_as_many_tools_run_at_once_as_there_are_usable_cores(monkeypatch):
    asked = {}
    monkeypatch.setattr(parts, "PartsBuild", lambda *given, **more: asked.update(more))
    monkeypatch.setattr(division, "usable_cores", lambda: 3)
    begin_build({}, "so", "llvm", lambda: None)
    assert asked["processes"] == 3 and asked["description"] == "llvm"
