"""One small program of a user's per mistake with a device, and what it is told: what, where, why,
and what to do."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import refcomp as rc
from refcomp.driver import compile
from refcomp.driver.backends import opencl
from refcomp.foundation.target_kind import DeviceLimits
from tests.quotations import QUOTATION, quoted

HERE = rf"{re.escape(__file__)}:\d+"
N = rc.var("n")
X = np.arange(5, dtype=np.float32)


def scaled(dtype: str = "float32", factor: int = 4, *, bound: bool = True) -> Any:
    """A schedule of B = A * 2 with groups of `factor` threads, and its arguments."""
    a = rc.placeholder((N,), name="A", dtype=dtype)
    b = rc.compute((N,), lambda i: a[i] * 2, name="B")
    s = rc.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], factor=factor)
    if bound:
        s[b].bind(outer, rc.thread_axis("blockIdx.x"))
        s[b].bind(inner, rc.thread_axis("threadIdx.x"))
    return s, [a, b]


def chained(factor: int, *, scope: str = "shared", width: int = 8) -> Any:
    """C = B * 2 with groups of 8 threads; B = A + 1 is computed for a group, its loop split by
    `factor` and bound."""
    a = rc.placeholder((64, width), name="A")
    b = rc.compute((64, width), lambda i, j: a[i, j] + 1, name="B")
    c = rc.compute((64, width), lambda i, j: b[i, j] * 2, name="C")
    s = rc.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=8)
    s[c].bind(outer, rc.thread_axis("blockIdx.x"))
    s[c].bind(inner, rc.thread_axis("threadIdx.x"))
    s[b].compute_at(s[c], outer)
    s[b].set_scope(scope)
    s[b].bind(s[b].split(b.op.axis[0], factor=factor)[1], rc.thread_axis("threadIdx.x"))
    return s, [a, c]


def summed(width: Any) -> Any:
    """Sums of rows of `width` numbers, whole rows of which are fetched to shared memory."""
    a, k = rc.placeholder((N, width), name="A"), rc.reduce_axis((0, width), name="k")
    b = rc.compute((N,), lambda i: rc.sum(a[i, k], axis=k), name="B")
    s = rc.create_schedule(b.op)
    copy = s.cache_read(a, "shared", [b])
    outer, inner = s[b].split(b.op.axis[0], factor=4)
    s[b].bind(outer, rc.thread_axis("blockIdx.x"))
    s[b].bind(inner, rc.thread_axis("threadIdx.x"))
    s[copy].compute_at(s[b], outer)
    return s, [a, b]


def two_unbound() -> Any:
    a = rc.placeholder((N,), name="A")
    b = rc.compute((N,), lambda i: a[i] + 1, name="B")
    c = rc.compute((N,), lambda i: b[i] * 2, name="C")
    s = rc.create_schedule(c.op)
    s[c].bind(c.op.axis[0], rc.thread_axis("blockIdx.x"))
    return s, [a, c]


def no_loop() -> Any:
    a, k = rc.placeholder((8,), name="A"), rc.reduce_axis((0, 8), name="k")
    b = rc.compute((), lambda: rc.sum(a[k], axis=k), name="B")
    return rc.create_schedule(b.op), [a, b]


def bound_twice() -> None:
    s, (_, b) = scaled(bound=False)
    for loop in s[b].leaf_iter_vars:
        s[b].bind(loop, rc.thread_axis("threadIdx.x"))


def bound_to_a_range() -> None:
    s, (_, b) = scaled(bound=False)
    s[b].bind(s[b].leaf_iter_vars[1], rc.thread_axis((0, 8), "threadIdx.x"))


def tiled(y: int, x: int) -> Any:
    a = rc.placeholder((N, N), name="A")
    b = rc.compute((N, N), lambda i, j: a[i, j] * 2, name="B")
    s = rc.create_schedule(b.op)
    tags = ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")
    for loop, tag in zip(s[b].tile(*b.op.axis, y, x), tags, strict=True):
        s[b].bind(loop, rc.thread_axis(tag))
    return s, [a, b]


UNBOUND = {
    "split": (
        lambda: scaled(bound=False),
        "stage B is computed outside of a kernel, .* its loop i.outer is not bound\n"
        rf"{QUOTATION}  where: stage B, axis i.outer, by split\n"
        "  why: what stands outside of bound loops is run by the host, .*\n"
        r'  what to do: s\[B\]\.bind\(i_outer, refcomp\.thread_axis\("blockIdx\.x"\)\)$',
    ),
    "a stage before": (
        two_unbound,
        "stage B .* its loop i is not bound\n"
        rf"{QUOTATION}  where: stage B, axis i\n(.|\n)*"
        r'  what to do: s\[B\]\.bind\(B\.op\.axis\[0\], refcomp\.thread_axis\("blockIdx\.x"\)\)$',
    ),
    "no loop": (
        no_loop,
        "stage B .* it has no loop\n(.|\n)*  what to do: make a loop of one iteration by fuse",
    ),
}
EXTENTS = {
    "two stages of a kernel": (
        lambda: rc.lower(*chained(4)),
        "axis i.inner of stage B has 4 iterations for threadIdx.x, but axis i.inner of stage C has "
        rf"8\n{QUOTATION}  where: stage B\n  why: all loops of a kernel .* by the same threads\n"
        "  what to do: split the loops by the same factor, and bind the inner ones$",
    ),
    "a thread axis with a range": (
        bound_to_a_range,
        r"cannot bind axis i.inner of stage B\n  where: stage B, loops: .*\n"
        "  why: it has 4 iterations, and threadIdx.x has 8 threads\n"
        "  what to do: split it by a factor of 8, or give the thread axis no range$",
    ),
    "twice in one stage": (
        bound_twice,
        rf"cannot bind axis i.inner of stage B\n{QUOTATION}  where: .*\n"
        "  why: axis i.outer of this stage is bound to threadIdx.x already\n"
        "  what to do: fuse both axes and bind the result, or use another thread axis$",
    ),
}
THREADS = {
    "one loop": (
        lambda: scaled(factor=64),
        r"the kernel main_kernel0 has 64 threads in a group \(64\), but the device allows at "
        rf"most 32\n{QUOTATION}  where: stage B, axis i.inner, by bind\n"
        "  what to do: split axis i.inner of stage B so that at most 32 iterations are bound to",
    ),
    "two loops": (
        lambda: tiled(8, 16),
        r"main_kernel0 has 128 threads in a group \(16 x 8\), but the device allows at most 32\n"
        rf"({QUOTATION}){{2}}  where: stage B, axis i.inner, by bind; stage B, axis j.inner, "
        r"by bind\n  what to do: split axis j.inner of stage B so that at most 4 iterations are",
    ),
    "shared memory": (
        lambda: chained(8, width=64),
        r"the kernel main_kernel0 keeps 2048 bytes of shared memory for a group \(B 2048\), but "
        rf"the device has 1024\n{QUOTATION}  where: stage B\n"
        "  what to do: make the tiles of B smaller: split by smaller factors the loops",
    ),
}
MISTAKES = [
    pytest.param(program, message, id=f"extents: {name}")
    for name, (program, message) in EXTENTS.items()
] + [
    pytest.param(lambda f=f, k=k: rc.build(*f(), target=k), message, id=f"{k}: {name}")
    for options in ("", " -threads=32 -shared_bytes=1024")
    for name, (f, message) in (THREADS if options else UNBOUND).items()
    for k in (f"opencl{options}", f"rocm{options}")
]


@pytest.mark.search
@pytest.mark.parametrize(("program", "message"), MISTAKES)
def test_a_kernel_that_no_device_can_run(program: Callable[[], Any], message: str) -> None:
    """Told before any tool runs, so that none is needed."""
    with pytest.raises(rc.UserError, match=message):
        program()


@pytest.mark.parametrize("scope", ["shared", "local"])
def test_memory_of_unknown_size(scope: str) -> None:
    s, args = summed(N)
    copy = s.stages[1]
    s[copy.op].set_scope(scope)
    with pytest.raises(rc.UserError) as caught:
        rc.lower(s, args)
    told = str(caught.value)
    assert f"{scope} memory of unknown size: dimension 1 of A.shared is n elements long\n" in told
    assert re.search(rf"{QUOTATION}  where: stage A.shared, computed at axis i.outer .*\n", told)
    assert ".compute_at(" in quoted(caught.value, "stage A.shared is attached here")
    assert f"  why: {scope} memory is laid out before the program runs\n" in told
    assert "what to do: split axis k of stage B by a factor, and compute A.shared inside" in told


# What only the launch knows.

DYNAMIC = """
func rows(A: f32[n, m], B: f32[n] out) {
  for g in range(n) blockIdx.x { for t in range(m) threadIdx.x {
    alloc T: f32[m] shared {
      T[t] = A[g, t]
      barrier
      if (t == 0) { B[g] = T[m - 1] }
    }
  } }
}
"""


@pytest.mark.pocl
@pytest.mark.parametrize(
    ("shared_bytes", "message"),
    [
        (
            "",
            r"rows_kernel0 needs 70000 threads in threadIdx.x, but opencl:0 has \d+\n"
            "  where: threadIdx.x: loop t\n  what to do: split by a smaller factor, or bind fewer",
        ),
        (
            "30",
            "rows_kernel0 needs 32 bytes of shared memory, but opencl:0 has 30\n"
            "  what to do: split by a smaller factor, so that a group needs less shared memory",
        ),
    ],
)
def test_a_launch_beyond_the_device(
    shared_bytes: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = rc.opencl(0)
    if shared_bytes:
        limits = replace(device.driver.limits(0), shared_bytes=int(shared_bytes))
        monkeypatch.setattr(device.driver, "limits", lambda index: limits)
    rows = rc.build(rc.parse_func(DYNAMIC), target="opencl")
    width = 8 if shared_bytes else 70000
    a, b = rc.array(np.ones((2, width), np.float32), device), rc.empty((2,), device=device)
    with pytest.raises(rc.UserError, match=message):
        rows(a, b)


# Devices that are not there.

ASKED = """
import numpy, refcomp as rc
from tests.errors.test_device_errors import scaled
x = numpy.ones(3, "float32")
print(rc.opencl(0).exist)
for use in (
    lambda: rc.array(x, rc.opencl(0)),
    rc.opencl(0).sync,
    lambda: rc.build(*scaled(), target="opencl")(x, x),
):
    try:
        use()
    except rc.RefcompError as error:
        print(error)
