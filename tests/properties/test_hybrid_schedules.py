"""Random schedules of hybrid functions: what is accepted computes the same on every target.

For GPUs, loops that a refusal names are bound, and statements outside of loops get one: the
remedies of the messages lead to kernels. By day the emulated GPUs and the text for NVIDIA GPUs run
10 and 3 schedules, with --nightly 300 and 90.
"""

# ruff: noqa: F821

import random
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import refcomp
from refcomp.driver.pipeline import passes_for
from refcomp.driver.steps import run_pass
from refcomp.foundation.errors import UserError
from refcomp.hybrid import script
from refcomp.ir.stmt import THREAD_TAGS
from refcomp.passes.split_host_device import split_host_device
from tests.properties.device_differential import cuda_results, emulated_results
from tests.samples import sample_count

N = 6


@script
def product(a):
    c = output_tensor((a.shape[0], 5), "int32")
    for i in range(a.shape[0]):
        for j in range(5):
            c[i, j] = 0
    for i in range(a.shape[0]):
        for k in range(7):
            for j in range(5):
                c[i, j] = c[i, j] * 3 + a[i] * k - j
    return c


@script
def prefixes(a):
    c = output_tensor((a.shape[0],), "int32")
    c[0] = a[0]
    for i in range(1, a.shape[0]):
        c[i] = c[i - 1] * 2 + a[i]
    return c


@script
def triangle(a):
    c = output_tensor((8, a.shape[0]), "int32")
    for r in range(8):
        for i in range(a.shape[0]):
            c[r, i] = 1
    for r in range(1, 8):
        for i in range(r):
            for k in range(3):
                if i < a.shape[0]:
                    t = a[i] + k
                    c[r, i] = c[r, i] * 5 + t * r
    return c


