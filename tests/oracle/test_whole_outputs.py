"""Elements of outputs that nothing writes are found, and who came nearest is told."""

import numpy as np
import pytest

import refcomp
from refcomp.ir.parser import parse_func
from refcomp.oracle.interpreter.interpret import InterpretError
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.oracle.whole_outputs import interpret_whole


def _run(body, shape=(2, 3), **options):
    array = np.full(shape, 7)
    interpret_whole(parse_func(f"func f(A: i64[n, m] out) {{ {body} }}"), [array], **options)
    return array.tolist()


def _finding(body, **options):
    with pytest.raises(InterpretError) as caught:
        _run(body, **options)
    return str(caught.value).splitlines()


@pytest.mark.parametrize("in_step", [None, 1])
def test_what_is_written_all_over_is_accepted(in_step):
    body = "for i in range(n) { for j in range(m) { A[i, j] = i + j } }"
    assert _run(body, in_step=in_step) == [[0, 1, 2], [1, 2, 3]]
    assert _run(body, shape=(0, 3), in_step=in_step) == []


@pytest.mark.parametrize("in_step", [None, 1])
def test_elements_never_written_tell_the_nearest_write(in_step):
    body = "for i in range(n) { for j in range(m - 1) { A[i, j] = i + j } }"
    assert _finding(body, in_step=in_step) == [
        "element [0, 2] of A is never written",
        "  where: A[i, j] = i + j with n = 2, m = 3, i = 0, j = 1",
        "  why: 2 of 6 elements are not; what comes nearest is the write of element [0, 1]",
    ]


@pytest.mark.search
@pytest.mark.parametrize("in_step", [None, 1])
def test_the_nearest_write_may_be_a_thread_s(in_step):
    body = "for g in range(n) blockIdx.x { for t in range(m) threadIdx.x { WHAT } }"
    found = _finding(body.replace("WHAT", "if (g + t > 0) { A[g, t] = 1 }"), in_step=in_step)
    assert found == [
        "element [0, 0] of A is never written",
        "  where: A[g, t] = 1 with n = 2, m = 3, g = 0, t = 1",
        "  why: 1 of 6 elements are not; what comes nearest is the write of element [0, 1]",
    ]


def test_what_nothing_writes_tells_who_would():
    assert _finding("if (n < 0) { A[0, 1] = 1 }") == [
        "element [0, 0] of A is never written",
        "  where: A[0, 1] = 1",
        "  why: 6 of 6 elements are not",
    ]
    assert _finding("let x: i64 = 1 { }")[1:] == ["  why: 6 of 6 elements are not"]


@pytest.mark.parametrize("in_step", [None, 1])
def test_what_an_output_held_before_must_not_be_read(in_step):
    body = "for i in range(n) { for j in range(m) { A[i, j] = A[i, j] + 1 } }"
    assert "of A is read, never written" in _finding(body, in_step=in_step)[0]
    interpret(parse_func(f"func f(A: i64[n, m] out) {{ {body} }}"), [np.zeros((2, 3), np.int64)])


def test_what_lowering_makes_is_told_by_stage_line_and_primitive():
    a = refcomp.placeholder((8,), name="A")
    b = refcomp.compute((8,), lambda i: a[i] + 1, name="B")
    s = refcomp.create_schedule(b.op)
    s[b].split(b.op.axis[0], 4)
    func = refcomp.lower(s, [a, b])
    values = [np.zeros(8, np.float32), np.zeros(8, np.float32)]
    interpret_whole(func, values)
    outer = func.body
    shorter = func.with_body(type(outer)(outer.var, outer.minimum, outer.extent - 1, *_rest(outer)))
    with pytest.raises(InterpretError, match=r"element \[4\] of B is never written") as caught:
        interpret_whole(shorter, values)
    where = caught.value.where
    assert "(stage B, at " in where
    assert "i.outer = 0 (by split, at " in where and "i.inner = 3 (by split, at " in where
    assert where.count("test_whole_outputs.py:") == 3


def _rest(loop):
    return loop.kind, loop.body, loop.origin