"""


def told_in_another_process(**variables: str) -> list[str]:
    """What ASKED prints there."""
    done = subprocess.run(
        [sys.executable, "-c", ASKED],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **variables},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.pocl
@pytest.mark.parametrize(
    ("lacking", "why"),
    [
        ("OCL_ICD_VENDORS", "no OpenCL platform is installed: clGetPlatformIDs failed: PLATFORM_"),
        ("POCL_CACHE_DIR", "no platform of OpenCL has a device; the platforms are: Portable Comp"),
    ],
    ids=["no platform", "no device"],
)
def test_an_opencl_device_that_is_not_there(lacking: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / ("file/pocl" if lacking == "POCL_CACHE_DIR" else "")
    exists, *told = told_in_another_process(**{lacking: str(folder)})
    assert exists == "False"
    assert told[0::3] == ["this machine has no device opencl:0"] * 3, "every use says so"
    assert all(line.startswith(f"  why: {why}") for line in told[1::3])
    assert all("apt-get install pocl-opencl-icd" in line for line in told[2::3])


@pytest.mark.pocl
def test_a_compiler_of_the_device_s_that_cannot_work(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    exists, *told = told_in_another_process(POCL_CACHE_DIR=str(tmp_path / "file"))
    assert exists == "True"
    assert told[0].endswith(" refuses the kernels")
    assert told[1] == "  why: clBuildProgram failed: BUILD_PROGRAM_FAILURE"
    assert told[2].endswith("; PoCL needs a folder that it can write: set POCL_CACHE_DIR")


@pytest.mark.pocl
def test_an_index_that_is_too_high() -> None:
    with pytest.raises(rc.UserError) as caught:
        rc.array(X, rc.opencl(99))
    assert re.fullmatch(
        "this machine has no device opencl:99\n"
        r"  why: it has (\d+) of kind opencl, counted from 0\n"
        r"  what to do: use opencl:\d+ or a lower index",
        str(caught.value),
    )


# What a device or its tools do not know.


@pytest.mark.rocm
@pytest.mark.parametrize(
    ("name", "near"),
    [("gfx9999", "did you mean gfx909"), ("znver4", ""), ("GFX942", "did you mean gfx942")],
)
def test_a_gpu_that_llvm_does_not_know(name: str, near: str) -> None:
    with pytest.raises(rc.UserError) as caught:
        rc.build(*scaled(), target=f"rocm -mcpu={name}")
    what, where, why, remedy = str(caught.value).splitlines()
    assert what == f"mcpu {name!r} is unknown to the rocm toolchain"
    assert where == f"  where: -mcpu={name}"
    assert re.fullmatch(r"  why: \S*llc\S* knows: \d+ values, not this one", why)
    assert remedy.startswith(f"  what to do: {near}")
    assert re.search(r"one of those that are listed by: \S*llc\S* -mtriple=\S+ -mcpu=help$", remedy)
    listing = remedy.partition("listed by: ")[2].split()
    told = subprocess.run(listing, input="", capture_output=True, text=True, timeout=60)
    assert "gfx942" in told.stdout + told.stderr


def with_extensions(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    limits = DeviceLimits((64, 64, 64), 64, 4096, frozenset(names))
    monkeypatch.setattr(compile, "device_limits", lambda target: limits)


def test_a_dtype_that_the_device_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    with_extensions(monkeypatch)
    with pytest.raises(rc.Unsupported) as caught:
        rc.build(*scaled("float64"), target="opencl")
    assert str(caught.value) == (
        "no value of dtype f64 can be computed on this device\n"
        "  where: func main_kernel0\n"
        "  why: it does not offer cl_khr_fp64\n"
        "  what to do: use another dtype, or another device"
    )


@pytest.mark.pocl
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_short_floats_that_the_device_lacks_are_computed_in_f32(dtype: type) -> None:
    x = np.array([1.5, -0.0, np.inf, 65504, 2.0**-24], np.float32).astype(dtype)
    a, b = (rc.array(values, rc.opencl(0)) for values in (x, np.zeros_like(x)))
    rc.build(*scaled(np.dtype(dtype).name), target="opencl")(a, b)
    with np.errstate(over="ignore"):
        assert b.asnumpy().tobytes() == (x * dtype(2)).tobytes()


@pytest.mark.pocl
def test_a_kernel_that_the_device_s_compiler_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = opencl.print_opencl

    def misprinted(*args: Any, **named: Any) -> Any:
        source = printed(*args, **named)
        return replace(source, text=source.text.replace("* 2.0f", "* two"))

    monkeypatch.setattr(opencl, "print_opencl", misprinted)
    with pytest.raises(rc.ToolchainError) as caught:
        rc.build(*scaled(), target="opencl")
    what, *told = str(caught.value).splitlines()
    assert what.startswith("the OpenCL compiler of ") and what.endswith(" refuses the kernels")
    assert re.fullmatch(r"  where: line \d+: .* = A\[.*\] \* two;", told[0])
    assert re.fullmatch(rf"    from B@\[.*\] = A@\[.*\] \* 2.0f32  # stage B, at {HERE}", told[1])
    assert told[2] == "  why: clBuildProgram failed: BUILD_PROGRAM_FAILURE"
    assert told[3] == (
        "  what to do: this is a bug of refcomp, or a limit of the device; its log stands below"
    )
    assert told[4] == "  stderr:" and "use of undeclared identifier 'two'" in told[5]


# Kernels on the host, and arrays on the wrong side.


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64"])
def test_bound_loops_on_the_host(target: str) -> None:
    with pytest.raises(rc.UserError) as caught:
        rc.build(*scaled(), target=target)
    what, *_, where, why, remedy = str(caught.value).splitlines()
    assert ".bind(" in quoted(caught.value, "bound here")
    assert (
        what == "axis i.outer of stage B is bound to blockIdx.x, but the host has no such threads"
    )
    assert where == "  where: stage B, axis i.outer, by bind"
    assert why == "  why: bind shares a loop among the threads of a GPU"
    assert remedy.startswith(
        '  what to do: build for a target that is a GPU ("opencl", "rocm"), or'
    )


def test_the_interpreter_runs_bound_loops() -> None:
    found = np.zeros(5, np.float32)
    rc.build(*scaled(), target="interp")(X, found)
    assert found.tolist() == (X * 2).tolist()


@pytest.mark.pocl
@pytest.mark.parametrize(
    ("target", "from_", "to"),
    [("opencl", "cpu", "opencl"), ("interp", "opencl", "cpu"), ("llvm", "opencl", "cpu")],
)
def test_arrays_of_another_device(target: str, from_: str, to: str) -> None:
    double = rc.build(*scaled(bound=target != "llvm"), target=target, name="double")
    arrays = [rc.array(X, rc.device(from_)) for _ in range(2)]
    with pytest.raises(rc.UserError) as caught:
        double(*arrays)
    assert str(caught.value) == (
        f"argument A (1 of 2) lies on {from_}:0, expected on {to}:0\n"
        "  where: double(A: f32[n], B: f32[n] (output))\n"
        f"  what to do: copy it there: refcomp.nd.array(a, refcomp.{to}(0))"
    )
    right = [rc.nd.array(X, rc.device(to)), rc.nd.empty((5,), "float32", rc.device(to))]
    double(*right)
    assert right[1].asnumpy().tolist() == (X * 2).tolist()
