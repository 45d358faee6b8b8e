"""MobileNetV2 with weights for ImageNet: what a photograph shows. 3.5 million weights.

The package holds PyTorch's weights, from which the graph is written here. It is judged in three
forms: as f32; and quantized to 8 bits by ONNX Runtime, as QDQ (each operator between
DequantizeLinear and QuantizeLinear) and as QOperator (QLinearConv and QLinearMatMul). Before
quantizing, normalizations are folded into convolutions, and the Gemm becomes MatMul and Add. As
QOperator only convolutions and products are quantized: for others ONNX has no such operator.

Source: M. Sandler et al., MobileNetV2: Inverted Residuals and Linear Bottlenecks (2018);
torchvision, models/mobilenetv2.py.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx
from PIL import Image

from benchmarks.real_models.network import Answer, Array, Feeds, Run
from benchmarks.real_models.onnx_writer import OnnxWriter
from benchmarks.real_models.weight_files import read_torch

PACKAGE = "mobilenet"
LABELS = Path(__file__).with_name("imagenet_classes.txt")
# The class of each photograph that is asked for.
CLASSES = {"coffee": "espresso", "camera": "tripod", "motorcycle": "moped", "china": "palace"}
FORMS = ("float", "qdq", "qoperator")
# Rows of the paper's table 2: factor of expansion, channels, repetitions, stride of the first.
_BLOCKS = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
_EPSILON = 1e-5
_SIDE, _RESIZED, _SMALL_SIDE = 224, 256, 64  # pixels
_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's colours


def models(folder: Path) -> dict[str, bytes]:
    """Return the models of `FORMS`: `image` f32 [n, 3, 224, 224] -> `logits` f32 [n, 1000]."""
    weights = read_weights(folder)
    folded = write_network(weights, folds=True)
    return {"float": write_network(weights, folds=False)} | {
        form: quantize(folded, form) for form in FORMS[1:]
    }


def judge(_folder: Path, run: Run) -> list[Answer]:
    """Ask each form what each photograph shows."""
    labels = read_labels()
    answers = []
    for form in FORMS:
        for name, expected in CLASSES.items():
            (logits,) = run(form, {"image": to_input(read_photograph(name))})
            found = labels[int(logits[0].argmax())]
            answers.append(Answer.of(f"{form}: {name}", expected, found))
    return answers


def shrink(model: bytes, feeds: Feeds) -> tuple[bytes, Feeds]:
    """Return the model for pictures of 64x64, and the middle of the photograph."""
    proto = onnx.ModelProto.FromString(model)
    for dim in proto.graph.input[0].type.tensor_type.shape.dim[2:]:
        dim.dim_value = _SMALL_SIDE
    del proto.graph.value_info[:]
    start = (_SIDE - _SMALL_SIDE) // 2
    part = slice(start, start + _SMALL_SIDE)
    image = np.ascontiguousarray(feeds["image"][..., part, part])
    return proto.SerializeToString(), {"image": image}


def read_weights(folder: Path) -> dict[str, Array]:
    """Return PyTorch's parameters by their names, from the package's files in `folder`."""
    return read_torch((folder / "mobilenet_v2-b0353104.pth").read_bytes())


def read_labels() -> list[str]:
    """Return the names of ImageNet's 1000 classes."""
    return LABELS.read_text(encoding="utf-8").splitlines()


def read_photograph(name: str) -> Image.Image:
    """Return a photograph of scikit-image, or `china` of scikit-learn."""
    if name == "china":
        from sklearn.datasets import load_sample_image  # noqa: PLC0415 (a test's package)

        return Image.fromarray(load_sample_image("china.jpg"))
    from skimage import data  # noqa: PLC0415 (a test's package)

    picture = data.stereo_motorcycle()[0] if name == "motorcycle" else getattr(data, name)()
    return Image.fromarray(picture).convert("RGB")


def to_input(photograph: Image.Image) -> Array:
    """Return the middle of a photograph as [1, 3, 224, 224] f32, as the network was trained."""
    factor = _RESIZED / min(photograph.size)
    width, height = (round(side * factor) for side in photograph.size)
    resized = photograph.resize((width, height), Image.Resampling.BILINEAR)
    left, top = (width - _SIDE) // 2, (height - _SIDE) // 2
    pixels = np.asarray(resized.crop((left, top, left + _SIDE, top + _SIDE)), np.float32) / 255
    normalized = (pixels - np.float32(_MEAN)) / np.float32(_DEVIATION)
    return np.ascontiguousarray(normalized.transpose(2, 0, 1)[None])


