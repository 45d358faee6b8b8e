"""Schedules by target: which function of schedules serves a target, and the scope of one."""

import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.schedule.schedule import Schedule
from refcomp.topi import generic
from refcomp.topi.elementwise.activations import relu
from refcomp.topi.schedules.cuda import schedule_cuda
from refcomp.topi.schedules.gpu import schedule_gpu
from refcomp.topi.schedules.llvm import schedule_llvm
from refcomp.topi.sources import SCHEDULE_HOMES
from tests.strategies.operands import tensors

NAMES = [name for name, home in SCHEDULE_HOMES.items() if home == "refcomp.topi.generic"]
SCHEDULES = [name for name in NAMES if name.startswith("schedule_")]


def primitives(schedule: Schedule) -> list[str]:
    return [step.primitive for step in schedule.steps]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("llvm", schedule_llvm),
        ("interp", schedule_llvm),
        ("opencl", schedule_gpu),
        ("rocm -mcpu=gfx942", schedule_gpu),
        ("cuda", schedule_cuda),
    ],
)
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_target_has_the_schedules_of_its_kind(name, target, expected):
    (data,) = tensors((8, 64))
    output = relu(data)
    schedule = getattr(generic, name)(output, target=target)
    assert primitives(schedule) == primitives(expected([output]))


def test_without_a_target_the_host_is_meant():
    (data,) = tensors((64,))
    output = relu(data)
    assert primitives(generic.schedule_injective([output])) == primitives(schedule_llvm([output]))


def test_a_scope_chooses_the_target_and_ends():
    (data,) = tensors((64,))
    output = relu(data)
    with generic.target_scope("rocm -mcpu=gfx942") as target:
        assert target.option("mcpu", "") == "gfx942"
        assert "bind" in primitives(generic.schedule_elemwise(output))
        with generic.target_scope("llvm"):
            assert "bind" not in primitives(generic.schedule_elemwise(output))
        assert "bind" in primitives(generic.schedule_elemwise(output))
    assert "bind" not in primitives(generic.schedule_elemwise(output))


def test_the_argument_is_stronger_than_the_scope():
    (data,) = tensors((64,))
    with generic.target_scope("opencl"):
        schedule = generic.schedule_broadcast(relu(data), target="llvm")
    assert "bind" not in primitives(schedule)


def test_an_unknown_target_is_refused():
    (data,) = tensors((64,))
    with pytest.raises(UserError, match="unknown target 'openc'"):
        generic.schedule_pool(relu(data), target="openc")
    with (
        pytest.raises(UserError, match="unknown target 'metal'"),
        generic.target_scope("metal"),
    ):
        pass


def test_what_is_not_a_tensor_is_refused():
    with pytest.raises(UserError):
        generic.schedule_dense(["text"], target="opencl")


def test_classic_programs_find_it_as_a_module_of_topi():
    assert refcomp.topi.generic.schedule_reduce is refcomp.topi.schedule_reduce
