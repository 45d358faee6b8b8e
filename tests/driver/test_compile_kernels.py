"""Kernels compiled for each kind of device, by the targets' text alone."""

import json

import numpy as np
import pytest

import refcomp
from refcomp.driver import compile_kernels
from refcomp.driver.compile_kernels import compile_programs, device_limits, is_device_target
from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.foundation.target import DeviceLimits, as_target, target_kinds
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
    monkeypatch.setattr(compile_kernels, "device_for", lambda target: Device("gpu", 0, made))
    return made


@pytest.mark.rocm
def _doubled():
    n = refcomp.var("n")
    a = refcomp.placeholder((n,), name="A")
    b = refcomp.compute((n,), lambda i: a[i] * 2.0, name="B")
    schedule = refcomp.create_schedule(b)
    schedule[b].bind(b.op.axis[0], refcomp.thread_axis("blockIdx.x"))
    return schedule, [a, b]


def test_a_bare_code_object_is_written_and_read(tmp_path):
    module = refcomp.build(*_doubled(), "rocm -mcpu=gfx942", name="twice")
    module.save(tmp_path / "twice.hsaco")
    kernels = refcomp.load_code_object(tmp_path / "twice.hsaco")
    made = module.imported_modules[0]
    assert kernels.kernel_names == ("twice_kernel0",) and kernels.target == "rocm -mcpu=gfx942"
    assert kernels.code == made.code
    for format in ("metadata", "asm"):
        assert kernels.get_source(format) == made.get_source(format)
    (told,) = json.loads(kernels.get_source("metadata"))["amdhsa.kernels"]
    assert told[".name"] == "twice_kernel0"
    with pytest.raises(UserError, match="cannot be called in the module of a device"):
        made["twice_kernel0"]
    with pytest.raises(UserError, match="the code object has no kernel 'twice'") as caught:
        kernels["twice"]
    assert caught.value.remedy == "it has: twice_kernel0"


@pytest.mark.rocm
def test_kernels_of_a_bare_code_object_run(tmp_path):
    """On the emulated GPU, by their metadata alone."""
    module = refcomp.build(*_doubled(), "rocm -mcpu=gfx942", name="twice")
    module.save(tmp_path / "twice.hsaco")
    twice = refcomp.load_code_object(tmp_path / "twice.hsaco")["twice_kernel0"]
    device, values = refcomp.rocm_emulator("gfx942"), np.arange(64, dtype=np.float32)
    a, b = refcomp.array(values, device), refcomp.array(np.zeros_like(values), device)
    assert "twice_kernel0 (B, A, n)" in module.get_source("launch")
    twice(b, a, np.int64(50), grid=50)
    np.testing.assert_array_equal(b.asnumpy(), np.where(values < 50, 2 * values, 0))


def test_what_is_no_code_object_is_not_loaded(tmp_path):
    for text, why in (("no machine code", "it begins with b'no m'"), ("", "it is empty")):
        (tmp_path / "text.hsaco").write_text(text)
        with pytest.raises(UserError, match=f"text.hsaco is no code object\n  why: {why}"):
            refcomp.load_code_object(tmp_path / "text.hsaco")
    (tmp_path / "damaged.hsaco").write_text("\x7fELF no machine code")
    with pytest.raises(ToolchainError, match="the metadata of a code object cannot be read"):
        refcomp.load_code_object(tmp_path / "damaged.hsaco")
    with pytest.raises(UserError, match=r"missing.hsaco cannot be read\n  why: No such file"):
        refcomp.load_code_object(tmp_path / "missing.hsaco")


def test_every_target_with_limits_is_one_of_a_device():
    with_limits = {kind.name for kind in target_kinds() if kind.limits}
    assert with_limits == {k.name for k in target_kinds() if is_device_target(as_target(k.name))}
    assert "llvm" not in with_limits


@pytest.mark.parametrize("kind", KINDS)
def test_functions_become_programs_with_one_code(kind):
    compiled = compile_programs([_scale("scale"), _scale("other")], kind)
    assert [program.host.name for program in compiled.programs] == ["scale", "other"]
    names = [kernel.name for program in compiled.programs for kernel in program.kernels]
    assert names == ["scale_kernel0", "other_kernel0"] == list(compiled.symbols)
    for text in compiled.code.sources.values():
        assert all(symbol in text for symbol in compiled.symbols.values())


def test_opencl_is_loaded_as_text():
    compiled = compile_programs([_scale()], "opencl")
    assert isinstance(compiled.code.code, Source) and compiled.code.code.language == "opencl"
    assert "__kernel" in compiled.code.sources["opencl"]
    assert compiled.code.disassemble is None


@pytest.mark.rocm
@pytest.mark.parametrize("driver", [_Absent], indirect=True)
def test_wishes_for_waves_reach_the_code(driver):
    compiled = compile_programs([_scale()], "rocm -mcpu=gfx1100 -wavefront=64 -waves=3")
    assert '"amdgpu-waves-per-eu"="3"' in compiled.code.sources["llvm"]
    assert read_code_object(compiled.code.code.data).kernels[0].wavefront_size == 64


@pytest.mark.rocm
@pytest.mark.parametrize("driver", [_Absent], indirect=True)
def test_rocm_is_loaded_as_machine_code(driver):
    compiled = compile_programs([_scale()], "rocm -passes=default<O1>")
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
    compile_source = compile_kernels.toolchain.compile_source

    def spy(source, options, *args, **kwargs):
        asked.append(options["mcpu"])
        return compile_source(source, options, *args, **kwargs)

    monkeypatch.setattr(compile_kernels.toolchain, "compile_source", spy)
    compile_programs([_scale()], target)
    assert asked == [gpu]


def test_limits_are_those_of_the_device_that_is_there(driver):
    limits = device_limits(as_target("opencl"))
    assert limits.threads == (8 if driver.count() else 256)
    assert device_limits(as_target("opencl -threads=512")).threads == 512
    if driver.count():
        with pytest.raises(UserError, match="has 16 threads in threadIdx.x"):
            compile_programs([_scale(block=16)], "opencl")
    else:
        compile_programs([_scale(block=16)], "opencl")


def test_a_stage_that_is_not_bound_is_refused_before_any_tool_runs(monkeypatch):
    n = refcomp.var("n")
    a = refcomp.placeholder((n,), name="A")
    b = refcomp.compute((n,), lambda i: a[i] * 2, name="B")
    func = refcomp.lower(refcomp.create_schedule(b.op), [a, b])
    for kind in ("opencl", "rocm"):
        with pytest.raises(UserError, match="stage B is computed outside of a kernel"):
            compile_programs([func], kind)


def test_the_texts_are_dumped(tmp_path, monkeypatch):
    monkeypatch.setenv("REFCOMP_DUMP", str(tmp_path))
    compile_programs([_scale()], "opencl")
    assert sorted(tmp_path.iterdir())[-1].name.endswith("_opencl.txt")
