"""Networks beside ONNX Runtime: bars, means, what the options choose, and equal results."""

import json

import numpy as np
import pytest
from onnx import TensorProto, helper, save

from benchmarks.fresh import call_fresh
from benchmarks.inference import contenders, workload
from benchmarks.inference.contenders import peak_of, time_network
from benchmarks.inference.workload import Choice, NetworkTimes, main, measure, rows_of

MACHINE = {"cpu": "A processor", "cores": 2}
PEAKS = {"refcomp": 110, "onnxruntime": 100, "cold": 300}


def times_of(model: str, *ours: float, peaks=PEAKS, threads: int = 2) -> NetworkTimes:
    """Return measured times beside a peer that takes 2 seconds in each round."""
    return NetworkTimes(
        model, 8, threads, {"refcomp": ours, "onnxruntime": [2.0] * len(ours)}, peaks
    )


def test_the_held_network_must_be_faster_and_the_others_near() -> None:
    rows = rows_of([times_of("resnet50", 2.0), times_of("vgg19", 2.0), times_of("zfnet512", 2.7)])
    verdicts = {row.case: (row.bar.at_most, row.is_met) for row in rows}
    assert verdicts["resnet50, batch 8, 2 threads"] == (0.95, False)
    assert verdicts["vgg19, batch 8, 2 threads"] == (1.3, True)
    assert verdicts["zfnet512, batch 8, 2 threads"] == (1.3, False)
    assert verdicts["vgg19, batch 8, 2 threads, peak MB"] == (1.2, True)
    assert verdicts["geometric mean of 3, batch 8, 2 threads"] == (1.0, False)


def test_a_mean_is_formed_within_each_round_over_equal_batches_and_threads() -> None:
    pair = [times_of("vgg19", 1.0, 4.0, peaks={}), times_of("resnet50", 4.0, 4.0, peaks={})]
    *rows, mean = rows_of([*pair, times_of("vgg19", 1.0, peaks={}, threads=1)])
    assert [row.case for row in rows[:2]] == [
        "vgg19, batch 8, 2 threads",
        "resnet50, batch 8, 2 threads",
    ]
    assert mean.case == "geometric mean of 2, batch 8, 2 threads"
    assert (mean.ours.median, mean.ratio.median) == pytest.approx((3.0, 1.5))


def test_the_peak_row_says_what_an_empty_cache_costs() -> None:
    _, peak = rows_of([times_of("vgg19", 1.0, peaks={**PEAKS, "cold": 3e8})])
    assert peak.note == "300 MB where refcomp also compiles, with an empty cache"
    assert peak.ratio.median == pytest.approx(1.1)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Choice]:
    """The parts that were asked for; nothing is measured."""
    choices: list[Choice] = []

    def measure_choice(choice):
        choices.append(choice)
        return rows_of([times_of("resnet50", 1.0)])

    monkeypatch.setattr(workload, "measure_choice", measure_choice)
    return choices


def test_options_choose_a_part(asked, tmp_path, capsys) -> None:
    file = tmp_path / "x.json"
    arguments = ["resnet50", "vgg19", "--threads", "1", "--batches", "8", "--no-memory"]
    options = ["--rounds", "3", "--json", str(file), "--check"]
    assert main([*arguments, *options], lambda: MACHINE) == 0
    assert asked == [Choice(["resnet50", "vgg19"], [1], [8], rounds=3, has_memory=False)]
    (time, _peak) = json.loads(file.read_text())["rows"]
    assert (time["workload"], time["is_met"]) == ("inference", True)
    assert "resnet50, batch 8, 2 threads" in capsys.readouterr().out
    assert main(["--json", str(file)], lambda: MACHINE) == 0
    assert len(asked[1].models) == 9 and asked[1].batches == [1, 8]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["resnet"], "no light model resnet; there are bvlc_alexnet, "),
        (["resnet50", "--threads", "0"], "threads, batches and rounds are numbers of at least 1"),
        (["--wrong"], "unrecognized arguments: --wrong"),
    ],
)
def test_wrong_arguments_are_refused(asked, arguments, message, capsys) -> None:
    with pytest.raises(SystemExit) as refusal:
        main(arguments)
    assert refusal.value.code == 2 and not asked
    assert message in capsys.readouterr().err


def test_the_quick_run_is_one_small_network(asked) -> None:
    measure(True)
    assert (asked[0].models, asked[0].batches, asked[0].rounds) == (("squeezenet",), (1,), 2)


def test_without_the_peer_nothing_is_measured(monkeypatch) -> None:
    monkeypatch.setattr(workload, "find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match="onnxruntime is not installed"):
        measure(True)


def test_each_number_of_threads_is_a_process_and_the_cache_is_filled_before(monkeypatch) -> None:
    calls = []

    def call_fresh(function, *, threads=None, environment=None, **arguments):
        contender = arguments.get("contender", "")
        calls.append((function.__name__, contender, threads))
        if function is workload.save:
            return {"path": "net.onnx", "weight_bytes": 1}
        assert (arguments["path"], list(environment)) == ("net.onnx", ["REFCOMP_CACHE_DIR"])
        return {"refcomp": [1.0], "onnxruntime": [2.0]} if function is time_network else 5

    monkeypatch.setattr(workload, "call_fresh", call_fresh)
    rows = workload.measure_choice(Choice(["vgg19"], [1, 2], [8]))
    assert calls[:3] == [("save", "", None), ("peak_of", "refcomp", 1), ("time_network", "", 1)]
    assert ("time_network", "", 2) in calls and ("peak_of", "onnxruntime", 2) in calls
    assert [row.case for row in rows][::2] == [
        "vgg19, batch 8, 1 thread",
        "vgg19, batch 8, 2 threads",
    ]


@pytest.fixture
def small_model(tmp_path):
    """The file of a model with one operator on an image of 3 channels of 4 x 4 pixels."""
    kinds = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 3, 4, 4)) for name in ("x", "y")
    ]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", kinds[:1], kinds[1:])
    path = str(tmp_path / "relu.onnx")
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


@pytest.mark.llvm
def test_both_contenders_run_in_turns_and_in_processes_of_their_own(small_model) -> None:
    arguments = {"path": small_model, "intra_op_threads": 1}
    times = call_fresh(time_network, threads=1, rounds=2, least_s=0.0, **arguments)
    assert {name: len(seconds) for name, seconds in times.items()} == {
        "refcomp": 2,
        "onnxruntime": 2,
    }
    for contender in times:
        assert call_fresh(peak_of, contender=contender, **arguments) >= 0


def test_a_wrong_result_is_not_timed(monkeypatch) -> None:
    wanted = np.array([0.25, 0.75], np.float32)
    monkeypatch.setattr(contenders, "load_onnxruntime", lambda path, threads: lambda: wanted)
    monkeypatch.setattr(contenders, "load_refcomp", lambda path: lambda: wanted + 0.001)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        time_network("any", 1, 1, 0.0)
