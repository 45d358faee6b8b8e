"""Networks with seeded weights: what the conversion keeps, and that outputs depend on the input."""

from collections import Counter

import numpy as np
import onnx
import onnxruntime
import pytest

from benchmarks import light_models
from benchmarks.light_models import FOLDER, main, make, names, save


def run(model, images=1):
    """Return the outputs of a model for random images."""
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (value,) = session.get_inputs()
    rng = np.random.default_rng(1)
    feeds = [{value.name: rng.standard_normal(value.shape, np.float32)} for _ in range(images)]
    return np.stack([session.run(None, feed)[0].ravel() for feed in feeds])


def in_the_old_spelling(name, model):
    """Return the light model as it is spelled, with the weights of `model`."""
    old = onnx.load(FOLDER / f"light_{name}.onnx")
    nodes = [node for node in old.graph.node if node.op_type != "ConstantOfShape"]
    del old.graph.node[:]
    old.graph.node.extend(nodes)
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    kept = [tensor for tensor in old.graph.initializer if tensor.name not in weights]
    del old.graph.initializer[:]
    old.graph.initializer.extend([*kept, *weights.values()])
    del old.graph.input[:]
    old.graph.input.extend(model.graph.input)
    old.ir_version = model.ir_version
    return old


def test_there_are_light_models():
    assert {"resnet50", "squeezenet", "vgg19"} <= set(names())


@pytest.mark.search
@pytest.mark.parametrize("name", ["squeezenet", "shufflenet", "inception_v1", "densenet121"])
def test_operator_set_13_computes_what_the_light_model_computes(name):
    model = make(name)
    assert [opset.version for opset in model.opset_import] == [light_models.OPSET]
    np.testing.assert_allclose(run(model), run(in_the_old_spelling(name, model)), rtol=1e-5)


@pytest.mark.search
@pytest.mark.parametrize("name", ["squeezenet", "shufflenet", "resnet50"])
def test_outputs_are_not_saturated_and_depend_on_the_image(name):
    first, second = run(make(name), images=2)
    assert first.shape == (1000,) and first.sum() == pytest.approx(1, rel=1e-4)
    assert first.min() > 1e-6 and first.max() < 0.1
    assert np.abs(first - second).max() > 1e-3 * first.std()


@pytest.mark.search
@pytest.mark.parametrize("name", ["squeezenet", "shufflenet"])
def test_a_batch_computes_what_its_images_give_one_by_one(name):
    one, three = make(name), make(name, 3)
    assert one.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 1
    images = np.random.default_rng(1).standard_normal((3, 3, 224, 224), np.float32)
    feeds = {one.graph.input[0].name: images}
    (together,) = onnxruntime.InferenceSession(three.SerializeToString()).run(None, feeds)
    np.testing.assert_allclose(together.reshape(3, -1), run(one, images=3), rtol=1e-4)


def test_the_weights_are_seeded_initializers_and_the_image_is_the_only_input():
    model, again = make("squeezenet"), make("squeezenet")
    assert model.SerializeToString() == again.SerializeToString()
    assert "ConstantOfShape" not in Counter(node.op_type for node in model.graph.node)
    assert [value.name for value in model.graph.input] == ["data_0"]
    weights = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    # He: of 64 x 3 x 3 inputs each, and of a last layer that is smaller.
    assert weights["fire2/expand3x3_w_0"].std() == pytest.approx((2 / (16 * 9)) ** 0.5, rel=0.02)
    assert weights["conv10_w_0"].std() == pytest.approx(0.05 * (2 / 512) ** 0.5, rel=0.02)


def test_a_saved_network_is_as_large_as_it_says(tmp_path):
    made = save("squeezenet", str(tmp_path))
    assert made["path"] == str(tmp_path / "squeezenet.onnx")
    assert 0 < (tmp_path / "squeezenet.onnx").stat().st_size - made["weight_bytes"] < 20_000


def test_the_script_writes_what_it_is_asked_for(tmp_path, capsys):
    assert main([str(tmp_path), "squeezenet"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'squeezenet.onnx'}: 4.9 MB of weights\n"
    assert main([str(tmp_path), "squeezenet", "--batch", "2"]) == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path / 'squeezenet-batch2.onnx'}: 4.9 MB")
    with pytest.raises(SystemExit):
        main([str(tmp_path), "--batch", "0"])
    assert "a batch has one image at least, not 0" in capsys.readouterr().err
    with pytest.raises(SystemExit) as refusal:
        main([str(tmp_path), "resnet"])
    assert refusal.value.code == 2
    assert "no light model resnet; there are bvlc_alexnet, " in capsys.readouterr().err
