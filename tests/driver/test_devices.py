"""Which device a name means."""

from typing import Any

import numpy as np
import pytest

import refcomp
from refcomp.driver import devices
from refcomp.driver.backends import as_target
from refcomp.driver.devices import context, cpu, cuda, device_for, gpu, opencl, rocm
from refcomp.emulator import EmulatedGpu
from refcomp.emulator.code.failure import KernelFailure
from refcomp.emulator.limits import USUAL_SECONDS, USUAL_STEPS
from refcomp.emulator.machine.observation import Observer
from refcomp.foundation.artifacts import Binary
from refcomp.foundation.errors import UserError
from refcomp.runtime.hip import library as hip_library
from refcomp.runtime.launch import KernelSignature
from refcomp.toolchain import disassembly
from tests.emulator.kernels import compiled_code
from tests.runtime.hip.recording_hip import RecordingHip


@pytest.mark.parametrize("name", ["llvm", "interp", "cpu", "llvm -mcpu=znver4"])
def test_targets_of_the_host(name: str) -> None:
    assert context(name) == context(name, 0) == cpu(0)
    assert context(name, 1) == cpu(1)


def test_other_kinds() -> None:
    assert context("opencl", 2) == opencl(2) == refcomp.context("opencl", 2) == refcomp.opencl(2)
    assert str(opencl()) == "opencl:0"
    assert context("rocm -mcpu=gfx90a", 1) == rocm(1) == refcomp.rocm(1) != opencl(1)
    assert context("cuda -arch=sm_90", 1) == cuda(1) == refcomp.cuda(1) != rocm(1)
    assert context("gpu", 1) == gpu(1) == refcomp.gpu(1) == cuda(1)
    assert str(cuda()) == "cuda:0"


