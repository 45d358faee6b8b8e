"""Train a network that enlarges pictures four times, and store it as ONNX.

Needs torch, scikit-image, onnx and onnxruntime; to use the network needs none of the first two.
The network is that of B. Lim et al., Enhanced Deep Residual Networks for Single Image
Super-Resolution (2017), with 37 convolutions. Here it adds its result to a bicubic enlargement,
so training begins at bicubic quality. It learns from photographs that scikit-image ships;
the astronaut is held out for `scripts/walkthroughs/enlarge_picture.py`.

Ensures that scripts/data/super_resolution/super_resolution.onnx exists, and that onnxruntime and
torch agree. Takes about 5 minutes on one core; `--steps N` trains for longer or shorter.
"""

# house: allow-long (the network, its training and its export are one recipe)
import argparse
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import helper, numpy_helper
from PIL import Image
from skimage import data
from torch import nn
from torch.nn import functional

SEED, STEPS, BATCH, PATCH, RATE = 0, 1600, 4, 24, 1e-3
SCALE, FEATURES, BLOCKS = 4, 32, 16
FOLDER = Path(__file__).parent / "data" / "super_resolution"
# Photographs and textures; the astronaut is not among them.
PICTURES = ("camera", "chelsea", "coffee", "rocket", "coins", "brick", "gravel", "retina")


class Residual(nn.Module):
    """Two convolutions with a ReLU between them, added to their input: [n, c, h, w]."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = convolution(), convolution()
        nn.init.normal_(self.second.weight, std=1e-3)  # a block begins close to the identity

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.second(functional.relu(self.first(x)))


def convolution(channels: int = FEATURES, filters: int = FEATURES) -> nn.Conv2d:
    """Return a 3x3 convolution that keeps height and width."""
    return nn.Conv2d(channels, filters, 3, padding=1)


class Enlarger(nn.Module):
    """[n, 3, h, w] f32 in 0..1 -> [n, 3, 4 h, 4 w]; `export` writes the same."""

    def __init__(self) -> None:
        super().__init__()
        self.head, self.body_end = convolution(3), convolution()
        self.body = nn.Sequential(*(Residual() for _ in range(BLOCKS)))
        self.twice = nn.ModuleList(convolution(filters=4 * FEATURES) for _ in range(2))
        self.tail = convolution(filters=3)
        nn.init.zeros_(self.tail.weight)
        nn.init.zeros_(self.tail.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        head = self.head(x)
        y = head + self.body_end(self.body(head))
        for layer in self.twice:
            y = functional.pixel_shuffle(layer(y), 2)
        bicubic = functional.interpolate(x, scale_factor=SCALE, mode="bicubic")
        return bicubic + self.tail(y)


def read_pictures() -> list[tuple[np.ndarray, np.ndarray]]:
    """Return pairs of u8 [h, w, 3]: the picture four times smaller, and the picture."""
    photographs = [Image.fromarray(getattr(data, name)()) for name in PICTURES]
    photographs.append(Image.fromarray(data.stereo_motorcycle()[0]))
    pairs = []
    for photograph in photographs:
        for divisor in (1, 2):  # the smaller one has sharper edges
            width, height = (n // divisor // SCALE * SCALE for n in photograph.size)
            large = photograph.convert("RGB").resize((width, height), Image.Resampling.BICUBIC)
            small = large.resize((width // SCALE, height // SCALE), Image.Resampling.BICUBIC)
            pairs.append((np.asarray(small), np.asarray(large)))
    return pairs


def draw_batch(pairs: list, rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Return random patches of random pictures, turned and mirrored: small ones and large ones."""
    patches = []
    for place in rng.integers(len(pairs), size=BATCH):
        small, large = pairs[place]
        top, left = (rng.integers(n - PATCH + 1) for n in small.shape[:2])
        turns, is_mirrored = rng.integers(4), rng.integers(2)
        for picture, factor in ((small, 1), (large, SCALE)):
            size = PATCH * factor
            patch = picture[top * factor :, left * factor :][:size, :size]
            patch = np.rot90(patch, turns)
            patches.append(patch[:, ::-1] if is_mirrored else patch)
    stacks = (np.stack(patches[k::2]).transpose(0, 3, 1, 2) for k in range(2))
    small, large = (torch.from_numpy(stack.astype(np.float32) / 255) for stack in stacks)
    return small, large


