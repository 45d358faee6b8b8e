#!/usr/bin/env python3
"""Seeds wrong kernels in a network, one at a time, and asks the debugger which node is wrong.

    benchmarks/seed_wrong_kernels.py MODEL.onnx... [--count 50] [--seed 0] [--json FILE]

The model is compiled as usual, with its kernels fused. Then one node of the compiled graph gets an
operator with a wrong te compute, such as one without the bias, and the graph is compiled again. The
numpy meaning stays right. If the node is inside of a fused one, the debugger has to name both.

A te compute that rounds too often is legal by its own bound, and is not found. So of a sum in f16,
only the code is wrong: the debugger gets the right graph with the wrong code. It then has to name
the kernel, and no node inside of it.

A wrong kernel whose output has the same bits as the right one's, such as a sum of which the lost
term is 0, is not counted: another one is drawn. So is one whose output differs, but lies within the
bound of the right kernel everywhere: rounding could give it, too. Such ones are listed apart, with
the greatest ratio of their difference to the bound.

Exit codes: 0 all are named, 1 one is missed, 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import refcomp as rc
from refcomp.foundation.errors import RefcompError
from refcomp.graph.builder import GraphRewriter
from refcomp.graph.compile import GraphModule, compile_nodes
from refcomp.graph.debug import DebugExecutor, find_divergence
from refcomp.graph.debug.bounds import bound_values
from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.graph.infer import FUSED
from refcomp.te.tensor import Tensor

Compute = Callable[..., Tensor]
Attributes = dict[str, Any]


@dataclass(frozen=True)
class Mistake:
    """A way to make a te compute wrong.

    Attributes:
        name: what the mistake is.
        applies: True for a node that can have it.
        wrong: takes the right compute and returns the wrong one.
    """

    name: str
    applies: Callable[[GraphNode], bool]
    wrong: Callable[[Compute], Compute]
    is_of_code: bool = False  # the te compute is right, and only the code that runs is wrong


@dataclass(frozen=True)
class Outcome:
    """The finding of the debugger for one wrong kernel."""

    model: str
    node: str  # the wrong one
    operator: str
    mistake: str
    kernel: str  # the compiled node that holds it
    named: str  # the kernel that the debugger named; "" if it named none
    inside: str  # the node inside of it that it named
    is_found: bool
    # The greatest difference from the right output, divided by the right kernel's bound. Where it
    # is at most 1, rounding could give the output, too, and the kernel is not counted.
    error_over_bound: float
    seconds: float  # to run the network and to find the kernel, without compiling it


def _shifted(result: Tensor) -> Tensor:
    """Return a tensor in which each element is the next one along the last axis."""
    last = result.shape[-1] - 1
    return rc.compute(
        result.shape, lambda *i: result[(*i[:-1], rc.minimum(i[-1] + 1, last))], name="shifted"
    )


def _off_by_one(compute: Compute) -> Compute:
    return lambda *inputs, **given: _shifted(compute(*inputs, **given))


def _no_bias(compute: Compute) -> Compute:
    return lambda data, weight, bias, **given: compute(data, weight, None, **given)


def _identity(compute: Compute) -> Compute:
    def wrong(data: Tensor, *rest: Tensor, **given: Any) -> Tensor:
        return rc.compute(data.shape, lambda *i: data[i], name="identity", tag="elementwise")

    return wrong


def _reversed_weight(compute: Compute) -> Compute:
    """Read the last axis of the weight backwards; of a square matrix, read its transpose."""

    def wrong(data: Tensor, weight: Tensor, *rest: Tensor, **given: Any) -> Tensor:
        shape = weight.shape
        last = shape[-1] - 1
        turned = rc.compute(shape, lambda *i: weight[(*i[:-1], last - i[-1])], name="turned")
        return compute(data, turned, *rest, **given)

    return wrong


def _lost_term(compute: Compute) -> Compute:
    """Leave the last products out: those of the last rows of the weight's second last axis."""

    def wrong(data: Tensor, weight: Tensor, *rest: Tensor, **given: Any) -> Tensor:
        last = weight.shape[-2] - 1
        cut = rc.compute(
            weight.shape,
            lambda *i: rc.if_then_else(i[-2] < last, weight[i], rc.const(0, weight.dtype)),
            name="cut",
        )
        return compute(data, cut, *rest, **given)

    return wrong


