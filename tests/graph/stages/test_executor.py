"""The executor of stages: what it compiles, what it keeps, and on which devices it runs."""

import os

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.foundation.mapped_files import MappedFile
from refcomp.graph.compile import compile_graph
from refcomp.graph.executor import GraphExecutor
from refcomp.graph.parser import parse_graph
from refcomp.graph.stages import segments
from refcomp.graph.stages.executor import StagedExecutor, executor_for
from tests.graph.control.runs import f32, i64, run_text

LATE = """
graph g(x: f32[*], k: i64[]) -> (y) {
  s: f32[*] = exp(x)
  y: f32[*] = expand_dims(s) {axis=@k}
}"""


def test_shapes_and_attributes_are_compiled_for_once() -> None:
    executor = StagedExecutor(parse_graph(LATE), "interp")
    assert executor.compilations == 0
    for _ in range(2):
        (y,) = executor.run(x=f32(0, 0), k=i64(1))
        assert y.shape == (2, 1)
    assert executor.compilations == 1
    assert executor.launches == 2
    assert executor.run(x=f32(0, 0), k=i64(0))[0].shape == (1, 2)
    assert executor.run(x=f32(0)[None], k=i64(0))[0].shape == (1, 1, 1)
    assert executor.compilations == 3


def test_weights_of_a_file_that_is_written_later_stay(tmp_path) -> None:
    text = """
graph g(x: f32[*], k: i64[]) -> (y) {
  const w: f32[4, 6]
  s: f32[*] = add(x, w)
  y: f32[*] = expand_dims(s) {axis=@k}
}"""
    path = tmp_path / "model"
    weights = np.arange(24, dtype=np.float32).reshape(4, 6)
    path.write_bytes(weights.tobytes())
    with path.open("rb") as file:
        mapped = MappedFile.open(file, path)
    array = np.frombuffer(mapped, np.float32).reshape(4, 6)
    executor = StagedExecutor(parse_graph(text, {"w": array}), "interp")
    with path.open("r+b") as file:
        file.write(bytes(96))
    later = path.stat().st_mtime_ns + 10**9
    os.utime(path, ns=(later, later))
    (y,) = executor.run(x=np.ones(6, "float32"), k=i64(0))
    np.testing.assert_array_equal(y.numpy()[0], weights + 1)


def test_the_last_compilations_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "MAX_KEPT", 2)
    executor = StagedExecutor(parse_graph(LATE), "interp")
    for count in (1, 2, 1, 3, 1, 2):
        executor.run(x=np.zeros(count, "float32"), k=i64(0))
    assert executor.compilations == 4  # 1, 2, 3, and 2 again
    assert executor.launches == 6


def test_a_typed_stage_is_compiled_before_a_run() -> None:
    text = """
graph g(x: f32[N], s: seq(f32)) -> (t) {
  y: f32[N] = relu(x)
  t: seq(f32) = sequence_insert(s, y)
}"""
    executor = StagedExecutor(parse_graph(text), "interp")
    assert executor.compilations == 1
    for count in (1, 2, 3):
        (t,) = executor.run(x=np.ones(count, "float32"), s=[])
        assert t[0].shape == (count,)
    assert executor.compilations == 1
    assert executor.input_names == ("x", "s")
    assert executor.num_outputs == 1


def test_inputs_constants_and_kept_values_may_be_outputs() -> None:
    text = """
graph g(x: f32[N], s: seq(f32)) -> (x, s, w, n) {
  const w: f32[1] = [2]
  n: i64[] = sequence_length(s)
}"""
    x, s, w, n = run_text(text, x=f32(1), s=[f32(2)])
    assert (x.tolist(), s[0].tolist(), w.tolist(), n.tolist()) == ([1], [2], [2], 1)


def test_a_node_that_does_not_take_what_it_meets_is_named() -> None:
    executor = StagedExecutor(parse_graph(LATE), "interp")
    with pytest.raises(UserError) as caught:
        executor.run(x=f32(0), k=i64(7))
    assert caught.value.where == "node 'y'"


def test_the_executor_is_chosen_by_the_graph() -> None:
    assert isinstance(executor_for(parse_graph(LATE), "interp"), StagedExecutor)
    plain = parse_graph("graph g(x: f32[2]) -> (y) { y: f32[2] = relu(x) }")
    assert isinstance(executor_for(plain, "interp"), GraphExecutor)


def test_such_a_graph_is_not_compiled_before_a_run() -> None:
    with pytest.raises(UserError, match="(?s)cannot be compiled before a run.*executor_for"):
        compile_graph(parse_graph(LATE), "interp")


LOOP = """
graph g(n: i64[], x: f32[2]) -> (y, all) {
  y: f32[2], all: f32[*] = loop(n, _, x) {carried=1}
    graph body(i: i64[], c: bool[], x: f32[2]) -> (c, z, z) { z: f32[2] = add(x, x) }
}"""


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("llvm", marks=pytest.mark.llvm),
        pytest.param("opencl", marks=pytest.mark.pocl),
    ],
)
def test_loops_run_on_targets(target: str) -> None:
    y, collected = run_text(LOOP, target, n=i64(3), x=f32(1, 2))
    assert y.tolist() == [8, 16]
    assert collected.shape == (3, 2)
