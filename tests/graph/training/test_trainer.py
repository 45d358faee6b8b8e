"""Trainers: losses go down, bits do not depend on threads, and refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.graph.training.optimizers import Adam, Sgd
from refcomp.graph.training.trainer import Trainer
from refcomp.runtime.host.threads import set_thread_count
from tests.graph.training.models import CARRY, small_batch, small_network, weighted_sum


def _trained(optimizer, steps, batch=8, target="llvm"):
    """Return losses and values after some steps of a small network."""
    model, parameters, statistics = small_network(batch)
    trainer = Trainer(model, optimizer, parameters, CARRY, statistics, target=target)
    losses = [trainer.step(small_batch(k, batch), 0.05)[0] for k in range(steps)]
    return losses, trainer.values()


@pytest.mark.llvm
@pytest.mark.parametrize("optimizer", [Sgd(momentum=0.9, weight_decay=1e-3), Adam()])
def test_bits_are_equal_in_each_run_and_for_any_number_of_threads(optimizer):
    found = []
    try:
        for threads in (1, 2, 2, 3):
            set_thread_count(threads)
            losses, values = _trained(optimizer, steps=5, batch=64)
            found.append([*losses, *values.values()])
    finally:
        set_thread_count(None)
    for other in found[1:]:
        for first, again in zip(found[0], other, strict=True):
            assert np.asarray(first).tobytes() == np.asarray(again).tobytes()


@pytest.mark.llvm
def test_compiled_steps_agree_with_the_meaning_of_the_graph() -> None:
    model, parameters, statistics = small_network()
    step = rc.graph.training_step(model, Adam(), list(parameters), CARRY)
    trainer = Trainer(model, Adam(), parameters, CARRY, statistics)
    before = trainer.values()
    feeds = {**before, **small_batch(0), "rate": np.float32(0.01)}
    expected = rc.graph.evaluate_graph(step.graph, feeds)
    loss, logits = trainer.step(small_batch(0), 0.01)
    np.testing.assert_allclose(loss, expected[0], rtol=1e-5)
    np.testing.assert_allclose(logits, expected[1], rtol=1e-4, atol=1e-5)
    after = trainer.values()
    for name in statistics:
        wanted = expected[step.next_outputs[name]]
        np.testing.assert_allclose(after[name], wanted, rtol=1e-5, atol=1e-6)
    # The first step of Adam moves by the rate, in the direction of the sign.
    moved = np.abs(after["weight"] - parameters["weight"])
    np.testing.assert_allclose(moved, 0.01, rtol=1e-2)


@pytest.mark.llvm
def test_batches_may_have_any_number_of_samples() -> None:
    model, parameters, statistics = small_network("N")
    trainer = Trainer(model, Sgd(), parameters, CARRY, statistics)
    for count in (8, 3):
        whole, _, _ = small_network(count)
        expected = rc.graph.evaluate_graph(whole, {**trainer.values(), **small_batch(0, count)})
        loss, logits = trainer.step(small_batch(0, count), 0.1)
        assert logits.shape == (count, 3)
        np.testing.assert_allclose(loss, expected[0], rtol=1e-5)


@pytest.mark.llvm
def test_one_batch_is_learned_by_heart() -> None:
    model, parameters, statistics = small_network()
    trainer = Trainer(model, Adam(), parameters, CARRY, statistics)
    batch = small_batch(1)
    losses = [float(trainer.step(batch, 0.05)[0]) for _ in range(60)]
    assert losses[-1] < losses[0] / 2
    assert trainer.steps == 60


def test_values_are_those_after_the_last_step() -> None:
    trainer = Trainer(weighted_sum("float32"), Sgd(), {"w": np.ones(3, "float32")}, target="interp")
    slope = np.array([1, 2, 4], "float32")
    (loss,) = trainer.step({"slope": slope}, rate=0.5)
    assert float(loss) == 7
    assert trainer.values()["w"].tolist() == [0.5, 0, -1]


def test_the_batch_may_not_name_what_the_trainer_keeps() -> None:
    trainer = Trainer(weighted_sum("float32"), Sgd(), {"w": np.ones(3, "float32")}, target="interp")
    with pytest.raises(UserError, match="the batch names rate, w") as info:
        trainer.step({"w": np.ones(3, "float32"), "rate": np.float32(1)}, 0.5)
    assert info.value.remedy == "leave them out of the batch"
    with pytest.raises(UserError, match="slope"):
        trainer.step({}, 0.5)


def test_carried_inputs_need_first_values() -> None:
    model, parameters, statistics = small_network()
    del statistics["variance"]
    with pytest.raises(UserError, match="carry and carried name different inputs: variance"):
        Trainer(model, Sgd(), parameters, CARRY, statistics, target="interp")


def test_parameters_have_numbers_as_extents() -> None:
    builder = rc.graph.GraphBuilder("net")
    w = builder.input("w", "float32", ("N",))
    model = builder.finish([builder.node("sum", [w], name="loss")])
    with pytest.raises(UserError, match=r"w: f32\[N\] has no fixed shape"):
        Trainer(model, Sgd(), {"w": np.ones(2, "float32")}, target="interp")