def _moved_padding(compute: Compute) -> Compute:
    def wrong(*inputs: Tensor, **given: Any) -> Tensor:
        top, left, bottom, right = given["padding"]
        given["padding"] = (top + 1, left + 1, bottom - 1, right - 1)
        return compute(*inputs, **given)

    return wrong


def _swapped_axes(compute: Compute) -> Compute:
    def wrong(*inputs: Tensor, **given: Any) -> Tensor:
        result = compute(*inputs, **given)
        return rc.compute(
            result.shape,
            lambda *i: result[(*i[:-3], i[-2], i[-3], i[-1])],
            name="swapped",
        )

    return wrong


def _scaled(compute: Compute) -> Compute:
    def wrong(*inputs: Tensor, **given: Any) -> Tensor:
        result = compute(*inputs, **given)
        factor = rc.const(1.001, result.dtype)
        return rc.compute(result.shape, lambda *i: result[i] * factor, name="scaled")

    return wrong


def _narrow_sum(compute: Compute) -> Compute:
    """Add up in f16, and read the factors as f16."""

    def wrong(*inputs: Tensor, **given: Any) -> Tensor:
        dtype = inputs[0].dtype
        narrow = (None if one is None else _converted(one, "float16") for one in inputs)
        return _converted(compute(*narrow, **given), str(dtype))

    return wrong


def _converted(tensor: Tensor, dtype: str) -> Tensor:
    name = f"{tensor.name}_{dtype}"
    return rc.compute(tensor.shape, lambda *i: tensor[i].astype(dtype), name=name)


def _wrong_sign(compute: Compute) -> Compute:
    def wrong(a: Tensor, b: Tensor, **given: Any) -> Tensor:
        negated = rc.compute(b.shape, lambda *i: -b[i], name="negated", tag="elementwise")
        return compute(a, negated, **given)

    return wrong


_BLOCKED = ("conv2d_nchwc", "depthwise_conv2d_nchwc", "conv2d_nchwc_winograd")
_PRODUCTS = ("conv2d", "conv2d_nhwc", "gemm", "matmul", "dense_pack", *_BLOCKED)


def _is_product(node: GraphNode) -> bool:
    return node.operator in _PRODUCTS


def _has_bias(node: GraphNode) -> bool:
    return _is_product(node) and len(node.inputs) > 2 and node.inputs[2] is not None


def _has_late_padding(node: GraphNode) -> bool:
    padding = node.attributes.get("padding")
    return isinstance(padding, tuple) and len(padding) == 4 and min(padding[2:]) > 0


def _has_square_images(node: GraphNode) -> bool:
    shape = node.outputs[0].shape
    is_last = node.operator in ("conv2d_nhwc", *_BLOCKED)
    return is_last and shape[-2] == shape[-3] and shape[-2] != 1


def _has_rows(node: GraphNode) -> bool:
    return _is_product(node) and node.inputs[1] is not None and len(node.inputs[1].shape) > 1


def _is_activation(node: GraphNode) -> bool:
    return node.operator in ("relu", "clip", "sigmoid", "tanh")


def _has_one_float(node: GraphNode) -> bool:
    shape = node.outputs[0].shape
    return len(node.outputs) == 1 and node.outputs[0].dtype.is_float and bool(shape)


def _is_inexact(node: GraphNode) -> bool:
    """Return True for operators that round their results."""
    if node.operator == "conv2d_nchwc_winograd":  # of f32 and f64 only
        return False
    return _is_product(node) or node.operator in ("sigmoid", "tanh", "add", "multiply")


MISTAKES = (
    Mistake("off by one", _has_one_float, _off_by_one),
    Mistake("missing bias", _has_bias, _no_bias),
    Mistake("lost activation", _is_activation, _identity),
    Mistake("reversed weight", _has_rows, _reversed_weight),
    Mistake("lost term of the sum", _has_rows, _lost_term),
    Mistake("moved padding", _has_late_padding, _moved_padding),
    Mistake("swapped axes", _has_square_images, _swapped_axes),
    Mistake("factor of 1.001", _has_one_float, _scaled),
    Mistake("sum in f16", _is_inexact, _narrow_sum, is_of_code=True),
    Mistake("wrong sign", lambda node: node.operator in ("add", "multiply"), _wrong_sign),
)


