"""Modules from the cache: never another one than a build would make, and no work to make one."""

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import refcomp
from refcomp import compiler
from refcomp.driver import build_cache
from refcomp.driver.build_cache import recall_module
from refcomp.driver.kernel_resources import SlowKernelWarning, warn_of_slow_kernel
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.foundation.target import Target, as_target
from refcomp.toolchain import find_tools, load_description, tools_state
from refcomp.toolchain.tools_state import ToolsState

pytestmark = pytest.mark.llvm
_ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    """The cache is on, empty and this test's own; no helper of the user edits refcomp."""
    monkeypatch.setenv("REFCOMP_BUILD_CACHE", "1")
    monkeypatch.setenv("REFCOMP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(build_cache, "own_version", lambda: "this version")
    monkeypatch.setattr(build_cache, "is_own_version_current", lambda: True)
    return tmp_path / "cache"


@pytest.fixture
def lowered(monkeypatch):
    """The names of the functions that were lowered."""
    names = []
    lower = compiler.lower

    def counted(schedule, args, name="main"):
        names.append(name)
        return lower(schedule, args, name)

    monkeypatch.setattr(compiler, "lower", counted)
    return names


def _schedule(constant=1.0, threads=0):
    n = refcomp.var("n")
    a = refcomp.placeholder((n,), name="A")
    b = refcomp.compute((n,), lambda i: a[i] + constant, name="B")
    s = refcomp.create_schedule(b)
    if threads:
        outer, inner = s[b].split(b.op.axis[0], factor=threads)
        s[b].bind(outer, refcomp.thread_axis("blockIdx.x"))
        s[b].bind(inner, refcomp.thread_axis("threadIdx.x"))
    return s, [a, b]


def _build(constant=1.0, target="llvm", name="add", threads=0):
    return refcomp.build(*_schedule(constant, threads), target=target, name=name)


def _result(module):
    out = np.zeros(3, "float32")
    module(np.arange(3, dtype="float32"), out)
    return list(out)


def test_a_second_build_is_not_lowered(lowered):
    first = _build()
    second = _build()
    assert lowered == ["add"] and _result(first) == _result(second) == [1, 2, 3]
    assert second.get_source("llvm") == first.get_source("llvm")
    assert second.get_source("loop_ir") == first.get_source("loop_ir")
    assert second.get_source("asm") == first.get_source("asm")


def test_other_programs_names_and_targets_are_built(lowered):
    _build()
    assert _result(_build(2.0)) == [2, 3, 4]
    assert _build(name="other").entry_name == "other"
    _build(target="llvm -mcpu=x86-64")
    with refcomp.build_options(check_bounds=True):
        _build()
    with refcomp.build_options(contract=True):
        _build()
    assert lowered == ["add", "add", "other", "add", "add", "add"]


def test_a_build_at_another_line_of_the_program_is_another_one(lowered):
    """Its line stands in the message of a call that is refused."""

    def build():
        n = refcomp.var("n")
        a = refcomp.placeholder((n,), name="A")
        line = sys._getframe().f_lineno + 1
        b = refcomp.compute((4,), lambda i: a[i], name="B")
        return refcomp.build(refcomp.create_schedule(b), [a, b], name="copy"), line

    for _ in range(2):
        module, line = build()
        with pytest.raises(UserError, match=f"test_build_cache.py:{line}"):
            module(np.zeros(3, "float32"), np.zeros(4, "float32"))
    assert lowered == ["copy"]


def test_new_versions_of_refcomp_build_again(lowered, monkeypatch):
    _build()
    monkeypatch.setattr(build_cache, "own_version", lambda: "another version")
    _build()
    assert len(lowered) == 2


def test_nothing_is_kept_while_refcomp_is_edited(lowered, store, monkeypatch):
    monkeypatch.setattr(build_cache, "is_own_version_current", lambda: False)
    _build()
    _build()
    monkeypatch.setattr(build_cache, "own_version", lambda: None)
    _build()
    assert len(lowered) == 3


@pytest.mark.parametrize("variable", ["REFCOMP_DUMP", "REFCOMP_KEEP"])
def test_a_build_that_shows_its_stages_is_made(lowered, tmp_path, monkeypatch, variable):
    _build()
    monkeypatch.setenv(variable, str(tmp_path / "shown"))
    _build()
    assert len(lowered) == 2 and list((tmp_path / "shown").iterdir())


def test_a_build_is_certified_each_time(lowered, monkeypatch):
    certified = []
    monkeypatch.setattr(compiler, "certify_build", lambda *args: certified.append(args[2]))
    with refcomp.build_options(certify=True):
        _build()
        _build()
    assert certified == ["add", "add"] and len(lowered) == 2


def test_the_cache_can_be_turned_off(lowered, store, monkeypatch):
    monkeypatch.setenv("REFCOMP_BUILD_CACHE", "0")
    _build()
    _build()
    assert len(lowered) == 2


def test_a_wrong_switch_is_refused(monkeypatch):
    monkeypatch.setenv("REFCOMP_BUILD_CACHE", "maybe")
    with pytest.raises(UserError, match="REFCOMP_BUILD_CACHE is 'maybe', which is neither 0 nor 1"):
        _build()


def test_variables_of_the_environment_count(lowered, monkeypatch):
    _build()
    monkeypatch.setenv("REFCOMP_SOMETHING", "new")
    _build()
    monkeypatch.setenv("REFCOMP_NUM_THREADS", "1")  # changes no code
    _build()
    assert len(lowered) == 2


def test_another_tool_builds_again(lowered, tmp_path, monkeypatch):
    _build()
    llc = find_tools(load_description("llvm")).paths["llc"]
    (tmp_path / "llc").symlink_to(llc)
    monkeypatch.setenv("REFCOMP_LLC", str(tmp_path / "llc"))
    _build()
    assert len(lowered) == 2


def test_without_tools_modules_are_not_looked_up(lowered, monkeypatch):
    _build()

    monkeypatch.setenv("PATH", os.environ["PATH"] + ":/another")  # so that nothing is remembered
    missing = ToolsState("", (), ())
    monkeypatch.setattr(tools_state, "tools_state", lambda _names: missing)
    _build()
    _build()
    assert len(lowered) == 3


def test_the_identity_of_the_tools_is_remembered(monkeypatch):
    searches = []
    search = tools_state.tools_state

    def counted(names):
        searches.append(names)
        return search(names)

    monkeypatch.setattr(tools_state, "tools_state", counted)
    _build()
    _build(2.0)
    monkeypatch.setenv("REFCOMP_LLVM", "")
    _build()
    assert searches == [("llvm",), ("llvm",)]


@pytest.mark.parametrize("data", [b"", b"[]", b"7", b'["x", [], [], "x"]', b'["x", [7], [], "x"]'])
def test_a_malformed_memory_of_tools_counts_as_missing(data):
    assert build_cache._current_identity(data) is None


def test_targets_that_depend_on_more_are_not_kept(lowered, tmp_path):
    for _ in range(2):
        _build(target="interp")
    library = tmp_path / "empty.so"
    source = tmp_path / "empty.c"
    source.write_text("")
    subprocess.run(["cc", "-shared", "-o", library, source], check=True)
    for _ in range(2):
        _build(target=f"llvm -libs={library}")
    assert len(lowered) == 4


def test_a_back_end_from_outside_is_not_kept():
    made = []

    def make():
        made.append(1)
        return _build(target="interp")

    for _ in range(2):
        recall_module(("parts",), Target("toy"), make)
    assert len(made) == 2


def test_a_computation_without_identity_is_built(lowered):
    a = refcomp.placeholder((4,), name="A")
    b = refcomp.compute((4,), lambda i: a[i] + 1.0, name="B", attrs={"f": print})
    for _ in range(2):
        refcomp.build(refcomp.create_schedule(b), [a, b])
    assert len(lowered) == 2


@pytest.mark.pocl
def test_the_limits_of_the_device_count(lowered, monkeypatch):
    _build(target="opencl", threads=32)
    _build(target="opencl", threads=32)
    assert len(lowered) == 1
    device = build_cache.device("opencl")
    limits = dataclasses.replace(device.driver.limits(0), threads=128)
    monkeypatch.setattr(device.driver, "limits", lambda _index: limits)
    _build(target="opencl", threads=32)
    assert len(lowered) == 2


def test_a_build_that_warns_warns_again(lowered, monkeypatch):
    load = compiler.build_lowered

    def warn(*args):
        warn_of_slow_kernel("add", ["spills"], "rest")
        return load(*args)

    monkeypatch.setattr(compiler, "build_lowered", warn)
    for _ in range(2):
        with pytest.warns(SlowKernelWarning, match="spills"):
            _build()


def _entries(store):
    return [path for path in store.rglob("*") if re.fullmatch("[0-9a-f]{64}", path.name)]


def _keep_of(parts, data):
    """Keep `data` under the key of `parts`, and return it."""
    store = build_cache.default_cache()
    key = build_cache._key(store, parts, as_target("llvm"))
    store.put(key, data)
    return key


@pytest.mark.parametrize("data", [b"", b"damaged", b"[]\n", b'[["manifest.json", 2]]\n{}'])
def test_an_entry_that_is_no_module_counts_as_missing(data):
    _keep_of(("parts",), data)
    made = []

    def make():
        made.append(1)
        return _build()

    for _ in range(2):
        assert _result(recall_module(("parts",), as_target("llvm"), make)) == [1, 2, 3]
    assert len(made) == 1


def test_a_damaged_file_counts_as_missing(lowered, store):
    _build()
    for path in _entries(store):
        raw = bytearray(path.read_bytes())
        raw[-1] ^= 1
        path.write_bytes(raw)
    assert _result(_build()) == [1, 2, 3] and len(lowered) == 2


def test_code_that_cannot_be_loaded_counts_as_missing(lowered, monkeypatch):
    _build()
    load = build_cache.module_from_bytes

    def refuse(*args):
        monkeypatch.setattr(build_cache, "module_from_bytes", load)
        raise ToolchainError("the dynamic loader refuses the compiled code")

    monkeypatch.setattr(build_cache, "module_from_bytes", refuse)
    assert _result(_build()) == [1, 2, 3] and len(lowered) == 2


def test_a_module_that_cannot_be_saved_is_returned(lowered, monkeypatch):
    def refuse(_module):
        raise UserError("too large")

    monkeypatch.setattr(build_cache, "module_to_bytes", refuse)
    assert _result(_build()) == [1, 2, 3]
    assert _result(_build()) == [1, 2, 3] and len(lowered) == 2


def test_errors_of_a_build_are_not_kept():
    for _ in range(2):
        with pytest.raises(UserError, match="the arguments lack B"):
            s, (a, _) = _schedule()
            refcomp.build(s, [a])
        with pytest.raises(UserError, match="not a list"):
            refcomp.build(s, a)


_PROGRAM = """
import numpy as np
import refcomp as rc
A = rc.placeholder((4,), name="A")
B = rc.compute((4,), lambda i: A[i] + 1.0, name="B")
add = rc.build(rc.create_schedule(B), [A, B], name="add")
out = np.zeros(4, "float32")
add(np.ones(4, "float32"), out)
print(out)
"""


def test_processes_at_the_same_time_agree(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(_PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
    running = [
        subprocess.Popen([sys.executable, str(path)], env=environment, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    for process in running:
        out, _ = process.communicate()
        assert process.returncode == 0 and out.startswith(b"[2. 2. 2. 2.]")