def test_the_device_of_a_target() -> None:
    assert device_for("llvm") == device_for(as_target("interp")) == cpu(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(devices, "backends", lambda: pytest.fail("other back ends were imported"))
        assert device_for("llvm") == cpu(0)
    assert context(as_target("llvm -mcpu=znver4")) == cpu(0)


@pytest.mark.parametrize("name", ["vulkan", "", 7, None, "emulator:gfx942"])
def test_names_that_mean_no_device(name: str) -> None:
    with pytest.raises(
        UserError,
        match=r"is not the name of a device\n"
        r"  what to do: use one of: cpu, cuda, opencl, rocm.*rocm_emulator\(",
    ):
        context(name)


def test_indices_are_checked() -> None:
    with pytest.raises(UserError, match="-1 is not the index of a device"):
        context("opencl", -1)


def test_an_emulated_gpu_is_a_kind_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {}

    def make(arch: str) -> RecordingHip:
        if arch not in ("gfx942", "gfx90a"):
            raise UserError(f"{arch} is not emulated")
        made[arch] = RecordingHip(arch=arch.encode())
        return made[arch]

    devices._emulator_driver.cache_clear()
    monkeypatch.setattr(hip_library, "_emulators", [make])
    gpu, other = refcomp.rocm_emulator("gfx942"), refcomp.rocm_emulator("gfx90a")
    assert str(gpu) == "rocm_emulator_gfx942:0" and gpu.name == "AMD Instinct (gfx942)"
    assert gpu.exist and gpu == refcomp.rocm_emulator() and gpu not in (other, rocm())
    assert gpu.driver is refcomp.rocm_emulator("gfx942").driver is not rocm().driver
    with pytest.raises(UserError, match="gfx1 is not emulated"):
        refcomp.rocm_emulator("gfx1")
    np.testing.assert_array_equal(refcomp.array([1, 2], gpu).asnumpy(), [1, 2])
    assert "hipMalloc" in made["gfx942"].calls and "hipMalloc" not in made["gfx90a"].calls
    devices._emulator_driver.cache_clear()


class _Counter(Observer):
    launches = 0

    def launched(self, loaded: Any, request: Any) -> None:
        self.launches += 1


@pytest.mark.rocm
def test_an_observed_gpu_is_nobody_elses() -> None:
    counter, n = _Counter(), refcomp.var("n")
    gpu = refcomp.rocm_emulator("gfx942", observers=[counter])
    assert str(gpu) not in ("rocm_emulator_gfx942:0", str(rocm()))
    assert gpu != refcomp.rocm_emulator("gfx942", observers=[counter])
    a = refcomp.placeholder((n,), name="A")
    b = refcomp.compute((n,), lambda i: a[i] * 2.0, name="B")
    schedule = refcomp.create_schedule(b)
    schedule[b].bind(b.op.axis[0], refcomp.thread_axis("blockIdx.x"))
    double = refcomp.build(schedule, [a, b], "rocm -mcpu=gfx942")
    for device in (gpu, refcomp.rocm_emulator("gfx942")):
        out = refcomp.empty(3, "float32", device)
        double(refcomp.array(np.ones(3, np.float32), device), out)
        np.testing.assert_array_equal(out.asnumpy(), [2, 2, 2])
    assert counter.launches == 1
    with pytest.raises(UserError, match="the emulator does not support gfx1"):
        refcomp.rocm_emulator("gfx1", observers=[counter])


def test_options_of_an_emulated_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each choice of options is a device of its own; $REFCOMP_ROCM has the same ones."""
    made = []

    def make(arch: str, disassemble: Any, **options: Any) -> RecordingHip:
        made.append((arch, options["hazards"], options["is_watched"]))
        return RecordingHip()

    devices._emulator_driver.cache_clear()
    monkeypatch.setattr(devices, "EmulatedHip", make)
    gpu = refcomp.rocm_emulator("gfx942", hazards=True, is_watched=False)
    some = refcomp.rocm_emulator("gfx942", hazards=["read-only", "waits"])
    assert [gpu.kind, some.kind] == [
        "rocm_emulator_gfx942_hazards_unchecked",
        "rocm_emulator_gfx942_read_only_waits",
    ]
    refcomp.rocm_emulator("gfx942", hazards=["races"], observers=[_Counter()])
    monkeypatch.setenv("REFCOMP_ROCM", "emulator:gfx942:unchecked:races")
    hip_library.load_hip()
    assert made == [
        *(("gfx942", True, False), ("gfx942", ["read-only", "waits"], True)),
        *(("gfx942", ["races"], True), ("gfx942", ["races"], False)),
    ]
    devices._emulator_driver.cache_clear()


def test_an_emulated_gpu_translates_unless_asked_not_to(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def make(arch: str, disassemble: Any, **options: Any) -> RecordingHip:
        made.append(options["tools"] is not None)
        return RecordingHip()

    devices._emulator_driver.cache_clear()
    monkeypatch.setattr(devices, "EmulatedHip", make)
    refcomp.rocm_emulator("gfx942")
    refcomp.rocm_emulator("gfx942", is_translated=False)
    monkeypatch.setenv("REFCOMP_ROCM", "emulator:gfx942:interpreted")
    hip_library.load_hip()
    assert made == [True, False, False]
    devices._emulator_driver.cache_clear()


def test_limits_of_an_emulated_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def make(arch: str, disassemble: Any, **options: Any) -> RecordingHip:
        made.append((options["limits"].steps, options["limits"].seconds, options["hazards"]))
        return RecordingHip()

    devices._emulator_driver.cache_clear()
    monkeypatch.setattr(devices, "EmulatedHip", make)
    gpu = refcomp.rocm_emulator("gfx942", max_steps=1000, max_seconds=2.5)
    assert gpu.kind == "rocm_emulator_gfx942_max_steps_1000_max_seconds_2_5"
    refcomp.rocm_emulator("gfx942", max_steps=7, observers=[_Counter()])
    refcomp.rocm_emulator("gfx942")
    monkeypatch.setenv("REFCOMP_ROCM", "emulator:gfx942:races:max-seconds=1e4:max-steps=50")
    hip_library.load_hip()
    usual = (USUAL_STEPS, USUAL_SECONDS)
    assert made == [(1000, 2.5, []), (7, usual[1], []), (*usual, []), (50, 1e4, ["races"])]
    devices._emulator_driver.cache_clear()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_steps": 0}, "a launch cannot be given up after 0 steps"),
        ({"max_steps": "many"}, "max-steps=many is not a limit"),
        ({"max_steps": "9" * 5000}, r"max-steps=9{67}\.\.\. is not a limit"),
        ({"max_seconds": -1}, "a launch cannot be given up after -1.0 seconds"),
        ({"max_seconds": "soon"}, "max-seconds=soon is not a limit"),
    ],
)
def test_what_is_not_a_limit_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        refcomp.rocm_emulator("gfx942", **options)


@pytest.mark.rocm
def test_a_kernel_that_does_not_end_in_time_is_given_up() -> None:
    """The loop runs far more instructions than the limit."""
    text = """
    func f(A: i32[64] out) {
      for t in range(64) threadIdx.x { for i in range(100000) { A[t] = A[t] * 3i32 + i32(i) } }
    }
    """
    gpu = refcomp.rocm_emulator("gfx942", max_steps=2000)
    module = refcomp.build_functions([refcomp.parse_func(text)], "rocm -mcpu=gfx942")
    with pytest.raises(UserError, match="no wave has ended for 2000 instructions; 1 of 1"):
        module(refcomp.array(np.zeros(64, np.int32), gpu))


def test_options_that_no_emulator_has(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="an emulated GPU has no option slow, fast") as caught:
        refcomp.rocm_emulator("gfx942", hazards=["slow", "waits", "fast"])
    assert "use some of: hazards, waits, wait-states, barriers, " in str(caught.value)
    with pytest.raises(UserError, match="the emulator does not support 942"):
        refcomp.rocm_emulator(942)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"profile=True is not a Profile\n.*refcomp.Profile\(\)"):
        refcomp.rocm_emulator("gfx942", profile=True)  # type: ignore[arg-type]
    monkeypatch.setenv("REFCOMP_ROCM", "emulator:gfx942:hazard")
    with pytest.raises(
        UserError, match="has no option hazard\n.*REFCOMP_ROCM=emulator:gfx942:hazard"
    ):
        hip_library.load_hip()


def test_one_hazard_needs_no_list() -> None:
    assert refcomp.rocm_emulator("gfx942", hazards="races").kind == "rocm_emulator_gfx942_races"


@pytest.mark.rocm
def test_an_emulated_gpu_gets_all_its_memory_back() -> None:
    gpu, n = refcomp.rocm_emulator("gfx942"), refcomp.var("n")
    a = refcomp.placeholder((n,), name="A")
    b = refcomp.compute((n,), lambda i: a[i] * 2.0, name="B")
    schedule = refcomp.create_schedule(b)
    schedule[b].bind(b.op.axis[0], refcomp.thread_axis("blockIdx.x"))
    double = refcomp.build(schedule, [a, b], "rocm -mcpu=gfx942")
    driver, free, values = gpu.driver, [], np.arange(10, dtype=np.float32)
    for _ in range(100):
        given, out = refcomp.array(values, gpu), refcomp.empty(10, "float32", gpu)
        double(given, out)
        np.testing.assert_array_equal(out.asnumpy(), 2 * values)
        with driver.stream(0) as stream:  # type: ignore[attr-defined]
            double(out, given)
            stream.record().sync()
        del given, out, stream
        free.append(driver.info(0).free_bytes)  # type: ignore[attr-defined]
    assert {*free} == {free[0]}
    work = double.time_evaluator("main", gpu, number=2, repeat=2)
    assert work(*(refcomp.array(values, gpu) for _ in "AB")).counts.kernels[0].launches == 1


@pytest.mark.rocm
def test_writes_to_arrays_that_a_kernel_only_reads_are_found() -> None:
    """A compiler that exchanges two parameters: the kernel writes to A and reads B."""
    a = refcomp.placeholder((64,), name="A")
    b = refcomp.compute((64,), lambda i: a[i] + 1.0, name="B")
    schedule = refcomp.create_schedule(b)
    schedule[b].bind(b.op.axis[0], refcomp.thread_axis("threadIdx.x"))
    (device_module,) = refcomp.build(schedule, [a, b], "rocm -mcpu=gfx942").imported_modules
    right = device_module.code.data
    # The offsets of the arguments, in the metadata.
    first, second = (b"\xa7.offset" + bytes([offset]) for offset in (0, 8))
    wrong = right.replace(first, b"?").replace(second, first).replace(b"?", second)
    assert len(wrong) == len(right) and wrong != right
    gpu = refcomp.rocm_emulator("gfx942", hazards=True)
    driver, name = gpu.driver, device_module.kernel_names[0]
    memory = tuple(driver.allocate(0, 256) for _ in "BA")
    for one in memory:
        driver.fill(0, one, 0, 256)
    for code in (right, wrong):
        kernels = [KernelSignature(name, name, (None, None))]
        launcher = driver.load(0, Binary(code, "hsaco"), kernels)  # type: ignore[attr-defined]
        shape = ((1, 1, 1), (64, 1, 1), ())
        if code is right:
            launcher.launch(name, memory, *shape)
            continue
        with pytest.raises(KernelFailure, match="writes the memory of A, which is read-only"):
            launcher.launch(name, memory, *shape)


@pytest.mark.rocm
def test_code_that_was_loaded_once_is_decoded_without_a_tool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code, started = compiled_code("vector_add"), []
    EmulatedGpu(devices._disassemble, size=1 << 20).load(code)
    monkeypatch.setattr(disassembly, "run_checked", lambda *given: started.append(given))
    loaded = EmulatedGpu(devices._disassemble, size=1 << 20).load(code)
    assert len(loaded.program(loaded.kernel("vector_add")).assembly) > 10
    assert started == []
