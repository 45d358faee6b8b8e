"""Modules: their functions, their sources, and the ways to a file."""

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import refcomp
from refcomp.foundation import machine
from refcomp.foundation.artifacts import Binary, Signature, Source, TensorParam
from refcomp.foundation.dtype import F32
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.ir.printer import print_func
from refcomp.runtime.device import cpu
from refcomp.runtime.files.suffixes import machine_code
from refcomp.runtime.module import Module
from tests.runtime.conftest import ADD as HOST_ADD
from tests.runtime.conftest import SIGNATURES, SYMBOLS
from tests.runtime.device_programs import ADD, ADD_OPENCL, ADD_SIGNATURE
from tests.runtime.fake_device import FakeDriver, fake_device

llvm = pytest.mark.llvm


def _fill(value: float) -> Any:
    def run(args: list[Any]) -> None:
        args[0][...] = value

    return run


def _signature(name: str) -> Signature:
    return Signature(name, (TensorParam("A", F32, ("n",), is_output=True),), ("n",))


def _module(**options: Any) -> Module:
    settings: dict[str, Any] = {"target": "interp", "sources": {"loop_ir": "func one"}} | options
    return Module.from_callables(
        {"one": _fill(1), "two": _fill(2)}, [_signature("one"), _signature("two")], **settings
    )


# ---- functions -------------------------------------------------------------------------------


def test_functions_by_name_and_the_entry() -> None:
    module, out = _module(), np.zeros(3, np.float32)
    module["two"](out)
    assert out.tolist() == [2, 2, 2]
    module(out)
    assert out.tolist() == [1, 1, 1]
    assert module.entry is module["one"]
    assert module.entry_name == "one"
    assert _module(entry="two").entry_name == "two"


def test_what_a_module_tells() -> None:
    module = _module()
    assert module.signatures == {name: _signature(name) for name in ("one", "two")}
    with pytest.raises(TypeError):
        module.signatures["three"] = _signature("three")  # type: ignore[index]
    assert module.imported_modules == ()
    assert module.target == "interp"
    assert repr(module) == "<refcomp module for interp: one, two>"


def test_unknown_functions() -> None:
    with pytest.raises(UserError, match=r"the module has no function 'three'\n.*one, two"):
        _module()["three"]
    with pytest.raises(UserError, match=r"did you mean two\? it has: one, two"):
        _module()["twoo"]
    with pytest.raises(UserError, match=r"entry function 'three' is not in the module\n.*one, two"):
        _module(entry="three")


def test_a_module_needs_functions_of_different_names() -> None:
    with pytest.raises(UserError, match="a module needs a function"):
        Module.from_callables({}, [], target="interp", sources={})
    with pytest.raises(UserError, match="two functions of a module are called one"):
        Module.from_callables(
            {"one": _fill(1)}, [_signature("one")] * 2, target="interp", sources={}
        )


def test_signatures_are_checked_when_the_module_is_made() -> None:
    bad = Signature("one", (TensorParam("A", F32, (("floordiv", "n", 2),)),), ("n",))
    with pytest.raises(UserError, match="no argument's shape determines the symbol n"):
        Module.from_callables({"one": _fill(1)}, [bad], target="interp", sources={})


@llvm
def test_a_module_of_machine_code(module: Module) -> None:
    out = np.zeros(2, np.float32)
    module(np.ones(2, np.float32), np.ones(2, np.float32), out)
    assert out.tolist() == [2, 2]
    assert module.signatures["add"] == HOST_ADD
    assert list(module.signatures) == [signature.name for signature in SIGNATURES]
    assert module["threads"].name == "threads"


@llvm
def test_functions_that_are_not_in_the_binary(binary: Binary) -> None:
    with pytest.raises(UserError, match="the shared object has no function 'threads'"):
        Module.from_binary(binary, SIGNATURES, target="llvm", sources={})


# ---- sources ---------------------------------------------------------------------------------


@llvm
def test_sources(module: Module, source: Source) -> None:
    assert module.get_source() == module.get_source("llvm") == source.text
    assert module.get_source("loop_ir") == "func add"
    assert module.get_source("asm") == "assembly"
    assert module.get_source() == source.text
    with pytest.raises(UserError, match=r"no source of format 'ptx'\n.*has: loop_ir, llvm, asm"):
        module.get_source("ptx")


def test_the_default_source_is_the_nearest_to_the_target() -> None:
    assert _module().get_source() == "func one"
    assert _module(sources={"loop_ir": "a", "cuda": "b"}).get_source() == "b"
    with pytest.raises(UserError, match=r"no source of format 'loop_ir'\n.*it has: none"):
        _module(sources={}).get_source()
    with pytest.raises(UserError, match=r"no source of format 'asm'\n.*it has: loop_ir"):
        _module().get_source("asm")


@llvm
def test_assembly_is_made_once_and_only_when_asked_for(binary: Binary) -> None:
    made: list[int] = []

    def disassemble() -> str:
        made.append(1)
        return "text"

    module = Module.from_binary(
        binary, [HOST_ADD], target="llvm", sources={}, disassemble=disassemble
    )
    assert made == []
    assert module.get_source("asm") == module.get_source("asm") == "text"
    assert made == [1]


# ---- files -----------------------------------------------------------------------------------


@llvm
def test_export_of_a_bare_shared_object(module: Module, binary: Binary, tmp_path: Path) -> None:
    module.export_library(tmp_path / "library.so")
    assert (tmp_path / "library.so").read_bytes().startswith(binary.data)
    library = ctypes.CDLL(str(tmp_path / "library.so"))
    assert library.broken(1) == 7


