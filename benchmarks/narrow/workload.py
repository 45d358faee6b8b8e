"""Numbers of 8 and 16 bits on the host: layers and networks in integers, and products of floats.

Convolutions of 8-bit integers and quantized networks run beside ONNX Runtime, one thread each.
Weights have 7 bits, as ONNX Runtime recommends for processors without VNNI: there, its sums of
8-bit weights saturate. Products of f16 and bf16 run beside refcomp's own of f32.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import refcomp
from benchmarks.fresh import call_fresh
from benchmarks.inference.contenders import load_onnxruntime
from benchmarks.light_models import make
from benchmarks.measure import interleave
from benchmarks.networks.contenders import image_of
from benchmarks.report import Bar, Missing, Row, row_beside
from refcomp.graph.optimize import STEPS

Array = np.ndarray[Any, Any]
Run = Callable[[], Array]

_LAYER_BAR = Bar(1.0, of="ratio")
_MATRIX_BAR = Bar(0.7, of="ratio")  # a product of one row, which reads half the bytes
_NETWORKS = ("squeezenet", "resnet50")
_FORMS = ("qdq", "qoperator")
_OPSET = 17


@dataclass(frozen=True, slots=True)
class Layer:
    """A quantized convolution of one image, whose border keeps the size of an odd kernel."""

    channels: int
    outs: int
    size: int
    kernel: int
    groups: int = 1

    @property
    def title(self) -> str:
        """Return the words for the layer in the table."""
        alone = f", {self.groups} groups" if self.groups > 1 else ""
        pixels = f"{self.size}x{self.size}"
        kernel = f"{self.kernel}x{self.kernel}"
        return f"QLinearConv {kernel}, {self.channels} -> {self.outs} at {pixels}{alone}"


LAYERS = (
    Layer(256, 64, 56, 1),
    Layer(64, 64, 56, 3),
    Layer(256, 256, 14, 3),
    Layer(1024, 256, 14, 1),
    Layer(96, 96, 56, 3, groups=96),
)
# Rows, and the dtype of a product with a matrix of as many rows as columns.
PRODUCTS = tuple(
    (rows, size, dtype)
    for rows, size in ((512, 512), (1, 4096))
    for dtype in ("float16", "bfloat16")
)


def measure(is_quick: bool) -> list[Row | Missing]:
    """Return a row for each layer, each network and form, and each product."""
    rows: list[Row | Missing] = []
    for number, layer in enumerate(LAYERS):
        times = call_fresh(time_layer, threads=1, number=number, is_quick=is_quick)
        rows.append(_row(layer.title, times, bar=_LAYER_BAR))
    for name in _NETWORKS[:1] if is_quick else _NETWORKS:
        for form in _FORMS:
            times = call_fresh(time_network, threads=1, name=name, form=form, is_quick=is_quick)
            rows.append(_row(f"{name}, 8 bits, {form}", times, bar=_LAYER_BAR))
    for number, (count, size, dtype) in enumerate(PRODUCTS):
        times = call_fresh(time_product, threads=1, number=number, is_quick=is_quick)
        title = f"matmul {count}x{size} @ {size}x{size} of {dtype}"
        rows.append(_row(title, times, bar=_MATRIX_BAR if count == 1 else None))
    return rows


def _row(title: str, times: dict[str, list[float]], bar: Bar | None) -> Row:
    ours = times.pop("refcomp")
    ((peer, theirs),) = times.items()
    return row_beside("narrow", title, ours, peer, theirs, bar=bar)


def _interleave(runs: dict[str, Run], is_quick: bool) -> dict[str, list[float]]:
    # Of one thread that never waits, so that other processes' time does not count.
    return interleave(
        runs,
        rounds=3 if is_quick else 15,
        least_s=0.005 if is_quick else 0.05,
        clock=time.process_time,
    )


def time_layer(number: int, is_quick: bool) -> dict[str, list[float]]:
    """Return the seconds of a layer on both contenders, whose results differ by one quantum."""
    model = layer_model(LAYERS[number])
    (value,) = model.graph.input
    shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
    data = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    with tempfile.TemporaryDirectory(prefix="refcomp-bench-") as folder:
        path = f"{folder}/layer.onnx"
        onnx.save(model, path)
        runs = {"refcomp": _compiled(path, data, None), "onnxruntime": _session(path, data)}
    ours, theirs = (run().astype(np.int32) for run in runs.values())
    assert np.abs(ours - theirs).max() <= 1
    return _interleave(runs, is_quick)


def layer_model(layer: Layer) -> onnx.ModelProto:
    """Return a model of one QLinearConv with a scale for each output channel."""
    rng = np.random.default_rng(1)
    border = layer.kernel // 2
    shape = (layer.outs, layer.channels // layer.groups, layer.kernel, layer.kernel)
    held = {
        "x_scale": np.float32(0.05),
        "x_zero": np.uint8(120),
        "w": rng.integers(-64, 65, shape).astype(np.int8),
        "w_scale": rng.uniform(0.001, 0.01, layer.outs).astype(np.float32),
        "w_zero": np.zeros(layer.outs, np.int8),
        "y_scale": np.float32(0.2),
        "y_zero": np.uint8(100),
        "bias": rng.integers(-5000, 5000, layer.outs).astype(np.int32),
    }
    node = helper.make_node(
        "QLinearConv", ["x", *held], ["y"], pads=[border] * 4, group=layer.groups
    )
    pixels = [layer.size, layer.size]
    graph = helper.make_graph(
        [node],
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [1, layer.channels, *pixels])],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, [1, layer.outs, *pixels])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in held.items()],
    )
    opsets = [helper.make_opsetid("", _OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def time_network(name: str, form: str, is_quick: bool) -> dict[str, list[float]]:
    """Return the seconds of a quantized network on both contenders, whose results are near."""
    with tempfile.TemporaryDirectory(prefix="refcomp-bench-") as folder:
        path = quantized(name, form, Path(folder))
        passes = None
        if form == "qdq":
            names = [step.name for step in STEPS]
            place = names.index("fold_constants")
            passes = [*names[:place], "convert_quantized", *names[place:]]
        image = image_of(refcomp.from_onnx(path).inputs[0].shape)
        ours = _compiled(path, image, passes)
        runs = {"refcomp": ours, "onnxruntime": load_onnxruntime(path, 1)}
        first, second = (run() for run in runs.values())
        np.testing.assert_allclose(first, second, rtol=0, atol=0.01 * np.abs(second).max())
        return _interleave(runs, is_quick)


def quantized(name: str, form: str, folder: Path) -> str:
    """Return the path of a light model in 8 bits, calibrated on seeded images."""
    from onnxruntime import quantization  # noqa: PLC0415 (slow to import)
    from onnxruntime.quantization.shape_inference import quant_pre_process  # noqa: PLC0415

    source, prepared, result = (str(folder / f"{part}.onnx") for part in ("f32", "ready", form))
    model = make(name)
    onnx.save(model, source)
    quant_pre_process(source, prepared, skip_symbolic_shape=True)
    formats = quantization.QuantFormat
    quantization.quantize_static(
        prepared,
        result,
        _Images(model.graph.input[0]),
        quant_format=formats.QDQ if form == "qdq" else formats.QOperator,
        op_types_to_quantize=None if form == "qdq" else ["Conv", "MatMul"],
        per_channel=True,
        reduce_range=True,
        activation_type=quantization.QuantType.QUInt8,
        weight_type=quantization.QuantType.QInt8,
    )
    return result


class _Images:
    """Seeded images, one after another, for the calibration."""

    def __init__(self, value: onnx.ValueInfoProto, count: int = 3) -> None:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        rng = np.random.default_rng(1)
        self._left = [
            {value.name: rng.standard_normal(shape).astype(np.float32)} for _ in range(count)
        ]

    def get_next(self) -> dict[str, Array] | None:
        return self._left.pop() if self._left else None


def time_product(number: int, is_quick: bool) -> dict[str, list[float]]:
    """Return the seconds of a product with a constant matrix: narrow, and of f32."""
    rows, size, dtype = PRODUCTS[number]
    kinds = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
    rng = np.random.default_rng(0)
    data = (rng.integers(-8, 9, (rows, size)) / 8).astype(np.float32)
    matrix = (rng.integers(-8, 9, (size, size)) / 8).astype(np.float32)
    kind = kinds[dtype]
    runs = {
        "refcomp": _product(data.astype(kind), matrix.astype(kind), dtype),
        "refcomp, f32": _product(data, matrix, "float32"),
    }
    # Sums of multiples of 1/64 are exact.
    np.testing.assert_array_equal(*(run() for run in runs.values()))
    return _interleave(runs, is_quick)


def _product(data: Array, matrix: Array, dtype: str) -> Run:
    builder = refcomp.graph.GraphBuilder("product")
    x = builder.input("x", dtype, data.shape)
    attributes = {} if dtype == "float32" else {"out_dtype": "float32"}
    product = builder.node("matmul", [x, builder.constant("w", matrix)], attributes)
    return _executor(builder.finish([product]), data, None)


def _compiled(path: str, data: Array, passes: Sequence[str] | None) -> Run:
    return _executor(refcomp.from_onnx(path), data, passes)


def _executor(graph: Any, data: Array, passes: Sequence[str] | None) -> Run:
    executor = refcomp.GraphExecutor(refcomp.compile_graph(graph, "llvm", passes=passes))
    feeds = {graph.inputs[0].name: data}
    return lambda: executor.run(feeds)[0].asnumpy()


def _session(path: str, data: Array) -> Run:
    import onnxruntime  # noqa: PLC0415 (not needed for products)

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"x": data})[0]
