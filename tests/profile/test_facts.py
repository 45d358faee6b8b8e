"""Accesses by kind, and the loops that lanes run over, by small texts of our own."""

import json
from dataclasses import replace

import pytest

from refcomp.emulator.observers.counting import InstructionCounts, KernelCounts, MemoryTraffic
from refcomp.profile.facts import RuleInputs, alike, closest_loop, loop_of_lanes
from refcomp.profile.listing import list_kernel
from tests.emulator.snippets import instruction

LOOPS = """func k() {
  for y in range(8) threadIdx.y {
    for x in range(8) threadIdx.x {
      let t: i64 = y_0 + threadIdx.x * 64 + threadIdx.y {
        let u: i64 = t + 3 {
          B@[threadIdx.x] = A@[u]
          C@[threadIdx.x] = A@[threadIdx.x * 64 + n * threadIdx.y]
          B.shared@[1] = A@[t + 5]
          B.shared@[2] = A@[t + 6]
        }
      }
    }
  }
}
"""
LINKS = {
    "kernels": {"k": 1},
    "origins": {"2": ["B", "i", "bind", "p.py:3"], "3": ["B", "j", "bind", "p.py:4"]},
}


def _facts(*rows, text=LOOPS):
    """Of loads: each with its line, waves, stride."""
    counts = KernelCounts("k", "gfx942", 64, 128)
    for number, (line, waves, stride) in enumerate(rows):
        one = instruction(f"global_load_dword v{number}, v[2:3], off")
        one = replace(one, number=number, source=f"kernels.ir:{line}" if line else "")
        access = MemoryTraffic("global", 4, False, False, waves, 64 * waves, stride=stride)
        counts.by_number[number] = InstructionCounts(one, waves, 64 * waves, access)
    sources = {"kernels": text, "lines": json.dumps(LINKS)} if text else {}
    return RuleInputs(counts, list_kernel(counts, sources), None, None)


def _load(stride):
    return MemoryTraffic("global", 4, False, False, stride=stride)


def test_the_loop_of_the_lanes_is_the_one_that_a_primitive_bound():
    assert loop_of_lanes(_facts(), 6).axis == "j"
    assert loop_of_lanes(_facts(), 2) is None and loop_of_lanes(_facts(), 0) is None


@pytest.mark.parametrize(
    ("line", "stride", "axis"),
    [
        (6, 256, "i"),  # by way of two lets
        (6, 128, None),  # no index has lanes so far apart
        (7, 256, None),  # a product stands before the other thread
        (0, 256, None),
    ],
)
def test_the_closest_loop_is_told_where_the_index_says_it(line, stride, axis):
    found = closest_loop(_facts(), line, _load(stride))
    assert (found.axis if found else None) == axis


def test_statements_of_the_same_buffers_are_one_kind():
    facts = _facts((8, 2, 256), (9, 3, 256), (8, 1, 4), (6, 7, 256))
    found = [
        (line, which, access.waves, access.stride) for line, which, access in alike(facts, "global")
    ]
    assert found == [(9, "", 5, 256), (8, "", 1, 4), (6, "", 7, 256)]
    assert alike(facts, "shared") == []


def test_without_lines_each_instruction_stands_for_itself():
    found = alike(_facts((0, 2, 256), (0, 3, 256), text=""), "global")
    assert [which for _, which, _ in found] == [
        "global_load_dword v0, v[2:3], off: ",
        "global_load_dword v1, v[2:3], off: ",
    ]
