"""`system_lib`: functions of linked objects are called, and whatever is wrong with them is said.

A library stays in the process of the tests. So each function has a name of its own, and tests see
only the libraries of their own folder.
"""

import ctypes
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import refcomp as rc
from refcomp import classic as tvm
from refcomp.foundation.artifacts import Binary, Signature, Source
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.runtime import linked_module
from refcomp.runtime.files.bundle import compress_members
from refcomp.runtime.files.manifest import ModuleContents, ObjectContents, pack, pack_description
from refcomp.runtime.files.program_manifest import ProgramContents, pack_program
from refcomp.runtime.host.linked_objects import LinkedObjects, linked_objects
from refcomp.runtime.module import Module
from refcomp.toolchain.description import load_description
from refcomp.toolchain.find import find_tool

TARGET = "llvm -system-lib"


def add(name: str, number: float, target: str = TARGET) -> Module:
    A = rc.placeholder((4,), name="A")
    B = rc.compute((4,), lambda i: A[i] + number, name="B")
    return rc.build(rc.create_schedule(B), [A, B], target, name=name)


def scale(name: str, number: float) -> Module:
    """Return a module with a symbol, a scalar and a parallel region."""
    n = rc.var("n")
    k = rc.var("k", "float32")
    A = rc.placeholder((n, 4), name="A")
    B = rc.compute((n, 4), lambda i, j: A[i, j] * k + number, name="B")
    s = rc.create_schedule(B)
    s[B].parallel(B.op.axis[0])
    return rc.build(s, [A, k, B], TARGET, name=name)


def result(function: Callable[..., None], *args: object) -> list[float]:
    out = np.zeros(4, "f4")
    function(*args, out)
    return out.tolist()


ONES = np.ones(4, "f4")


