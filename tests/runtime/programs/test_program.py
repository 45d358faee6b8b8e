"""Functions whose kernels run on a device: on a fake one, and on PoCL."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import refcomp
from refcomp.foundation.artifacts import Source
from refcomp.foundation.errors import UserError
from refcomp.runtime.device import Device
from refcomp.runtime.programs.program import DeviceCode, ProgramFunction
from refcomp.runtime.timing import time_evaluator
from tests.runtime.device_programs import (
    ADD,
    ADD_OPENCL,
    ADD_SIGNATURE,
    STEPS,
    STEPS_OPENCL,
    STEPS_SIGNATURE,
    signatures_of,
)
from tests.runtime.fake_device import FakeDriver, fake_device


def _add_numpy(a, b, c, n, grid, block) -> None:
    c.view(np.float32)[:] = a.view(np.float32) + b.view(np.float32)


def _up_numpy(a, w, n, k, grid, block) -> None:
    w.view(np.float32)[:n] = a.view(np.float32) + np.float32(k)


def _back_numpy(w, a, n, grid, block) -> None:
    a.view(np.float32)[:] = w.view(np.float32)[:n]


def _fake() -> FakeDriver:
    return FakeDriver({"add_kernel": _add_numpy, "up": _up_numpy, "back": _back_numpy})


def _add(device: Device, source: Source = ADD_OPENCL) -> ProgramFunction:
    code = DeviceCode(source, signatures_of(ADD), device)
    return ProgramFunction(ADD_SIGNATURE, ADD.host, code)


def _steps(device: Device) -> ProgramFunction:
    code = DeviceCode(STEPS_OPENCL, signatures_of(STEPS), device)
    return ProgramFunction(STEPS_SIGNATURE, STEPS.host, code)


def _check_add(device: Device, n: int) -> None:
    a, b = np.arange(2 * n, dtype=np.float32).reshape(2, n)
    out = refcomp.empty(n, "f32", device)
    _add(device)(refcomp.array(a, device), refcomp.array(b, device), out)
    assert out.asnumpy().tolist() == (a + b).tolist()


def _check_steps(device: Device) -> None:
    array = refcomp.array(np.arange(5, dtype=np.float32), device)
    function = _steps(device)
    bound = function.bind(array, 4)
    bound()
    function(array, 3)
    function(array, 0)
    assert array.asnumpy().tolist() == [9, 10, 11, 12, 13]


def test_on_the_fake_device() -> None:
    driver = _fake()
    for n in (0, 1, 64, 65):
        _check_add(fake_device(driver), n)
    assert [grid for _, _, grid, *_ in driver.launches] == [(1, 1, 1), (1, 1, 1), (2, 1, 1)]


def test_a_loop_with_a_workspace_and_dynamic_shared_memory() -> None:
    driver = _fake()
    _check_steps(fake_device(driver))
    assert driver.launches[2][:2] == ("up", [5, 1])
    assert [shared for name, *_, shared in driver.launches if name == "up"] == [(20,)] * 7
    assert [block for name, _, _, block, _ in driver.launches if name == "back"][:2] == [
        (1, 1, 1),
        (5, 1, 1),
    ]
    assert driver.held == 0


def test_a_workspace_is_let_go_when_a_kernel_fails() -> None:
    driver = _fake()
    driver.kernels["back"] = lambda *_: 1 / 0
    device = fake_device(driver)
    array = refcomp.array(np.zeros(3, np.float32), device)
    with pytest.raises(ZeroDivisionError) as caught:
        _steps(device)(array, 1)
    del caught
    assert driver.held == 1, "the array alone"


def test_arrays_of_the_host_are_refused() -> None:
    a = np.zeros(4, np.float32)
    for arg in (a, refcomp.array(a)):
        with pytest.raises(UserError) as caught:
            _add(fake_device(_fake()))(arg, arg, arg)
        assert "argument A (1 of 3) lies on cpu:0, expected on fake:0" in str(caught.value)
        assert "refcomp.nd.array(a, x.device), of an array x on" in str(caught.value)


def test_outputs_of_the_host_are_refused() -> None:
    device = fake_device(_fake())
    a = refcomp.array(np.zeros(4, np.float32), device)
    with pytest.raises(UserError, match=r"refcomp.nd.empty\(shape, dtype, x.device\), of an"):
        _add(device)(a, a, np.zeros(4, np.float32))


def test_outputs_that_overlap_are_refused() -> None:
    device = fake_device(_fake())
    a, b = (refcomp.array(np.zeros(4, np.float32), device) for _ in range(2))
    with pytest.raises(UserError, match="C .3 of 3. is an output and shares memory with .* A"):
        _add(device)(a, b, a)


def test_a_block_beyond_the_device() -> None:
    driver = _fake()
    device = fake_device(driver)
    array = refcomp.array(np.zeros(65, np.float32), device)
    with pytest.raises(UserError, match="the kernel back needs 65 threads in threadIdx.x"):
        _steps(device)(array, 2)
    assert driver.held == 1


def test_the_code_is_loaded_once_and_late() -> None:
    driver = _fake()
    device = fake_device(driver)
    function = _add(device)
    assert driver.loads == 0
    arrays = [refcomp.array(np.zeros(4, np.float32), device) for _ in range(3)]
    function(*arrays)
    function(*arrays)
    assert driver.loads == 1


def test_a_call_runs_where_its_arrays_lie() -> None:
    """The code is loaded once for each device, when it is first used there."""
    home, drivers = _fake(), [_fake(), _fake()]
    elsewhere = [fake_device(driver, f"far{i}") for i, driver in enumerate(drivers)]
    code = DeviceCode(ADD_OPENCL, signatures_of(ADD), fake_device(home))
    functions = [ProgramFunction(ADD_SIGNATURE, ADD.host, code) for _ in range(2)]
    for function in functions:
        for device in elsewhere:
            arrays = [refcomp.array(np.ones(4, np.float32), device) for _ in range(2)]
            for call in (function, lambda *a, f=function: f.bind(*a)()):
                out = refcomp.empty(4, "f32", device)
                call(*arrays, out)
                assert out.asnumpy().tolist() == [2] * 4
    assert ([len(d.launches) for d in drivers], [d.loads for d in drivers]) == ([4, 4], [1, 1])
    assert (home.launches, home.loads) == ([], 0)
    assert functions[0].on(elsewhere[0]) is functions[0].on(elsewhere[0])
    assert functions[0].on(fake_device(home)) is functions[0]


def test_one_array_on_a_device_tells_where_a_call_belongs() -> None:
    """The others are refused as such, and the home device need not be there."""
    add, far = _add(fake_device(FakeDriver(devices=0))), fake_device(_fake(), "far")
    out, a = refcomp.empty(4, "f32", far), np.zeros(4, np.float32)
    for given in (a, refcomp.array(a)):
        with pytest.raises(UserError, match="lies on cpu:0, expected on far:0"):
            add(given, given, out)


def test_a_call_runs_on_no_device_of_another_driver() -> None:
    add, array = _add(fake_device(_fake())), refcomp.array(np.zeros(4, np.float32))
    with pytest.raises(UserError, match="runs on fake:0, not on cpu:0"):
        add.on(array.device)
    far = fake_device(_fake(), "far")
    mixed = [refcomp.array(np.zeros(4, np.float32), d) for d in (far, array.device, far)]
    with pytest.raises(UserError, match="argument B .2 of 3. lies on cpu:0, expected on far:0"):
        add(*mixed)


def test_timing_goes_where_it_is_asked_to() -> None:
    driver = _fake()
    far = fake_device(driver, "far")
    arrays = [refcomp.array(np.zeros(4, np.float32), far) for _ in range(3)]
    time_evaluator(_add(fake_device(_fake())), far, number=2, repeat=1, min_repeat_ms=0)(*arrays)
    assert len(driver.launches) == 3


def test_a_device_that_is_not_there() -> None:
    with pytest.raises(UserError, match=r"no device fake:0\n  why: the fake driver was told so"):
        DeviceCode(ADD_OPENCL, (), fake_device(FakeDriver(devices=0))).load()


@pytest.mark.parametrize("use", ["__call__", "bind"])
def test_a_device_that_is_not_there_is_told_before_the_arguments_are_looked_at(use: str) -> None:
    a = np.zeros(4, np.float32)
    with pytest.raises(UserError, match="no device fake:0"):
        getattr(_add(fake_device(FakeDriver(devices=0))), use)(a, a, a)


def test_timing_waits_for_the_device() -> None:
    driver = _fake()
    device = fake_device(driver)
    arrays = [refcomp.array(np.zeros(4, np.float32), device) for _ in range(3)]
    result = time_evaluator(_add(device), device, number=5, repeat=2, min_repeat_ms=0)(*arrays)
    assert len(result.results) == 2
    assert len(driver.launches) == 1 + 2 * 5
    assert driver.syncs == 4


@pytest.mark.pocl
class TestOnPocl:
    @pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000])
    def test_vector_add(self, n: int) -> None:
        _check_add(refcomp.opencl(), n)

    def test_a_loop_with_a_workspace_and_dynamic_shared_memory(self) -> None:
        _check_steps(refcomp.opencl())

    def test_calls_from_several_threads(self) -> None:
        device, function = refcomp.opencl(), _steps(refcomp.opencl())

        def run(k: int) -> list[float]:
            array = refcomp.array(np.full(7, k, np.float32), device)
            function(array, 3)
            return array.asnumpy().tolist()

        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(run, range(40)))
        assert results == [[k + 3.0] * 7 for k in range(40)]

    def test_numpy_arrays_are_refused_with_the_remedy(self) -> None:
        a = np.zeros(4, np.float32)
        with pytest.raises(UserError, match=r"refcomp.nd.array\(a, refcomp.opencl\(0\)\)"):
            _add(refcomp.opencl())(a, a, a)
