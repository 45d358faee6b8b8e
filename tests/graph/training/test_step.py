"""Training steps as graphs: their text, inputs and outputs, and each refusal."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.graph.training.optimizers import Adam, Sgd
from refcomp.graph.training.step import training_step
from tests.graph.training.models import CARRY, small_network, weighted_sum


def test_outputs_are_the_loss_and_what_the_step_changes() -> None:
    model, parameters, _ = small_network()
    step = training_step(model, Sgd(momentum=0.5), list(parameters), CARRY)
    names = [value.name for value in step.graph.outputs]
    assert names[:2] == ["loss", "logits"]
    assert {name: names[number] for name, number in step.next_outputs.items()} == {
        name: f"{name}_next" for name in step.next_outputs
    }
    assert set(step.next_outputs) == {*parameters, *CARRY, *step.slots}
    inputs = {value.name for value in step.graph.inputs}
    assert inputs == {*step.next_outputs, "image", "label", "rate"}


def test_types_do_not_change_from_step_to_step() -> None:
    model, parameters, _ = small_network()
    step = training_step(model, Adam(), list(parameters), CARRY)
    inputs = {value.name: value for value in step.graph.inputs}
    for name, number in step.next_outputs.items():
        output = step.graph.outputs[number]
        assert (output.dtype, output.shape) == (inputs[name].dtype, inputs[name].shape)


def test_the_text_of_a_step_parses_back() -> None:
    model, parameters, _ = small_network()
    graph = training_step(model, Adam(), list(parameters), CARRY).graph
    rc.graph.verify_graph(graph)
    assert str(rc.graph.parse_graph(str(graph))) == str(graph)
    assert "weight_grad: f32[4, 1, 3, 3] = conv2d_backward_weight(" in str(graph)


def test_a_small_step_against_the_gradient_lowers_the_loss() -> None:
    step = training_step(weighted_sum(), Sgd(), ["w"])
    feeds = {"w": np.ones(3), "slope": np.array([1.0, -2.0, 3.0]), "rate": np.float64(0.5)}
    loss, after = rc.graph.evaluate_graph(step.graph, feeds)
    assert (float(loss), after.tolist()) == (2.0, [0.5, 2.0, -0.5])


@pytest.mark.parametrize(
    ("parameters", "carry", "message"),
    [
        (["v"], {}, "has no input named 'v'"),
        ([], {}, r"parameters are \[\]"),
        ("w", {}, "parameters are 'w'"),
        (["w"], {"v": "loss"}, "has no input named 'v'"),
        (["w"], {"slope": "loss"}, "has no output after the loss named 'loss'"),
    ],
)
def test_unknown_names_are_refused(parameters, carry, message):
    with pytest.raises(UserError, match=message):
        training_step(weighted_sum(), Sgd(), parameters, carry)


def test_an_output_of_another_type_cannot_be_carried() -> None:
    model, parameters, _ = small_network()
    with pytest.raises(UserError, match="cannot replace the input mean: f32") as info:
        training_step(model, Sgd(), list(parameters), {"mean": "logits"})
    assert "types must be equal" in info.value.why


def test_a_parameter_cannot_be_carried() -> None:
    model, parameters, _ = small_network()
    with pytest.raises(UserError, match="cannot replace the input gamma: f32"):
        training_step(model, Sgd(), list(parameters), {"gamma": "running_mean"})


def test_an_input_named_rate_is_refused() -> None:
    builder = rc.graph.GraphBuilder("net")
    rate = builder.input("rate", "float32", ())
    model = builder.finish([builder.node("square", [rate], name="loss")])
    with pytest.raises(UserError, match="the graph net has an input named 'rate'"):
        training_step(model, Sgd(), ["rate"])


def test_a_loss_of_several_numbers_is_refused() -> None:
    builder = rc.graph.GraphBuilder("net")
    w = builder.input("w", "float32", (2,))
    model = builder.finish([builder.node("square", [w], name="loss")])
    with pytest.raises(UserError, match=r"the output loss: f32\[2\] is not one number"):
        training_step(model, Sgd(), ["w"])


def test_parameters_of_several_dtypes_are_refused() -> None:
    builder = rc.graph.GraphBuilder("net")
    w, v = builder.input("w", "float32", ()), builder.input("v", "float64", ())
    narrow = builder.node("cast", [v], {"dtype": "float32"})
    model = builder.finish([builder.node("multiply", [w, narrow], name="loss")])
    with pytest.raises(UserError, match="parameters hold f32 and f64"):
        training_step(model, Sgd(), ["w", "v"])
