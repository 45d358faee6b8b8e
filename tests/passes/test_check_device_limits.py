"""Kernels that a device has no room for, each refused with the loop to change."""

from dataclasses import replace
from functools import partial

import pytest

import refcomp
from refcomp.driver.backends import as_target
from refcomp.driver.pipeline import run_device_passes
from refcomp.foundation.errors import UserError
from refcomp.foundation.target import limits_of
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.ir.parser import parse_func
from refcomp.ir.rewrite import with_fields
from refcomp.ir.stmt import Barrier, Origin, block
from refcomp.passes import check_device_limits as module
from refcomp.passes.check_device_limits import check_device_limits
from refcomp.passes.flatten_storage import flatten_storage
from refcomp.passes.split_host_device import split_host_device
from tests.passes.docstring_examples import assert_docstring_holds
from tests.quotations import quoted

SMALL = DeviceLimits(
    threads_per_axis=(64, 32, 16), threads=128, shared_bytes=1024, groups_per_axis=(1000, 100, 10)
)


def test_docstring():
    assert_docstring_holds(module, partial(check_device_limits, limits=SMALL))


def _check(x=1, y=1, z=1, groups="n", allocations=""):
    func = parse_func(f"""
    func f(A: f32[n] out, n_1: i64) {{
      for g in range({groups}) blockIdx.y {{
        for k in range({z}) threadIdx.z {{ for j in range({y}) threadIdx.y {{
          for i in range({x}) threadIdx.x {{
            {allocations} A@[g] = 0f32 {"}" * allocations.count("{")}
          }} }} }}
      }}
    }}
    """)
    origin = Origin("C", "i.inner", "split", "model.py:7")
    loop = func.body
    x_loop = with_fields(loop.body.body.body, origin=origin)
    y_loop = with_fields(loop.body.body, body=x_loop)
    loop = with_fields(loop, body=with_fields(loop.body, body=y_loop))
    check_device_limits(func.with_body(loop), SMALL)


@pytest.mark.parametrize(
    "asked",
    [
        {"x": 64, "y": 2},
        {"x": 8, "y": 16},
        {"x": 1, "z": 16, "groups": 100},
        {"x": "n_1"},
        {"x": 64, "y": "n_1", "groups": "n_1"},
        {"allocations": "alloc S: f32[16, 16] shared {"},
        {"allocations": "alloc S: f32[n_1] shared { alloc L: f32[9999] local {"},
    ],
)
def test_what_fits_or_is_not_known_passes(asked):
    _check(**asked)


@pytest.mark.parametrize(
    ("asked", "what", "where", "remedy"),
    [
        (
            {"x": 65},
            "the kernel f has 65 threads in threadIdx.x, but the device allows at most 64",
            "stage C, axis i.inner, by split",
            "split axis i.inner of stage C so that at most 64 iterations are bound to threadIdx.x",
        ),
        ({"z": 17}, "17 threads in threadIdx.z", "loop k", "at most 16 iterations"),
        (
            {"x": 64, "y": 4},
            "kernel f has 256 threads in a group (64 x 4 x 1), but the device allows at most 128",
            "stage C, axis i.inner, by split",
            "split axis i.inner of stage C so that at most 32 iterations",
        ),
        ({"x": "n_1", "y": 32, "z": 8}, "256 threads in a group (32 x 8)", "loop k", "at most 16"),
        (
            {"groups": 101},
            "has 101 groups in blockIdx.y, but the device allows at most 100",
            "loop g",
            "bind the outer part to another blockIdx",
        ),
        (
            {"allocations": "alloc S: f32[16, 8] shared { alloc T: f16[257] shared {"},
            "1026 bytes of shared memory for a group (S 512, T 514), but the device has 1024",
            "alloc T",
            "make the tiles of T smaller",
        ),
    ],
)
def test_what_does_not_fit_is_refused(asked, what, where, remedy):
    with pytest.raises(UserError) as caught:
        _check(**asked)
    assert what in caught.value.what
    assert where in caught.value.where
    assert remedy in caught.value.remedy
    is_scheduled = "axis i.inner" in caught.value.where
    assert ("\n  --> model.py:7 (split here)\n" in str(caught.value)) == is_scheduled


