"""The library is found by any number behind its name, and its functions are typed."""

import ctypes
import os
import subprocess
import sys

import pytest

from refcomp.foundation.artifacts import Source
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.hip import api as hip_api
from refcomp.runtime.hip import library as hip_library
from refcomp.runtime.hip.library import load_hip, register_emulator, sought_places
from refcomp.toolchain import compile_source, host_triple_and_layout
from tests.runtime.hip.recording_hip import RecordingHip, library_of


def make_library(folder, name, number):
    """A library whose device count is `number`."""
    others = [f for f in hip_api.FUNCTIONS if f != "hipGetDeviceCount"]
    text = f"""
@words = constant [6 x i8] c"words\\00"
define i32 @hipGetDeviceCount(ptr %count) {{
  store i32 {number}, ptr %count
  ret i32 0
}}
define ptr @hipGetErrorString(i32 %number) {{
  ret ptr @words
}}
define ptr @hipGetErrorName(i32 %number) {{
  ret ptr @words
}}
"""
    text += "".join(f"define i32 @{name}() {{\n  ret i32 0\n}}\n" for name in others)
    folder.mkdir(parents=True, exist_ok=True)
    triple, layout = host_triple_and_layout()
    head = f'target datalayout = "{layout}"\ntarget triple = "{triple}"\n'
    (folder / name).write_bytes(compile_source(Source(head + text, "llvm"), {}, "so").data)


@pytest.mark.llvm
def test_the_newest_of_several_is_taken_whatever_its_number(tmp_path, monkeypatch):
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    assert load_hip() is None
    for name, number in (("libamdhip64.so.5", 5), ("libamdhip64.so.117", 117)):
        make_library(tmp_path / "lib", name, number)
    (tmp_path / "lib" / "libamdhip64.so.999").write_text("no library")
    library = load_hip()
    assert library is not None and library.path.endswith("libamdhip64.so.117")
    count = ctypes.c_int32()
    library.call("hipGetDeviceCount", ctypes.byref(count))
    assert count.value == 117
    assert library.text(3) == "words (3)"
    assert not library.has("hipGetDeviceProperties")


def test_the_emulator_is_imported_when_it_is_asked_for(monkeypatch):
    imported = []

    def register(home):
        imported.append(home)
        register_emulator(lambda arch: RecordingHip(arch=arch.encode()))

    monkeypatch.setattr(hip_library, "_emulators", [])
    monkeypatch.setattr(hip_library, "import_module", register)
    for _ in range(2):
        assert hip_library.emulated_hip("gfx942").path == "the emulator of gfx942"
    assert imported == ["refcomp.driver.devices"]


def test_an_emulator_is_used_only_when_asked_for(monkeypatch):
    made = []

    def make(arch):
        if arch != "gfx942":
            raise UserError(f"no {arch}")
        made.append(RecordingHip(arch=arch.encode()))
        return made[-1]

    monkeypatch.setattr(hip_library, "_emulators", [])
    monkeypatch.setattr(hip_library, "import_module", lambda home: None)
    monkeypatch.setenv("REFCOMP_ROCM", "emulator:gfx942")
    with pytest.raises(UserError, match="gfx942 cannot be emulated"):
        load_hip()
    register_emulator(make)
    library = load_hip()
    assert library is not None and library.path == "the emulator of gfx942"
    library.call("hipDeviceSynchronize")
    assert made[0].calls == ["hipDeviceSynchronize"]
    asked = []
    register_emulator(lambda choice: asked.append(choice) or RecordingHip())
    for choice in ("gfx942:hazards", "gfx942:read-only:unchecked"):
        monkeypatch.setenv("REFCOMP_ROCM", f"emulator:{choice}")
        assert load_hip().path == f"the emulator of {choice}" and asked[-1] == choice
    register_emulator(make)
    monkeypatch.setenv("REFCOMP_ROCM", "emulator:gfx1")
    where = "where: environment variable REFCOMP_ROCM"
    with pytest.raises(UserError, match=f"no gfx1\n  {where}=emulator:gfx1"):
        load_hip()
    for choice in ("emulator", "cpu", "emulator:gfx942 ", "emulator:gfx942:"):
        monkeypatch.setenv("REFCOMP_ROCM", choice)
        with pytest.raises(UserError, match=f"REFCOMP_ROCM={choice} is not known\n  {where}\n"):
            load_hip()
    monkeypatch.setenv("REFCOMP_ROCM", "")
    monkeypatch.setenv("ROCM_PATH", "/nowhere")
    assert load_hip() is None and len(made) == 1


