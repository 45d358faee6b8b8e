"""Kernels on PoCL: compiling, its errors, arguments of every type, and refused launches."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import refcomp
from refcomp.foundation.artifacts import Source
from refcomp.foundation.dtype import SCALAR_DTYPES, DType, as_dtype, to_numpy
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.runtime.launch import KernelSignature
from refcomp.runtime.opencl.driver import OpenCLDriver
from refcomp.runtime.opencl.kernels import OpenCLKernels, _build_options, _guilty_lines

pytestmark = pytest.mark.pocl


@pytest.fixture(scope="module")
def driver() -> OpenCLDriver:
    driver: Any = refcomp.opencl().driver
    return driver


def _load(driver: OpenCLDriver, text: str, *params: DType | None, **more: Any) -> Any:
    kernel = KernelSignature("k", more.pop("symbol", "k"), params, (("threadIdx.x", "item"),))
    return driver.load(0, Source(text, "opencl", **more), [kernel])


def test_a_refused_text_shows_log_line_and_statement(driver: OpenCLDriver) -> None:
    text = "__kernel void k(__global float* A) {\n  A[0] = nothing;\n  A[1] = missing;\n}\n"
    line_map = ("func k(A: f32[2] out) {", "A@[0] = B@[0]  # stage A, at user.py:7", "", "")
    with pytest.raises(ToolchainError) as caught:
        _load(driver, text, None, line_map=line_map)
    message = str(caught.value)
    assert message.startswith("the OpenCL compiler of ")
    assert (
        "  where: line 2: A[0] = nothing;\n"
        "    from A@[0] = B@[0]  # stage A, at user.py:7\n"
        "line 3: A[1] = missing;\n"
    ) in message
    assert "  why: clBuildProgram failed: BUILD_PROGRAM_FAILURE\n" in message
    assert "  stderr:\n" in message
    assert "use of undeclared identifier 'nothing'" in message


def test_lines_in_the_logs_of_other_compilers() -> None:
    source = Source("\n" * 3, "opencl")
    assert _guilty_lines(source, "error: the compiler crashed") == ""
    assert _guilty_lines(source, "<kernel>:9:1: error: beyond the text") == ""
    other = Source("one\ntwo\nthree", "opencl")
    assert _guilty_lines(other, "<kernel>:2:1: fatal error: x\n<kernel>:3:1: warning: y") == (
        "line 2: two"
    )


def test_options_of_the_compiler() -> None:
    exact = "-cl-fp32-correctly-rounded-divide-sqrt"
    flag = SimpleNamespace(CORRECTLY_ROUNDED_DIVIDE_SQRT=128)
    cl: Any = SimpleNamespace(device_fp_config=flag)
    for config, options in ((128 + 3, ("-cl-std=CL1.2", exact)), (3, ("-cl-std=CL1.2",))):
        assert _build_options(cl, SimpleNamespace(single_fp_config=config)) == options


def test_warnings_of_the_compiler_are_not_shown(driver: OpenCLDriver) -> None:
    text = "__kernel void k(__global int* A) { int unused; A[0] = 1; \n#warning look\n }"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _load(driver, text, None)


def test_a_text_is_compiled_once_while_it_is_used(
    driver: OpenCLDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[str] = []
    programs = driver._open(0).programs
    build = type(programs)._build

    def counted(self: Any, source: Source) -> Any:
        texts.append(source.text)
        return build(self, source)

    monkeypatch.setattr(type(programs), "_build", counted)
    text = "__kernel void k(__global int* A) { A[0] = 42; }"
    first, second = (_load(driver, text, None) for _ in range(2))
    assert texts == [text]
    del first, second
    assert _load(driver, text, None)
    assert texts == [text, text]


def test_a_symbol_that_the_text_does_not_have(driver: OpenCLDriver) -> None:
    with pytest.raises(UserError, match=r"has no kernel 'nowhere'(.|\n)*build the module again"):
        _load(driver, "__kernel void k() {}", symbol="nowhere")


def test_a_kernel_of_fewer_arguments(driver: OpenCLDriver) -> None:
    with pytest.raises(UserError, match="'k' of the OpenCL text takes 1 arguments, not 2"):
        _load(driver, "__kernel void k(__global int* A) {}", None, None)


@pytest.mark.parametrize("dtype", [d for d in SCALAR_DTYPES if d.kind != "bfloat"], ids=str)
def test_numbers_of_each_dtype(driver: OpenCLDriver, dtype: DType) -> None:
    names = {"bool": "uchar", "f16": "ushort", "f32": "float", "f64": "double"}
    sizes = {8: "char", 16: "short", 32: "int", 64: "long"}
    sign = "u" if dtype.kind == "uint" else ""
    name = names.get(str(dtype)) or sign + sizes[dtype.bits]
    text = f"__kernel void k(__global {name}* A, {name} x, long last) {{ A[last] = x; }}"
    kernels = _load(driver, text, None, dtype, refcomp.as_dtype("i64"))
    array = refcomp.array(np.zeros(3), refcomp.opencl(), dtype=dtype)
    value = to_numpy(dtype).type(1.5 if dtype.is_float else dtype.max_value)
    kernels.launch("k", [array.memory, value, np.int64(2)], (1, 1, 1), (1, 1, 1), ())
    assert array.asnumpy().tolist() == [0, 0, value]


def test_groups_threads_and_shared_memory(driver: OpenCLDriver) -> None:
    text = """__kernel void k(__global int* A, __local int* S, __local int* T) {
      int group = get_group_id(0) + 3 * (get_group_id(1) + 2 * get_group_id(2));
      int item = get_local_id(0) + 4 * get_local_id(1);
      S[item] = 100 * group; T[item] = item;
      barrier(CLK_LOCAL_MEM_FENCE);
      A[group * 8 + item] = S[7 - item] + T[item] + 1000000 * (S == T);
    }"""
    array = refcomp.array(np.zeros(48, np.int32), refcomp.opencl())
    _load(driver, text, None).launch("k", [array.memory], (3, 2, 1), (4, 2, 1), (32, 32))
    expected = [100 * group + item for group in range(6) for item in range(8)]
    assert array.asnumpy().tolist() == expected


class _SharedKernel:
    """What pyopencl's kernel is in a race: it runs with the arguments that were set last."""

    num_args = 1

    def __init__(self) -> None:
        self.argument = None
        self.was_set = [Event(), Event()]

    def set_scalar_arg_dtypes(self, types: Any) -> None:
        assert types == [np.int64]

    def set_args(self, argument: int) -> None:
        self.argument = argument
        self.was_set[argument].set()
        # Without a lock the other thread comes here now.
        self.was_set[1 - argument].wait(0.2)


def test_one_thread_at_a_time_sets_arguments_and_launches() -> None:
    kernel, ran = _SharedKernel(), []
    cl: Any = SimpleNamespace(
        Kernel=lambda program, name: kernel,
        Error=ArithmeticError,
        MemoryError=ZeroDivisionError,
        enqueue_nd_range_kernel=lambda queue, kernel, *sizes: ran.append(kernel.argument),
    )
    launcher = OpenCLKernels(cl, None, None, [KernelSignature("k", "k", (as_dtype("i64"),))])
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda k: launcher.launch("k", [k], (1, 1, 1), (1, 1, 1), ()), (0, 1)))
    assert sorted(ran) == [0, 1]


def test_a_launch_that_the_device_refuses(driver: OpenCLDriver) -> None:
    kernels = _load(driver, "__kernel void k(__global int* A) { A[0] = 1; }", None)
    memory = driver.allocate(0, 4)
    with pytest.raises(UserError) as caught:
        kernels.launch("k", [memory], (1, 1, 1), (1 << 20, 1, 1), ())
    message = str(caught.value)
    assert "refuses to run k with groups of (1048576, 1, 1), (1, 1, 1) of them" in message
    assert "where: threadIdx.x: item" in message
    assert "INVALID_WORK_" in message
