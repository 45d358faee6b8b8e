"""What is timed of networks: equal results, the stages that each row counts, and the bars."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from benchmarks.fresh import call_fresh
from benchmarks.networks import workload
from benchmarks.networks.contenders import (
    image_of,
    peak_bytes,
    run_onnxruntime,
    run_refcomp,
)
from benchmarks.networks.workload import NetworkRuns, measure_network, rows_of


def a_run(result=(0.25, 0.75), counts=(), **seconds):
    return {"seconds": seconds, "result": list(result), **dict(counts)}


COUNTS = {"peak": 400, "peak with run": 450, "kernels": 5, "distinct": 3}
OURS = a_run(counts=COUNTS, **{"import": 9.0, "read": 1.0, "compile": 5.0, "run": 2.0})
FILLED = a_run(counts=COUNTS, **{"import": 9.0, "read": 1.0, "compile": 0.5, "run": 0.5})
SESSION = a_run(**{"import": 9.0, "session": 0.7, "run": 0.3})
TVM = a_run(**{"import": 9.0, "read": 1.0, "compile": 2.0, "machine code": 1.0, "run": 4.0})
RUNS = {"cold": [OURS, OURS], "cached": [FILLED, FILLED], "onnxruntime": [SESSION, SESSION]}


def figures(rows):
    """Return our median, the peer's, and the bar's limit of each row, by case."""
    return {
        row.case: (row.ours.median, row.theirs and row.theirs.median, row.bar and row.bar.at_most)
        for row in rows
    }


def test_each_row_counts_its_stages_and_only_one_network_has_bars(monkeypatch):
    monkeypatch.setattr(workload, "version", lambda package: "0.27")
    held = rows_of(NetworkRuns("resnet50", 100, RUNS | {"TVM": [TVM, TVM]}))
    assert figures(held) == {
        "resnet50, cold, file to code": (6.0, 3.0, 1.0),
        "resnet50, cold, file to first result": (8.0, 8.0, None),
        "resnet50, imports, which no other row counts": (9.0, 9.0, None),
        "resnet50, cached, file to first result": (2.0, 1.0, 3.0),
        "resnet50, peak memory beside its weights": (4.0, None, 3.0),
        "resnet50, distinct kernels": (3.0, 5.0, None),
    }
    assert [row.is_met for row in held] == [False, True, True, True, False, True]
    assert {row.peer for row in held[:3]} == {"TVM 0.27"}
    assert held[0].note == (
        "seconds cold: import 9.00, read 1.00, compile 5.00, run 2.00; "
        "TVM: import 9.00, read 1.00, compile 2.00, machine code 1.00, run 4.00"
    )
    assert held[4].note == "weights of 0.0 MB; with the first run 4.50"
    other = rows_of(NetworkRuns("vgg19", 100, RUNS, "not asked for"))
    assert figures(other)["vgg19, cold, file to code"] == (6.0, None, None)
    assert all(row.bar is None for row in other)


def test_without_tvm_the_bar_is_missed_and_the_row_names_the_extra():
    why = "TVM is not installed: pip install 'refcomp[peers]'"
    first = rows_of(NetworkRuns("resnet50", 100, RUNS, why))[0]
    assert (first.is_met, first.note) == (False, why)


def test_a_network_that_is_not_read_is_named_with_the_reason(monkeypatch):
    def measured(name, rounds, beside_tvm):
        return "'LRN' (2 nodes)" if name == "resnet50" else NetworkRuns(name, 100, RUNS, "no")

    monkeypatch.setattr(workload, "measure_network", measured)
    last = workload.measure(True)[-1]
    assert last.case == "light models that the frontend reads, of 2"
    assert (last.ours.median, last.note) == (1.0, "unread are resnet50: 'LRN' (2 nodes)")


def answering(**runs):
    """Return a stand-in for call_fresh, which answers with the run of that contender."""

    def call_fresh(function, **arguments):
        return runs.get(function.__name__.removeprefix("run_"), {"path": "", "weight_bytes": 1})

    return call_fresh


def test_a_wrong_result_is_not_timed(monkeypatch):
    near, wrong = a_run((0.2501, 0.7499)), a_run((0.26, 0.74))
    monkeypatch.setattr(workload, "call_fresh", answering(refcomp=FILLED, onnxruntime=near))
    assert measure_network("any", 1, beside_tvm=False).runs["onnxruntime"] == [near]
    monkeypatch.setattr(workload, "call_fresh", answering(refcomp=FILLED, onnxruntime=wrong))
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        measure_network("any", 1, beside_tvm=False)


@pytest.mark.parametrize("is_there", [False, True])
def test_a_missing_or_failing_tvm_is_told(monkeypatch, is_there):
    def call_fresh(function, **arguments):
        if function is workload.run_tvm:
            raise RuntimeError("no operator\nfor this")
        return answering(refcomp=FILLED, onnxruntime=SESSION)(function)

    monkeypatch.setattr(workload, "call_fresh", call_fresh)
    monkeypatch.setattr(workload, "find_spec", lambda name: is_there or None)
    told = measure_network("resnet50", 1, beside_tvm=True).without_tvm
    assert told == (
        "TVM cannot run the model: no operator"
        if is_there
        else "TVM is not installed: pip install 'refcomp[peers]'"
    )


def tiny_model(path, operator, **attributes):
    """Write a model of one operator on an image of 3 channels of 4 x 4 pixels. Return its path."""
    kinds = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 3, 4, 4)) for name in ("x", "y")
    ]
    node = helper.make_node(operator, ["x"], ["y"], **attributes)
    graph = helper.make_graph([node], "tiny", [kinds[0]], [kinds[1]])
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("acme", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return str(path)


@pytest.mark.llvm
def test_contenders_run_a_model_in_fresh_processes(tmp_path):
    path = tiny_model(tmp_path / "relu.onnx", "Relu")
    ours, theirs = (call_fresh(run, path=path) for run in (run_refcomp, run_onnxruntime))
    assert (
        ours["result"] == theirs["result"] == np.maximum(image_of((1, 3, 4, 4)), 0).ravel().tolist()
    )
    assert list(ours["seconds"]) == ["import", "read", "compile", "run"]
    assert list(theirs["seconds"]) == ["import", "session", "run"]
    assert (ours["kernels"], ours["distinct"]) == (1, 1)
    assert 0 < ours["peak"] <= ours["peak with run"]


def test_a_model_that_the_frontend_does_not_read_gives_the_reason(tmp_path):
    path = tiny_model(tmp_path / "twist.onnx", "Twist", domain="acme")
    (reason,) = run_refcomp(path).values()
    assert "'acme.Twist' (1 node: 'Twist'): refcomp does not support the operator" in reason


def test_the_image_is_the_same_in_each_process():
    assert image_of((1, 2)).tolist() == image_of([1, 2]).tolist()


def test_the_peak_of_memory_is_the_process_own(tmp_path):
    status = tmp_path / "status"
    status.write_text("Name:\tpython\nVmHWM:\t    2024 kB\nVmRSS:\t 1000 kB\n")
    assert peak_bytes(status) == 2024 * 1024
    assert peak_bytes() > 0