def test_the_loader_is_asked_for_each_number_newest_first(monkeypatch):
    monkeypatch.delenv("ROCM_PATH", raising=False)
    asked = []

    def load(name, mode):
        asked.append(name)
        raise OSError("not there")

    monkeypatch.setattr(ctypes, "CDLL", load)
    assert load_hip() is None
    numbers = [int(name.rpartition(".")[2]) for name in asked if name[-1].isdigit()]
    assert numbers[-3:] == [7, 6, 5] and numbers == sorted(numbers, reverse=True)
    assert numbers[0] > 20, "versions to come, too"
    assert asked[len(numbers)] == "libamdhip64.so"


def test_where_it_is_sought(monkeypatch):
    monkeypatch.setenv("ROCM_PATH", "/r")
    assert sought_places() == "ROCM_PATH=/r: lib/libamdhip64.so*"
    monkeypatch.delenv("ROCM_PATH")
    assert sought_places().startswith("libamdhip64.so.5 and newer where the dynamic loader looks")


@pytest.mark.rocm
def test_the_installed_library_is_found(monkeypatch):
    monkeypatch.delenv("ROCM_PATH", raising=False)
    library = load_hip()
    assert library is not None, "apt-get install libamdhip64-5"
    assert library.text(100) == "hipErrorNoDevice (100)"
    assert all(library.has(name) for name in hip_api.FUNCTIONS)
    assert any(library.has(call.function) for call in hip_api.PROPERTIES)


_CALL_ALL = """
import ctypes
from refcomp.hip import api as hip_api
from refcomp.foundation.errors import UserError
from refcomp.hip.interface import parameters
from refcomp.runtime.hip.library import load_hip

answer = ctypes.create_string_buffer(4096)
given = {"i32": 0, "u32": 1, "size": 16, "address": answer, "handle": None, "text": b"kernel"}
given |= {"extra": None, "out_text": answer, "out_i32": ctypes.c_int32()}
given |= {"out_size": ctypes.c_size_t(), "out_f32": ctypes.c_float()}
given |= dict.fromkeys(("out_address", "out_handle"), ctypes.c_void_p())
library = load_hip()
for name in hip_api.FUNCTIONS:
    try:
        library.call(name, *(given[kind] for kind, _ in parameters(name)))
        print(name, "was done")
    except UserError as error:
        print(name, error.why)
"""


@pytest.mark.rocm
def test_each_function_of_the_real_library_tells_that_there_is_no_gpu():
    """In a process of its own: where there is a GPU, null pointers would be used."""
    if os.path.exists("/dev/kfd"):
        return
    command = [sys.executable, "-c", _CALL_ALL]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    told = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert [*told] == [*hip_api.FUNCTIONS]
    versions = {name for name in told if name.endswith("GetVersion")}
    assert {name for name, words in told.items() if words == "was done"} == versions
    assert told["hipGetDeviceCount"] == "hipGetDeviceCount() says: hipErrorNoDevice (100)"
    for name in {*told} - versions - {"hipGetDeviceCount"}:
        assert told[name].startswith(f"{name}("), name
        assert told[name].endswith(" says: hipErrorInvalidDevice (101)"), name


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (2, MemoryError, "no room"),
        (3, UserError, "/dev/kfd"),
        (35, UserError, "/dev/kfd"),
        (
            100,
            UserError,
            "hipFree(memory=0x1234) says: hipErrorNoDevice, no ROCm-capable device is",
        ),
        (101, UserError, "invalid device ordinal"),
        (200, ToolchainError, "the code is for another GPU"),
        (209, ToolchainError, "compile for this GPU"),
        (1, ToolchainError, "the HIP runtime failed"),
        (9, ToolchainError, "a kernel asks for more than the GPU has"),
        (700, ToolchainError, "a kernel launched before reached memory that is not its own"),
        (701, ToolchainError, "what to do: fewer threads in a group"),
        (702, ToolchainError, "ran too long"),
        (719, ToolchainError, "what to do: build the schedule for `interp`"),
    ],
)
def test_what_each_number_raises(number, kind, words):
    recording = RecordingHip()
    recording.errors["hipFree"] = number
    with pytest.raises(kind) as caught:
        library_of(recording).call("hipFree", 0x1234)
    assert words in str(caught.value)
