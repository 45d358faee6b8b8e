"""Wrong kernels: each differs from a right one in one place, and the emulator tells of it.

Only what may go unseen on a GPU counts: the result is not looked at. Right kernels are never told
of.
"""

import numpy as np
import pytest

from refcomp.ir.parser import parse_func
from tests.codegen.amdgpu.kernels import use_llvm
from tests.emulator.kernels import Kernels

pytestmark = [pytest.mark.rocm, pytest.mark.search]

_KERNELS = {
    "copy": """
    func copy(A: f32[n], C: f32[n] out, n: i64) {
      for g in range(2) blockIdx.x { for t in range(64) threadIdx.x {
        if (g * 64 + t < n) { C@[g * 64 + t] = A@[g * 64 + t] * 2.0f32 }
      } }
    }""",
    "stencil": """
    func stencil(A: f32[n], C: f32[n] out, n: i64) {
      for g in range(2) blockIdx.x { for t in range(64) threadIdx.x {
        let i: i64 = g * 64 + t {
          if (i < n) {
            C@[i] = if_then_else(1 <= i, A@[i - 1], 0.0f32)
                    + if_then_else(i + 1 < n, A@[i + 1], 0.0f32)
          }
        }
      } }
    }""",
    "mirror": """
    func mirror(A: f32[n], C: f32[n] out, n: i64) {
      for g in range(2) blockIdx.x { for t in range(50) threadIdx.x {
        alloc S: f32[50] shared {
          S@[t] = A@[g * 50 + t]
          barrier
          C@[g * 50 + t] = S@[49 - t]
        }
      } }
    }""",
    "total": """
    func total(A: f32[n], C: f32[n] out, n: i64) {
      for g in range(4) blockIdx.x { for t in range(25) threadIdx.x {
        alloc S: f32[32] shared {
          S@[t] = A@[g * 25 + t]
          if (t < 7) { S@[25 + t] = 0.0f32 }
          barrier
          if (t == 0) {
            alloc s: f32[1] local {
              s@[0] = 0.0f32
              for k in range(32) { s@[0] = s@[0] + S@[k] }
              C@[g * 25] = s@[0]
            }
          }
        }
      } }
    }""",
    "window": """
    func window(A: f32[n], C: f32[n] out, n: i64) {
      for g in range(2) blockIdx.x { for t in range(50) threadIdx.x {
        alloc L: f32[4] local {
          for k in range(4) { L@[k] = A@[(g * 50 + t + k) % 100] }
          for k in range(3) { L@[k + 1] = L@[k + 1] + L@[k] }
          C@[g * 50 + t] = L@[3] + L@[(g + t) % 4]
        }
      } }
    }""",
    "bytes": """
    func bytes(A: i8[n], C: i16[n] out, n: i64) {
      for g in range(2) blockIdx.x { for t in range(64) threadIdx.x {
        if (g * 64 + t < n) { C@[g * 64 + t] = i16(A@[n - 1 - g * 64 - t]) }
      } }
    }""",
    "halo": """
    func halo(A: f32[n], C: f32[n] out, n: i64) {
      for g in range(2) blockIdx.x { for t in range(49) threadIdx.x {
        alloc S: f32[51] shared {
          S@[t] = A@[g * 49 + t]
          if (t < 2) { S@[49 + t] = A@[g * 49 + 49 + t] }
          barrier
          C@[g * 49 + t] = S@[t] + S@[t + 1] + S@[t + 2]
        }
      } }
    }""",
    "tree": """
    func tree(A: f32[n], C: f32[n] out, n: i64) {
      for g in range(3) blockIdx.x { for t in range(32) threadIdx.x {
        alloc S: f32[32] shared {
          S@[t] = A@[g * 32 + t]
          barrier
          for k in range(5) {
            if (t < 16 >> k) { S@[t] = S@[t] + S@[t + (16 >> k)] }
            barrier
          }
          if (t == 0) { C@[g] = S@[0] }
        }
      } }
    }""",
    "turned": """
    func turned(A: f32[n], C: f32[n] out, n: i64) {
      for g in range(2) blockIdx.x { for t in range(50) threadIdx.x {
        alloc S: f32[55] shared {
          S@[t // 10 * 11 + t % 10] = A@[g * 50 + t]
          barrier
          C@[g * 50 + t] = S@[t % 5 * 11 + t // 5]
        }
      } }
    }""",
    "picked": """
    func picked(A: f32[n], C: f32[n] out, n: i64) {
      for g in range(2) blockIdx.x { for t in range(64) threadIdx.x {
        let i: i64 = g * 64 + t {
          if (i < n) { C@[i] = A@[i64(A@[i]) * 12 + 3] }
        }
      } }
    }""",
}
_MUTANTS = {
    "copy": [
        ("t < n", "t <= n"),
        ("t < n", "t < n + 1"),
        ("t < n", "t != n"),
        ("t < n", "t < 128"),
        ("C@[g * 64 + t]", "C@[g * 64 + t + 1]"),
        ("C@[g * 64 + t]", "C@[g * 64 + t - 1]"),
        ("C@[g * 64 + t]", "C@[g * 65 + t]"),
        ("A@[g * 64 + t]", "A@[g * 64 + t - 1]"),
        ("A@[g * 64 + t]", "A@[(g + 1) * 64 + t]"),
        ("A@[g * 64 + t]", "A@[(g * 64 + t) * 2]"),
        ("A@[g * 64 + t]", "A@[n - g * 64 - t]"),
    ],
    "stencil": [
        ("1 <= i", "0 <= i"),
        ("i + 1 < n", "i < n"),
        ("i + 1 < n", "i + 1 <= n"),
        ("A@[i - 1]", "A@[i - 2]"),
        ("A@[i + 1]", "A@[i + 2]"),
        ("if (i < n)", "if (i < n + 2)"),
        ("C@[i]", "C@[i * 2]"),
    ],
    "mirror": [
        ("S@[49 - t]", "S@[50 - t]"),
        ("S@[49 - t]", "S@[48 - t]"),
        ("S@[49 - t]", "S@[49 - t * 2]"),
        ("S@[t] = A", "if (t < 49) { S@[t] = A"),
        ("S@[t] = A", "if (t != 7) { S@[t] = A"),
        ("A@[g * 50 + t]", "A@[g * 51 + t]"),
        ("S@[t] = A", "S@[t + 1] = A"),
        ("S: f32[50]", "S: f32[49]"),
        ("C@[g * 50 + t]", "C@[g * 50 + t * 2]"),
    ],
    "total": [
        ("t < 7", "t < 6"),
        ("t < 7", "t < 8"),
        ("t < 7", "7 < t"),
        ("S@[25 + t]", "S@[26 + t]"),
        ("range(32)", "range(33)"),
        ("S: f32[32]", "S: f32[31]"),
        ("s@[0] = 0.0f32", "s@[0] = s@[0] + 1.0f32"),
        ("A@[g * 25 + t]", "A@[g * 32 + t]"),
        ("C@[g * 25]", "C@[g * 25 + 26]"),
    ],
    "window": [
        ("% 100", "% 101"),
        ("L@[k] = A", "L@[k % 3] = A"),
        ("for k in range(4)", "for k in range(3)"),
        ("(g * 50 + t + k) % 100", "g * 50 + t + k"),
        ("C@[g * 50 + t]", "C@[g * 50 + t - 1]"),
    ],
    "bytes": [
        ("t < n", "t <= n"),
        ("A@[n - 1 - g", "A@[n - g"),
        ("A@[n - 1 - g", "A@[n - 2 - g"),
        ("C@[g * 64 + t]", "C@[g * 64 + t + 1]"),
    ],
    "halo": [
        ("t < 2", "t < 1"),
        ("t < 2", "t <= 2"),
        ("S@[49 + t]", "S@[48 + t]"),
        ("S@[49 + t]", "S@[50 + t]"),
        ("A@[g * 49 + 49 + t]", "A@[g * 49 + 51 + t]"),
        ("S@[t + 2]", "S@[t + 3]"),
        ("S: f32[51]", "S: f32[49]"),
        ("C@[g * 49 + t]", "C@[g * 64 + t]"),
    ],
    "tree": [
        ("t < 16 >> k", "t <= 16 >> k"),
        ("t < 16 >> k", "t < 32 >> k"),
        ("S@[t + (16 >> k)]", "S@[t + (32 >> k)]"),
        ("S@[t] = A", "S@[t // 2] = A"),
        ("S@[t] = A", "if (t < 31) { S@[t] = A"),
        ("A@[g * 32 + t]", "A@[g * 36 + t]"),
        ("S: f32[32]", "S: f32[16]"),
    ],
    "turned": [
        ("t // 10 * 11", "t // 10 * 10"),
        ("t // 10 * 11", "t // 10 * 12"),
        ("t // 5]", "t // 4]"),
        ("t % 5 * 11", "t % 6 * 11"),
        ("t % 5 * 11", "t % 5 * 12"),
        ("S: f32[55]", "S: f32[50]"),
        ("A@[g * 50 + t]", "A@[g * 50 + t * 2]"),
    ],
    "picked": [
        ("* 12 + 3", "* 13"),
        ("* 12 + 3", "* 12 + 4"),
        ("* 12 + 3", "* 12 - 3"),
        ("i64(A@[i])", "i64(A@[i + 1])"),
        ("if (i < n)", "if (i < 2 * n)"),
        ("C@[i]", "C@[n - i]"),
    ],
}
# LLVM knows of private memory that nobody wrote it, and leaves out what depends on it: when it has
# optimized as usual nothing is left to see, so that these are found only where it has not.
_OF_PRIVATE_MEMORY = {
    "total: s@[0] = 0.0f32 -> s@[0] = s@[0] + 1.0f32",
    "window: L@[k] = A -> L@[k % 3] = A",
    "window: for k in range(4) -> for k in range(3)",
}
_EXTENTS = {"mirror": (2, 50), "window": (2, 50), "total": (4, 25), "halo": (2, 49)}
_EXTENTS |= {"tree": (3, 32), "turned": (2, 50)}


