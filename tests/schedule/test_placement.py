import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.schedule.placement import loops_around, loops_between, path
from tests.quotations import quoted


def _chain():
    a = refcomp.placeholder((4, 4), name="A")
    b = refcomp.compute((4, 4), lambda i, j: a[i, j] + 1.0, name="B")
    c = refcomp.compute((4, 4), lambda i, j: b[i, j] * 2.0, name="C")
    d = refcomp.compute((4, 4), lambda i, j: c[i, j] + b[i, j], name="D")
    return refcomp.create_schedule(d.op), a, b, c, d


def _names(loops):
    return [f"{loop.stage.name}.{loop.axis.name}" for loop in loops]


def test_a_path_leads_through_the_hosts():
    s, _, b, c, d = _chain()
    s[c].compute_at(s[d], d.op.axis[0])
    s[b].compute_at(s[d], d.op.axis[0])
    stages = {name: s[tensor].stage for name, tensor in zip("bcd", (b, c, d), strict=True)}
    assert _names(path(stages["c"])) == ["D.i", "C.i", "C.j"]
    assert _names(loops_around(stages["b"])) == ["D.i"] and loops_around(stages["d"]) == []
    assert _names(loops_between(stages["b"], stages["c"])) == ["C.i", "C.j"]
    assert _names(loops_between(stages["b"], stages["d"])) == ["D.j"]


@pytest.mark.parametrize("deeper", [False, True])
def test_a_reader_outside_the_loop(deeper):
    s, a, b, c, d = _chain()
    s[b].compute_at(s[d], d.op.axis[1])
    if deeper:  # C is computed in a loop of D, but around the one that holds B
        s[c].compute_at(s[d], d.op.axis[0])
    with pytest.raises(UserError) as caught:
        refcomp.lower(s, [a, d])
    assert str(caught.value).startswith(
        "stage B is computed inside loop j of stage D, but stage C reads it outside\n"
        f"  --> {__file__}:"
    )
    attached = "s[b].compute_at(s[d], d.op.axis[1])"
    assert quoted(caught.value, "stage B is attached here") == attached
    assert "c = refcomp.compute(" in quoted(caught.value, "stage C is declared here")
    assert "compute C inside that loop too, or B further outside" in str(caught.value)


def test_readers_inside_are_fine_at_the_same_loop_too():
    s, a, b, c, d = _chain()
    s[b].compute_at(s[d], d.op.axis[0])
    s[c].compute_at(s[d], d.op.axis[0])
    refcomp.lower(s, [a, d])
