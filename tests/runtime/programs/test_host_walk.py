"""What stands around kernels, run with actions that only write down what is asked of them."""

from typing import Any

import numpy as np
import pytest

from refcomp.foundation.errors import Unsupported, UserError
from refcomp.ir.parser import parse_program
from refcomp.runtime.device import DeviceMemory
from refcomp.runtime.launch import Extents, KernelSignature
from refcomp.runtime.programs.host_walk import HostWalk, compile_host
from tests.runtime.device_programs import signatures_of

_KERNELS = """
func one(A: f32[n] out, n: i64) {
  for i in range(n) blockIdx.x {
    A@[i] = 1f32
  }
}

func typed(A: f32[n] out, n: i64, b: bool, h: f16, i: i8, x: f64) {
  for k in range(n) blockIdx.x {
    A@[k] = 1f32
  }
}
"""


class Recorder:
    """HostActions that keep the launches, and the sizes and the life of workspaces."""

    def __init__(self, fail_at: int = -1) -> None:
        self.launches: list[tuple[str, list[Any], Extents, Extents, tuple[int, ...]]] = []
        self.sizes: list[int] = []
        self.fail_at = fail_at
        self.held = 0

    def allocate(self, size: int) -> DeviceMemory:
        self.sizes.append(size)
        return DeviceMemory(len(self.sizes), _Held(self))

    def launch(
        self,
        kernel: KernelSignature,
        values: list[Any],
        grid: Extents,
        block: Extents,
        shared_bytes: tuple[int, ...],
    ) -> None:
        if len(self.launches) == self.fail_at:
            raise RuntimeError("the device is on fire")
        self.launches.append((kernel.name, values, grid, block, shared_bytes))


class _Held:
    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        recorder.held += 1

    def __del__(self) -> None:
        self.recorder.held -= 1


def _compile(host: str, actions: Recorder) -> HostWalk:
    program = parse_program(f"{host}\n{_KERNELS}")
    kernels = {kernel.name: kernel for kernel in signatures_of(program)}
    return compile_host(program.host, kernels, actions)


def _run(host: str, values: list[Any], fail_at: int = -1) -> Recorder:
    actions = Recorder(fail_at)
    _compile(host, actions).run(values)
    return actions


_A = DeviceMemory(0, None)


def test_a_launch_has_its_extents_and_typed_numbers() -> None:
    host = """func f(A: f32[n] out) {
      launch one (A, n) grid ((n + 3) // 4, 2, 1) block (4, n, 1) shared_bytes (n * 8, 16)
    }"""
    ((name, values, grid, block, shared),) = _run(host, [_A, 10]).launches
    assert (name, grid, block, shared) == ("one", (3, 2, 1), (4, 10, 1), (80, 16))
    assert values == [_A, 10]
    assert type(values[1]) is np.int64


def test_numbers_of_every_kind() -> None:
    host = """func f(A: f32[n] out, b: bool, h: f16, i: i8, x: f64) {
      launch typed (A, n, b, h, i, x) grid (n, 1, 1) block (1, 1, 1)
    }"""
    half = int(np.float16(1.5).view(np.uint16))
    ((_, values, *_),) = _run(host, [_A, 1, half, -3, 0.1, 4]).launches
    assert [type(value) for value in values[1:]] == [
        np.int64,
        np.bool_,
        np.float16,
        np.int8,
        np.float64,
    ]
    assert values[1:] == [4, True, 1.5, -3, 0.1]


def test_loops_lets_and_conditions() -> None:
    host = """func f(A: f32[n] out) {
      for k in range(1, extent=n - 1) {
        let m: i64 = k * 10 {
          if (k % 2 == 0) {
            launch one (A, m) grid (1, 1, 1) block (1, 1, 1)
          } else {
            launch one (A, k) grid (1, 1, 1) block (1, 1, 1)
          }
        }
        if (k == 3) {
          launch one (A, n) grid (1, 1, 1) block (1, 1, 1)
        }
      }
    }"""
    numbers = [int(values[1]) for _, values, *_ in _run(host, [_A, 4]).launches]
    assert numbers == [1, 20, 3, 4]
    assert _run(host, [_A, 0]).launches == []


