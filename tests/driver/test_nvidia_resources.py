"""Resources on NVIDIA GPUs come from ptxas's report; advice names the loop or buffer to change."""

import dataclasses
import warnings

import pytest

from refcomp.driver.kernel_resources import SlowKernelWarning
from refcomp.driver.nvidia_resources import (
    explain_failure,
    launched_shared_bytes,
    read_resources,
    warn_of_slow_kernels,
)
from refcomp.foundation.errors import ToolchainError, Unsupported, UserError
from refcomp.ir.func import Program
from refcomp.ir.parser import parse_func


def _kernel(threads: object = 128, body: str = "A@[t] = 1f32"):
    return parse_func(
        f"func k(A: f32[9999] out, n: i64) {{ for b in range(n) blockIdx.x {{ "
        f"for t in range({threads}) threadIdx.x {{ {body} }} }} }}"
    )


_INDEXED = (
    "alloc L: f32[64] local { for i in range(64) { L@[i] = 1f32 } "
    "for j in range(64) { A@[j] = L@[63 - j] } }"
)
_UNROLLED = "alloc L: f32[64] local { L@[0] = 1f32 A@[0] = L@[0] }"
_SHARED = (
    "alloc S: f32[64] shared { alloc T: f32[4096] shared { "
    "T@[t] = 1f32 S@[t] = 1f32 A@[t] = S@[t] + T@[t] } }"
)


def _report(arch="sm_80", stack=0, spills=0, registers=32, more=""):
    frame = f"{stack} bytes stack frame, {spills} bytes spill stores"
    return (
        f"ptxas info    : Compiling entry function 'k' for '{arch}'\n"
        "ptxas info    : Function properties for k\n"
        f"    {frame}, {2 * spills} bytes spill loads\n"
        f"ptxas info    : Used {registers} registers, used 1 barriers{more}\n"
    )


def _read(report: str, kernel):
    (found,) = read_resources(report, [kernel])
    return found


def test_figures_and_occupancy() -> None:
    found = _read(_report(registers=64, more=", 4096 bytes smem, 380 bytes cmem[0]"), _kernel())
    assert (found.kernel, found.arch, found.registers, found.threads) == ("k", "sm_80", 64, 128)
    assert (found.shared_bytes, found.constant_bytes, found.barriers) == (4096, 380, 1)
    assert (found.blocks, found.warps, found.limit, found.advice) == (8, 32, "registers", "")


def test_a_block_whose_size_the_launch_decides() -> None:
    found = _read(_report(), _kernel("n"))
    assert (found.threads, found.blocks, found.warps, found.limit) == (0, None, None, "")


def test_dynamic_shared_memory_limits_too() -> None:
    (found,) = read_resources(_report(), [_kernel()], {"k": 80_000})
    assert (found.dynamic_bytes, found.blocks, found.limit) == (80_000, 2, "shared memory")
    (found,) = read_resources(_report(), [_kernel()], {"k": None})
    assert (found.dynamic_bytes, found.blocks) == (None, None)


def test_launches_add_shared_memory() -> None:
    host = parse_func("""func f(A: f32[9] out, n: i64) {
      launch k (A) grid (1, 1, 1) block (1, 1, 1) shared_bytes (100, 256)
      launch k (A) grid (1, 1, 1) block (1, 1, 1) shared_bytes (100)
      launch l (A) grid (1, 1, 1) block (1, 1, 1)
      launch m (A) grid (1, 1, 1) block (1, 1, 1) shared_bytes (n)
      launch m (A) grid (1, 1, 1) block (1, 1, 1) shared_bytes (8)
    }""")
    assert launched_shared_bytes([Program(host, ())]) == {"k": 384, "l": 0, "m": None}


def test_an_architecture_that_is_not_known_has_no_occupancy() -> None:
    found = _read(_report("sm_990"), _kernel())
    assert (found.threads, found.blocks, found.limit) == (128, None, "")


