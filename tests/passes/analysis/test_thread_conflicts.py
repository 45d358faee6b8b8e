"""Accesses of different threads: where they may meet, told from texts of two statements."""

import pytest

from refcomp.arith import Facts
from refcomp.ir.buffer import BufferLoad
from refcomp.ir.kernels import kernel_nest
from refcomp.ir.parser import parse_func
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import AtomicUpdate, BufferStore, For, IfThenElse
from refcomp.passes.analysis.thread_conflicts import (
    READ,
    WRITE,
    Holds,
    Named,
    Ranged,
    ThreadAccess,
    ThreadConflicts,
    in_earlier_iteration,
    narrowed,
    reads_in,
)

KERNEL = """
func f(A: f32[64] out, T: i64[64], H: i64[64] out) {{
  for bx in range(4) blockIdx.x {{ for ty in range(4) threadIdx.y {{
  for tx in range(16) threadIdx.x {{
    alloc S: f32[64, 64] shared {{ for k in range(8) {{ {} }} }}
  }} }} }}
}}
"""


def _kernel(stmts):
    """The conflicts of a kernel, its loop over k, and the accesses of its statements in order."""
    nest = kernel_nest(parse_func(KERNEL.format(stmts)).body)
    conflicts = ThreadConflicts([v for v in nest.loops if v.kind.startswith("thread")], Facts())
    loop = next(node for node in walk(nest.body) if isinstance(node, For))
    k = Ranged(loop.var, loop.minimum, loop.extent)
    found = []

    def collect(stmt, scope):
        if isinstance(stmt, IfThenElse):
            collect(stmt.then_case, (*scope, Holds(stmt.condition)))
        elif isinstance(stmt, For):
            entry = Ranged(stmt.var, stmt.minimum, stmt.extent)
            collect(stmt.body, (*scope, entry))
        elif isinstance(stmt, BufferStore | AtomicUpdate):
            found.extend(reads_in(stmt.value, scope))
            effect = getattr(stmt, "operator", WRITE)
            found.append(ThreadAccess(stmt.buffer, stmt.indices, effect, scope))
        else:
            for item in stmt.stmts:
                collect(item, scope)

    collect(loop.body, (k,))
    around = frozenset(v.var for v in nest.loops if v.kind.startswith("block"))
    return conflicts, k, found, around


def _meet(stmts):
    """Whether a write of shared S and a read of it conflict within an iteration of k."""
    conflicts, k, found, around = _kernel(stmts)
    p, q = [access for access in found if access.buffer.name == "S"]
    together = around | {k.var}
    assert conflicts.between(p, q, together) == conflicts.between(q, p, together)
    return conflicts.between(p, q, together)


@pytest.mark.parametrize(
    ("stmts", "expected"),
    [
        ("S[ty, tx] = 1f32 A[tx] = S[ty, tx]", False),
        ("S[ty, tx] = 1f32 A[tx] = S[ty, tx + 1]", True),
        ("S[ty, tx] = 1f32 A[tx] = S[ty + 4, tx]", False),  # another four rows
        ("S[0, tx] = 1f32 A[tx] = S[0, tx]", True),  # of another ty
        ("S[0, ty * 16 + tx] = 1f32 A[tx] = S[0, ty * 16 + tx]", False),
        ("S[0, ty * 8 + tx] = 1f32 A[tx] = S[0, ty * 8 + tx]", True),
        ("S[bx, ty * 16 + tx] = 1f32 A[tx] = S[bx + 1, ty * 16 + tx]", False),
        ("S[k, ty * 16 + tx] = 1f32 A[tx] = S[k + 1, tx]", False),
        ("if (tx == 0 and ty == 0) { S[k, 0] = 1f32 A[tx] = S[k, 0] }", False),
        ("if (tx == 0) { S[k, 0] = 1f32 A[tx] = S[k, 0] }", True),
        ("if (k < 4) { S[0, 0] = 1f32 } if (4 <= k) { A[tx] = S[0, 0] }", False),
        ("if (k < 4) { S[0, 0] = 1f32 } if (3 <= k) { A[tx] = S[0, 0] }", True),
        ("if (k == 7) { if (k + tx < 8) { if (ty == 0) { S[0, 0] = 1f32 A[tx] = S[0, 0] } } }",
         False),
        ("if (ty * 16 + tx < 1) { S[k, 0] = 1f32 A[tx] = S[k, 0] }", False),
        ("if (ty * 16 + tx < 2) { S[k, 0] = 1f32 A[tx] = S[k, 0] }", True),
        ("if (63 <= ty * 16 + tx) { S[k, 0] = 1f32 A[tx] = S[k, 0] }", False),
        ("if (tx < 8) { S[ty, tx] = 1f32 } A[tx] = S[ty, tx + 8]", False),
        ("if (tx < 9) { S[ty, tx] = 1f32 } A[tx] = S[ty, tx + 8]", True),
        ("for i in range(4) { S[ty * 4 + i, tx] = 1f32 A[tx] = S[ty * 4 + i, tx] }", False),
        ("for i in range(5) { S[ty * 4 + i, tx] = 1f32 A[tx] = S[ty * 4 + i, tx] }", True),
        ("for i in range(2) { S[(i * 64 + ty * 16 + tx) // 32, (i * 64 + ty * 16 + tx) % 32] = 1f32"
         " A[tx] = S[(i * 64 + ty * 16 + tx) // 32, (i * 64 + ty * 16 + tx) % 32] }", False),
        ("S[ty, tx] = 1f32 A[tx] = S[ty, T[tx]]", True),
        ("S[ty, T[ty]] = 1f32 A[tx] = S[ty, T[ty]]", True),
        ("S[ty, tx] = 1f32 A[0] = (let i: i64 = tx in S[ty, i])", False),
        ("S[ty, tx] = 1f32 A[0] = if_then_else(tx < 4, S[ty, tx + 16], 0f32)", False),
        ("S[ty, tx] = 1f32 A[0] = if_then_else(tx < 4, 0f32, S[ty, tx - 4])", True),
        ("if (8 <= tx) { S[ty, tx] = 1f32 }"
         " A[0] = if_then_else(tx < 4, S[ty, tx + 4], 0f32)", False),
    ],
)  # fmt: skip
def test_a_write_and_a_read(stmts, expected):
    assert _meet(stmts) == expected


