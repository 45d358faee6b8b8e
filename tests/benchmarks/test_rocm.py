"""The check of AMD GPUs: up to the driver as it is, its operators on PoCL, the rest on a recording.

What only a card can tell is told by whoever runs `scripts/rocm_check` on one.
"""

import ctypes
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import refcomp
from benchmarks.fresh import run_python
from benchmarks.operators import CASES
from benchmarks.rocm import check, parts, product
from benchmarks.rocm.product import TILE, RocBlas, build_product, peak_flops
from refcomp.runtime.device import Device
from tests.runtime.hip.recording_hip import RecordingHip, driver_of

ROOT = Path(__file__).parents[2]


def run_check(folder: Path, *arguments: str) -> tuple[int, str, dict]:
    path = folder / "out.json"
    done = subprocess.run(
        [ROOT / "scripts" / "rocm_check", "--quick", "--json", path, *arguments],
        cwd=folder,
        env={key: value for key, value in os.environ.items() if key != "REFCOMP_ROCM"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout, json.loads(path.read_text())


@pytest.mark.rocm
def test_without_a_card_it_builds_and_tells_the_drivers_words(tmp_path):
    if os.path.exists("/dev/kfd"):
        return
    code, told, report = run_check(tmp_path, "--gpus", "gfx942")
    assert code == check.NO_CARD
    assert "all was built, but no AMD GPU was found: hipGetDeviceCount of libamdhip64.so" in told
    assert report["failures"] == {} and {*report["parts"]} == {"build", "look"}
    built = report["parts"]["build"]["gfx942"]
    assert built["kernels"] >= len(CASES)
    assert [kernel["spilled_vgprs"] for kernel in built["product"]] == [0]
    looked = report["parts"]["look"]
    assert looked["driver"]["runtime"].split(".")[0].isdigit()
    assert not looked["exists"] and "hipErrorNoDevice (100)" in looked["why"]
    assert report["tools"]["llc"].startswith("19.") and report["machine"]["cpu"]


@pytest.mark.rocm
def test_what_fails_is_written_and_told(tmp_path):
    code, told, report = run_check(tmp_path, "--gpus", "gfx1")
    assert code == check.FAILED
    assert "FAILED build: ToolchainError: " in told or "FAILED build: UserError: " in told
    assert "1 part failed: please send it" in told
    assert "gfx1" in report["failures"]["build"]


def test_what_is_told_at_the_end():
    report = {"failures": {}, "emulated": ""}
    there = {"exists": True, "device": {"name": "MI"}}
    assert check._outcome(report, there) == "all is well on MI: please send it, too"
    report["emulated"] = "emulator:gfx942"
    assert (
        check._outcome(report, there)
        == "all is well on the MI, which is not a card: nothing to send"
    )


def test_a_part_that_ends_its_process_is_a_failure(monkeypatch):
    """As a GPU does that meets bad code."""
    report = {"parts": {}, "seconds": {}, "failures": {}}
    abort = ["-c", "import os; os.abort()"]
    monkeypatch.setattr(check, "call_fresh", lambda *_, **__: run_python(abort))
    check._with_part(report, "figures", {})
    assert report["failures"] == {"figures": "the process ended: exit code -6\nexit code -6"}


@pytest.mark.rocm
def test_what_an_operator_raises_does_not_hide_the_others(recording, monkeypatch):
    """A recording runs no kernel: what it returns is wrong, and said to be."""
    few = [case for case in CASES if case.name in ("relu", "tanh", "gemm")]
    monkeypatch.setattr(parts, "CASES", few)
    recording.errors["hipModuleLaunchKernel"] = 719
    found = parts.attempt("operators", {})
    assert found["failure"].startswith("AssertionError: wrong: relu, tanh, gemm; ")
    assert found["failure"].count("a kernel launched before failed") == 3
    del recording.errors["hipModuleLaunchKernel"]
    assert parts.attempt("operators", {})["failure"].startswith("AssertionError: wrong: relu,")


@pytest.mark.pocl
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_its_operators_are_numpys_on_pocl(case):
    result = case.run(case.build("opencl"), refcomp.opencl(0))
    assert case.worst(result) <= 1
    result[(0,) * result.ndim] += 0.5
    assert case.worst(result) > 1, "and it tells what is wrong"


@pytest.mark.pocl
def test_its_product_is_numpys_on_pocl():
    rng, gpu = np.random.default_rng(1), refcomp.opencl(0)
    a, b = rng.integers(-9, 10, (2, TILE, TILE)).astype(np.float32)
    out = refcomp.empty((TILE, TILE), "float32", gpu)
    build_product(TILE, "opencl")(refcomp.array(a, gpu), refcomp.array(b, gpu), out)
    np.testing.assert_array_equal(out.asnumpy(), a @ b)


@pytest.fixture
def recording(monkeypatch) -> RecordingHip:
    recording = RecordingHip()
    driver = driver_of(recording)
    monkeypatch.setattr(parts, "_gpu", lambda: (Device("recorded", 0, driver), driver))
    return recording


def test_memory_is_moved_every_way(recording):
    assert parts.move() == {"ways": ["there and back", "on the device", "by streams", "filled"]}
    assert {"hipMemcpyAsync", "hipStreamWaitEvent", "hipMemset"} <= {*recording.calls}
    assert recording.alive == {}


@pytest.mark.parametrize(
    ("function", "way"),
    [("hipMemset", "filled"), ("hipMemcpyAsync", "by streams"), ("hipMemcpy", "there and back")],
)
def test_memory_that_does_not_arrive_is_told(recording, monkeypatch, function, way):
    monkeypatch.setattr(RecordingHip, function, lambda *args: 0)
    with pytest.raises(AssertionError, match=f"wrong: .*{way}"):
        parts.move()


@pytest.mark.rocm
def test_figures_are_rates_of_the_devices_clock(recording, monkeypatch):
    """Which tells 2.5 ms for each launch."""
    monkeypatch.setattr(parts, "_COPIED", 1 << 10)
    monkeypatch.setattr(product, "_candidates", lambda: ("nowhere.so",))
    found = parts.figures([TILE], rounds=2)
    assert found["memory"]["on the GPU"]["median"] == pytest.approx(2048 / 2.5e-3 / 1e9)
    row = found["products"][str(TILE)]
    assert row["Tflop/s"]["median"] == pytest.approx(2 * TILE**3 / 2.5e-3 / 1e12)
    assert row["of the peak"] == pytest.approx(2 * TILE**3 / 2.5e-3 / (110 * 128 * 1.7e9))
    assert row["rocBLAS"] == "no rocBLAS: sought nowhere.so"


@pytest.mark.rocm
def test_operators_are_numpys_on_the_emulator(monkeypatch):
    """All of the way that a card would go, but for the card."""
    gpu = refcomp.rocm_emulator("gfx942")
    monkeypatch.setattr(parts, "_gpu", lambda: (gpu, gpu.driver))
    few = [case for case in CASES if case.name in ("add_f16", "tanh", "softmax", "conv2d")]
    monkeypatch.setattr(parts, "CASES", few)
    worst = parts.operators()["worst"]
    assert {*worst} == {case.name for case in few} and max(worst.values()) <= 1
    assert parts.emulated("gfx942") == {"differing elements": dict.fromkeys(worst, 0)}
    assert parts.move()["ways"]


def test_a_card_that_is_not_listed_has_no_peak(recording):
    recording.arch = b"gfx7"
    assert peak_flops(parts._gpu()[1].info(0)) is None


_ROCBLAS = """
static int handles;
int rocblas_create_handle(void **handle) { *handle = &handles; handles++; return 0; }
int rocblas_destroy_handle(void *handle) { handles--; return handle != &handles; }
int rocblas_sgemm(void *handle, int ta, int tb, int m, int n, int k, const float *alpha,
                  const float *a, int lda, const float *b, int ldb, const float *beta, float *c,
                  int ldc) {
    if (handle != &handles || ta != 111 || tb != 111) return 11;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int l = 0; l < k; l++) sum += a[i + l * lda] * b[l + j * ldb];
            c[i + j * ldc] = *alpha * sum + *beta * c[i + j * ldc];
        }
    return 0;
}
"""


@pytest.mark.clang
def test_rocblas_multiplies_in_the_same_order(recording, monkeypatch, tmp_path):
    """A library with its functions, by columns as it has them, on the recording's memory."""
    (tmp_path / "blas.c").write_text(_ROCBLAS)
    names = ("clang", *(f"clang-{major}" for major in range(40, 14, -1)))
    clang = next(filter(None, map(shutil.which, names)))
    library = tmp_path / "librocblas.so"
    command = [clang, "-shared", "-fPIC", tmp_path / "blas.c", "-o", library]
    subprocess.run(command, check=True, timeout=60)
    monkeypatch.setattr(product, "_candidates", lambda: (str(library),))
    gpu, _ = parts._gpu()
    a, b = np.random.default_rng(2).integers(-9, 9, (2, 5, 5)).astype(np.float32)
    out, blas = refcomp.array(np.ones((5, 5), np.float32), gpu), RocBlas()
    blas.product(refcomp.array(a, gpu), refcomp.array(b, gpu), out)
    np.testing.assert_array_equal(out.asnumpy(), a @ b)
    blas._handle, handle = ctypes.c_void_p(1), blas._handle
    with pytest.raises(RuntimeError, match="rocblas_sgemm returned 11"):
        blas.product(out, out, out)
    blas._handle = handle
    blas.close()
