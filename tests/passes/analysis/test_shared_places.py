"""The places of allocations of shared memory."""

from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func
from refcomp.ir.rewrite import with_fields
from refcomp.ir.stmt import Block
from refcomp.passes.analysis.shared_places import shared_places

TEXT = """
func k(A: f32[4] out) {
  for t in range(4) threadIdx.x {
    alloc S: f32[4] shared { alloc L: f32[1] local {
      alloc T: f32[8] shared {
        T@[t] = A@[t]
        L@[0] = T@[t]
        A@[t] = L@[0]
      }
    } }
  }
}
"""


def places(kernel: PrimFunc) -> dict[str, int]:
    return {allocate.buffer.name: count for allocate, count in shared_places(kernel).items()}


def test_only_shared_memory_counts():
    assert places(parse_func(TEXT)) == {"S": 1, "T": 1}


def test_a_subtree_at_two_places_counts_twice():
    kernel = parse_func(TEXT)
    loop = kernel.body
    outer = with_fields(loop.body, body=Block((loop.body.body, loop.body.body)))
    assert places(kernel.with_body(with_fields(loop, body=outer))) == {"S": 1, "T": 2}