@script
def every_second(a):
    c = output_tensor((3, 9), "int32")
    t = allocate((3,), "int32")
    for r in range(3):
        t[r] = a[r] * 7
    for r in range(3):
        for i in range(1, 9, 2):
            c[r, i] = t[r] + i
        for i in range(0, 9, 2):
            u = i * 2
            c[r, u // 2] = t[2 - r] - u
    return c


@script
def counted(a):
    c = output_tensor((a.shape[0], 4), "int32")
    for i in range(a.shape[0]):
        total = 0
        for j in range(4):
            for k in range(a[i] & 3):
                total += int32(k + j)
            c[i, j] = total
    return c


@script
def three_deep(a):
    c = output_tensor((4, 5, 6), "int32")
    for x in range(4):
        for y in range(5):
            for z in range(6):
                c[x, y, z] = x * 100 + y * 10 + z
    for x in range(4):
        for y in range(1, 5):
            for z in range(6):
                c[x, y, z] = c[x, y, z] + c[x, y - 1, z] * 3
    return c


FUNCTIONS = (product, prefixes, triangle, every_second, counted, three_deep)
GPU_TAGS = ("blockIdx.x", "threadIdx.x", "threadIdx.y")
_EMULATED = sample_count(by_day=10, nightly=300)
_AS_CUDA = sample_count(by_day=3, nightly=90)
REFUSED_ON_GPUS = "is computed outside of a kernel|cannot be bound to threads"
DATA = np.array([3, -1, 4, 1, -5, 9], np.int32)


def attempt(rng, schedule, tensor, tags):
    """Try one random primitive. What is refused changes nothing."""
    stage = schedule[tensor]
    leaves = list(stage.leaf_iter_vars)
    choose = rng.choice
    some = rng.sample(leaves, min(len(leaves), rng.randint(1, 3)))
    axis = some[0]
    wishes = [
        lambda: stage.split(axis, factor=rng.randint(1, 5)),
        lambda: stage.split(axis, nparts=rng.randint(1, 4)),
        lambda: stage.reorder(*some),
        lambda: stage.fuse(*leaves[(k := rng.randrange(len(leaves))) : k + 2]),
        lambda: stage.tile(*leaves[(k := rng.randrange(len(leaves))) : k + 2], 2, 3),
        lambda: stage.unroll(axis),
        lambda: stage.vectorize(axis),
        lambda: stage.pragma(axis, "auto_unroll_max_step", rng.randint(0, 20)),
        lambda: stage.bind(axis, refcomp.thread_axis(choose(tags))) if tags else None,
        lambda: None if tags else stage.parallel(axis),
    ]
    before = (list(stage.leaf_iter_vars), str(stage.stage.loops.statement))
    try:
        choose(wishes[-2:] if rng.random() < 0.25 else wishes)()
    except (UserError, TypeError) as error:
        assert isinstance(error, UserError) or "tile" in str(error)
        if "tile" not in str(error):
            assert before == (list(stage.leaf_iter_vars), str(stage.stage.loops.statement))


def drawn(seed, tags=()):
    """Return a function's arguments and a random schedule of it."""
    rng = random.Random(seed)
    function = FUNCTIONS[rng.randrange(len(FUNCTIONS))]
    a = refcomp.placeholder((rng.choice([N, refcomp.var("n")]),), "int32", name="a")
    if function in (every_second,):
        a = refcomp.placeholder((N,), "int32", name="a")
    c = function(a)
    schedule = refcomp.create_schedule(c)
    for _ in range(rng.randint(1, 8)):
        attempt(rng, schedule, c, tags)
    return function, a, c, schedule


def follow_remedies(rng, schedule, args, tags):
    """Bind what a GPU cannot compute, until a refusal has another reason, or none is left."""
    (c,) = args[1:]
    stage = schedule[c]
    for _ in range(8):
        try:
            func = refcomp.lower(schedule, args)
            for step in passes_for("opencl"):
                func = run_pass(step, func)
            split_host_device(func)
        except UserError as error:
            loop = re.search(r"its loop (\S+) is not bound", str(error))
            try:
                if loop:
                    found = next(x for x in stage.leaf_iter_vars if x.name == loop[1])
                elif "it has no loop" in str(error):
                    found = stage.fuse()
                else:
                    return
                stage.bind(found, refcomp.thread_axis(rng.choice(tags)))
            except UserError:
                return  # a loop inside is bound, or vectorized
        else:
            return


def check_on_gpu(seed, results):
    """Return whether the schedule is accepted; `results` of a function and arrays are right."""
    function, a, c, schedule = drawn(seed, GPU_TAGS)
    follow_remedies(random.Random(seed), schedule, [a, c], GPU_TAGS)
    wanted = function(DATA)
    try:
        func = refcomp.lower(schedule, [a, c])
        found = [*results(func, [DATA, np.full(wanted.shape, 77, np.int32)])]
    except UserError as error:
        assert re.search(REFUSED_ON_GPUS, str(error)), error
        return False
    assert found
    for _, got in found:
        np.testing.assert_array_equal(got, wanted, err_msg=str(schedule.steps))
    return True


@pytest.mark.search
@pytest.mark.filterwarnings("ignore::refcomp.driver.kernel_resources.SlowKernelWarning")
@pytest.mark.parametrize(
    ("gpu", "count"),
    [
        pytest.param("gfx942", _EMULATED, marks=pytest.mark.rocm),
        pytest.param("gfx1100", _EMULATED, marks=pytest.mark.rocm),
        pytest.param("cuda", _AS_CUDA, marks=pytest.mark.gcc),
    ],
)
def test_kernels_are_right(gpu, count):
    def results(func, arrays):
        if gpu == "cuda":
            return cuda_results(func, arrays)
        return [emulated_results(func, arrays, gpu)]

    ran = sum(check_on_gpu(seed, results) for seed in range(count))
    assert ran >= count / 2, f"{ran} of {count} schedules are accepted"


def check(seed, target, tags=()):
    function, a, c, schedule = drawn(seed, tags)
    wanted = function(DATA)
    try:
        module = refcomp.build(schedule, [a, c], target)
    except UserError as error:
        marks = schedule[c].stage.loops.marks.values()
        # A kernel that no GPU can run, or statements beside all kernels.
        assert any(mark in THREAD_TAGS for mark in marks) or target != "llvm", error
        return
    device = refcomp.device("opencl", 0) if target == "opencl" else refcomp.cpu(0)
    given = refcomp.array(DATA, device)
    got = refcomp.array(np.full(wanted.shape, 77, np.int32), device)
    module(given, got)
    np.testing.assert_array_equal(got.asnumpy(), wanted, err_msg=str(schedule.steps))


@pytest.mark.search
@given(st.integers(0, 2**32))
def test_interpreted(seed):
    check(seed, "interp")


@pytest.mark.search
@given(st.integers(0, 2**32))
def test_interpreted_kernels_have_no_races(seed):
    check(seed, "interp", GPU_TAGS)


@pytest.mark.llvm
@pytest.mark.search
@given(st.integers(0, 2**32))
def test_on_this_host(seed):
    check(seed, "llvm")


@pytest.mark.search
@pytest.mark.pocl
@given(st.integers(0, 2**32))
def test_on_opencl(seed):
    check(seed, "opencl", GPU_TAGS)
