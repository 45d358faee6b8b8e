import pytest

import refcomp
from refcomp.foundation.errors import UserError


def _stage():
    a = refcomp.placeholder((4, 5, 6), name="A")
    b = refcomp.compute((4, 5, 6), lambda x, y, z: a[x, y, z] + 1.0, name="B")
    return refcomp.create_schedule(b.op)[b], *b.op.axis


def test_loops_not_named_stay_where_they_are():
    stage, x, _, z = _stage()
    stage.reorder(z, x)
    assert [axis.name for axis in stage.leaf_iter_vars] == ["z", "y", "x"]


def test_a_loop_named_twice():
    stage, x, y, _ = _stage()
    with pytest.raises(UserError, match=r"axis x(.|\n)*named twice"):
        stage.reorder(x, y, x)


def test_a_foreign_axis():
    stage, x, _, _ = _stage()
    with pytest.raises(UserError, match="it is not an axis of this stage"):
        stage.reorder(x, refcomp.reduce_axis((0, 3), "k"))