@pytest.mark.parametrize(
    ("report", "kernel", "advice"),
    [
        (_report(stack=256), _kernel(body=_INDEXED), "unroll the loop i, whose variable"),
        (
            _report(stack=8, spills=8),
            _kernel(body=_INDEXED),
            "let a thread keep fewer elements of L",
        ),
        (_report(stack=8), _kernel(body=_UNROLLED), "let a thread keep fewer elements of L"),
        (_report(registers=255), _kernel(body=_UNROLLED), "let a thread keep fewer elements of L"),
        (
            _report(more=", 49152 bytes smem"),
            _kernel(body=_SHARED),
            "let a block keep fewer elements of T, which has 16384 bytes",
        ),
        (_report(), _kernel(threads=4), "let a block have more threads: bind larger loops"),
        (_report(), _kernel(threads=1024, body=_UNROLLED), ""),
    ],
)
def test_advice_names_what_to_change(report: str, kernel, advice: str) -> None:
    found = _read(report, kernel)
    assert found.advice.startswith(advice) and bool(found.advice) is bool(advice)


def test_a_report_without_a_kernel_is_refused() -> None:
    with pytest.raises(ToolchainError, match="the report of ptxas cannot be read") as caught:
        read_resources("", [_kernel()])
    assert "it lacks k" in str(caught.value)


def _warning(report: str) -> str:
    kernel = _kernel(body=_INDEXED)
    with pytest.warns(SlowKernelWarning) as caught:
        warn_of_slow_kernels([kernel], read_resources(report, [kernel]))
    (warning,) = caught
    assert warning.filename == __file__
    return str(warning.message)


def test_values_in_memory_are_warned_of_once() -> None:
    text = _warning(_report(stack=256) + _report("sm_90", stack=256))
    what = "the kernel k keeps 256 bytes of each thread's local memory out of registers on sm_80\n"
    assert text.startswith(what)
    assert "what to do: unroll the loop i, whose variable chooses" in text
    text = _warning(_report(stack=16, spills=8))
    what = "the kernel k spills registers to memory on sm_80 (8 bytes stored and 16 loaded by a th"
    assert text.startswith(what)


def test_kernels_in_registers_are_not_warned_of() -> None:
    kernel = _kernel()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_slow_kernels([kernel], read_resources(_report(), [kernel]))


def _explained(stderr: str, kernel=None):
    error = ToolchainError("nvcc failed", stderr=stderr)
    return error, explain_failure(error, [kernel or _kernel()], "sm_75")


def test_too_much_shared_memory_names_kernel_and_buffer() -> None:
    stderr = (
        "ptxas error   : Entry function 'k' uses too much shared data (0x13880 bytes, 0xc000 max)"
    )
    _, found = _explained(stderr, _kernel(body=_SHARED))
    assert isinstance(found, UserError)
    text = str(found)
    assert "the kernel k declares 80000 bytes of shared memory, and a block can have 49152" in text
    assert "fewer elements of T, which has 16384 bytes" in text and "-arch=sm_75" in text
    _, other = _explained(stderr.replace("'k'", "'other'"))
    assert "the kernel other declares" in str(other) and "use less of it" in str(other)


def test_an_instruction_of_newer_gpus_names_the_architecture() -> None:
    stderr = "ptxas k.ptx, line 32; error   : Feature '.tf32' requires .target sm_80 or higher\n"
    _, found = _explained(stderr)
    assert isinstance(found, Unsupported)
    assert ".tf32 needs sm_80 or newer, and the target is for sm_75" in str(found)
    assert "build with -arch=sm_80 or newer" in str(found)


def test_too_few_registers_are_explained() -> None:
    stderr = "ptxas fatal   : (C7600) Register allocation failed with register count of '32'. Comp"
    _, found = _explained(stderr)
    assert isinstance(found, UserError)
    assert "the threads of a kernel do not fit into 32 registers each" in str(found)
    assert "let a block have fewer threads" in str(found)


def test_other_failures_stay_as_they_are() -> None:
    for stderr in ("", "ptxas error : Entry function 'k' uses too much shared data (0xz bytes)"):
        error, found = _explained(stderr)
        assert found is error


def test_records_are_plain_values() -> None:
    found = _read(_report(), _kernel())
    assert dataclasses.replace(found) == found