@llvm
def test_a_name_without_another_suffix_is_that_of_a_module_file(
    module: Module, tmp_path: Path
) -> None:
    module.export_library(str(tmp_path / "library.module"))
    module.save(tmp_path / "saved")
    assert (tmp_path / "library.module").read_bytes() == (tmp_path / "saved").read_bytes()


def test_a_module_without_machine_code_cannot_be_saved(tmp_path: Path) -> None:
    for save, name in ((_module().save, "m"), (_module().export_library, "m.so")):
        with pytest.raises(Unsupported) as caught:
            save(tmp_path / name)
        assert str(caught.value) == (
            "a module for the target interp cannot be saved\n"
            "  why: it has no machine code\n"
            "  what to do: build it for the target 'llvm'"
        )
    assert list(tmp_path.iterdir()) == []


@llvm
@pytest.mark.parametrize(
    ("target", "is_native"),
    [("llvm", True), ("llvm -mcpu=native", True), ("llvm -mcpu=x86-64-v3", False)],
)
def test_native_code_needs_this_processor(binary: Binary, target: str, is_native: bool) -> None:
    module = Module.from_binary(binary, SIGNATURES, target=target, sources={}, symbols=SYMBOLS)
    expected = machine.cpu_features() if is_native else set()
    saved = machine_code(module.target, module.contents)
    assert set(saved.cpu_features) == expected
    assert "libgomp.so.1" in saved.libraries


# ---- devices ---------------------------------------------------------------------------------


def _add_module(driver: FakeDriver, **options: Any) -> Module:
    settings: dict[str, Any] = {
        "target": "opencl",
        "device": fake_device(driver),
        "sources": {"loop_ir": "func add"},
        "device_sources": {"opencl": ADD_OPENCL.text},
    }
    programs, code = [(ADD_SIGNATURE, ADD)], options.pop("code", ADD_OPENCL)
    return Module.from_programs(programs, code, **(settings | options))


def test_a_module_of_programs() -> None:
    driver = FakeDriver({"add_kernel": lambda *_: None})
    module = _add_module(driver)
    assert driver.loads == 1
    assert module.entry.device == fake_device(driver)
    module(*(refcomp.empty(3, "f32", fake_device(driver)) for _ in range(3)))
    assert [name for name, *_ in driver.launches] == ["add_kernel"]
    assert module.signatures == {"add": ADD_SIGNATURE}
    assert repr(module) == "<refcomp module for opencl: add>"


def test_the_sources_of_a_module_of_programs() -> None:
    module = _add_module(FakeDriver(), disassemble=lambda: "assembly")
    assert module.get_source() == module.get_source("launch") == print_func(ADD.host)
    assert module.get_source("loop_ir") == "func add"
    (kernels,) = module.imported_modules
    assert kernels.get_source() == ADD_OPENCL.text
    assert kernels.get_source("asm") == "assembly"
    with pytest.raises(UserError, match=r"no source of format 'asm'\n.*it has: launch, loop_ir"):
        module.get_source("asm")


def test_kernels_that_are_called_otherwise_in_the_code() -> None:
    module = _add_module(FakeDriver(), symbols={"add_kernel": "add_kernel_"})
    assert module.imported_modules[0].kernel_names == ("add_kernel_",)


def test_a_module_for_a_device_that_is_not_there() -> None:
    driver = FakeDriver(devices=0)
    module = _add_module(driver)
    assert driver.loads == 0
    elsewhere = fake_device(FakeDriver())
    arrays = [refcomp.empty(3, "f32", elsewhere) for _ in range(3)]
    with pytest.raises(UserError, match="this machine has no device fake:0"):
        module(*arrays)


def test_a_bare_code_object_is_written(tmp_path: Path) -> None:
    code = Binary(b"machine code", "hsaco")
    _add_module(FakeDriver(), code=code).save(tmp_path / "add.hsaco")
    assert (tmp_path / "add.hsaco").read_bytes() == b"machine code"


def test_what_has_no_code_object(tmp_path: Path) -> None:
    for module in (_add_module(FakeDriver()), _module()):
        with pytest.raises(Unsupported, match="has no code object") as caught:
            module.save(tmp_path / "add.hsaco")
        assert "build it for the target 'rocm', or choose a name without" in str(caught.value)
    assert not (tmp_path / "add.hsaco").exists()


# ---- timing ----------------------------------------------------------------------------------


@llvm
def test_time_evaluator(module: Module) -> None:
    arrays = [np.ones(4, np.float32) for _ in range(3)]
    result = module.time_evaluator("add", cpu(0), number=2, repeat=5)(*arrays)
    assert len(result.results) == 5
    assert all(seconds >= 0 for seconds in result.results)
    assert result.min <= result.median <= result.max
    assert arrays[2].tolist() == [2, 2, 2, 2]


def test_time_evaluator_counts_calls() -> None:
    calls: list[int] = []
    module = Module.from_callables(
        {"one": lambda args: calls.append(1)}, [_signature("one")], target="interp", sources={}
    )
    evaluator = module.time_evaluator(module.entry_name, cpu(0))
    evaluator(np.zeros(1, np.float32))
    assert len(calls) == 1 + 10 * 3
    with pytest.raises(UserError, match="the module has no function 'nothing'"):
        module.time_evaluator("nothing", cpu(0))
