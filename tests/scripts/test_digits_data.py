"""The stored digit network and its test images are whole, as described, and accurate."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

FOLDER = Path(__file__).parents[2] / "scripts" / "data" / "digits"
BLOCK = ["Conv", "BatchNormalization", "Relu"]
OPERATORS = [*BLOCK, *BLOCK, "MaxPool", *BLOCK, "GlobalAveragePool", "Flatten", "Gemm", "Softmax"]


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    return onnx.load(FOLDER / "digits.onnx")


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return np.load(FOLDER / "digits_test.npz", allow_pickle=False)["image"]


@pytest.fixture(scope="module")
def labels() -> np.ndarray:
    return np.load(FOLDER / "digits_test.npz", allow_pickle=False)["label"]


def probabilities(model: onnx.ModelProto, images: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(["probability"], {"image": images})[0]


def shape_of(value: onnx.ValueInfoProto) -> list[str | int]:
    dims = value.type.tensor_type.shape.dim
    return [dim.dim_param or dim.dim_value for dim in dims]


def test_the_checker_accepts_the_network(model):
    onnx.checker.check_model(model, full_check=True)


def test_operators_are_those_of_the_digit_network(model):
    assert [node.op_type for node in model.graph.node] == OPERATORS
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", 17)]


def test_batch_normalization_is_in_inference_form(model):
    norms = [node for node in model.graph.node if node.op_type == "BatchNormalization"]
    assert [(len(node.input), len(node.output)) for node in norms] == [(5, 1)] * 3
    assert not any(
        attribute.name == "training_mode" for node in norms for attribute in node.attribute
    )


def test_input_and_output_have_a_dynamic_batch(model):
    (image,), (probability,) = model.graph.input, model.graph.output
    assert (image.name, shape_of(image)) == ("image", ["N", 1, 8, 8])
    assert (probability.name, shape_of(probability)) == ("probability", ["N", 10])
    elem_types = {value.type.tensor_type.elem_type for value in (image, probability)}
    assert elem_types == {onnx.TensorProto.FLOAT}


def test_images_are_sixteenths_and_every_digit_occurs(images, labels):
    assert (images.shape, images.dtype) == ((450, 1, 8, 8), np.float32)
    assert (labels.shape, labels.dtype) == ((450,), np.int64)
    assert np.isin(images * 16, np.arange(17)).all()
    assert np.bincount(labels).min() >= 40 and labels.max() == 9


def test_images_for_training_are_others(images):
    with np.load(FOLDER / "digits_train.npz", allow_pickle=False) as file:
        shades, classes = file["image"], file["label"]
    assert (shades.shape, shades.dtype, shades.max()) == ((1347, 1, 8, 8), np.uint8, 16)
    assert (classes.shape, classes.dtype) == ((1347,), np.uint8)
    assert np.bincount(classes).min() >= 120 and classes.max() == 9
    held_out = {image.tobytes() for image in (images * 16).astype(np.uint8)}
    assert not held_out & {image.tobytes() for image in shades}


def test_accuracy_on_the_test_split(model, images, labels):
    assert np.mean(probabilities(model, images).argmax(axis=1) == labels) >= 0.97


@pytest.mark.parametrize("batch", [1, 7])
def test_the_batch_size_does_not_change_probabilities(model, images, batch):
    whole = probabilities(model, images)[:batch]
    part = probabilities(model, images[:batch])
    np.testing.assert_allclose(part, whole, rtol=0, atol=1e-5)
    np.testing.assert_allclose(part.sum(axis=1), 1, rtol=0, atol=1e-5)


def test_the_network_is_small():
    assert (FOLDER / "digits.onnx").stat().st_size < 200_000
