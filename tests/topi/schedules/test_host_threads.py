"""Loops that threads share: which ones, without races, and with equal bits for any number."""

from collections.abc import Callable

import numpy as np
import pytest

import refcomp as rc
from refcomp.ir.stmt import PARALLEL
from refcomp.runtime.host.threads import set_thread_count
from refcomp.te.tensor import Tensor
from refcomp.topi.operator import find_operator
from refcomp.topi.schedules import host_threads
from refcomp.topi.schedules.llvm import schedule_llvm
from refcomp.topi.sources import OPERATOR_HOMES
from tests.topi.agreement import Way, check_on, make_case


def parallel_loops(*outputs: Tensor) -> dict[str, list[str]]:
    """The parallel loops of each stage that has one."""
    found = {}
    for stage in schedule_llvm(outputs).stages:
        marks = stage.loops.marks
        loops = [axis.name for axis in stage.loops.leaves if marks.get(axis) == PARALLEL]
        if loops:
            found[stage.name] = loops
    return found


def test_the_outer_loop_of_a_stage_with_enough_work_is_shared() -> None:
    A = rc.placeholder((128, 256), name="A")
    assert parallel_loops(rc.topi.tanh(A)) == {"tanh": ["i0"]}


def test_a_stage_with_little_work_is_not_shared() -> None:
    A = rc.placeholder((127, 256), name="A")
    assert parallel_loops(rc.topi.tanh(A)) == {}


def test_loops_of_one_iteration_are_passed_over() -> None:
    A = rc.placeholder((1, 1, 256, 256), name="A")
    assert parallel_loops(rc.topi.tanh(A)) == {"tanh": ["i2"]}


@pytest.mark.parametrize(
    ("side", "loops"),
    [(2048, {"tanh": ["i1"]}), (512, {"tanh": ["i0"]}), (256, {})],
)
def test_a_batch_of_unknown_size(side: int, loops: dict[str, list[str]]) -> None:
    """Its own loops are shared if one image is enough work for that, else the images."""
    A = rc.placeholder((rc.var("n"), side, side), name="A")
    assert parallel_loops(rc.topi.tanh(A)) == loops


def test_the_sums_inside_count_as_work() -> None:
    A = rc.placeholder((64, 64), name="A")
    B = rc.placeholder((64, 64), name="B")
    (loops,) = parallel_loops(rc.topi.matmul(A, B)).values()
    assert len(loops) == 1


def test_a_sum_of_everything_is_not_shared() -> None:
    A = rc.placeholder((1 << 17,), name="A")
    assert parallel_loops(rc.topi.sum(A)) == {}


def shared(name: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run samples of an operator, whose loops are all shared."""
    operator = find_operator(name)
    if operator.sample is None:
        return
    for limit in ("MIN_STEPS", "_MIN_STEPS_OF_ITERATION"):
        monkeypatch.setattr(host_threads, limit, 0)

    def schedule(outputs: list[Tensor]) -> rc.Schedule:  # another key for the cached lowering
        return schedule_llvm(outputs)

    check_on(Way(target, schedule, rc.cpu), [make_case(operator, seed) for seed in range(3)])


@pytest.mark.search
@pytest.mark.parametrize("name", OPERATOR_HOMES)
def test_iterations_may_be_in_any_order(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter runs the iterations of a parallel loop in a scrambled order."""
    shared(name, "interp", monkeypatch)


@pytest.mark.llvm
@pytest.mark.parametrize("name", list(OPERATOR_HOMES)[::8])
def test_threads_give_legal_results(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    set_thread_count(4)
    try:
        shared(name, "llvm", monkeypatch)
    finally:
        set_thread_count(None)


def convolved() -> list[Tensor]:
    A = rc.placeholder((2, 16, 16, 8), name="A")
    W = rc.placeholder((3, 3, 8, 16), name="W")
    return [A, W, rc.topi.relu(rc.topi.conv2d_nhwc(A, W))]


def multiplied() -> list[Tensor]:
    A = rc.placeholder((67, 65), name="A")
    B = rc.placeholder((65, 70), name="B")
    return [A, B, rc.topi.matmul(A, B)]


def normalized() -> list[Tensor]:
    A = rc.placeholder((300, 301), name="A")
    return [A, rc.topi.softmax(A)]


def summed() -> list[Tensor]:
    A = rc.placeholder((300, 301), name="A")
    return [A, rc.topi.sum(A, axis=0)]


@pytest.mark.llvm
@pytest.mark.parametrize("make", [convolved, multiplied, normalized, summed])
def test_bits_are_equal_for_any_number_of_threads(make: Callable[[], list[Tensor]]) -> None:
    *inputs, output = make()
    schedule = schedule_llvm([output])
    module = rc.build(schedule, [*inputs, output], target="llvm", name="f")
    random = np.random.default_rng(0)
    shapes = [[int(dim) for dim in map(str, tensor.shape)] for tensor in inputs]
    arrays = [rc.array(random.standard_normal(shape).astype("float32")) for shape in shapes]
    found = []
    try:
        for count in (1, 2, 3, 7):
            set_thread_count(count)
            result = rc.empty([int(str(dim)) for dim in output.shape], "float32")
            module(*arrays, result)
            found.append(result.asnumpy().tobytes())
    finally:
        set_thread_count(None)
    assert len(set(found)) == 1
