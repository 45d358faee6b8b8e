#!/usr/bin/env python3
"""Write gradients that PyTorch computes, which tests compare the gradients of graphs with.

Needs torch and numpy, not refcomp:

    python -m venv torch-venv
    torch-venv/bin/pip install torch==2.13.0
    torch-venv/bin/python tests/graph/gradients/generate_torch_cases.py

Ensures that tests/golden/gradients/torch.npz holds for each case its operands, heads and expected
gradients in f64, and as JSON its operator and attributes.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

PATH = Path(__file__).parents[2] / "golden" / "gradients" / "torch.npz"
ANY, POSITIVE, UNIT = (-2.0, 2.0), (0.3, 3.0), (0.1, 0.9)


@dataclass(frozen=True)
class Case:
    """An operator with operands, and the function of torch that means the same."""

    operator: str  # of refcomp
    function: Callable[..., Any]  # takes the operands; returns the first output
    operands: tuple[Any, ...]  # a shape of floats, or an array of integers
    attributes: dict[str, Any] = field(default_factory=dict)
    ranges: tuple[tuple[float, float], ...] = ()  # of each operand of floats; ANY by default


def unary(operator: str, function: Callable[..., Any], numbers: Any = ANY, **attributes: Any):
    """Return the case of an operator of one tensor."""
    return Case(operator, function, ((2, 3),), attributes, (numbers,))


def binary(operator: str, function: Callable[..., Any], numbers: Any = ANY):
    """Return the case of an operator of two tensors, of which one is repeated."""
    return Case(operator, function, ((2, 3), (3,)), {}, (numbers, numbers))


def images(operator: str, function: Callable[..., Any], *others: Any, **attributes: Any):
    """Return the case of an operator of images [2, 4, 5, 6]."""
    return Case(operator, function, ((2, 4, 5, 6), *others), attributes)


LABELS = np.array([2, 0, 3], np.int64)
ROWS = np.array([[1, 0], [3, 1]], np.int64)


def lstm_cell(x, h, c, w, r, b):  # ONNX's order of gates: input, output, forget, cell
    gates = x @ w.T + h @ r.T + b[:12] + b[12:]
    i, o, f, g = gates.split(3, 1)
    cell = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh()


def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


ELEMENTWISE = [
    unary("relu", torch.relu),
    unary("relu6", F.relu6),
    unary("leaky_relu", lambda x: F.leaky_relu(x, 0.2), alpha=0.2),
    unary("elu", lambda x: F.elu(x, 1.5), alpha=1.5),
    unary("celu", lambda x: F.celu(x, 1.5), alpha=1.5),
    unary("sigmoid", torch.sigmoid),
    unary("tanh", torch.tanh),
    unary("silu", F.silu),
    unary("mish", F.mish),
    unary("gelu", F.gelu),
    unary("gelu", lambda x: F.gelu(x, approximate="tanh"), approximate="tanh"),
    unary("softplus", F.softplus),
    unary("softsign", F.softsign),
    unary("log_sigmoid", F.logsigmoid),
    unary("clip", lambda x: x.clamp(-1, 1), minimum=-1.0, maximum=1.0),
    unary("exp", torch.exp),
    unary("expm1", torch.expm1),
    unary("log", torch.log, POSITIVE),
    unary("log1p", torch.log1p, POSITIVE),
    unary("sqrt", torch.sqrt, POSITIVE),
    unary("rsqrt", torch.rsqrt, POSITIVE),
    unary("reciprocal", torch.reciprocal, POSITIVE),
    unary("square", torch.square),
    unary("abs", torch.abs),
    unary("sin", torch.sin),
    unary("cos", torch.cos),
    unary("tan", torch.tan, UNIT),
    unary("asin", torch.asin, UNIT),
    unary("atan", torch.atan),
    unary("sinh", torch.sinh),
    unary("cosh", torch.cosh),
    unary("erf", torch.erf),
    Case("prelu", lambda x, s: F.prelu(x, s[:, 0]), ((2, 3, 4), (3, 1))),
    binary("add", torch.add),
    binary("subtract", torch.subtract),
    binary("multiply", torch.multiply),
    binary("divide", torch.divide, POSITIVE),
    binary("maximum", torch.maximum),
    binary("minimum", torch.minimum),
    binary("power", torch.pow, POSITIVE),
    binary("atan2", torch.atan2),
    binary("hypot", torch.hypot),
    binary("logaddexp", torch.logaddexp),
    binary("squared_difference", lambda a, b: (a - b) ** 2),
    Case("where", torch.where, (np.eye(2, 3, dtype=bool), (2, 3), (3,))),
]
REDUCTIONS = [
    unary("sum", lambda x: x.sum(1), axis=1),
    unary("mean", lambda x: x.mean(0, keepdim=True), axis=0, keepdims=True),
    unary("max", lambda x: x.amax(1), axis=1),
    unary("min", lambda x: x.amin(), keepdims=False),
    unary("prod", lambda x: x.prod(1), axis=1),
    unary("logsumexp", lambda x: x.logsumexp(1), axis=1),
    unary("sum_square", lambda x: (x * x).sum(1), axis=1),
    unary("variance", lambda x: x.var(1, correction=0), axis=1),
    unary("l2_norm", lambda x: x.norm(dim=1), axis=1),
    unary("cumsum", lambda x: x.cumsum(1), axis=1),
    unary("cumprod", lambda x: x.cumprod(1), axis=1),
]
MOVEMENT = [
    unary("reshape", lambda x: x.reshape(3, 2), shape=[3, 2]),
    unary("transpose", lambda x: x.permute(1, 0), axes=[1, 0]),
    unary("flip", lambda x: x.flip(1), axis=1),
    unary("roll", lambda x: x.roll(1, 1), shift=1, axis=1),
    unary("tril", torch.tril),
    unary("pad", lambda x: F.pad(x, (1, 2)), pad_before=[0, 1], pad_after=[0, 2]),
    unary("strided_slice", lambda x: x[:, 1:3], begin=[1], end=[3], axes=[1]),
    unary("tile", lambda x: x.tile(2, 1), reps=[2, 1]),
    unary("repeat", lambda x: x.repeat_interleave(2, 1), repeats=2, axis=1),
    Case("concatenate", lambda a, b: torch.cat([a, b], 1), ((2, 3), (2, 2)), {"axis": 1}),
    Case("stack", lambda a, b: torch.stack([a, b], 1), ((2, 3), (2, 3)), {"axis": 1}),
    Case("split", lambda x: x.split([1, 2], 1)[0], ((2, 3),), {"axis": 1, "sizes": [1, 2]}),
    Case("gather", lambda x, i: x.gather(1, i), ((2, 4), ROWS), {"axis": 1}),
    Case("index_select", lambda x, i: x.index_select(0, i), ((4, 3), LABELS), {"axis": 0}),
    Case("embedding", F.embedding, (ROWS, (4, 3))),
    Case("sort", lambda x: x.sort(1)[0], ((2, 5),), {"axis": 1}),
    Case("topk", lambda x: x.topk(2, 1)[0], ((2, 5),), {"k": 2, "axis": 1}),
]
PRODUCTS = [
    Case("matmul", torch.matmul, ((2, 3, 4), (4, 5))),
    Case("matmul", lambda a, b: a.T @ b.T, ((4, 3), (5, 4)), {"trans_a": True, "trans_b": True}),
    Case("dense", F.linear, ((3, 4), (5, 4), (5,))),
    Case("batch_matmul", lambda a, b: a @ b.mT, ((2, 3, 4), (2, 5, 4))),
    Case(
        "gemm",
        lambda a, b, c: 0.5 * (a @ b) + 2 * c,
        ((3, 4), (4, 5), (5,)),
        {"alpha": 0.5, "beta": 2.0},
    ),
    Case("outer", torch.outer, ((3,), (4,))),
    Case(
        "einsum",
        lambda a, b: torch.einsum("bij,bjk->bik", a, b),
        ((2, 3, 4), (2, 4, 5)),
        {"equation": "bij,bjk->bik"},
    ),
]
CONVOLUTIONS = [
    images(
        "conv2d",
        lambda x, w, b: F.conv2d(x, w, b, stride=(2, 1), padding=1),
        (3, 4, 3, 3),
        (3,),
        strides=[2, 1],
        padding=[1, 1, 1, 1],
    ),
    images(
        "conv2d",
        lambda x, w: F.conv2d(x, w, dilation=2, groups=2),
        (6, 2, 2, 2),
        dilation=[2, 2],
        groups=2,
    ),
    images("depthwise_conv2d_nchw", lambda x, w: depthwise(x, w), (4, 2, 3, 3)),
    images(
        "conv2d_transpose",
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1),
        (4, 3, 3, 3),
        (3,),
        strides=[2, 2],
        padding=[1, 1, 1, 1],
        output_padding=[1, 1],
    ),
    Case(
        "conv1d",
        lambda x, w: F.conv1d(x, w, stride=2, padding=1),
        ((2, 3, 7), (4, 3, 3)),
        {"strides": [2], "padding": [1, 1]},
    ),
    Case("conv3d", F.conv3d, ((1, 2, 3, 3, 4), (2, 2, 2, 2, 2))),
]


def depthwise(x, w):
    return F.conv2d(x, w.reshape(8, 1, 3, 3), groups=4)


POOLS = [
    images(
        "max_pool2d", lambda x: F.max_pool2d(x, 3, 2, 1), kernel=[3, 3], strides=[2, 2],
        padding=[1, 1, 1, 1],
    ),
    images(
        "avg_pool2d", lambda x: F.avg_pool2d(x, 2, 1), kernel=[2, 2],
    ),
    images("global_avg_pool2d", lambda x: x.mean((2, 3), keepdim=True)),
    images("adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, 2), output_size=[2, 2]),
    images("adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, 2), output_size=[2, 2]),
    Case("max_pool1d", lambda x: F.max_pool1d(x, 2), ((2, 3, 6),), {"kernel": [2], "strides": [2]}),
]  # fmt: skip
NORMALIZATIONS = [
    unary("softmax", lambda x: x.softmax(1), axis=1),
    unary("log_softmax", lambda x: x.log_softmax(1), axis=1),
    Case(
        "batch_norm",
        lambda x, g, b, m, v: (x - m[:, None]) / (v[:, None] + 1e-5).sqrt() * g[:, None]
        + b[:, None],
        ((2, 3, 4), (3,), (3,), (3,), (3,)),
        {},
        (ANY, ANY, ANY, ANY, POSITIVE),
    ),
    Case(
        "batch_norm_train",
        lambda x, g, b, m, v: F.batch_norm(x, m.detach(), v.detach(), g, b, training=True),
        ((4, 3, 2), (3,), (3,), (3,), (3,)),
        {},
        (ANY, ANY, ANY, ANY, POSITIVE),
    ),
    Case("layer_norm", lambda x, g, b: F.layer_norm(x, (4,), g, b), ((2, 3, 4), (4,), (4,))),
    Case("rms_norm", lambda x, g: F.rms_norm(x, (4,), g, 1e-5), ((2, 3, 4), (4,))),
    Case(
        "group_norm",
        lambda x, g, b: F.group_norm(x, 2, g, b),
        ((2, 4, 3), (4,), (4,)),
        {"num_groups": 2},
    ),
    Case(
        "instance_norm",
        lambda x, g, b: F.instance_norm(x, None, None, g, b),
        ((2, 3, 5), (3,), (3,)),
    ),
]  # fmt: skip
LOSSES = [
    Case("mse_loss", F.mse_loss, ((2, 3), (2, 3))),
    Case("l1_loss", F.l1_loss, ((2, 3), (2, 3))),
    Case("huber_loss", F.huber_loss, ((2, 3), (2, 3))),
    Case("smooth_l1_loss", F.smooth_l1_loss, ((2, 3), (2, 3))),
    Case("binary_cross_entropy", F.binary_cross_entropy, ((2, 3), (2, 3)), {}, (UNIT, UNIT)),
    Case(
        "binary_cross_entropy_with_logits",
        F.binary_cross_entropy_with_logits,
        ((2, 3), (2, 3)),
        {},
        (ANY, UNIT),
    ),
    Case("cross_entropy", F.cross_entropy, ((3, 4), LABELS)),
    Case(
        "cross_entropy",
        lambda x, t: F.cross_entropy(x, t, ignore_index=0, reduction="sum"),
        ((3, 4), LABELS),
        {"ignore_index": 0, "reduction": "sum"},
    ),
    Case(
        "cross_entropy",
        lambda x, t, w: F.cross_entropy(x, t, w.detach(), label_smoothing=0.25),
        ((3, 4), LABELS, (4,)),
        {"label_smoothing": 0.25},
        (ANY, POSITIVE),
    ),
    Case("nll_loss", F.nll_loss, ((3, 4), LABELS)),
]
LAYERS = [
    Case("lstm_cell", lstm_cell, ((2, 4), (2, 3), (2, 3), (12, 4), (12, 3), (24,))),
    Case("scaled_dot_product_attention", attention, ((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4))),
]
CASES = [
    *ELEMENTWISE,
    *REDUCTIONS,
    *MOVEMENT,
    *PRODUCTS,
    *CONVOLUTIONS,
    *POOLS,
    *NORMALIZATIONS,
    *LOSSES,
    *LAYERS,
]


def operands_of(case: Case, random: np.random.Generator) -> list[Any]:
    """Return a tensor for each operand; those of floats take part in the gradient."""
    ranges = list(case.ranges)
    tensors = []
    for operand in case.operands:
        if isinstance(operand, np.ndarray):
            tensors.append(torch.from_numpy(operand))
            continue
        low, high = ranges.pop(0) if ranges else ANY
        # Few digits compress well; with fewer, two elements of a window may be equal.
        numbers = np.round(random.uniform(low, high, operand), 6)
        tensors.append(torch.tensor(numbers, dtype=torch.float64, requires_grad=True))
    return tensors


def arrays_of(case: Case, number: int) -> dict[str, np.ndarray]:
    """Return operands, the head, and the gradients of a case, by name."""
    random = np.random.default_rng(number)
    tensors = operands_of(case, random)
    output = case.function(*tensors)
    head = np.round(random.uniform(-1, 1, tuple(output.shape)), 3)
    output.backward(torch.tensor(head, dtype=torch.float64))
    arrays = {f"{number}/head": head, f"{number}/output": output.detach().numpy()}
    for place, tensor in enumerate(tensors):
        arrays[f"{number}/operand{place}"] = tensor.detach().numpy()
        if tensor.requires_grad and tensor.grad is not None:
            arrays[f"{number}/gradient{place}"] = tensor.grad.numpy()
    return arrays


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, lr=0.1, betas=(0.8, 0.95), weight_decay=0.01),
}


def steps_of(name: str) -> dict[str, np.ndarray]:
    """Return a parameter before and after each of five steps, and the gradient of each step."""
    random = np.random.default_rng(0)
    slopes = np.round(random.uniform(-1, 1, (5, 3)), 3)
    parameter = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    optimizer = OPTIMIZERS[name]([parameter])
    after = [parameter.detach().numpy().copy()]
    for slope in slopes:
        optimizer.zero_grad()
        (parameter * torch.from_numpy(slope)).sum().backward()
        optimizer.step()
        after.append(parameter.detach().numpy().copy())
    return {f"{name}/slopes": slopes, f"{name}/parameters": np.stack(after)}


def main() -> None:
    """Write the file."""
    torch.set_num_threads(1)
    arrays: dict[str, np.ndarray] = {}
    for name in OPTIMIZERS:
        arrays |= steps_of(name)
    for number, case in enumerate(CASES):
        arrays |= arrays_of(case, number)
    listed = [{"operator": case.operator, "attributes": case.attributes} for case in CASES]
    arrays["cases"] = np.array(json.dumps(listed))
    PATH.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(PATH, allow_pickle=False, **arrays)
    operators = {case.operator for case in CASES}
    print(f"{len(CASES)} cases of {len(operators)} operators, {PATH.stat().st_size} bytes")


if __name__ == "__main__":
    main()
