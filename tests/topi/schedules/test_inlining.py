"""Which stages are computed where they are read."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.topi.schedules.cuda import schedule_cuda
from refcomp.topi.schedules.gpu import schedule_gpu
from refcomp.topi.schedules.inlining import is_inlined
from refcomp.topi.schedules.llvm import schedule_llvm


def _summed(source):
    def body(ins, outs):
        ib = rc.ir_builder.create()
        a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 4, name="i", for_type="parallel") as i:
            b[i] = 0.0
            with ib.for_range(0, 3, name="j") as j:
                b[i] = b[i] + a[i, j]
        return ib.get()

    return rc.extern((4,), [source], body, name="rows", dtype="float32")


def _chain():
    a = rc.placeholder((4, 3), name="A")
    b = rc.topi.relu(a)
    c = rc.topi.tanh(b)
    return a, b, c, rc.topi.relu(_summed(c))


def test_a_stage_that_an_extern_reads_is_stored():
    _, b, c, d = _chain()
    schedule = rc.create_schedule(d)
    assert is_inlined(schedule[b].stage)
    assert not is_inlined(schedule[c].stage)
    assert not is_inlined(schedule[d].stage)
    assert not is_inlined(schedule.stages[0])


def _check(schedule_for, target, device):
    a, _, _, d = _chain()
    built = rc.build(schedule_for([d]), [a, d], target)
    given = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    result = rc.array(np.zeros(4, np.float32), device)
    built(rc.array(given, device), result)
    expected = np.tanh(np.maximum(given, 0)).sum(axis=1)
    np.testing.assert_allclose(result.asnumpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("schedule_for", [schedule_llvm, schedule_gpu, schedule_cuda])
def test_schedules_of_an_extern_between_stages(schedule_for):
    _check(schedule_for, "interp", rc.cpu())


@pytest.mark.llvm
def test_an_extern_between_stages_on_the_host():
    _check(schedule_llvm, "llvm", rc.cpu())


@pytest.mark.pocl
def test_an_extern_between_stages_in_opencl():
    _check(schedule_gpu, "opencl", rc.opencl(0))


@pytest.mark.rocm
def test_an_extern_between_stages_on_an_emulated_gpu():
    _check(schedule_gpu, "rocm -mcpu=gfx942", rc.rocm_emulator("gfx942", hazards=True))
