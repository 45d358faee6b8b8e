"""Kernels compiled for each kind of device, by the targets' text alone."""

import weakref

import pytest

import refcomp
from refcomp.codegen.signature import machine_symbol
from refcomp.driver import compile as compile_module
from refcomp.driver.backends import loading, rocm
from refcomp.driver.compile import compile_functions
from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.ir.parser import parse_func
from refcomp.runtime.device import Device
from refcomp.toolchain import read_code_object

KINDS = ["opencl", pytest.param("rocm", marks=pytest.mark.rocm)]


def _scale(name="scale", dtype="float32", block=4):
    n = refcomp.var("n")
    a = refcomp.placeholder((n,), name="A", dtype=dtype)
    b = refcomp.compute((n,), lambda i: a[i] * 2, name="B")
    s = refcomp.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], factor=block)
    s[b].bind(outer, refcomp.thread_axis("blockIdx.x"))
    s[b].bind(inner, refcomp.thread_axis("threadIdx.x"))
    return refcomp.lower(s, [a, b], name)


class _Absent:
    def count(self):
        return 0


class _Present(_Absent):
    def count(self):
        return 1

    def limits(self, index):
        return DeviceLimits((8, 8, 8), 8, 64)

    def arch(self, index):
        return "gfx1100"


@pytest.fixture(params=[_Absent, _Present])
def driver(request, monkeypatch):
    """A device of the kind that a target asks for: one that is not there, and one that is."""
    made = request.param()
    for module in (loading, rocm):
        monkeypatch.setattr(module, "device_of", lambda target: Device("gpu", 0, made))
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_functions_become_programs_with_one_code(kind):
    compiled = compile_functions([_scale("scale"), _scale("other")], kind)
    assert [program.host.name for program in compiled.made] == ["scale", "other"]
    names = [kernel.name for program in compiled.made for kernel in program.kernels]
    assert names == ["scale_kernel0", "other_kernel0"]
    for text in compiled.code.sources.values():
        assert all(machine_symbol(name) in text for name in names)


def test_functions_of_an_iterable_pass_the_pipeline_before_the_next_one_is_made(monkeypatch):
    events = []
    run = compile_module.run_pipeline

    def noted(func, *args):
        events.append(f"passes of {func.name}")
        return run(func, *args)

    def made():
        for name in ("one", "two"):
            events.append(f"lowering of {name}")
            yield _scale(name)

    monkeypatch.setattr(compile_module, "run_pipeline", noted)
    compiled = compile_functions(made(), "opencl")
    assert [program.host.name for program in compiled.made] == ["one", "two"]
    assert events == [
        f"{what} of {name}" for name in ("one", "two") for what in ("lowering", "passes")
    ]


def test_opencl_is_loaded_as_text():
    compiled = compile_functions([_scale()], "opencl")
    assert isinstance(compiled.code.code, Source) and compiled.code.code.language == "opencl"
    assert "__kernel" in compiled.code.sources["opencl"]
    assert compiled.code.disassemble is None


@pytest.mark.rocm
@pytest.mark.parametrize("driver", [_Absent], indirect=True)
def test_wishes_for_waves_reach_the_code(driver):
    compiled = compile_functions([_scale()], "rocm -mcpu=gfx1100 -wavefront=64 -waves=3")
    assert '"amdgpu-waves-per-eu"="3"' in compiled.code.sources["llvm"]
    assert read_code_object(compiled.code.code.data).kernels[0].wavefront_size == 64


@pytest.mark.rocm
@pytest.mark.parametrize("driver", [_Absent], indirect=True)
def test_rocm_is_loaded_as_machine_code(driver):
    compiled = compile_functions([_scale()], "rocm -passes=default<O1>")
    assert isinstance(compiled.code.code, Binary) and compiled.code.code.format == "hsaco"
    assert "scale_kernel0" in compiled.code.disassemble()
    assert "amdgpu_kernel" in compiled.code.sources["llvm"]
    assert "; kernels.ir:1" in compiled.code.disassemble()
    assert compiled.code.sources["kernels"].startswith("func scale_kernel0(")


@pytest.mark.rocm
@pytest.mark.parametrize(
    ("driver", "target", "gpu"),
    [
        (_Absent, "rocm", "gfx90a"),
        (_Present, "rocm", "gfx1100"),
        (_Present, "rocm -mcpu=gfx942", "gfx942"),
    ],
    indirect=["driver"],
)
def test_the_gpu_is_the_one_that_is_named_or_there(driver, target, gpu, monkeypatch):
    asked = []
    compile_source = rocm.toolchain.compile_source

    def spy(source, options, *args, **kwargs):
        asked.append(options["mcpu"])
        return compile_source(source, options, *args, **kwargs)

    monkeypatch.setattr(rocm.toolchain, "compile_source", spy)
    compile_functions([_scale()], target)
    assert asked == [gpu]


def test_kernels_keep_to_the_limits_of_the_device_that_is_there(driver):
    if driver.count():
        with pytest.raises(UserError, match="has 16 threads in threadIdx.x"):
            compile_functions([_scale(block=16)], "opencl")
    else:
        compile_functions([_scale(block=16)], "opencl")


def test_a_stage_that_is_not_bound_is_refused_before_any_tool_runs(monkeypatch):
    n = refcomp.var("n")
    a = refcomp.placeholder((n,), name="A")
    b = refcomp.compute((n,), lambda i: a[i] * 2, name="B")
    func = refcomp.lower(refcomp.create_schedule(b.op), [a, b])
    for kind in ("opencl", "rocm"):
        with pytest.raises(UserError, match="stage B is computed outside of a kernel"):
            compile_functions([func], kind)


def test_the_texts_are_dumped(tmp_path, monkeypatch):
    monkeypatch.setenv("REFCOMP_DUMP", str(tmp_path))
    compile_functions([_scale()], "opencl")
    assert sorted(tmp_path.iterdir())[-1].name.endswith("_opencl.txt")


@pytest.mark.llvm
def test_the_text_is_dumped_before_a_tool_fails_on_it(tmp_path, monkeypatch):
    monkeypatch.setenv("REFCOMP_DUMP", str(tmp_path))
    func = parse_func("func f(A: f32[n] out) { for i in range(n) { A[i] = 3.0f32 } }")
    with pytest.raises(ToolchainError):
        compile_functions([func], "llvm -passes=nosuch")
    assert [path for path in tmp_path.iterdir() if path.name.endswith("_llvm.txt")]


class _Knot:
    """An object that refers to itself, as a recursive function does that keeps its results."""

    def __init__(self):
        self.itself = self


def test_memory_of_a_function_is_freed_before_the_next_one_is_made():
    alive = []
    knots = []

    def functions():
        for number in range(3):
            alive.append([one() for one in knots if one() is not None])
            knots.append(weakref.ref(_Knot()))
            yield _scale(f"scale{number}")

    compile_functions(functions(), "interp")
    assert alive == [[], [], []]