def write_network(weights: Mapping[str, Array], *, folds: bool) -> bytes:
    """Return the network as a model.

    Args:
        weights: PyTorch's parameters by their names.
        folds: True to fold each normalization into its convolution, and to write no Gemm.
    """
    layers = _Layers(weights, folds)
    value = layers.convolve("features.0", "image", stride=2)
    place, before = 1, 32
    for factor, channels, repetitions, first_stride in _BLOCKS:
        for repetition in range(repetitions):
            stride = first_stride if repetition == 0 else 1
            block = f"features.{place}"
            made = layers.bottleneck(block, value, before * factor, stride)
            if stride == 1 and before == channels:
                made = layers.writer.node("Add", value, made, name=f"{block}.sum")
            value, before, place = made, channels, place + 1
    value = layers.convolve("features.18", value)
    writer = layers.writer
    value = writer.node("GlobalAveragePool", value, name="average")
    value = writer.node("Flatten", value, name="features", axis=1)
    layers.classify("classifier.1", value)
    shape = ["N", 3, _SIDE, _SIDE]
    return writer.finish("mobilenet_v2", {"image": (np.float32, shape)}, {"logits": ["N", 1000]})


class _Layers:
    """Writes layers by the names of their weights."""

    def __init__(self, weights: Mapping[str, Array], folds: bool) -> None:
        self.writer = OnnxWriter()
        self._weights = weights
        self._folds = folds

    def parameter(self, name: str) -> str:
        return self.writer.constant(name, self._weights[name])

    def classify(self, layer: str, value: str) -> None:
        """Write the last layer, which makes the logits."""
        weight, bias = f"{layer}.weight", self.parameter(f"{layer}.bias")
        if not self._folds:
            self.writer.node("Gemm", value, self.parameter(weight), bias, name="logits", transB=1)
            return
        turned = self.writer.constant(weight, np.ascontiguousarray(self._weights[weight].T))
        products = self.writer.node("MatMul", value, turned, name="products")
        self.writer.node("Add", products, bias, name="logits")

    def bottleneck(self, block: str, value: str, hidden: int, stride: int) -> str:
        """Expand the channels, filter each, and project to fewer channels."""
        place = 0
        if f"{block}.conv.2.weight" in self._weights and f"{block}.conv.3.weight" in self._weights:
            value = self.convolve(f"{block}.conv.0", value)
            place = 1
        value = self.convolve(f"{block}.conv.{place}", value, stride=stride, groups=hidden)
        own = f"{block}.conv.{place + 1}", f"{block}.conv.{place + 2}"
        return self._normalized(*own, value, stride=1, groups=1)

    def convolve(self, layer: str, value: str, *, stride: int = 1, groups: int = 1) -> str:
        """Convolve, normalize, and clip to 0..6."""
        made = self._normalized(f"{layer}.0", f"{layer}.1", value, stride=stride, groups=groups)
        low, high = (self.writer.constant(f"f32_{n}", np.float32(n)) for n in (0, 6))
        return self.writer.node("Clip", made, low, high, name=f"{layer}.clip")

    def _normalized(self, conv: str, norm: str, value: str, *, stride: int, groups: int) -> str:
        weight = self._weights[f"{conv}.weight"]
        side = weight.shape[-1]
        attributes = {
            "kernel_shape": [side, side],
            "pads": [side // 2] * 4,
            "strides": [stride, stride],
            "group": groups,
        }
        kinds = ("weight", "bias", "running_mean", "running_var")
        scale, shift, mean, variance = (self._weights[f"{norm}.{kind}"] for kind in kinds)
        if self._folds:
            factor = (scale / np.sqrt(variance + np.float32(_EPSILON))).astype(np.float32)
            scaled = weight * factor[:, None, None, None]
            own = (
                self.writer.constant(f"{conv}.weight", scaled),
                self.writer.constant(f"{conv}.bias", shift - mean * factor),
            )
            return self.writer.node("Conv", value, *own, name=conv, **attributes)
        own_weight = self.parameter(f"{conv}.weight")
        value = self.writer.node("Conv", value, own_weight, name=conv, **attributes)
        own_norm = [self.parameter(f"{norm}.{kind}") for kind in kinds]
        node = self.writer.node("BatchNormalization", value, *own_norm, name=norm)
        return node


def quantize(model: bytes, form: str) -> bytes:
    """Return a model in 8 bits, with scales for each channel, calibrated on the photographs."""
    from onnxruntime import quantization  # noqa: PLC0415 (slow to import)

    formats = quantization.QuantFormat
    with tempfile.TemporaryDirectory(prefix="refcomp-quantize-") as folder:
        source, result = Path(folder) / "float.onnx", Path(folder) / "quantized.onnx"
        source.write_bytes(model)
        quantization.quantize_static(
            source,
            result,
            _Photographs(),
            quant_format=formats.QDQ if form == "qdq" else formats.QOperator,
            op_types_to_quantize=None if form == "qdq" else ["Conv", "MatMul"],
            per_channel=True,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
        )
        return result.read_bytes()


class _Photographs:
    """The photographs, one after another, for the calibration."""

    def __init__(self) -> None:
        self._left = self._read()

    @staticmethod
    def _read() -> Iterator[dict[str, Array]]:
        for name in CLASSES:
            yield {"image": to_input(read_photograph(name))}

    def get_next(self) -> dict[str, Array] | None:
        return next(self._left, None)