def test_the_remedy_helps():
    def split(factor):
        a = refcomp.placeholder((1024,), name="A")
        c = refcomp.compute((1024,), lambda i: a[i] + 1, name="C")
        s = refcomp.create_schedule(c.op)
        outer, inner = s[c].split(c.op.axis[0], factor=factor)
        s[c].bind(outer, refcomp.thread_axis("blockIdx.x"))
        s[c].bind(inner, refcomp.thread_axis("threadIdx.x"))
        return split_host_device(flatten_storage(refcomp.lower(s, [a, c]))).kernels[0]

    with pytest.raises(UserError, match="128 threads in threadIdx.x") as caught:
        check_device_limits(split(128), SMALL)
    assert "axis i.inner of stage C so that at most 64" in caught.value.remedy
    bound = 's[c].bind(inner, refcomp.thread_axis("threadIdx.x"))'
    assert quoted(caught.value, "bound here") == bound
    check_device_limits(split(64), SMALL)


def test_more_arguments_than_are_passed():
    params = ", ".join(f"A{k}: f32[1] out" for k in range(8))
    kernel = parse_func(f"func f(a: i8, {params}) {{ }}")
    limits = DeviceLimits((8, 8, 8), 8, 64, argument_bytes=72)
    assert check_device_limits(kernel, limits) is kernel
    with pytest.raises(UserError, match="takes 9 arguments of 72 bytes, but the device passes"):
        check_device_limits(kernel, replace(limits, argument_bytes=71))


def test_amd_gpus_pass_4096_bytes():
    params = ", ".join(f"A{k}: f32[1] out" for k in range(513))
    with pytest.raises(UserError, match="let fewer stages share a kernel"):
        check_device_limits(parse_func(f"func f({params}) {{ }}"), limits_of(as_target("rocm")))


def test_a_shared_buffer_counts_wherever_it_stands():
    """Each place is printed with memory of its own."""
    text = "alloc S: f32[180] shared { S@[i] = 0f32 barrier A@[i] = S@[i] }"
    kernel = parse_func(f"func f(A: f32[64] out) {{ for i in range(64) threadIdx.x {{ {text} }} }}")
    check_device_limits(kernel, SMALL)
    allocate = kernel.body.body
    twice = with_fields(kernel.body, body=block([allocate, Barrier(), allocate]))
    with pytest.raises(UserError, match="keeps 1440 bytes .* but the device has 1024") as caught:
        check_device_limits(kernel.with_body(twice), SMALL)
    assert "(S 720 at 2 places)" in caught.value.what


def _vectors(factor, target="rocm"):
    a = refcomp.placeholder((4096,), name="A")
    c = refcomp.compute((4096,), lambda i: a[i] + 1, name="C")
    s = refcomp.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=factor)
    s[c].bind(outer, refcomp.thread_axis("threadIdx.x"))
    s[c].vectorize(inner)
    run_device_passes(refcomp.lower(s, [a, c]), target, limits_of(as_target(target)))


def test_vectors_are_no_longer_than_registers():
    _vectors(32)
    with pytest.raises(UserError) as caught:
        _vectors(64)
    told = caught.value
    assert told.what == "the kernel main_kernel0 has vectors of 64 f32, 256 bytes"
    assert "stage C" in told.where
    assert quoted(told, "declared here").startswith("c = refcomp.compute(")
    assert told.why == "an operand of an instruction has at most 128 bytes on the device"
    assert told.remedy == (
        "split the vectorized axis of stage C so that at most 32 iterations are one vector"
    )
    _vectors(64, "opencl")  # which cuts them


def test_what_is_read_counts_too():
    comparison = "L@[ramp(0, 1, 16)] = A@[ramp(0, 1, 16)] < broadcast(1.0f64, 16)"
    kernel = parse_func(f"func f(A: f64[64]) {{ alloc L: bool[16] local {{ {comparison} }} }}")
    limits = replace(SMALL, vector_bytes=64)
    with pytest.raises(UserError, match="vectors of 16 f64, 128 bytes") as caught:
        check_device_limits(kernel, limits)
    assert "at most 8 iterations" in caught.value.remedy
