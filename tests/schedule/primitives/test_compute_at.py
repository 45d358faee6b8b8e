import pytest

import refcomp
from refcomp.foundation.errors import UserError
from tests.quotations import quoted


def _chain():
    a = refcomp.placeholder((4, 4), name="A")
    b = refcomp.compute((4, 4), lambda i, j: a[i, j] + 1.0, name="B")
    c = refcomp.compute((4, 4), lambda i, j: b[i, j] * 2.0, name="C")
    d = refcomp.compute((4, 4), lambda i, j: c[j, i] * 2.0, name="D")
    return refcomp.create_schedule(d.op), a, b, c, d


def test_a_stage_is_attached_and_detached():
    s, _, b, c, _ = _chain()
    i = c.op.axis[0]
    s[b].compute_at(s[c], i)
    assert s[b].stage.attach_point.stage is s[c].stage and s[b].stage.attach_point.axis is i
    assert s[b].stage.attach_point.line.startswith(__file__)
    assert s[c].stage.attached == (s[b].stage,)
    s[b].compute_root()
    assert s[b].stage.attach_point is None and s[c].stage.attached == ()


def test_a_stage_may_be_attached_to_a_reader_of_its_reader():
    s, _, b, _, d = _chain()
    s[b].compute_at(s[d], d.op.axis[1])
    assert s[b].stage.attach_point.stage is s[d].stage


def test_what_is_given_or_asked_for_as_a_whole_is_not_attached():
    s, a, b, _, d = _chain()
    with pytest.raises(UserError, match=r"it is a placeholder(.|\n)*cache_read"):
        s[a].compute_at(s[b], b.op.axis[0])
    with pytest.raises(UserError, match=r"it is an output of the schedule(.|\n)*cache_write"):
        s[d].compute_at(s[b], b.op.axis[0])


def test_the_consumer_is_a_stage_that_reads():
    s, _, b, c, d = _chain()
    with pytest.raises(UserError, match=r"stage B does not read it(.|\n)*a stage that does: D"):
        s[c].compute_at(s[b], b.op.axis[0])
    with pytest.raises(UserError, match=r"is not a stage(.|\n)*name the consumer as s\[C\]"):
        s[b].compute_at(c, c.op.axis[0])
    assert d is not None


def test_the_loop_is_one_of_the_consumers():
    s, _, b, c, d = _chain()
    with pytest.raises(UserError, match="cannot compute_at axis i of stage C"):
        s[b].compute_at(s[c], d.op.axis[0])
    outer, _ = s[c].split(c.op.axis[0], factor=2)
    with pytest.raises(UserError, match=r"why: split replaced it by i.outer\n") as caught:
        s[b].compute_at(s[c], c.op.axis[0])
    split = "outer, _ = s[c].split(c.op.axis[0], factor=2)"
    assert quoted(caught.value, "split here") == split
    s[b].compute_at(s[c], outer)


def test_another_reader_that_can_never_be_inside():
    a = refcomp.placeholder((4,), name="A")
    b = refcomp.compute((4,), lambda i: a[i] + 1.0, name="B")
    c = refcomp.compute((4,), lambda i: b[i] + 1.0, name="C")
    d = refcomp.compute((4,), lambda i: b[i] + 1.0, name="D")
    s = refcomp.create_schedule([c, d])
    with pytest.raises(UserError, match=r"stage D also reads it(.|\n)*a copy by cache_read"):
        s[b].compute_at(s[c], c.op.axis[0])


def test_a_loop_that_holds_a_stage_stays():
    s, _, b, c, _ = _chain()
    i, j = c.op.axis
    s[b].compute_at(s[c], i)
    for primitive, args in (("split", (i, 2)), ("fuse", (i, j)), ("tile", (i, j, 2, 2))):
        with pytest.raises(UserError, match=rf"stage B is computed at it(.|\n)*{primitive} first"):
            getattr(s[c], primitive)(*args)
    s[c].reorder(j, i)
    s[c].vectorize(j)


def test_an_inlined_stage_holds_nothing():
    s, _, b, c, _ = _chain()
    s[c].compute_inline()
    with pytest.raises(UserError, match="stage C is inlined and has no loops"):
        s[b].compute_at(s[c], c.op.axis[0])
    s[c].compute_root()
    s[b].compute_at(s[c], c.op.axis[0])
    with pytest.raises(UserError, match=r"stage B is computed at one of its loops"):
        s[c].compute_inline()


def test_extents_of_an_attached_stage_are_judged_when_it_is_lowered():
    n = refcomp.var("n")
    a = refcomp.placeholder((n,), name="A")
    b = refcomp.compute((n,), lambda i: a[i] + 1.0, name="B")
    c = refcomp.compute((n,), lambda i: b[i] * 2.0, name="C")
    s = refcomp.create_schedule(c)
    outer, inner = s[c].split(c.op.axis[0], factor=8)
    s[b].compute_at(s[c], outer)
    s[b].vectorize(b.op.axis[0])  # 8 elements at a time
    refcomp.lower(s, [a, c])
    s[b].compute_root()
    with pytest.raises(UserError, match="cannot vectorize axis i of stage B"):
        refcomp.lower(s, [a, c])
    assert inner.extent.value == 8


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("init", "it fills the first rows of scan S before its loop begins"),
        ("B", "init init, which reads it, fills the first rows of scan S before its loop begins"),
    ],
)
def test_what_an_init_needs_is_not_attached_to_the_loop_of_its_scan(name, why):
    n = refcomp.var("n")
    x = refcomp.placeholder((n, 4), name="X")
    b = refcomp.compute((1, 4), lambda t, i: x[t, i] + 1.0, name="B")
    init = refcomp.compute((1, 4), lambda t, i: b[t, i] * 2.0, name="init")
    state = refcomp.placeholder((n, 4), name="state")
    row = refcomp.compute((n, 4), lambda t, i: state[t - 1, i] + x[t, i], name="T")
    update = refcomp.compute((n, 4), lambda t, i: row[t, i] * 2.0, name="U")
    scan = refcomp.scan(init, update, state, inputs=[x], name="S")
    s = refcomp.create_schedule(scan.op)
    stage = s[{"init": init, "B": b}[name]]
    with pytest.raises(UserError) as caught:
        stage.compute_at(s[scan], scan.op.scan_axis)
    assert str(caught.value).startswith(f"cannot compute stage {name} at a loop of another")
    assert caught.value.why == why
    assert caught.value.remedy == f"compute it before the scan: s[{name}].compute_root()"
    refcomp.lower(s, [x, scan])
    if name == "B":  # at a loop of the init it may be
        stage.compute_at(s[init], init.op.axis[0])
        refcomp.lower(s, [x, scan])
