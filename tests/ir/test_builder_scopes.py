"""Open scopes close to one statement; kernels get their canonical form."""

import refcomp
from refcomp.foundation.dtype import I64
from refcomp.ir.builder_scopes import OpenScope, with_kernels
from refcomp.ir.expr import IntImm, Var
from refcomp.ir.stmt import Block, For, LoopKind

A = refcomp.decl_buffer((4,), name="A")
first, second = A.vstore(0, 1.0), A.vstore(1, 2.0)


def _loop(kind, body):
    return For(Var(kind, I64), IntImm(0, I64), IntImm(2, I64), kind, body)


def test_a_wrap_goes_around_what_follows_it():
    scope = OpenScope([first, second])
    scope.wraps.append((1, lambda body: _loop(LoopKind.SERIAL, body)))
    closed = scope.close()
    assert isinstance(closed, Block) and closed.stmts[0] is first
    assert isinstance(closed.stmts[1], For) and closed.stmts[1].body is second


def test_loops_of_threads_change_places():
    threads = _loop(LoopKind.THREAD_X, _loop(LoopKind.BLOCK_X, first))
    made = with_kernels(threads)
    assert (made.kind, made.body.kind) == (LoopKind.BLOCK_X, LoopKind.THREAD_X)
    assert with_kernels(first) is first
