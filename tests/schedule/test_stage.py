from linecache import getlines

import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import IntImm
from refcomp.schedule.stage import Provenance, Stage


def _stage():
    a = refcomp.placeholder((4, 8), name="A")
    k = refcomp.reduce_axis((0, 8), "k")
    op = refcomp.compute((4,), lambda i: refcomp.sum(a[i, k], axis=k), name="B").op
    stage = Stage(op, "B", True)
    stage.loops.leaves = list(stage.roots)
    return stage


def test_roots_are_the_operations_axes_reductions_last():
    assert [axis.name for axis in _stage().roots] == ["i", "k"]


def test_the_position_of_a_loop_counts_from_the_outermost():
    stage = _stage()
    assert [stage.loops.position(axis) for axis in stage.roots] == [0, 1]
    stage.loops.leaves.reverse()
    assert [stage.loops.position(axis) for axis in stage.roots] == [1, 0]


def test_stages_share_no_state():
    one, other = _stage(), _stage()
    pairs = ((one.loops, other.loops), (one.memory, other.memory), (one.threads, other.threads))
    assert all(mine is not theirs for mine, theirs in pairs)


def test_derived_axes_get_unique_names_and_remember_their_maker():
    stage = _stage()
    call = Provenance("split", "file.py:3")
    axis = stage.derive_axis("i", IntImm(4, refcomp.as_dtype("i64")), "data_parallel", call)
    assert axis.name == "i.1" and stage.loops.provenance[axis] is call


def test_a_foreign_axis_is_refused_and_the_loops_are_told():
    stage = _stage()
    foreign = refcomp.reduce_axis((0, 3), "other")
    with pytest.raises(UserError) as caught:
        stage.leaf(foreign, "split")
    number = int(stage.op.line.rpartition(":")[2])
    declaration = getlines(__file__)[number - 1].strip()
    assert str(caught.value) == (
        "cannot split axis other of stage B\n"
        f"  --> {stage.op.line}\n"
        f"   |     {declaration}\n"
        f"   |     {'-' * len(declaration)} stage B is declared here\n"
        "  where: stage B, loops: i (data_parallel), k (reduction)\n"
        "  why: it is not an axis of this stage\n"
        "  what to do: use one of the stage's loops"
    )


def test_something_that_is_no_axis_is_refused():
    with pytest.raises(UserError, match="cannot reorder axis 7 of stage B"):
        _stage().leaf(7, "reorder")