def test_two_reads_and_two_updates_by_one_operator_do_not_conflict():
    stmts = "A[0] = S[0, 0] A[1] = S[0, 0] atomic add H[0] with 1 atomic max H[0] with 2 H[0] = 3"
    conflicts, k, found, around = _kernel(stmts)
    reads = [access for access in found if access.effect == READ]
    add, greatest, write = [access for access in found if access.buffer.name == "H"]
    together = around | {k.var}
    assert not conflicts.between(*reads, together)
    assert not conflicts.between(add, add, together)
    assert conflicts.between(add, greatest, together)
    assert conflicts.between(greatest, write, together)
    assert conflicts.between(write, write, together)
    assert not conflicts.between(reads[0], write, together)  # another buffer


def test_iterations_that_threads_are_not_in_together_are_told_apart():
    conflicts, k, found, around = _kernel("S[k, tx] = 1f32 A[0] = S[k + 1, tx]")
    p, q = found[0], found[1]
    assert not conflicts.between(p, q, around | {k.var})
    assert conflicts.between(p, q, around)


@pytest.mark.parametrize(
    ("stmts", "of_any", "of_previous"),
    [
        ("S[k % 2, tx] = 1f32 A[0] = S[k % 2, tx + 1]", True, False),  # two buffers in turn
        ("S[k, tx] = 1f32 A[0] = S[k + 1, tx + 1]", False, False),  # ahead of all writes
        ("S[k, tx] = 1f32 A[0] = S[k - 1, tx + 1]", True, True),
        ("S[k, ty * 16 + tx] = 1f32 A[0] = S[k - 1, ty * 16 + tx]", False, False),
    ],
)
def test_earlier_iterations(stmts, of_any, of_previous):
    conflicts, k, (write, read, _), around = _kernel(stmts)
    together = around | {k.var}
    for is_previous, expected in ((False, of_any), (True, of_previous)):
        (earlier,) = in_earlier_iteration([write], k, is_previous)
        assert conflicts.between(earlier, read, together) == expected


def test_accesses_of_one_scope_stay_in_one():
    _, k, (write, read, _), _ = _kernel("S[k, tx] = 1f32 A[0] = S[k, tx]")
    first, second = in_earlier_iteration([write, read], k, False)
    assert first.scope is second.scope
    first, second = narrowed([write, read], k.var < 3)
    assert first.scope is second.scope and isinstance(first.scope[-1], Holds)


def test_reads_with_what_is_known_where_they_are():
    func = parse_func(
        "func f(A: i64[8] out) { A[0] = (let i: i64 = A[1] in if_then_else(i < 2, A[i], A[3])) }"
    )
    scopes = {
        str(read.indices[0]): [type(entry) for entry in read.scope]
        for read in reads_in(func.body.value, ())
    }
    assert scopes == {"1": [], "i": [Named, Holds], "3": [Named, Holds]}
    twice = BufferLoad(func.buffers[0], (func.body.indices[0],))
    assert len(list(reads_in(twice + twice, ()))) == 1
