"""The command that judges networks: its words, its exit codes, and each network on `llvm`."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.real_models import run
from benchmarks.real_models.network import NAMES, Answer, find_network
from benchmarks.real_models.onnx_writer import OnnxWriter
from benchmarks.real_models.packages import fetch
from benchmarks.real_models.runners import OnnxRuntimeRunner, RefcompRunner, compare
from refcomp.foundation.errors import ToolchainError
from refcomp.graph.debug.comparing import Cause
from tests.samples import sample_count

# The last models of each network. Most networks have one; all have fewer than ten.
_COMPARED = sample_count(by_day=1, nightly=10)


class Doubling:
    """A network that doubles, in place of one of other people."""

    PACKAGE = "magika"

    @staticmethod
    def models(_folder):
        writer = OnnxWriter()
        writer.node("Mul", "x", writer.constant("two", np.float32(2)), name="y")
        return {"net": writer.finish("net", {"x": (np.float32, ["N"])}, {"y": ["N"]})}

    @staticmethod
    def judge(_folder, run):
        (y,) = run("net", {"x": np.ones(3, np.float32)})
        return [Answer.of("twice 1", "2.0", y[0])]

    @staticmethod
    def shrink(model, feeds):
        return model, feeds


@pytest.fixture
def doubling(monkeypatch: pytest.MonkeyPatch) -> type[Doubling]:
    monkeypatch.setattr(run, "find_network", lambda _: Doubling)
    monkeypatch.setattr(run, "fetch", lambda *_: Path())
    return Doubling


@pytest.mark.llvm
def test_a_network_is_judged_timed_and_compared(
    doubling: type[Doubling], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.main(["magika"]) == 0
    title, answer, count, figures, nodes = capsys.readouterr().out.splitlines()
    assert title == "== magika: magika 1.0.3 (Apache-2.0)"
    assert (answer, count) == ("twice 1: 2.0", "1 of 1 answers are right")
    assert figures.split()[:3] == ["net", "1", "launches;"]
    assert nodes.split(maxsplit=1)[1] == "no node leaves its bound (1 against ONNX Runtime)"


@pytest.mark.rocm
def test_a_network_runs_on_an_emulated_gpu_and_is_not_timed(
    doubling: type[Doubling], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.main(["magika", "--target", "rocm -mcpu=gfx1100"]) == 0
    _, answer, _, figures, nodes = capsys.readouterr().out.splitlines()
    assert answer == "twice 1: 2.0"
    assert figures.split()[:3] == ["net", "1", "launches;"]
    assert "run" not in figures and "ONNX Runtime" not in figures
    assert nodes.split(maxsplit=1)[1] == "no node leaves its bound (1 against ONNX Runtime)"


@pytest.mark.parametrize("target", ["rocn", "rocm -mcpu=gfx1"])
def test_a_target_that_cannot_run_is_refused_at_once(
    target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.main(["magika", "--target", target]) == 2
    assert target.split("=")[-1] in capsys.readouterr().err


def test_a_wrong_answer_fails(
    doubling: type[Doubling], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = staticmethod(lambda *_: [Answer.of("twice 1", 2, 3)])
    monkeypatch.setattr(doubling, "judge", wrong)
    assert run.main(["magika", "--only-onnxruntime"]) == 1
    printed = capsys.readouterr().out
    assert "WRONG twice 1: 3 instead of 2\n0 of 1 answers are right\n" in printed


def test_an_unknown_network_and_a_missing_client_have_their_exit_codes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run.main(["magica"]) == 2
    assert "'magica' is not one of the networks" in capsys.readouterr().err

    def fail(*_: object) -> None:
        raise ToolchainError("npm is not installed")

    monkeypatch.setattr(run, "fetch", fail)
    assert run.main(["ocr"]) == 3
    assert "npm is not installed" in capsys.readouterr().err


@pytest.mark.llvm
@pytest.mark.parametrize("name", NAMES)
def test_a_network_of_other_people_answers_rightly_and_each_node_keeps_its_bound(
    name: str, run_folder: Path
) -> None:
    """All models of a network answer. By day the nodes of one model are compared, at night all."""
    network = find_network(name)
    folder = fetch(network.PACKAGE, run_folder / "real-models")
    models = network.models(folder)
    runner = RefcompRunner(models)
    answers = network.judge(folder, runner)
    assert [answer for answer in answers if not answer.is_right] == []
    assert len(answers) >= 2
    for model in list(models)[-_COMPARED:]:
        found = compare(*network.shrink(models[model], runner.examples[model]))
        # Where ONNX Runtime is less exact than its bound allows, refcomp is not to blame.
        assert [one.name for one in found.wrong if one.cause is not Cause.PEER] == []
        assert sum(found.against.values()) > 0


@pytest.mark.rocm
def test_a_network_with_lstm_and_if_keeps_its_bounds_on_an_emulated_gpu(run_folder: Path) -> None:
    network = find_network("silero_vad")
    folder = fetch(network.PACKAGE, run_folder / "real-models")
    models = network.models(folder)
    peer = OnnxRuntimeRunner(models)
    assert all(answer.is_right for answer in network.judge(folder, peer))
    for model in models:
        found = compare(*network.shrink(models[model], peer.examples[model]), "rocm -mcpu=gfx942")
        assert found.wrong == ()
        assert sum(found.against.values()) > 10
