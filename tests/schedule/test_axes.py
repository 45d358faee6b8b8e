import pytest

import refcomp
from refcomp.arith import Facts
from refcomp.oracle.interpreter.interpret import evaluate_expr
from refcomp.schedule.axes import infer_extents, root_indices


def _stage(n=10):
    a = refcomp.placeholder((n, 6), name="A")
    b = refcomp.compute((n, 6), lambda i, j: a[i, j] + 1.0, name="B")
    s = refcomp.create_schedule(b.op)
    return s[b], *b.op.axis


def _facts(stage, extents):
    facts = Facts()
    for leaf in stage.leaf_iter_vars:
        facts = facts.bind(leaf.var, leaf.minimum, extents[leaf])
    return facts


def test_extents_go_down_through_splits_and_fusions():
    stage, i, j = _stage()
    outer, inner = stage.split(i, factor=4)
    fused = stage.fuse(inner, j)
    extents = infer_extents(stage.stage)
    assert [extents[axis].value for axis in (i, j, outer, inner, fused)] == [10, 6, 3, 4, 24]


@pytest.mark.parametrize(("factor", "guards"), [(5, []), (4, ["i"])])
def test_guards_name_the_axis_they_keep_inside(factor, guards):
    stage, i, _ = _stage()
    stage.split(i, factor=factor)
    extents = infer_extents(stage.stage)
    indices = root_indices(stage.stage, extents, _facts(stage, extents))
    assert [guard.axis.name for guard in indices.guards] == guards


@pytest.mark.parametrize("splits", [[("i", 4), ("i.outer", 2)], [("i", 4), ("i.inner", 3)]])
def test_every_point_is_visited_exactly_once(splits):
    stage, i, j = _stage(11)
    axes = {"i": i, "j": j}
    for name, factor in splits:
        outer, inner = stage.split(axes[name], factor=factor)
        axes |= {outer.name: outer, inner.name: inner}
    extents = infer_extents(stage.stage)
    indices = root_indices(stage.stage, extents, _facts(stage, extents))
    loops = [leaf for leaf in stage.leaf_iter_vars if leaf is not j]
    visited = []
    for point in _points([extents[leaf].value for leaf in loops]):
        values = {leaf.var: value for leaf, value in zip(loops, point, strict=True)}
        if all(_evaluate(guard.condition, values) for guard in indices.guards):
            visited.append(_evaluate(indices.values[i], values))
    assert sorted(visited) == list(range(11))


def _points(extents):
    if not extents:
        return [()]
    return [(k, *rest) for k in range(extents[0]) for rest in _points(extents[1:])]


def _evaluate(expr, values):
    return int(evaluate_expr(expr, values))


def test_needless_guards_of_outer_splits_are_dropped():
    stage, i, _ = _stage(10)
    outer, _ = stage.split(i, factor=4)  # 3 x 4 >= 10
    stage.split(outer, factor=2)  # 2 x 2 >= 3: implied by the guard of i
    extents = infer_extents(stage.stage)
    indices = root_indices(stage.stage, extents, _facts(stage, extents))
    assert [guard.axis.name for guard in indices.guards] == ["i"]