@pytest.mark.parametrize("extents", ["(n, 1, 1) block (1, 1, 1)", "(1, 1, 1) block (1, 1, n - 1)"])
def test_an_empty_grid_or_block_is_skipped(extents: str) -> None:
    host = f"func f(A: f32[n] out) {{\n launch one (A, n) grid {extents}\n}}"
    assert _run(host, [_A, 0]).launches == []
    assert len(_run(host, [_A, 2]).launches) == 1


_WORKSPACES = """func f(A: f32[n] out) {
  for k in range(2) {
    alloc W: f32[n, k + 1] {
      launch one (W, n) grid (1, 1, 1) block (1, 1, 1)
      launch one (A, n) grid (1, 1, 1) block (1, 1, 1)
    }
  }
}"""


def test_workspaces_belong_to_their_allocate() -> None:
    actions = _run(_WORKSPACES, [_A, 5])
    assert actions.sizes == [20, 40]
    memories = [values[0].address for _, values, *_ in actions.launches]
    assert memories == [1, 0, 2, 0]
    actions.launches.clear()
    assert actions.held == 0


def test_a_workspace_is_let_go_before_the_next_is_asked_for() -> None:
    held: list[int] = []

    class Counting(Recorder):
        def allocate(self, size: int) -> DeviceMemory:
            held.append(self.held)
            return super().allocate(size)

        def launch(self, *_: Any) -> None:
            """Keeps nothing."""

    _compile(_WORKSPACES, Counting()).run([_A, 5])
    assert held == [0, 0]


def test_workspaces_of_negative_extent_are_empty() -> None:
    host = _WORKSPACES.replace("f32[n, k + 1]", "f32[n - 9, 4]")
    assert _run(host, [_A, 5]).sizes == [0, 0]


@pytest.mark.parametrize("fail_at", [0, 1, 3])
def test_workspaces_are_let_go_after_an_error(fail_at: int) -> None:
    actions = Recorder(fail_at)
    walk = _compile(_WORKSPACES, actions)
    values = [_A, 5]
    with pytest.raises(RuntimeError, match="on fire") as caught:
        walk.run(values)
    del caught  # its traceback holds what the failing launch was given
    actions.launches.clear()
    assert actions.held == 0


def test_runs_do_not_share_values() -> None:
    actions = Recorder()
    walk = _compile(_WORKSPACES, actions)
    values = [_A, 5]
    walk.run(values)
    walk.run(values)
    assert values == [_A, 5]
    assert len(actions.launches) == 8


def test_what_a_host_cannot_run() -> None:
    with pytest.raises(UserError, match=r"the host cannot run a Store(.|\n)*loops, conditions"):
        _compile("func f(A: f32[n] out) {\n A@[0] = 1f32\n}", Recorder())
    with pytest.raises(Unsupported, match="the host cannot evaluate"):
        _compile("func f(A: f32[n] out, x: f32) {\n let y: f32 = x * 2f32 {\n }\n}", Recorder())


def test_a_launch_that_fits_no_kernel() -> None:
    launch = (
        "func f(A: f32[n] out, k: i32) {\n launch NAME (ARGS) grid (1, 1, 1) block (1, 1, 1)\n}"
    )
    with pytest.raises(UserError, match=r"unknown kernel two\n(.|\n)*launch one of: one, typed"):
        _compile(launch.replace("NAME", "two").replace("ARGS", "A, n"), Recorder())
    for args in ("A", "A, A", "n, A", "A, k"):
        with pytest.raises(UserError, match=r"with wrong arguments(.|\n)*\(buffer, i64\), not"):
            _compile(launch.replace("NAME", "one").replace("ARGS", args), Recorder())
