"""Each finding names the statement, the loop indices, the user's line and the primitive.

A tiled matrix product with tiles in shared memory, as lowered, is broken in one place for each kind
of finding; the texts are those of the plain interpreter and of what runs in step.
"""

import inspect
import re

import numpy as np
import pytest

import refcomp
from refcomp.ir import stmt as st
from refcomp.ir.expr import LT, IntImm, Var
from refcomp.ir.promotion import const
from refcomp.ir.rewrite import map_children, memoised, substitute, walk
from refcomp.oracle.interpreter.interpret import InterpretError
from refcomp.oracle.whole_outputs import interpret_whole
from refcomp.passes.insert_barriers import insert_barriers

_SIZE, _TILE = 8, 4
_LINES = {}


def _marked(name, made):
    """`made`, whose line is remembered under `name`."""
    _LINES[name] = inspect.currentframe().f_back.f_lineno
    return made


def _threads(tag):
    return refcomp.thread_axis((0, _TILE), f"threadIdx.{tag}")


def _matmul():
    a = refcomp.placeholder((_SIZE, _SIZE), "int32", "A")
    b = refcomp.placeholder((_SIZE, _SIZE), "int32", "B")
    k = refcomp.reduce_axis((0, _SIZE), "k")
    c = refcomp.compute(
        (_SIZE, _SIZE), lambda i, j: refcomp.sum(a[i, k] * b[k, j], axis=k), name="C"
    )
    s = refcomp.create_schedule(c.op)
    shared = _marked("cache_read", s.cache_read(a, "shared", [c]))
    local = _marked("cache_write", s.cache_write(c, "local"))
    x, y, xi, yi = _marked("tile", s[c].tile(*c.op.axis, _TILE, _TILE))
    s[c].bind(x, refcomp.thread_axis("blockIdx.y"))
    _marked("bind", s[c].bind(y, refcomp.thread_axis("blockIdx.x")))
    s[c].bind(xi, _threads("y"))
    s[c].bind(yi, _threads("x"))
    s[local].compute_at(s[c], yi)
    outer, _ = _marked("split", s[local].split(s[local].op.reduce_axis[0], _TILE))
    s[shared].compute_at(s[local], outer)
    s[shared].bind(s[shared].op.axis[0], _threads("y"))
    s[shared].bind(s[shared].op.axis[1], _threads("x"))
    return refcomp.lower(s, [a, b, c])


FUNC = _matmul()
WHOLE = insert_barriers(FUNC)


def _var(name):
    return next(node for node in walk(WHOLE.body) if isinstance(node, Var) and node.name == name)


def _changed(matches, change):
    """The function with each statement that `matches` changed."""

    def visit(recurse, node):
        return change(node) if matches(node) else map_children(node, recurse)

    return WHOLE.with_body(memoised(visit)(WHOLE.body))


def _stores(name):
    return lambda node: isinstance(node, st.BufferStore) and node.buffer.name == name


def _guarded(name):
    condition = LT(_var(name), IntImm(_TILE - 1, _var(name).dtype))
    return lambda stmt: st.IfThenElse(condition, stmt, None, stmt.origin)


_BROKEN = {
    "race": (FUNC, "a race on element|read, never written"),
    "groups": (
        _changed(_stores("C"), lambda s: substitute(s, {_var("blockIdx.x"): const(0, "int64")})),
        r"a race on element \d+ of C",
    ),
    "outside": (
        _changed(
            lambda node: isinstance(node, st.For) and node.var.name == "k.inner",
            lambda loop: st.For(
                loop.var, loop.minimum, loop.extent + 1, loop.kind, loop.body, loop.origin
            ),
        ),
        "index 4 in dimension 1 of A.shared is out of range",
    ),
    "unwritten": (
        _changed(_stores("A.shared"), _guarded("threadIdx.x")),
        r"element \d+ of A.shared is read, never written",
    ),
    "never written": (
        _changed(_stores("C"), _guarded("threadIdx.x")),
        r"element \[0, 3\] of C is never written",
    ),
    "divergent": (
        _changed(
            _stores("C"),
            lambda s: st.Block((s, _guarded("threadIdx.x")(st.Barrier(s.origin)))),
        ),
        "not all threads of a group reach a barrier",
    ),
}
# Which statement each is, and by which primitives it and the loops around it were made.
_NAMED = {
    "race": (r"A\.shared\[|C\.local\[", ("bind", "split")),
    "groups": (r"C\[blockIdx.y \* 4 \+ threadIdx.y, 0 \* 4 \+ threadIdx.x\] = ", ("bind",)),
    "outside": (r"C\.local\[0, 0\] = C\.local\[0, 0\] \+ A\.shared\[", ("cache_write", "split")),
    "unwritten": (r"C\.local\[0, 0\] = C\.local\[0, 0\] \+ A\.shared\[", ("cache_write", "split")),
    "never written": (r"C\[", ("bind",)),
    "divergent": (r"barrier \(stage C", ("bind",)),
}


def _arrays():
    return [np.ones((_SIZE, _SIZE), np.int32) for _ in range(3)]


def test_the_whole_one_is_right():
    arrays = _arrays()
    interpret_whole(WHOLE, arrays)
    assert (arrays[2] == _SIZE).all()


@pytest.mark.parametrize("in_step", [None, 1])
@pytest.mark.parametrize("name", _BROKEN)
def test_a_finding_names_statement_indices_line_and_primitive(name, in_step):
    func, message = _BROKEN[name]
    stmt, primitives = _NAMED[name]
    with pytest.raises(InterpretError, match=message) as caught:
        interpret_whole(func, _arrays(), in_step=in_step)
    where = caught.value.where
    assert re.match(stmt, where), where
    for index in ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x"):
        assert re.search(rf"{index} = \d \(by bind, at \S*test_findings.py:\d+\)", where), where
    for primitive in primitives:
        assert re.search(rf"by {primitive}, at \S*test_findings.py:{_LINES[primitive]}\b", where)


def test_the_other_side_of_a_race_is_named_as_fully():
    with pytest.raises(InterpretError) as caught:
        interpret_whole(_BROKEN["groups"][0], _arrays())
    assert re.search(r"the other is at C\[.* \(stage C, at .*\) with .*by bind", caught.value.why)