@pytest.fixture
def link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Return a function that links modules to one library in the folder of the test."""
    monkeypatch.setattr(
        linked_module,
        "linked_objects",
        lambda: [linked for linked in linked_objects() if linked.file.startswith(str(tmp_path))],
    )
    lld = find_tool(load_description("llvm"), "lld")

    def link(file: str, *modules: Module, options: tuple[str, ...] = ()) -> Path:
        objects = [tmp_path / f"{file}{place}.o" for place in range(len(modules))]
        for path, module in zip(objects, modules, strict=True):
            module.save(path)
        subprocess.run([lld, "-shared", *options, *objects, "-o", tmp_path / file], check=True)
        return tmp_path / file

    return link


@pytest.mark.llvm
class TestLinked:
    def test_objects_of_one_library_and_of_another(self, link: Callable[..., Path]) -> None:
        ctypes.CDLL(link("a.so", add("linked_1", 1.0), add("linked_2", 2.0)), os.RTLD_GLOBAL)
        module = rc.system_lib()
        assert (list(module.signatures), module.entry_name) == (
            ["linked_1", "linked_2"],
            "linked_1",
        )
        ctypes.CDLL(link("b.so", add("linked_3", 3.0)))
        module = rc.system_lib()
        names = ["linked_1", "linked_2", "linked_3"]
        assert [result(module[name], ONES) for name in names] == [[2.0] * 4, [3.0] * 4, [4.0] * 4]
        assert module.target == "llvm -system-lib=1"
        assert module.get_source("loop_ir").count("func linked_") == 3
        assert "define i32 @linked_2(" in module.get_source("llvm")
        assert "refcomp.description" not in module.get_source("llvm")

    def test_symbols_scalars_and_parallel_regions(self, link: Callable[..., Path]) -> None:
        ctypes.CDLL(link("lib.so", scale("linked_scale", 1.0), scale("linked_scale_more", 2.0)))
        module = rc.system_lib()
        out = np.zeros((3, 4), "f4")
        module["linked_scale_more"](np.ones((3, 4), "f4"), 5.0, out)
        assert (out == 7).all()
        with pytest.raises(
            UserError, match=r"dimension 0 of argument B \(3 of 3\) is 3, expected n"
        ):
            module["linked_scale"](np.ones((2, 4), "f4"), 5.0, out)

    def test_registered_functions_and_checked_accesses(self, link: Callable[..., Path]) -> None:
        @rc.register_func("test.linked_triple", override=True)
        def triple(x: rc.NDArray, y: rc.NDArray) -> None:
            y.copyfrom(3 * x.asnumpy())

        def calling(name: str, target: str = TARGET) -> Module:
            A = rc.placeholder((4,), name="A")
            call = lambda i, o: rc.call_packed("test.linked_triple", i[0], o[0])  # noqa: E731
            B = rc.extern((4,), [A], call, name="B")
            return rc.build(rc.create_schedule(B.op), [A, B], target, name=name)

        # The code of all libraries reads the variable of this one, which describes nothing.
        ctypes.CDLL(link("plain.so", calling("linked_plain", "llvm")), os.RTLD_GLOBAL)
        place = rc.placeholder((4,), "int32", name="place")
        A = rc.placeholder((4,), name="A")
        B = rc.compute((4,), lambda i: A[place[i]], name="B")
        with rc.build_options(check_bounds=True):
            s = rc.create_schedule(B)
            gather = rc.build(s, [place, A, B], TARGET, name="linked_gather")
        ctypes.CDLL(link("lib.so", calling("linked_call"), calling("linked_call_2"), gather))
        module = rc.system_lib()
        assert result(module["linked_call"], ONES) == result(module["linked_call_2"], ONES)
        assert result(module["linked_call"], ONES) == [3.0] * 4
        order = np.array([3, 2, 1, 0], "i4")
        values = np.arange(4, dtype="f4")
        assert result(module["linked_gather"], order, values) == [3, 2, 1, 0]
        with pytest.raises(
            rc.OutOfBounds, match="linked_gather reads from A out of bounds: index 4"
        ):
            result(module["linked_gather"], order + 1, values)

    def test_a_function_whose_name_another_library_shows_to_all(
        self, link: Callable[..., Path], tmp_path: Path
    ) -> None:
        """Without -system-lib, the first library describes nothing, but it has the name."""
        ctypes.CDLL(link("first.so", add("linked_twin", 1.0, "llvm")), os.RTLD_GLOBAL)
        ctypes.CDLL(link("second.so", add("linked_twin", 2.0)), os.RTLD_GLOBAL)
        assert result(rc.system_lib()["linked_twin"], ONES) == [3.0] * 4

    def test_a_shared_object_of_one_module(self, link: Callable[..., Path], tmp_path: Path) -> None:
        path = tmp_path / "lib.so"
        add("linked_shared", 1.0).export_library(path)
        assert result(rc.load_module(path), ONES) == [2.0] * 4
        with pytest.raises(UserError, match="no function is linked into this process"):
            rc.system_lib()
        ctypes.CDLL(path)
        # What load_module loads belongs to a module already, also after the library.
        assert result(rc.load_module(path), ONES) == [2.0] * 4
        assert result(rc.system_lib()["linked_shared"], ONES) == [2.0] * 4

    def test_it_is_not_saved_again(self, link: Callable[..., Path], tmp_path: Path) -> None:
        path = link("lib.so", add("linked_saved", 1.0))
        ctypes.CDLL(path)
        module = rc.system_lib()
        assert module.contents is None
        message = (
            rf"linked into {path} cannot be saved again(.|\n)*module that refcomp.build returned"
        )
        for file in ("m", "m.so", "m.o", "m.ll"):
            with pytest.raises(Unsupported, match=message):
                module.save(tmp_path / file)


@pytest.mark.parametrize(
    ("target", "device"),
    [
        pytest.param("opencl", rc.opencl, marks=pytest.mark.pocl),
        pytest.param(
            "rocm -mcpu=gfx942", lambda: rc.rocm_emulator("gfx942"), marks=pytest.mark.rocm
        ),
    ],
)
def test_kernels_are_linked_beside_functions(
    target: str, device: Callable[[], rc.runtime.Device], link: Callable[..., Path], tmp_path: Path
) -> None:
    kind = target[:4]
    A = rc.placeholder((64,), name="A")
    B = rc.compute((64,), lambda i: A[i] + 2.0, name="B")
    s = rc.create_schedule(B)
    s[B].bind(B.op.axis[0], rc.thread_axis("threadIdx.x"))
    host = "llvm --system-lib"
    kernels = rc.build(s, [A, B], target, target_host=host, name=f"linked_{kind}")
    ctypes.CDLL(link("lib.so", kernels, add(f"linked_host_of_{kind}", 1.0)))
    shared = rc.build(s, [A, B], target, target_host=host, name=f"linked_shared_{kind}")
    shared.export_library(tmp_path / "shared.so")
    ctypes.CDLL(tmp_path / "shared.so")
    module = rc.system_lib()
    assert result(module[f"linked_host_of_{kind}"], ONES) == [2.0] * 4
    for each in (module, rc.load_module(tmp_path / "shared.so")):
        place = device()
        b = rc.empty((64,), "float32", place)
        each[f"linked_shared_{kind}"](rc.array(np.ones(64, "f4"), place), b)
        assert (b.asnumpy() == 3).all()
    module[f"linked_{kind}"](b, a := rc.empty((64,), "float32", place))
    assert (a.asnumpy() == 5).all()
    assert len(module.imported_modules) == 2


def described(name: str = "f", file: str = "a.so", **manifest: object) -> LinkedObjects:
    """Return a library that nobody loaded, with changes of the manifest of its description."""
    contents = ObjectContents(f"{os.uname().machine}-linux-gnu", (Signature(name, ()),), "llvm", {})
    members = pack_description(contents)
    changed = json.loads(members["manifest.json"]) | manifest
    members["manifest.json"] = json.dumps(changed).encode()
    return LinkedObjects(file, ctypes.CDLL(None), (compress_members(members),))


def refusal(monkeypatch: pytest.MonkeyPatch, *linked: LinkedObjects) -> str:
    monkeypatch.setattr(linked_module, "linked_objects", lambda: list(linked))
    with pytest.raises(UserError) as caught:
        rc.system_lib()
    assert caught.value.remedy
    return str(caught.value)


def test_the_classic_name_is_an_alias() -> None:
    assert tvm.module.system_lib is rc.system_lib


def test_nothing_is_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    text = refusal(monkeypatch)
    assert text.startswith("no function is linked into this process for system_lib\n")
    assert 'refcomp.build(s, args, "llvm -system-lib").save("f.o")' in text
    assert 'ctypes.CDLL("./lib.so")' in text


def test_a_function_that_is_not_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    text = refusal(monkeypatch, described("hidden_function"))
    assert text.startswith("a.so describes the function hidden_function, but does not export it\n")
    assert "undefined symbol: hidden_function" in text
    assert "an option or a script that hides its symbols" in text and "-rdynamic" in text


def test_a_name_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    text = refusal(monkeypatch, described("f"), described("g"), described("f", "b.so"))
    assert text.startswith("two functions called f are linked into this process\n")
    assert "where: a.so and b.so" in text
    assert "by their names alone" in text
    assert "in a new process, or build one of the functions with another name" in text


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ({"refcomp_version": "0.0"}, "in a.so was written by refcomp 0.0 (format 1), this is refc"),
        ({"format_version": 7}, "(format 7)"),
        ({"format": "else"}, "not a module file"),
        ({"machine": "vax"}, "in a.so has code for vax, this machine is"),
        ({"cpu_features": ["psychic"]}, "a processor with psychic, which this one lacks"),
        ({"functions": 3}, "its manifest is malformed: TypeError"),
        ({"functions": [{"symbol": "f"}]}, "its manifest is malformed: KeyError"),
        ({"members": {"binary": {}}}, "manifest and members differ in binary"),
        ({"binary_format": "so"}, "its manifest is malformed: KeyError"),
        ({"binary_format": 3}, "its manifest is malformed: TypeError"),
    ],
)
def test_descriptions_that_do_not_fit(
    manifest: dict[str, object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = refusal(monkeypatch, described(**manifest))
    assert text.startswith("the description of functions in a.so ")
    assert message in text


def test_damaged_descriptions(monkeypatch: pytest.MonkeyPatch) -> None:
    (whole,) = described().descriptions
    broken = [whole[:-1], b"", b"rubbish", whole[:9] + b"\0" + whole[10:], compress_members({})]
    for description in broken:
        linked = LinkedObjects("a.so", ctypes.CDLL(None), (description,))
        text = refusal(monkeypatch, linked)
        assert text.startswith("the description of functions in a.so is damaged\n")
        assert "save the module again" in text


def test_kernels_whose_host_functions_are_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    contents = ProgramContents(
        (Signature("f", ()),), "func f(", (), "opencl", Source("", "opencl"), "f", "opencl", {}, {}
    )
    description = compress_members(pack_program(contents))
    text = refusal(monkeypatch, LinkedObjects("a.so", ctypes.CDLL(None), (description,)))
    assert text.startswith("the description of functions in a.so is damaged\n")
    assert "its host functions cannot be read" in text


def test_a_description_with_code_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    contents = ModuleContents(
        (Signature("f", ()),), "f", "llvm", Binary(b"code", "so"), {"f": "f"}, {}
    )
    linked = LinkedObjects("a.so", ctypes.CDLL(None), (compress_members(pack(contents)),))
    assert "its code has the format 'so'" in refusal(monkeypatch, linked)
