import re

import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import Unsupported, UserError

M, N = refcomp.var("m"), refcomp.var("n")
X = refcomp.placeholder((M, N), name="X")


def state(shape=(M, N), name="st", dtype="float32"):
    return refcomp.placeholder(shape, dtype, name)


def init(rows=1):
    return refcomp.compute((rows, N), lambda t, i: X[0, i], name="init")


def update(st, back=1):
    return refcomp.compute((M, N), lambda t, i: st[t - back, i] + X[t, i], name="up")


def test_the_operation():
    st = state()
    first, up = init(), update(st)
    s = refcomp.scan(first, up, st, inputs=[X], name="S", tag="sum")
    op = s.op
    assert (op.init, op.update, op.state) == ((first,), (up,), (st,))
    assert (op.inputs, op.tag, op.reduce_axis) == ((first, up, X), "sum", ())
    assert [(a.name, a.kind) for a in op.axis] == [("S.idx", "ordered"), ("S.out0.i1", "opaque")]
    assert (str(op.scan_axis.minimum), str(op.scan_axis.extent)) == ("1", "m - 1")
    assert [inner.name for inner in op.body_operations()] == ["up"]
    assert (s.shape, str(s.dtype)) == (st.shape, "f32")


def test_several_states_have_rows_of_their_own():
    a, b = state(name="a"), state((M,), "b", "int32")
    ia, ib = init(2), refcomp.compute((2,), lambda t: 1, name="ib")
    ua = update(a, 2)
    ub = refcomp.compute((M,), lambda t: b[t - 1] + b[t - 2], name="ub")
    first, second = refcomp.scan([ia, ib], [ua, ub], [a, b], name="S")
    assert (first.op is second.op, second.name, str(second.dtype)) == (True, "S.v1", "i32")
    assert [len(first.op.row_axes(k)) for k in range(2)] == [1, 0]
    assert isinstance(refcomp.scan([ia], [ua], [a]), list)


def test_what_stands_between_state_and_update_is_computed_for_each_row():
    st = state()
    double = refcomp.compute((M, N), lambda t, i: st[t - 1, i] * 2.0, name="double")
    apart = refcomp.compute((M, N), lambda t, i: X[t, i] * 2.0, name="apart")
    up = refcomp.compute((M, N), lambda t, i: double[t, i] + apart[t, i], name="up")
    s = refcomp.scan(init(), up, st)
    assert [inner.name for inner in s.op.body_operations()] == ["double", "up"]


def test_a_range_of_constants():
    st = state((8, 4))
    up = refcomp.compute((8, 4), lambda t, i: st[t - 3, i], name="up")
    s = refcomp.scan(refcomp.compute((3, 4), lambda t, i: 0.0, name="init"), up, st)
    assert (str(s.op.scan_axis.minimum), str(s.op.scan_axis.extent)) == ("3", "5")


def _of(inits, updates, states):
    return lambda: refcomp.scan(inits, updates, states, name="S")


ST = state()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (_of(3, update(ST), ST), "the init of scan S is 3, which is not a tensor"),
        (_of(init(), update(ST), [ST, ST]), "scan S has 1 inits, 1 updates and 2 states"),
        (_of([], [], []), "scan S has 0 inits, 0 updates and 0 states"),
        (_of([init()] * 2, [update(ST)] * 2, [ST, ST]), "scan S has one state twice"),
        (_of(init(), update(ST), init()), "the state init of scan S is a compute"),
        (_of(init(), update(ST), state((M, 4))), "init does not fit the state st of scan S"),
        (
            _of(init(), update(ST), state(dtype="float64")),
            "f32[1, n], where f64[m, n] belongs",
        ),
        (
            _of([init(1), init(2)], [update(ST), update(ST)], [ST, state()]),
            "scan S has init of 1 rows, and init of 2",
        ),
        (_of(init(), init(), ST), "init does not fit the state"),
        (
            _of(refcomp.compute((1, N), lambda t, i: ST[0, i], name="z"), update(ST), ST),
            "the init of scan S depends on the state st",
        ),
        (
            _of(init(), refcomp.compute((M, N), lambda t, i: ST[t, i], name="up"), ST),
            "the update up of scan S reads row t of the state st to compute row t",
        ),
        (
            _of(init(), refcomp.compute((M, N), lambda t, i: ST[1, i], name="up"), ST),
            "cannot be shown that 1 < t",
        ),
    ],
)
def test_mistakes(build, message):
    with pytest.raises(UserError, match=re.escape(message)):
        build()


