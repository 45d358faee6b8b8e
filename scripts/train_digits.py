"""Train the digit network on scikit-learn's handwritten digits and store it as ONNX.

Needs torch, scikit-learn, onnx and onnxruntime; using the network needs none of the first two.
Ensures that scripts/data/digits holds digits.onnx (batch normalization kept as nodes, batch
dimension N), digits_test.npz (450 images not trained on) and digits_train.npz (the others),
onnxruntime and torch agreeing.
"""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

SEED, EPOCHS, BATCH = 0, 60, 64
FOLDER = Path(__file__).parent / "data" / "digits"


def network() -> nn.Sequential:
    """[n, 1, 8, 8] f32 in 0..1 -> [n, 10] f32 logits; export() follows it layer by layer."""
    convs = *convolve(1, 16), *convolve(16, 32), nn.MaxPool2d(2), *convolve(32, 32)
    return nn.Sequential(*convs, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


def convolve(channels: int, filters: int) -> tuple[nn.Module, ...]:
    """3x3 convolution that keeps height and width, batch normalization, ReLU."""
    return nn.Conv2d(channels, filters, 3, padding=1), nn.BatchNorm2d(filters), nn.ReLU()


def split_digits() -> list[np.ndarray]:
    """Train images, test images, train labels, test labels; stratified by label."""
    digits = load_digits()
    images = (digits.images[:, None] / 16).astype(np.float32)
    labels = digits.target.astype(np.int64)
    return train_test_split(images, labels, test_size=450, stratify=labels, random_state=SEED)


def train(images: torch.Tensor, labels: torch.Tensor) -> nn.Sequential:
    """Return a network in inference mode, trained by Adam with a one-cycle learning rate."""
    net = network().train()
    adam = torch.optim.Adam(net.parameters(), weight_decay=1e-4)
    steps = EPOCHS * -(-len(images) // BATCH)
    rate = torch.optim.lr_scheduler.OneCycleLR(adam, max_lr=1e-2, total_steps=steps)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(images)).split(BATCH):
            adam.zero_grad()
            nn.functional.cross_entropy(net(images[batch]), labels[batch]).backward()
            adam.step()
            rate.step()
    return net.eval()


# Per torch layer: ONNX operator, attributes, and its parameters in the operator's order.
OPERATORS = {
    nn.Conv2d: ("Conv", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, "weight bias"),
    nn.BatchNorm2d: ("BatchNormalization", {}, "weight bias running_mean running_var"),
    nn.ReLU: ("Relu", {}, ""),
    nn.MaxPool2d: ("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]}, ""),
    nn.AdaptiveAvgPool2d: ("GlobalAveragePool", {}, ""),
    nn.Flatten: ("Flatten", {"axis": 1}, ""),
    nn.Linear: ("Gemm", {"transB": 1}, "weight bias"),
}


def export(net: nn.Sequential) -> onnx.ModelProto:
    """Return the network with a softmax behind it, one ONNX node per torch layer, in order."""
    nodes, weights, value = [], [], "image"
    for place, layer in enumerate(net):
        operator, attributes, names = OPERATORS[type(layer)]
        own = [f"{operator}_{place}.{name}" for name in names.split()]
        arrays = (getattr(layer, name).detach().numpy() for name in names.split())
        weights += map(numpy_helper.from_array, arrays, own)
        inputs, value = [value, *own], f"{operator}_{place}"
        nodes.append(helper.make_node(operator, inputs, [value], name=value, **attributes))
    nodes.append(helper.make_node("Softmax", [value], ["probability"], name="Softmax", axis=1))
    image = helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, ["N", 1, 8, 8])
    result = helper.make_tensor_value_info("probability", onnx.TensorProto.FLOAT, ["N", 10])
    graph = helper.make_graph(nodes, "digits", [image], [result], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


if __name__ == "__main__":
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # the order of sums, and with it the weights, depend on the threads
    train_images, images, train_labels, labels = split_digits()
    net = train(torch.from_numpy(train_images), torch.from_numpy(train_labels))
    model = export(net)
    onnx.checker.check_model(model, full_check=True)
    (got,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"image": images})
    expected = net(torch.from_numpy(images)).softmax(1).detach().numpy()
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5)
    onnx.save(model, FOLDER / "digits.onnx")
    np.savez_compressed(FOLDER / "digits_test.npz", image=images, label=labels)
    shades, classes = (train_images * 16).astype(np.uint8), train_labels.astype(np.uint8)
    np.savez_compressed(FOLDER / "digits_train.npz", image=shades, label=classes)
    print(f"accuracy {np.mean(got.argmax(1) == labels):.4f}, off by {np.abs(got - expected).max()}")
