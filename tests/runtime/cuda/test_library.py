"""What is missing where there is no device, and what the driver's words mean."""

import ctypes

import pytest

from refcomp.foundation.errors import ToolchainError
from refcomp.runtime.cuda import library
from refcomp.runtime.cuda.library import (
    Absence,
    count_devices,
    find_pycuda,
    import_pycuda,
    is_about_code,
    lack_of_driver,
    meaning_of,
    remedy_of_ending,
)
from tests.runtime.cuda.recording_pycuda import RecordingPycuda

NO_LIBRARY = "libcuda.so.1: cannot open shared object file: No such file or directory"


def importing(error):
    def load():
        raise error

    return load


@pytest.fixture
def driver_found(monkeypatch):
    """Pretend that the driver's library can be loaded."""
    monkeypatch.setattr(library, "lack_of_driver", lambda: "")


@pytest.fixture
def driver_lacking(monkeypatch):
    monkeypatch.setattr(library, "lack_of_driver", lambda: NO_LIBRARY)


MISSING = ModuleNotFoundError("No module named 'pycuda'", name="pycuda")


def test_without_pycuda_the_recipe_is_given(driver_found):
    absence = find_pycuda(importing(MISSING))
    assert absence.why == "pycuda is not installed"
    for word in ("pip install refcomp[cuda]", "cuda.h", "curand.h", "libcuda"):
        assert word in absence.remedy
    for variable in ("CUDA_ROOT", "CPATH", "LIBRARY_PATH"):
        assert variable in absence.remedy


def test_without_pycuda_and_driver_both_are_named(driver_lacking):
    absence = find_pycuda(importing(MISSING))
    assert absence.why == (f"pycuda is not installed, and NVIDIA's driver is missing: {NO_LIBRARY}")
    assert "REFCOMP_CUDA=emulator:sm_90 runs PTX (option `-code=ptx`)" in absence.remedy
    assert "pip install refcomp[cuda]" in absence.remedy


def test_pycuda_without_a_driver(driver_lacking):
    absence = find_pycuda(importing(ImportError(NO_LIBRARY)))
    assert absence.why == f"pycuda is installed, but NVIDIA's driver is missing: {NO_LIBRARY}"
    assert "install its driver" in absence.remedy


def test_pycuda_that_cannot_be_imported(driver_found):
    words = "libcurand.so.10: cannot open shared object file"
    absence = find_pycuda(importing(ImportError(words)))
    assert absence.why == f"pycuda is installed, but cannot be imported: {words}"
    assert "--no-binary pycuda" in absence.remedy
    needs = find_pycuda(importing(ModuleNotFoundError("No module named 'pytools'", name="pytools")))
    assert "No module named 'pytools'" in needs.why


def test_an_old_pycuda():
    driver = RecordingPycuda().driver
    del driver.Function.set_attribute
    absence = find_pycuda(lambda: driver)
    assert absence.why == "this version of pycuda lacks Function.set_attribute"
    assert "--upgrade" in absence.remedy


def test_the_driver_without_a_device():
    recording = RecordingPycuda()
    recording.errors["cuInit"] = "no CUDA-capable device is detected"
    assert find_pycuda(lambda: recording.driver) is recording.driver
    count, absence = count_devices(recording.driver)
    words = "cuInit failed: no CUDA-capable device is detected"
    assert (count, absence.why) == (0, f"NVIDIA's driver says: {words}")
    assert "CUDA_VISIBLE_DEVICES" in absence.remedy
    nothing = count_devices(RecordingPycuda(devices=0).driver)
    assert nothing == (0, Absence("NVIDIA's driver counts no device", absence.remedy))


def test_this_machines_pycuda_is_used_or_explained():
    found = find_pycuda(import_pycuda)
    assert isinstance(found, Absence) or count_devices(found)[0] >= 0


def test_the_library_of_the_driver_is_sought_by_its_name(monkeypatch):
    sought = []
    monkeypatch.setattr(ctypes, "CDLL", sought.append)
    assert lack_of_driver() == "" and sought == ["libcuda.so.1"]


def test_lack_of_memory_is_pythons_error():
    error = meaning_of("cuMemAlloc failed: out of memory", "allocating 7 bytes")
    assert type(error) is MemoryError
    assert str(error) == (
        "the NVIDIA GPU has no room. allocating 7 bytes: cuMemAlloc failed: out of memory. "
        "Free arrays on it"
    )


@pytest.mark.parametrize(
    ("words", "what", "remedy"),
    [
        ("too many resources requested for launch", "more registers than a group", "unroll less"),
        ("invalid argument", "refuses an argument", "smaller factors"),
        ("invalid resource handle", "an object of another GPU", "that made them"),
        (
            "CUDA-capable device(s) is/are busy or unavailable",
            "another process has the GPU",
            "compute mode",
        ),
        ("unknown error", "NVIDIA's driver failed", "dmesg"),
    ],
)
def test_the_drivers_words_are_kept(words, what, remedy):
    error = meaning_of(f"cuLaunchKernel failed: {words}", "launching the kernel f")
    assert type(error) is ToolchainError
    assert what in error.what and remedy in error.remedy
    assert error.why == f"launching the kernel f: cuLaunchKernel failed: {words}"


def test_refused_code_is_recognised():
    assert is_about_code(
        "cuModuleLoadDataEx failed: no kernel image is available for execution on the device"
    )
    assert not is_about_code("cuModuleLoadDataEx failed: out of memory")


def test_the_remedy_fits_the_ending():
    assert "interp" in remedy_of_ending("an illegal memory access was encountered")
    assert "interp" in remedy_of_ending("unspecified launch failure")
    assert "split the work" in remedy_of_ending("the launch timed out and was terminated")
    assert "ECC" in remedy_of_ending("uncorrectable ECC error encountered")
