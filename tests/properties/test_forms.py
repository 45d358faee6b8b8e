"""The forms that random tests count are found where they are, and nowhere else."""

import refcomp
from tests.properties.forms import FORMS, forms_of
from tests.strategies.computation import Computation

N, M = refcomp.var("n"), refcomp.var("m")


def _case(extent, index, sizes):
    a = refcomp.placeholder((extent,), name="A")
    e = refcomp.compute((extent,), lambda i: a[i] + 1, name="E")
    k = refcomp.reduce_axis((0, 3), "k")
    c = refcomp.compute((N,), lambda i: refcomp.sum(e[index(i + k)], axis=k), name="C")
    return Computation("case", (a, c), (c,), sizes), refcomp.create_schedule(c), a, e, c


def test_a_plain_one_has_none():
    computation, schedule, *_ = _case(N + 2, lambda i: i, {N: 4})
    assert forms_of(computation, schedule) == {"computed extents"}


def test_reads_at_edges_and_where_they_are_computed():
    computation, s, _, e, c = _case(M, lambda i: refcomp.minimum(i, M - 1), {N: 4, M: 2})
    plain = {"several symbols", "edge reads", "symbolic edge reads"}
    assert forms_of(computation, s) == plain
    s[e].compute_at(s[c], c.op.axis[0])
    assert forms_of(computation, s) == {*plain, "attached edge reads"}
    copy = s.cache_read(e, "global", [c])
    s[copy].compute_at(s[c], c.op.axis[0])
    assert forms_of(computation, s) == {*plain, "copied edge reads"}
    computation, s, _, _, c = _case(M, lambda i: refcomp.minimum(i, M - 1), {N: 4, M: 2})
    s.rfactor(c, c.op.reduce_axis[0])
    assert forms_of(computation, s) == {*plain, "factored edge reads"}


def test_a_remainder_by_a_constant_is_not_symbolic():
    computation, schedule, *_ = _case(7, lambda i: i % 7, {N: 4})
    assert forms_of(computation, schedule) == {"edge reads"}


def test_an_init_whose_stage_is_computed_at_its_loop():
    x = refcomp.placeholder((N, 4), name="X")
    first = refcomp.compute((1, 4), lambda t, i: x[t, i] + 1, name="F")
    init = refcomp.compute((1, 4), lambda t, i: first[t, i], name="init")
    state = refcomp.placeholder((N, 4), name="state")
    update = refcomp.compute((N, 4), lambda t, i: state[t - 1, i] + x[t, i], name="U")
    made = refcomp.scan(init, update, state, inputs=[x], name="S")
    computation = Computation("scan", (x, made), (made,), {N: 4})
    s = refcomp.create_schedule(made.op)
    assert forms_of(computation, s) == set()
    s[first].compute_at(s[init], init.op.axis[0])
    assert forms_of(computation, s) == {"attached inits"} <= set(FORMS)
