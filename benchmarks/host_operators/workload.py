"""Operators of topi on the host, beside the better of numpy and ONNX Runtime, one thread each.

refcomp's code is that of `schedule_llvm`, with fused multiply-adds by licence. ONNX Runtime runs a
model of one node, whose operands and result are bound to memory beforehand. Results are compared
before anything is timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnxruntime
from onnx import helper, numpy_helper

import refcomp
from benchmarks.fresh import call_fresh
from benchmarks.host_operators.pairs import PAIRS, Array, OnnxNode, Pair
from benchmarks.measure import figure_of, interleave
from benchmarks.report import Bar, Missing, Row, row_beside
from refcomp.topi.operator import find_operator
from refcomp.topi.schedules.llvm import schedule_llvm

_BAR = Bar(1.5, of="ratio")
_OPSET = 20


def measure(is_quick: bool) -> list[Row | Missing]:
    """Return a row for each pair."""
    rows: list[Row | Missing] = []
    for number, pair in enumerate(PAIRS):
        times = call_fresh(time_pair, threads=1, number=number, is_quick=is_quick)
        ours = times.pop("refcomp")
        peer = min(times, key=lambda name: figure_of(times[name]).median)
        rows.append(row_beside("host_operators", pair.title, ours, peer, times[peer], bar=_BAR))
    return rows


def time_pair(number: int, is_quick: bool) -> dict[str, list[float]]:
    """Return the seconds per call of refcomp and of each peer, after comparing their results."""
    pair = PAIRS[number]
    operands = _operands(pair)
    ours, call = _compiled(pair, operands)
    call()
    contenders: dict[str, Callable[[], object]] = {"refcomp": call}
    results = {}
    if pair.by_numpy is not None:
        results["numpy"] = np.empty_like(ours)
        contenders["numpy"] = _numpy_call(pair, operands, results["numpy"])
    if pair.onnx is not None:
        results["onnxruntime"] = np.empty_like(ours)
        contenders["onnxruntime"] = onnx_call(pair.onnx, operands, results["onnxruntime"])
    for name, result in results.items():
        contenders[name]()
        np.testing.assert_allclose(ours, result, rtol=2e-4, atol=2e-4, err_msg=name)
    # Of one thread that never waits, so that other processes' time does not count.
    return interleave(
        contenders,
        rounds=3 if is_quick else 15,
        least_s=0.005 if is_quick else 0.02,
        clock=time.process_time,
    )


def _operands(pair: Pair) -> list[Array]:
    rng = np.random.default_rng(0)
    # Positive, so that they may be variances and divisors.
    return [rng.uniform(0.25, 1.0, shape).astype(np.float32) for shape in pair.shapes]


def _compiled(pair: Pair, operands: Sequence[Array]) -> tuple[Array, Callable[[], object]]:
    """Return the array of the result, and refcomp's call that computes it."""
    operator = find_operator(pair.operator)
    inputs = [
        refcomp.placeholder(array.shape, array.dtype, name=f"p{place}")
        for place, array in enumerate(operands)
    ]
    output = operator.compute(*inputs, **pair.attributes)
    shape = tuple(extent.value for extent in output.shape)
    result = np.empty(shape, output.dtype.dtype)
    with refcomp.build_options(contract=True):
        module = refcomp.build(schedule_llvm([output]), [*inputs, output], "llvm", name="operator")
    return result, module.entry.bind(*operands, result)


def _numpy_call(pair: Pair, operands: Sequence[Array], out: Array) -> Callable[[], object]:
    by_numpy = pair.by_numpy
    assert by_numpy is not None
    return lambda: by_numpy(*operands, out=out)


def onnx_call(node: OnnxNode, operands: Sequence[Array], result: Array) -> Callable[[], object]:
    """Return the run of a model of one node, on one thread, that writes to `result`."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        _model(node, operands, result).SerializeToString(), options, ["CPUExecutionProvider"]
    )
    binding = session.io_binding()
    for place, array in enumerate(operands):
        if place not in node.weights:
            value = onnxruntime.OrtValue.ortvalue_from_numpy(array)
            binding.bind_ortvalue_input(f"p{place}", value)
    binding.bind_output("result", "cpu", 0, result.dtype.type, result.shape, result.ctypes.data)
    return lambda: session.run_with_iobinding(binding)


def _model(node: OnnxNode, operands: Sequence[Array], result: Array) -> Any:
    names = [f"p{place}" for place in range(len(operands))]
    held = [numpy_helper.from_array(operands[place], names[place]) for place in node.weights]
    inputs = [
        _value(name, operands[place])
        for place, name in enumerate(names)
        if place not in node.weights
    ]
    for place, integers in enumerate(node.integers):
        names.append(f"integers{place}")
        held.append(numpy_helper.from_array(np.array(integers, np.int64), names[-1]))
    made = helper.make_node(node.type, names, ["result"], **node.attributes)
    graph = helper.make_graph([made], "one_node", inputs, [_value("result", result)], held)
    opsets = [helper.make_opsetid("", _OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def _value(name: str, array: Array) -> Any:
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, kind, array.shape)