def train(steps: int) -> Enlarger:
    """Return a network trained by Adam with a one-cycle learning rate on absolute errors."""
    net = Enlarger().train()
    adam = torch.optim.Adam(net.parameters())
    rate = torch.optim.lr_scheduler.OneCycleLR(adam, max_lr=RATE, total_steps=steps)
    pairs, rng, start = read_pictures(), np.random.default_rng(SEED), time.perf_counter()
    total = 0.0
    for step in range(1, steps + 1):
        small, large = draw_batch(pairs, rng)
        adam.zero_grad()
        loss = functional.l1_loss(net(small), large)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        adam.step()
        rate.step()
        total += loss.item()
        if step % 100 == 0:
            seconds = time.perf_counter() - start
            print(f"{step} steps in {seconds:.0f} s: error {total / 100:.5f}", flush=True)
            total = 0.0
    return net.eval()


class Exporter:
    """Writes nodes one behind another; each method returns the name of its result."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def node(self, operator: str, inputs: list[str], name: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def convolve(self, layer: nn.Conv2d, x: str, name: str) -> str:
        own = [f"{name}.weight", f"{name}.bias"]
        for parameter, key in zip((layer.weight, layer.bias), own, strict=True):
            self.weights.append(numpy_helper.from_array(parameter.detach().numpy(), key))
        return self.node("Conv", [x, *own], name, kernel_shape=[3, 3], pads=[1, 1, 1, 1])


def export(net: Enlarger) -> onnx.ModelProto:
    """Return the network as a model with a batch N and pictures of any height and width."""
    to = Exporter()
    value = head = to.convolve(net.head, "picture", "head")
    for place, block in enumerate(net.body):
        first = to.convolve(block.first, value, f"block{place}.first")
        second = to.node("Relu", [first], f"block{place}.relu")
        second = to.convolve(block.second, second, f"block{place}.second")
        value = to.node("Add", [value, second], f"block{place}")
    value = to.node("Add", [head, to.convolve(net.body_end, value, "body_end")], "body")
    for place, layer in enumerate(net.twice):
        value = to.convolve(layer, value, f"twice{place}")
        value = to.node("DepthToSpace", [value], f"shuffle{place}", blocksize=2, mode="CRD")
    scales = np.array([1, 1, SCALE, SCALE], np.float32)
    to.weights.append(numpy_helper.from_array(scales, "scales"))
    bicubic = to.node("Resize", ["picture", "", "scales"], "bicubic", mode="cubic")
    to.node("Add", [bicubic, to.convolve(net.tail, value, "tail")], "enlarged")
    sizes = ["N", 3, "H", "W"]
    picture = helper.make_tensor_value_info("picture", onnx.TensorProto.FLOAT, sizes)
    shape = ["N", 3, "4*H", "4*W"]
    result = helper.make_tensor_value_info("enlarged", onnx.TensorProto.FLOAT, shape)
    graph = helper.make_graph(to.nodes, "super_resolution", [picture], [result], to.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main() -> None:
    """Train, export, and check the file."""
    parser = argparse.ArgumentParser(description="Train the network that enlarges pictures.")
    parser.add_argument("--steps", type=int, default=STEPS, help="training steps (%(default)s)")
    steps = parser.parse_args().steps
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # the order of sums, and with it the weights, depend on the threads
    net = train(steps)
    model = export(net)
    onnx.checker.check_model(model, full_check=True)
    picture = np.random.default_rng(SEED).random((1, 3, 20, 28), np.float32)
    (got,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"picture": picture})
    with torch.no_grad():
        expected = net(torch.from_numpy(picture)).numpy()
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5)
    FOLDER.mkdir(parents=True, exist_ok=True)
    onnx.save(model, FOLDER / "super_resolution.onnx")
    size = (FOLDER / "super_resolution.onnx").stat().st_size
    print(f"{size} bytes; onnxruntime and torch differ by at most {np.abs(got - expected).max()}")


if __name__ == "__main__":
    main()
