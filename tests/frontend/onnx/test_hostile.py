"""2,000 damaged models: each is refused in plain words, or runs within bounds.

`python -m tests.frontend.onnx.hostile 100000` tries more of them.
"""

import mmap
import os
import random

import onnx
import pytest

from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx import hostile
from tests.frontend.onnx.mutations import mutated

pytestmark = pytest.mark.search  # the seeds alone take seconds to load


def test_a_number_means_one_model_always() -> None:
    assert hostile.model_of(7) == hostile.model_of(7)
    assert len({hostile.model_of(number) for number in range(20)}) == 20


def test_seeds_are_of_all_families() -> None:
    operators = {
        node.op_type
        for content in hostile.seeds()
        for node in onnx.ModelProto.FromString(content).graph.node
    }
    assert len(operators) > 150
    for content in hostile.seeds()[-2:]:
        from_onnx(content)
    assert {"Loop", "If", "Scan", "SequenceAt", "Optional", "StringSplit", "Cast"} <= operators


def test_most_damaged_models_still_parse() -> None:
    rng = random.Random(0)
    parsed = 0
    for number in range(200):
        content = mutated(hostile.seeds()[number % len(hostile.seeds())], rng)
        try:
            onnx.ModelProto.FromString(content)
            parsed += 1
        except Exception:  # protobuf's own class
            continue
    assert parsed > 140


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(0, 2000, 500))
def test_damaged_models_are_refused_or_run(first: int) -> None:
    outcomes, faults = hostile.run(first, 500)
    assert not faults, "\n".join(f"model {number}: {text}" for number, text in faults.items())
    assert outcomes["refused"] > 200
    assert outcomes["run"] > 50
    assert outcomes["stopped in a run"] < 25


def test_a_fault_is_found(monkeypatch) -> None:
    """The check can fail: an error of no kind of refcomp's own is reported, and so is a crash."""

    def broken(content: bytes, max_bytes: int) -> None:
        raise KeyError("axis")

    monkeypatch.setattr(hostile, "from_onnx", broken)
    outcomes, faults = hostile.run(0, 2)
    assert outcomes == {"fault: KeyError": 2}
    assert "KeyError" in faults[1]


def test_a_process_that_dies_is_found(monkeypatch) -> None:
    monkeypatch.setattr(hostile, "from_onnx", lambda content, max_bytes: os._exit(3))
    outcomes, faults = hostile.run(0, 2)
    assert outcomes == {"fault: the process ends with 3": 2}
    assert sorted(faults) == [0, 1]


def test_memory_is_bounded(monkeypatch) -> None:
    def greedy(content: bytes, max_bytes: int) -> None:
        bytearray(2 * hostile.MAX_MEMORY)

    monkeypatch.setattr(hostile, "from_onnx", greedy)
    outcomes, _ = hostile.run(0, 1)
    assert outcomes == {"fault: MemoryError": 1}


def test_the_bound_does_not_count_what_the_process_began_with() -> None:
    held = mmap.mmap(-1, hostile.MAX_MEMORY)
    outcomes, faults = hostile.run(0, 5)
    held.close()
    assert not faults, outcomes