def _mutated(name, number, old, new):
    """The kernel with one thing changed; its name is its own."""
    text = _KERNELS[name].replace(f"func {name}(", f"func {name}_{number}(", 1)
    assert old in text, old
    head, _, rest = text.partition(old)
    if "{" in new:  # a guard around one statement
        line, _, rest = rest.partition("\n")
        rest = line + " }\n" + rest
    return parse_func(head + new + rest)


def _run(kernels, kernel, name, count=100, told=100):
    """Findings on arrays of `count` elements that are said to have `told`."""
    small = name == "bytes"
    a = (np.arange(count) % 9).astype(np.int8 if small else np.float32)
    c = np.zeros(count, np.int16 if small else np.float32)
    groups, threads = _EXTENTS.get(name, (2, 64))
    report = kernels.run(kernel, [a, c, told], (groups, 1, 1), (threads, 1, 1))
    return report.findings


@pytest.fixture(scope="module")
def right():
    funcs = {name: parse_func(text) for name, text in _KERNELS.items()}
    return funcs, Kernels(list(funcs.values()))


@pytest.mark.parametrize("name", _KERNELS)
def test_right_kernels_are_not_told_of(name, right):
    funcs, kernels = right
    assert not _run(kernels, funcs[name], name)


@pytest.mark.parametrize("name", sorted({*_KERNELS} - {"tree"}))
def test_arrays_that_are_too_short_are_told_of(name, right):
    funcs, kernels = right
    assert _run(kernels, funcs[name], name, count=97)


@pytest.fixture(scope="module")
def mutants():
    return [
        (name, _mutated(name, number, old, new), f"{name}: {old} -> {new}")
        for name, changes in _MUTANTS.items()
        for number, (old, new) in enumerate(changes)
    ]


@pytest.mark.parametrize(
    ("passes", "unseen"), [({}, _OF_PRIVATE_MEMORY), ({"passes": "always-inline"}, set())]
)
def test_mutants_are_told_of(passes, unseen, mutants, record_property, monkeypatch):
    use_llvm("19", monkeypatch)  # another one may leave out more
    kernels = Kernels([func for _, func, _ in mutants], **passes)
    missed = {what for name, func, what in mutants if not _run(kernels, func, name)}
    told = f"{len(mutants) - len(missed)} of {len(mutants)} mutants told of"
    record_property("summary", told + (", not optimized" if passes else ""))
    assert missed == unseen
    assert len(mutants) >= 40 and len(missed) <= len(mutants) // 20
