import pytest

import refcomp
from refcomp.foundation.errors import UserError
from tests.quotations import quoted, quoted_call


def _schedule(shape=(16, 10)):
    a = refcomp.placeholder(shape, name="A")
    b = refcomp.compute(shape, lambda i, j: a[i, j] + 1.0, name="B")
    s = refcomp.create_schedule(b.op)
    return s, s[b], *b.op.axis


def _names(stage):
    return [axis.name for axis in stage.leaf_iter_vars]


def test_split_replaces_the_loop_in_place():
    _, stage, i, _ = _schedule()
    outer, inner = stage.split(i, factor=4)
    assert _names(stage) == ["i.outer", "i.inner", "j"]
    assert (outer.extent.value, inner.extent.value) == (4, 4)


def test_split_again_and_names_stay_unique():
    _, stage, i, _ = _schedule()
    outer, _ = stage.split(i, factor=4)
    stage.split(outer, nparts=2)
    assert _names(stage) == ["i.outer.outer", "i.outer.inner", "i.inner", "j"]


def test_tile_orders_both_outer_loops_first():
    _, stage, i, j = _schedule()
    made = stage.tile(i, j, 4, 5)
    assert _names(stage) == ["i.outer", "j.outer", "i.inner", "j.inner"]
    assert [axis.name for axis in made] == _names(stage)


@pytest.mark.parametrize("options", [{}, {"factor": 2, "nparts": 2}])
def test_exactly_one_of_factor_and_nparts(options):
    _, stage, i, _ = _schedule()
    with pytest.raises(UserError, match=r"either factor or nparts(.|\n)*exactly one"):
        stage.split(i, **options)


@pytest.mark.parametrize("factor", [0, -4, 2.5, True, "4"])
def test_the_factor_is_a_positive_int(factor):
    _, stage, i, _ = _schedule()
    with pytest.raises(UserError, match=r"with factor (.|\n)*an int of at least 1"):
        stage.split(i, factor=factor)
    assert _names(stage) == ["i", "j"]


def test_a_loop_that_was_split_is_gone():
    _, stage, i, _ = _schedule()
    stage.split(i, factor=4)
    with pytest.raises(UserError, match=r"why: split replaced it by i.outer\n") as caught:
        stage.split(i, factor=2)
    assert quoted(caught.value, "split here") == "stage.split(i, factor=4)"
    assert quoted_call(caught.value) == "stage.split(i, factor=2)"


def test_a_marked_loop_cannot_be_split():
    _, stage, i, _ = _schedule()
    stage.parallel(i)
    with pytest.raises(UserError, match=r"it is parallel already(.|\n)*split first"):
        stage.split(i, factor=2)


def test_tile_wants_nested_loops_and_leaves_no_trace_otherwise():
    _, stage, i, j = _schedule()
    with pytest.raises(UserError, match="loop i is not directly inside it"):
        stage.tile(j, i, 4, 5)
    with pytest.raises(UserError, match="with factor 0"):
        stage.tile(i, j, 4, 0)
    assert _names(stage) == ["i", "j"]