def members(graph: Graph) -> Iterator[tuple[GraphNode, GraphNode]]:
    """Yield each node of a compiled graph, those inside of fused nodes too, with its kernel."""
    for node in graph.nodes:
        inner = node.subgraphs[0].nodes if node.operator == FUSED else (node,)
        yield from ((member, node) for member in inner)


def with_mistake(graph: Graph, member: GraphNode, mistake: Mistake) -> Graph:
    """Return the graph in which one node computes something wrong."""
    operator = rc.graph.find_operator(member.operator)
    name = f"wrong_{operator.name}_{mistake.name.replace(' ', '_').replace('.', '_')}"
    if name not in rc.graph.operator_names():
        wrong = replace(operator, name=name, compute=mistake.wrong(operator.compute))
        rc.graph.register_operator(wrong)
    return _replaced(graph, member, name)


def _replaced(graph: Graph, member: GraphNode, operator: str) -> Graph:
    rewriter = GraphRewriter(graph)
    for node in graph.nodes:
        inside = [m for sub in node.subgraphs for m in sub.nodes]
        if node is not member and member not in inside:
            rewriter.copy(node)
            continue
        subgraphs = [_replaced(sub, member, operator) for sub in node.subgraphs]
        kind = operator if node is member else node.operator
        names = [value.name for value in node.outputs]
        inputs = rewriter.mapped(node.inputs)
        made = rewriter.nodes(kind, inputs, node.attributes, names, subgraphs)
        rewriter.values.update(zip(node.outputs, made, strict=True))
    return rewriter.finish_copy()


def seeded(
    model: str,
    right: GraphModule,
    feeds: Mapping[str, np.ndarray[Any, Any]],
    count: int,
    seed: int,
) -> Iterator[Outcome]:
    """Yield the outcomes of `count` wrong kernels of a compiled network, and of legal ones between.

    Args:
        model: the name of the network.
        right: the compiled network.
        feeds: its inputs by name.
        count: how many wrong kernels to seed.
        seed: of the choice.
    """
    rng = np.random.default_rng(seed)
    executor = DebugExecutor(right)
    executor.run(feeds)
    places = list(members(right.graph))
    choices = [(*place, mistake) for mistake in MISTAKES for place in places]
    choices = [choice for choice in choices if choice[2].applies(choice[0])]
    # Each mistake in turn, so that rare ones are not drowned by those that fit every node.
    drawn = [choices[k] for k in rng.permutation(len(choices))]
    by_mistake = {m.name: [c for c in drawn if c[2] is m] for m in MISTAKES}
    done = 0
    while done < count and any(by_mistake.values()):
        for name in by_mistake:
            if done == count or not by_mistake[name]:
                continue
            member, kernel, mistake = by_mistake[name].pop()
            outcome = _outcome(model, executor, feeds, member, kernel, mistake)
            if outcome is not None:
                done += outcome.error_over_bound > 1
                yield outcome


def _outcome(
    model: str,
    right: DebugExecutor,
    feeds: Mapping[str, np.ndarray[Any, Any]],
    member: GraphNode,
    kernel: GraphNode,
    mistake: Mistake,
) -> Outcome | None:
    """Return what the debugger says of one wrong kernel; None if the mistake changes nothing."""
    try:
        graph = with_mistake(right.module.graph, member, mistake)
        module = compile_nodes(graph, right.module.target)
        if mistake.is_of_code:
            module = _with_code(right.module, module)
    except RefcompError as error:
        print(f"{member.name}: {mistake.name} does not compile: {error.what}", file=sys.stderr)
        return None
    start = time.perf_counter()
    executor = DebugExecutor(module)
    executor.run(feeds)
    if _has_same_bits(right, executor, kernel):
        return None
    found = find_divergence(executor)
    seconds = time.perf_counter() - start
    named = "" if found.first is None else found.first.name
    inside = "" if found.inside is None else found.inside.name
    is_found = named == kernel.name
    if kernel.operator == FUSED:
        is_found = is_found and inside == ("" if mistake.is_of_code else member.name)
    return Outcome(
        model=model,
        node=member.name,
        operator=member.operator,
        mistake=mistake.name,
        kernel=kernel.name,
        named=named,
        inside=inside,
        is_found=is_found,
        error_over_bound=_error_over_bound(right, executor, kernel),
        seconds=round(seconds, 3),
    )


