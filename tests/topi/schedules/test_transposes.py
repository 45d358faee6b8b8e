"""Transposes through shared memory: what is one, how its tiles lie, and that results stay."""

import pytest

from refcomp.schedule.schedule import create_schedule
from refcomp.te.tensor import var
from refcomp.topi.broadcast.arithmetic import add
from refcomp.topi.elementwise.activations import relu, tanh
from refcomp.topi.movement.transform import transpose
from refcomp.topi.schedules.cuda import schedule_cuda
from refcomp.topi.schedules.transposes import find_transposes
from tests.strategies.operands import tensors
from tests.topi.schedules.scheduled import (
    EVERYWHERE,
    check,
    conflicts,
    loops,
    lowered,
    profiled,
    scope_of,
)


def found(output):
    return find_transposes(create_schedule(output), output.op)


def swapped(data):
    return transpose(data, axes=(1, 0))


def test_a_transpose_and_what_is_inlined_around_it_have_tiles():
    (data,) = tensors((40, 70))
    for output in (swapped(data), relu(swapped(data)), swapped(tanh(data))):
        transposes = found(output)
        assert (transposes.rows.extent.value, transposes.columns.extent.value) == (70, 40)
        assert len(transposes.reads) == 1


@pytest.mark.parametrize("shape", [(40, 7), (7, 40), (1, 40), (40,)])
def test_short_axes_have_no_tiles(shape):
    (data,) = tensors(shape)
    assert found(transpose(data, axes=tuple(reversed(range(len(shape)))))) is None


def test_what_moves_only_outer_axes_has_no_tiles():
    (data,) = tensors((9, 10, 40))
    assert found(transpose(data, axes=(1, 0, 2))) is None


def test_an_outer_product_has_no_tiles():
    a, b = tensors((40, 1), (1, 40))
    assert found(add(a, b)) is None


@pytest.mark.parametrize(
    ("dtype", "edge", "row"), [("float32", 32, 33), ("float16", 64, 66), ("int8", 128, 132)]
)
def test_a_row_of_the_copy_is_one_bank_longer_than_a_segment(dtype, edge, row):
    (data,) = tensors((256, 256), dtype=dtype)
    output = swapped(data)
    assert found(output).edge == edge
    func = lowered([data], output)
    assert scope_of(func, "p0.shared") == "shared"
    assert f"[{edge}, {row}] shared" in str(func)
    assert loops(func, "threadIdx.x") == [edge]


def cases():
    (data,) = tensors((40, 70))
    yield "plain", [data], swapped(data)
    yield "between", [data], relu(swapped(tanh(data)))
    (other,) = tensors((70, 40))
    yield "sum", [data, other], add(swapped(data), other)
    (third,) = tensors((40, 70))
    yield "two", [data, third], add(swapped(data), swapped(third))
    (image,) = tensors((2, 9, 12, 10))
    yield "channels_first", [image], transpose(image, axes=(0, 3, 1, 2))
    yield "channels_last", [image], transpose(image, axes=(0, 2, 3, 1))
    (single,) = tensors((33, 1, 34))
    yield "single", [single], transpose(single, axes=(2, 1, 0))
    (half,) = tensors((33, 65), dtype="float16")
    yield "half", [half], swapped(half)
    (byte,) = tensors((130, 9), dtype="int8")
    yield "byte", [byte], swapped(byte)


CASES = list(cases())


@pytest.mark.parametrize("way", EVERYWHERE)
@pytest.mark.parametrize("case", CASES, ids=[name for name, _, _ in CASES])
def test_results_stay(case, way):
    check(way, case[1], case[2])


def test_symbolic_axes_have_tiles():
    (data,) = tensors((var("n"), var("m")))
    assert scope_of(lowered([data], swapped(data)), "p0.shared") == "shared"


def test_nvidia_gpus_have_tiles():
    (data,) = tensors((64, 64))
    assert [stage.name for stage in schedule_cuda([swapped(data)]).stages][1] == "p0.shared"


@pytest.mark.rocm
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_both_sides_coalesce_and_banks_do_not_conflict(dtype):
    (data,) = tensors((128, 64), dtype=dtype)
    _, (report,) = profiled([data], swapped(data), "gfx942")
    assert report.efficiency == 1
    assert conflicts(report) == 0