def test_only_computes_compute_rows():
    st = state()
    out = refcomp.extern(
        (M, N), [st], lambda ins, outs: refcomp.call_packed("f", ins[0], outs[0]), name="E"
    )
    up = refcomp.compute((M, N), lambda t, i: out[t, i], name="up")
    with pytest.raises(Unsupported, match="E, an extern operation, stands between"):
        refcomp.scan(init(), up, st, name="S")


def test_an_earlier_row_is_read_in_a_scan_only():
    st = state()
    up = update(st)
    assert up.op.waits_for_scan
    refcomp.create_schedule(refcomp.scan(init(), up, st))
    with pytest.raises(UserError, match="compute up reads index -1 of dimension 0 of st"):
        refcomp.create_schedule(up)
    with pytest.raises(UserError, match="reads index -1 of dimension 1"):
        refcomp.compute((M, N), lambda t, i: st[t - 1, i - 1], name="up")


def _through(made, row):
    """An update that reads row `row(t)` of the compute `made`."""
    return refcomp.compute((M, N), lambda t, i: made[row(t), i] + 1.0, name="up")


def _later(t):
    return refcomp.minimum(t + 1, M - 1)


def _before(t):
    return refcomp.maximum(t - 1, 0)


def test_a_row_that_is_not_there_yet_is_not_read_by_way_of_computes():
    """Which row of the state is read is found by putting the reads into each other."""
    st = state()
    mid = refcomp.compute((M, N), lambda t, i: st[t - 1, i] * 2.0, name="mid")
    wide = refcomp.compute((M, N), lambda t, i: mid[_later(t), i], name="wide")
    for made, row in ((mid, _later), (wide, lambda t: t)):
        with pytest.raises(
            UserError,
            match=re.escape("the update up of scan S reads row min(t + 1, m - 1) - 1 of the state"),
        ):
            refcomp.scan(init(), _through(made, row), st, name="S")
    refcomp.scan(init(), _through(mid, _before), st)
    own = refcomp.compute((M, N), lambda t, i: st[t, i] * 2.0, name="own")
    refcomp.scan(init(), _through(own, _before), st)


def test_the_first_rows_are_there_for_all_others():
    st = state()
    up = refcomp.compute((M, N), lambda t, i: st[1, i] + st[_before(t), i], name="up")
    refcomp.scan(init(2), up, st)
    with pytest.raises(UserError, match="cannot be shown that 1 < t"):
        refcomp.scan(init(1), up, st)


@pytest.mark.parametrize("row", [_before, _later])
@pytest.mark.parametrize("is_direct", [True, False])
def test_of_another_update_only_the_row_is_read(row, is_direct):
    """It has the memory of the result, where an earlier row may be one of the init's."""
    a, b = state(name="a"), state(name="b")
    first = refcomp.compute((M, N), lambda t, i: X[t, i] * 2.0, name="first")
    made = first if is_direct else refcomp.compute((M, N), lambda t, i: first[t, i], name="mid")
    with pytest.raises(
        UserError,
        match=r"reads row .*t [+-] 1.* of the update first to compute row t\n(.|\n)*"
        r"first computes row t alone then, in the memory of the result\n"
        r".*read an earlier row of the result: a\[t - 1, ...\]",
    ):
        refcomp.scan([init(), init()], [first, _through(made, row)], [a, b], name="S")
    refcomp.scan([init(), init()], [first, _through(made, lambda t: t * 1)], [a, b])


@pytest.mark.parametrize("steps", [1, 2])
def test_a_scan_of_its_first_rows_alone_may_read_rows_before_them(steps):
    x, state = refcomp.placeholder((2, 3), name="X"), refcomp.placeholder((steps, 3), name="S")
    init = refcomp.compute((steps, 3), lambda t, i: x[t, i], name="init")
    update = refcomp.compute((steps, 3), lambda t, i: state[t - steps, i] + 1, name="U")
    made = refcomp.scan(init, update, state, inputs=[x], name="R")
    values = np.arange(6, dtype="float32").reshape(2, 3)
    (found,) = refcomp.oracle.evaluate([made], {x: values})
    assert found.tolist() == values[:steps].tolist()
    alone = refcomp.compute((steps, 3), lambda t, i: state[t - steps, i] + 1, name="V")
    with pytest.raises(UserError, match="compute V reads index -"):
        refcomp.create_schedule(alone)


def test_a_read_of_a_row_behind_the_last_is_refused_at_once():
    state = refcomp.placeholder((2, 3), name="S")
    with pytest.raises(UserError, match="reads index 2 of dimension 0"):
        refcomp.compute((2, 3), lambda t, i: state[t + 1, i], name="U")
