"""Kernels within functions: where they are, and each rule that they keep, broken."""

import pytest

from refcomp.ir.kernels import (
    kernel_fault,
    kernel_nest,
    kernels_in,
    may_vary,
    varying_variables,
)
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_expr
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import BufferStore
from refcomp.ir.verify import find_fault

HEAD = "func f(A: f32[n], B: f32[n] out, m: i64) "
TILED = """
for k in range(n) {
  for bx in range(n // 32) blockIdx.x {
    for ty in range(4) threadIdx.y {
      for tx in range(m) threadIdx.x {
        alloc T: f32[32] shared { alloc R: f32[4] local {
          for s in range(k) { if (bx < k) { barrier } }
          let e: i64 = tx { barrier }
        } }
      }
    }
  }
  for bx in range(n) blockIdx.y { B[bx] = 0f32 }
}
"""


def fault(text: str) -> str:
    found = kernel_fault(parse_func(HEAD + "{" + text + "}").body)
    return "" if found is None else found[0]


def test_the_kernels_of_a_function_are_found_in_order():
    func = parse_func(HEAD + "{" + TILED + "}")
    assert find_fault(func, "nested") is None
    first, second = map(kernel_nest, kernels_in(func.body))
    assert [loop.kind for loop in first.loops] == ["blockIdx.x", "threadIdx.y", "threadIdx.x"]
    assert [print_expr(e) for e in first.grid] == ["n // 32", "1", "1"]
    assert [print_expr(e) for e in first.block] == ["m", "4", "1"]
    assert first.loop("threadIdx.z") is None
    assert [print_expr(e) for e in second.grid] == ["1", "n", "1"]


SUM = "subgroup_reduce_add(A[0], 8i32)"
GROUPS, THREADS = "for b in range(n) blockIdx.x", "for t in range(8) threadIdx.x"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("barrier", "a Barrier lies outside a kernel"),
        ("alloc T: f32[4] shared { }", "T is shared, but allocated outside a kernel"),
        (f"{THREADS} {{ {GROUPS} {{ }} }}", "a loop of blockIdx.x lies within one of threadIdx.x"),
        (f"{THREADS} {{ for u in range(8) threadIdx.x {{ }} }}", "lies within one of threadIdx.x"),
        ("for t in range(1, extent=8) threadIdx.x { }", "threadIdx.x does not begin at 0"),
        (f"{GROUPS} {{ for t in range(b) threadIdx.x {{ }} }}", "depends on another bound loop"),
        (f"{GROUPS} {{ for i in range(2) {{ {THREADS} {{ }} }} }}", "lies deeper in a kernel"),
        (f"{GROUPS} {{ alloc T: f32[4] {{ }} }}", "T is global, but allocated within a kernel"),
        (f"{THREADS} {{ if (t < 4) {{ B[0] = {SUM} }} }}", "a subgroup's call that some threads"),
        (f"{THREADS} {{ B[t] = if_then_else(t < 4, {SUM}, 0f32) }}", "a subgroup's call that some"),
        (f"{THREADS} {{ if (t < 4) {{ barrier }} }}", "some threads of a group may not reach"),
        (f"{THREADS} {{ for i in range(t) {{ barrier }} }}", "some threads of a group may not"),
        (
            f"{THREADS} {{ let u: i64 = t * 2 {{ if (u < 4) {{ barrier }} }} }}",
            "some threads of a group may not",
        ),
        (
            f"{THREADS} {{ for i in range(t, extent=4) {{ if (i < 4) {{ barrier }} }} }}",
            "some threads of a group may not",
        ),
        (
            f"{THREADS} {{ alloc T: i64[1] local {{ if (T[0] < 4) {{ barrier }} }} }}",
            "some threads of a group may not",
        ),
        (f"{GROUPS} {{ {THREADS} {{ if (b < m) {{ barrier }} }} }}", ""),
        (f"{THREADS} {{ if (m < 4) {{ B[t] = select(t < 4, {SUM}, 0f32) }} }}", ""),
        (f"{THREADS} {{ if (A[m] < 1f32) {{ barrier }} }}", ""),
    ],
)
def test_each_rule_of_kernels_can_be_broken(text, what):
    assert what in fault(text)
    assert bool(fault(text)) == bool(what)


def test_what_may_differ_between_threads():
    func = parse_func("""
    func f(A: i32[64] out, n: i32) {
      for b in range(4) blockIdx.x { for t in range(16) threadIdx.x {
        let u: i32 = n + i32(b) { let v: i32 = i32(t) { let w: i32 = v * 2i32 {
          for k in range(4) { A[t] = u + w }
        } } }
      } }
    }
    """)
    nest = kernel_nest(func.body)
    varying = varying_variables(nest)
    assert sorted(var.name for var in varying) == ["t", "v", "w"]
    (store,) = (node for node in walk(nest.body) if isinstance(node, BufferStore))
    assert may_vary(store.value, varying) and not may_vary(store.value.a, varying)