def _with_code(right: GraphModule, wrong: GraphModule) -> GraphModule:
    """Return a module with the right graph, and the functions of another one."""
    values = {value.name: value for value in right.graph.values()}
    kernels = []
    for kernel in wrong.kernels:
        inputs = tuple(values[value.name] for value in kernel.inputs)
        outputs = tuple(values[value.name] for value in kernel.outputs)
        kernels.append(replace(kernel, inputs=inputs, outputs=outputs))
    return replace(right, kernels=tuple(kernels), module=wrong.module)


def _has_same_bits(right: DebugExecutor, wrong: DebugExecutor, kernel: GraphNode) -> bool:
    name = kernel.outputs[0].name
    arrays = [one.outputs[name].asnumpy() for one in (right, wrong)]
    return arrays[0].tobytes() == arrays[1].tobytes()


def _error_over_bound(right: DebugExecutor, wrong: DebugExecutor, kernel: GraphNode) -> float:
    """Return the greatest difference of a kernel's outputs, divided by the right kernel's bound."""
    graph = right.module.graph
    known = {}
    for value in kernel.reads:
        made = right.inputs if value in graph.inputs else right.outputs
        is_constant = value in graph.constants
        known[value] = graph.constants[value] if is_constant else made[value.name].asnumpy()
    (bounded, *_) = bound_values([kernel], known, kernel.outputs, right.symbols)
    name = kernel.outputs[0].name
    difference = np.abs(wrong.outputs[name].asnumpy() - bounded.value)
    with np.errstate(all="ignore"):
        ratios = np.where(difference == 0, 0, difference / bounded.error)
    return float(np.nan_to_num(ratios, nan=np.inf).max())


def feeds_of(graph: Graph, seed: int) -> dict[str, np.ndarray[Any, Any]]:
    """Return random inputs for a graph; symbolic extents are 1."""
    rng = np.random.default_rng(seed)

    def shape(value: Value) -> list[int]:
        return [dim if isinstance(dim, int) else 1 for dim in value.shape]

    return {v.name: rng.uniform(-1, 1, shape(v)).astype(np.float32) for v in graph.inputs}


def main(argv: Sequence[str]) -> int:
    """Seed wrong kernels in the models of `argv`, and print what is found of each."""
    parser = argparse.ArgumentParser(description="Seeds wrong kernels, and asks the debugger.")
    parser.add_argument("models", nargs="+", metavar="MODEL.onnx")
    parser.add_argument("--count", type=int, default=50, help="wrong kernels of each model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", metavar="FILE", help="the file to write the outcomes to")
    asked = parser.parse_args(argv)
    outcomes: list[Outcome] = []
    legal: list[Outcome] = []
    for path in asked.models:
        graph = rc.from_onnx(path)
        module = rc.compile_graph(graph)
        feeds = feeds_of(graph, asked.seed)
        for outcome in seeded(Path(path).stem, module, feeds, asked.count, asked.seed):
            verdict = "named" if outcome.is_found else f"MISSED, named {outcome.named!r}"
            if outcome.error_over_bound > 1:
                outcomes.append(outcome)
            else:
                legal.append(outcome)
                verdict = f"not counted, {outcome.error_over_bound:.2f} of its bound"
            print(
                f"{outcome.model} {outcome.node} ({outcome.operator}), {outcome.mistake}: "
                f"{verdict} in {outcome.seconds:.1f} s",
                flush=True,
            )
    named = sum(outcome.is_found for outcome in outcomes)
    slowest = max((outcome.seconds for outcome in outcomes), default=0.0)
    print(f"{named} of {len(outcomes)} named; the slowest took {slowest:.1f} s")
    if asked.json:
        names = " ".join(Path(path).name for path in asked.models)
        command = (
            f"benchmarks/seed_wrong_kernels.py {names} --count {asked.count} --seed {asked.seed}"
        )
        report = {
            "command": command,
            "named": named,
            "seeded": len(outcomes),
            "slowest_s": slowest,
            "outcomes": [asdict(outcome) for outcome in outcomes],
            "within_bound": [asdict(outcome) for outcome in legal],
        }
        Path(asked.json).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0 if named == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
