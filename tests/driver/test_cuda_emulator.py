"""Emulated NVIDIA GPUs as devices: by name, by the environment, and what they refuse."""

import re
import subprocess
import sys

import numpy as np
import pytest

import refcomp as rc
from refcomp.driver import cuda_emulator
from refcomp.driver.host_tools import kernel_tools
from refcomp.emulator.code.failure import KernelFailure
from refcomp.emulator.ptx.execution.launch import load_ptx
from refcomp.emulator.translation.compilation import HostTools
from refcomp.foundation.errors import UserError
from refcomp.topi.schedules.cuda import schedule_cuda

TARGET = "nvptx -code=ptx -arch=sm_80"


def _shifted(target):
    """B[i] = A[i + 1], of any number of elements."""
    n = rc.var("n")
    a = rc.placeholder((n + 1,), name="A")
    b = rc.compute((n,), lambda i: a[i + 1] * 2.0, name="B")
    s = rc.create_schedule(b)
    outer, inner = s[b].split(b.op.axis[0], factor=64)
    s[b].bind(outer, rc.thread_axis("blockIdx.x"))
    s[b].bind(inner, rc.thread_axis("threadIdx.x"))
    return rc.build(s, [a, b], target, name="shifted")


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(TARGET, marks=pytest.mark.llvm),
        pytest.param("cuda -code=ptx -arch=sm_80", marks=pytest.mark.nvcc),
    ],
)
def test_a_program_runs(target):
    gpu = rc.cuda_emulator("sm_80", hazards=True)
    assert str(gpu) == "cuda_emulator_sm_80_hazards:0" and gpu.exist
    assert gpu == rc.cuda_emulator("sm_80", hazards=True) != rc.cuda_emulator("sm_80")
    a = np.arange(101, dtype="float32")
    result = rc.empty(100, device=gpu)
    _shifted(target)(rc.array(a, gpu), result)
    np.testing.assert_array_equal(result.asnumpy(), a[1:] * 2)


@pytest.mark.llvm
@pytest.mark.parametrize("options", [{}, {"is_watched": False}])
def test_a_kernel_is_interpreted_on_request(options, monkeypatch):
    texts = []
    tools = HostTools(lambda text: texts.append(text) or kernel_tools().compile(text), lambda: 8, 0)
    monkeypatch.setattr(cuda_emulator, "kernel_tools", lambda: tools)
    for is_translated, count in ((False, 0), (True, 1)):
        gpu = cuda_emulator.cuda_emulator(
            "sm_89", max_steps=10**7, is_translated=is_translated, **options
        )
        result = rc.empty(100, device=gpu)
        _shifted(TARGET)(rc.array(np.ones(101, "float32"), gpu), result)
        assert (result.asnumpy() == 2).all() and len(texts) == count


@pytest.mark.llvm
def test_matrices_are_multiplied_by_the_tuned_schedule():
    a = rc.placeholder((64, 96), name="A")
    b = rc.placeholder((96, 128), name="B")
    c = rc.topi.matmul(a, b)
    module = rc.build(schedule_cuda([c]), [a, b, c], TARGET)
    gpu = rc.cuda_emulator("sm_80", hazards=True)
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-4, 5, shape).astype("float32") for shape in ((64, 96), (96, 128)))
    result = rc.empty((64, 128), device=gpu)
    module(rc.array(x, gpu), rc.array(y, gpu), result)
    np.testing.assert_array_equal(result.asnumpy(), x @ y)


@pytest.mark.nvcc
def test_tensor_cores_multiply():
    """The schedule has asynchronous copies, matrix loads and mma instructions."""
    a, b = (rc.placeholder((128, 128), "float16", name=name) for name in "AB")
    k = rc.reduce_axis((0, 128), name="k")
    c = rc.compute(
        (128, 128),
        lambda i, j: rc.sum(a[i, k].astype("float32") * b[k, j].astype("float32"), axis=k),
        name="C",
    )
    schedule = rc.topi.schedule_tensor_cores(c)
    module = rc.build(schedule, [a, b, c], "cuda -code=ptx -arch=sm_80")
    gpu = rc.cuda_emulator("sm_80", hazards=True)
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-4, 5, (128, 128)).astype("float16") for _ in range(2))
    result = rc.empty((128, 128), device=gpu)
    module(rc.array(x, gpu), rc.array(y, gpu), result)
    np.testing.assert_array_equal(result.asnumpy(), x.astype("float32") @ y.astype("float32"))


@pytest.mark.llvm
def test_errors_of_kernels_are_told_with_their_line():
    """A gather reads places that nothing wrote."""
    gpu = rc.cuda_emulator("sm_80", max_steps=10**6)
    table = rc.placeholder((9,), name="T")
    places = rc.placeholder((4,), "int32", name="P")
    taken = rc.compute((4,), lambda i: table[places[i]], name="B")
    s = rc.create_schedule(taken)
    s[taken].bind(taken.op.axis[0], rc.thread_axis("threadIdx.x"))
    gather = rc.build(s, [table, places, taken], TARGET, name="gather")
    values, result = rc.array(np.arange(9, dtype="float32"), gpu), rc.empty(4, device=gpu)
    gather(values, rc.array(np.array([8, 0, 3, 5], "int32"), gpu), result)
    assert result.asnumpy().tolist() == [8, 0, 3, 5]
    with pytest.raises(KernelFailure, match="errors in the kernel gather") as caught:
        gather(values, rc.empty((4,), "int32", gpu), result)
    assert "an address depends on bits that nothing wrote" in str(caught.value)
    assert caught.value.findings[0].kind == "undefined"


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(TARGET, marks=pytest.mark.llvm),
        pytest.param("cuda -code=ptx -arch=sm_80", marks=pytest.mark.nvcc),
    ],
)
def test_errors_of_kernels_name_the_line_of_the_loop_ir(target):
    """A gather reads behind the table."""
    gpu = rc.cuda_emulator("sm_80")
    table = rc.placeholder((9,), name="T")
    places = rc.placeholder((4,), "int32", name="P")
    taken = rc.compute((4,), lambda i: table[places[i]] * 2.0, name="B")
    s = rc.create_schedule(taken)
    s[taken].bind(taken.op.axis[0], rc.thread_axis("threadIdx.x"))
    module = rc.build(s, [table, places, taken], target, name="gather")
    given = rc.array(np.array([0, 8, 9, 1], "int32"), gpu)
    with pytest.raises(KernelFailure) as caught:
        module(rc.empty(9, device=gpu), given, rc.empty(4, device=gpu))
    text = str(caught.value)
    (place,) = set(re.findall(r"kernels\.ir:\d+", text))
    assert re.search(rf"in line \d+ of the PTX, function gather_kernel0, made of {place}; ", text)
    statement = "B@[threadIdx.x] = T@[i64(P@[threadIdx.x])] * 2.0f32 (stage B, at "
    assert f"{place} is {statement}" in text and ", axis i, by bind, at " in text


