"""The page that explains a network's time: its sentences, its tables, its picture, its refusals."""

import json
from dataclasses import replace

import pytest

from benchmarks.inference import roofline
from benchmarks.inference.roofline import main, page_of, profile_graph, sentences_of, write_files
from refcomp.graph.debug.roofline import NetworkProfile
from tests.benchmarks.test_layers import small_graph
from tests.graph.debug.profiles import PEAKS, node, profile

MACHINE = {"cpu": "A processor (family 1, model 2)", "cores": 2, "load": 0.5}


def test_the_sentences_say_what_bounds_the_time_and_where_it_is_lost() -> None:
    assert sentences_of(profile()) == [
        "The roofline allows 2.00 ms for these layers; they take 4.00 ms. So 50% of the time is "
        "explained by the peaks.",
        "Layers bound by the core's multiply-adds: 2. Their time is 3.00 ms, 75% of all. The "
        "roofline explains 50% of it.",
        "Layers bound by memory: 1. Their time is 1.00 ms, 25% of all. The roofline explains 50% "
        "of it.",
        "The most time above the roofline is lost in `a` 1.00 ms, `<b>$` 0.50 ms, `c` 0.50 ms.",
    ]


def test_a_layer_above_its_roofline_loses_no_time() -> None:
    """It read from caches what the model reads from memory."""
    above = NetworkProfile((node("a", "copy", 1e-3, 10, 100_000_000),), PEAKS)
    first, second, _ = sentences_of(above)
    assert "So 100% of the time" in first and "explains 100% of it" in second


def test_the_page_has_a_row_for_each_layer_and_each_operator() -> None:
    text = page_of("net", profile(), MACHINE)
    lines = text.splitlines()
    assert lines[0] == "# Where the time of net goes"
    assert lines[2] == "    benchmarks/inference/roofline.py net --threads 2"
    assert "Measured on A processor (family 1, model 2); the load was 0.5 before." in lines
    assert "](net.svg)" in text
    rows = [line for line in lines if line.startswith("| ")]
    assert len(rows) == 2 + 3 + 2 + 4
    assert "| 2 nodes | matmul | 3.000 | 75.0% |" in text and "| c | copy | 1.000 |" in text
    assert all(len(line) <= 110 for line in lines if not line.startswith("| "))


@pytest.mark.tools
def test_files_are_written_and_equal_profiles_give_equal_pictures(tmp_path) -> None:
    picture, page, numbers = write_files(tmp_path, "net", profile(), MACHINE)
    first = picture.read_bytes()
    assert first.startswith(b"<?xml") and b"<svg" in first
    assert page.read_text().startswith("# Where the time of net goes")
    found = json.loads(numbers.read_text())
    assert (found["network"], found["machine"], len(found["nodes"])) == ("net", MACHINE, 4)
    assert found["peaks"] == {"gflops": 100.0, "gbytes": 10.0, "threads": 2}
    write_files(tmp_path, "net", profile(), MACHINE)
    assert picture.read_bytes() == first


def test_a_graph_is_profiled_by_the_least_of_its_runs(monkeypatch) -> None:
    """The least and the mean of each node are its own: no run has all of them."""
    times = iter([(2e-3, 5e-3), (1e-3, 9e-3), (6e-3, 4e-3)])

    def profile_once(executor, feeds, peaks):
        assert (executor, list(feeds)) == ("llvm", ["x"])
        nodes = (node(name, "copy", s, 8, 4) for name, s in zip("ab", next(times), strict=True))
        return NetworkProfile(tuple(replace(one, mean=one.seconds) for one in nodes), peaks)

    monkeypatch.setattr(roofline, "profile_network", profile_once)
    monkeypatch.setattr(roofline, "create", lambda graph, target: target)
    found = profile_graph(small_graph(), 3, PEAKS)
    assert [(one.name, one.seconds) for one in found.nodes] == [("a", 1e-3), ("b", 4e-3)]
    assert [one.mean for one in found.nodes] == pytest.approx([3e-3, 6e-3])
    assert next(times, None) is None and found.peaks is PEAKS


@pytest.mark.llvm
def test_a_graph_is_compiled_and_run() -> None:
    (layer,) = profile_graph(small_graph(), 1, PEAKS).nodes
    # How a product is laid out depends on the host.
    assert layer.operator.endswith("+exp") and layer.seconds > 0


@pytest.mark.tools
def test_the_script_writes_three_files_and_restores_the_threads(
    tmp_path, monkeypatch, capsys
) -> None:
    seen = []

    def profile_small(graph, runs, peaks):
        seen.append((graph, runs, peaks, roofline.thread_count()))
        return profile()

    before = roofline.thread_count()
    monkeypatch.setattr(roofline, "profile_graph", profile_small)
    monkeypatch.setattr(roofline, "measure_peaks", lambda: PEAKS)
    monkeypatch.setattr(roofline, "describe_machine", lambda: MACHINE)
    monkeypatch.setattr(roofline, "save", lambda *given: {"path": given})
    monkeypatch.setattr(roofline, "from_onnx", lambda path: path)
    arguments = ["squeezenet", "--threads", "3", "--runs", "2", "--batch", "8"]
    assert main([*arguments, "--folder", str(tmp_path)]) == 0
    ((path, runs, peaks, threads),) = seen
    assert (path[0], path[2], runs, peaks, threads) == ("squeezenet", 8, 2, PEAKS, 3)
    assert roofline.thread_count() == before
    names = sorted(file.name for file in tmp_path.iterdir())
    assert names == ["squeezenet.json", "squeezenet.md", "squeezenet.svg"]
    assert "The roofline allows 2.00 ms" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["resnet"], "no light model resnet; there are bvlc_alexnet, "),
        (["resnet50", "--runs", "0"], "threads, batch and runs are numbers of at least 1"),
        (["resnet50", "--threads", "2000"], "2000 is not a number of threads"),
        (["resnet50", "--folder", "/no/such"], "there is no folder /no/such"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message, monkeypatch, capsys) -> None:
    monkeypatch.setattr(roofline, "describe_machine", lambda: MACHINE)
    with pytest.raises(SystemExit) as refusal:
        main(arguments)
    assert refusal.value.code == 2
    assert message in capsys.readouterr().err