@pytest.mark.llvm
@pytest.mark.parametrize("is_translated", [True, False])
def test_writes_to_arrays_that_a_kernel_only_reads_are_found(is_translated, monkeypatch):
    """A compiler that exchanges two parameters: the kernel writes to A and reads B."""
    module = _shifted(TARGET)
    gpu = rc.cuda_emulator("sm_80", is_watched=False, is_translated=is_translated)
    b, a = (rc.array(np.ones(count, "float32"), gpu) for count in (300, 301))
    module(a, b)
    np.testing.assert_array_equal(b.asnumpy(), 2)
    exchanged = {"[shifted_kernel0_param_0]": "[shifted_kernel0_param_1]"}
    exchanged |= {new: old for old, new in exchanged.items()}

    def load(arena, text):
        wrong = re.sub("|".join(map(re.escape, exchanged)), lambda m: exchanged[m[0]], text)
        assert wrong != text
        return load_ptx(arena, wrong)

    monkeypatch.setattr("refcomp.emulator.ptx.loaded_kernels.load_ptx", load)
    other = rc.cuda_emulator(
        "sm_80", is_watched=False, is_translated=is_translated, max_seconds=599
    )
    b, a = (rc.array(np.ones(count, "float32"), other) for count in (300, 301))
    with pytest.raises(KernelFailure, match="writes to memory, which is read-only") as caught:
        module(a, b)
    # It also reads B one element too far.
    assert {one.kind for one in caught.value.findings} == {"read-only", "out of bounds"}


@pytest.mark.llvm
def test_work_is_counted_and_not_timed():
    device = rc.cuda_emulator("sm_80")
    module = _shifted(TARGET)
    a, b = rc.empty((65,), "float32", device), rc.empty((64,), "float32", device)
    a.copyfrom(np.ones(65, np.float32))
    work = module.time_evaluator("shifted", device)(a, b)
    (kernel,) = work.counts.kernels
    assert (kernel.launches, kernel.waves) == (1, 2)
    with pytest.raises(UserError, match="cannot be measured"):
        _ = work.mean
    # The evaluator ends what it began: later launches are not counted.
    module(a, b)
    assert kernel.launches == 1


@pytest.mark.llvm
@pytest.mark.nvcc
def test_machine_code_is_refused():
    a = rc.placeholder((4,), name="A")
    b = rc.compute((4,), lambda i: a[i], name="B")
    s = rc.create_schedule(b)
    s[b].bind(b.op.axis[0], rc.thread_axis("threadIdx.x"))
    module = rc.build(s, [a, b], "nvptx -code=cubin -arch=sm_80")
    gpu = rc.cuda_emulator("sm_80")
    with pytest.raises(UserError, match="the emulated NVIDIA GPU does not run machine code"):
        module(rc.empty(4, device=gpu), rc.empty(4, device=gpu))


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"arch": "gfx942"}, "'gfx942' is not an NVIDIA GPU"),
        ({"arch": "sm_90:race"}, "an emulated NVIDIA GPU has no option race"),
        ({"hazards": "races"}, "hazards='races' is not a bool"),
        ({"is_watched": 1}, "is_watched=1 is not a bool"),
        ({"max_steps": "many"}, "max-steps=many is not a limit"),
        ({"profile": True}, "profile=True is not a Profile"),
        ({"arch": "sm_x", "profile": rc.Profile()}, "'sm_x' is not an NVIDIA GPU"),
        ({"max_seconds": -1}, "a launch cannot be given up after -1.0 seconds"),
    ],
)
def test_wrong_options_are_refused(arguments, what):
    with pytest.raises(UserError, match=what):
        rc.cuda_emulator(**arguments)


_SAYS = "import refcomp as rc; print(rc.cuda(0).exist, rc.cuda(0).name)"


def _run(choice):
    return subprocess.run(
        [sys.executable, "-c", _SAYS],
        env={"REFCOMP_CUDA": choice, "PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_environment_chooses_an_emulated_gpu():
    assert _run("emulator:sm_80:unchecked").stdout == "True emulated NVIDIA GPU (sm_80)\n"


@pytest.mark.parametrize(
    ("choice", "what"),
    [
        ("sm_80", "REFCOMP_CUDA=sm_80 is not known"),
        ("emulator:sm_80:often", "an emulated NVIDIA GPU has no option often"),
    ],
)
def test_a_wrong_choice_is_refused(choice, what):
    done = _run(choice)
    assert done.returncode != 0 and what in done.stderr
    assert "environment variable REFCOMP_CUDA" in done.stderr
