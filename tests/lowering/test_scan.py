"""Scans as loops, run for real, on random shapes and schedules."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.oracle.tensors.evaluate import evaluate
from refcomp.oracle.whole_outputs import interpret_whole
from refcomp.passes.insert_barriers import insert_barriers

M, N = refcomp.var("m"), refcomp.var("n")


def cell(rows=1, own_init=True):
    """A recurrent cell of two states: h' = g(h W) and c' = c + h'."""
    x, w = refcomp.placeholder((M, N), name="X"), refcomp.placeholder((N, N), name="W")
    h, c = refcomp.placeholder((M, N), name="h"), refcomp.placeholder((M, N), name="c")
    k = refcomp.reduce_axis((0, N), "k")
    first = refcomp.compute((rows, N), lambda t, i: x[0, i], name="h0")
    zero = refcomp.compute((rows, N), lambda t, i: 0.0, name="c0") if own_init else first
    dense = refcomp.compute(
        (M, N), lambda t, i: refcomp.sum(h[t - 1, k] * w[k, i], axis=k), name="dense"
    )
    uh = refcomp.compute(
        (M, N), lambda t, i: refcomp.minimum(dense[t, i] + x[t, i], 9.0), name="uh"
    )
    uc = refcomp.compute((M, N), lambda t, i: c[t - rows, i] + uh[t, i], name="uc")
    hs, cs = refcomp.scan([first, zero], [uh, uc], [h, c], inputs=[x, w], name="S")
    return {"X": x, "W": w, "h0": first, "c0": zero, "dense": dense, "uh": uh, "uc": uc}, hs, cs


def arrays(m, n):
    random = np.random.default_rng(m * 31 + n)
    x = random.integers(-3, 4, (m, n)).astype(np.float32)
    return [x, random.integers(-2, 3, (n, n)).astype(np.float32), x * 0, x * 0]


def check(schedule, parts, hs, cs, m, n, run=None):
    func = refcomp.lower(schedule, [parts["X"], parts["W"], hs, cs])
    args = arrays(m, n)
    wanted = evaluate([hs, cs], {parts["X"]: args[0], parts["W"]: args[1]})
    (run or interpret)(func, args)
    assert args[2].tolist() == wanted[0].tolist() and args[3].tolist() == wanted[1].tolist()


def test_all_states_in_the_memory_of_the_result(golden):
    parts, hs, cs = cell()
    s = refcomp.create_schedule(hs)
    golden(
        "lowering/scan.txt", refcomp.print_func(refcomp.lower(s, [parts["X"], parts["W"], hs, cs]))
    )


def test_an_init_of_two_states_is_copied(golden):
    parts, hs, cs = cell(2, own_init=False)
    s = refcomp.create_schedule(hs)
    func = refcomp.lower(s, [parts["X"], parts["W"], hs, cs])
    golden("lowering/scan_copied_init.txt", refcomp.print_func(func))
    for m in (1, 2, 3, 5):
        check(s, parts, hs, cs, m, 3)


def test_loops_that_hide_the_row_compute_no_other_rows():
    """A row that is computed too early reads rows that are not there."""
    parts, hs, cs = cell()
    s = refcomp.create_schedule(hs)
    t, i = parts["uh"].op.axis
    fused = s[parts["uh"]].fuse(t, s[parts["uh"]].split(i, factor=5)[0])
    s[parts["uh"]].split(fused, nparts=2)
    for m, n in ((2, 7), (4, 11)):
        check(s, parts, hs, cs, m, n)


@pytest.mark.parametrize("n", [0, 3])
def test_of_a_copied_init_only_elements_are_copied(n):
    x, state = refcomp.placeholder((1, n), name="X"), refcomp.placeholder((4, n), name="state")
    first = refcomp.compute((1, n), lambda t, i: x[t, i], name="first")
    up = refcomp.compute((4, n), lambda t, i: state[t - 1, i] + 1, name="up")
    result = refcomp.scan(first, up, state, name="S")
    s = refcomp.create_schedule(result)
    s[first].set_scope("local")
    s[first].storage_align(first.op.axis[0], 8, 1)
    args = [np.ones((1, n), np.float32), np.zeros((4, n), np.float32)]
    interpret(refcomp.lower(s, [x, result]), args)
    assert args[1].tolist() == [[k + 1] * n for k in range(4)]


@pytest.mark.llvm
@pytest.mark.parametrize("m", [1, 2, 6])
def test_machine_code(m):
    parts, hs, cs = cell()
    s = refcomp.create_schedule(hs)
    for name in ("uh", "uc"):
        _, inner = s[parts[name]].split(parts[name].op.axis[1], 4)
        s[parts[name]].vectorize(inner)
    s[parts["dense"]].compute_at(s[parts["uh"]], s[parts["uh"]].leaf_iter_vars[1])
    s[parts["dense"]].parallel(parts["dense"].op.axis[1])
    check(s, parts, hs, cs, m, 7, lambda func, args: refcomp.build(func)(*args))


@st.composite
def cases(draw):
    """A cell with a random schedule: splits, vectors, threads of the host, attachments."""
    parts, hs, cs = cell(draw(st.integers(1, 2)), draw(st.booleans()))
    s = refcomp.create_schedule(hs)
    for name in draw(st.permutations(["h0", "dense", "uh", "uc"])):
        stage, axis = s[parts[name]], parts[name].op.axis[1]
        if draw(st.booleans()):
            outer, inner = stage.split(axis, draw(st.integers(1, 5)))
            draw(st.sampled_from([stage.vectorize, stage.unroll]))(inner)
            draw(st.sampled_from([stage.parallel, lambda _: None]))(outer)
    place = draw(st.sampled_from(["scan", "row", "innermost"]))
    if place != "scan":
        leaves = s[parts["uh"]].leaf_iter_vars
        s[parts["dense"]].compute_at(s[parts["uh"]], leaves[0 if place == "row" else -1])
    return s, parts, hs, cs


@pytest.mark.search
@settings(max_examples=40, deadline=None)
@given(cases(), st.integers(1, 4), st.integers(0, 5))
def test_a_schedule_changes_nothing(case, m, n):
    s, parts, hs, cs = case
    try:
        check(s, parts, hs, cs, m, n)
    except UserError as error:  # nothing is attached to a loop that is vectorized
        assert "vectorized" in str(error) or "parallel" in str(error), error


def cell_in_kernels(rows, own_init, threads):
    """The cell with a kernel for each stage, and its arguments."""
    parts, hs, cs = cell(rows, own_init)
    s = refcomp.create_schedule(hs)
    for tensor in dict.fromkeys(parts[name] for name in ("h0", "c0", "dense", "uh", "uc")):
        outer, inner = s[tensor].split(tensor.op.axis[1], threads)
        s[tensor].bind(outer, refcomp.thread_axis("blockIdx.x"))
        s[tensor].bind(inner, refcomp.thread_axis("threadIdx.x"))
    return s, parts, hs, cs


@pytest.mark.search
@pytest.mark.parametrize("own_init", [True, False])
@pytest.mark.parametrize("rows", [1, 2])
def test_kernels_for_each_row(rows, own_init):
    """An init of both states is copied by kernels, too: nothing is left to the host."""
    case = cell_in_kernels(rows, own_init, 2)
    for m, n in ((1, 5), (4, 5), (3, 1), (2, 0)):
        check(*case, m, n)


def run_on(target, func, args):
    there = [refcomp.array(arg, refcomp.context(target)) for arg in args]
    refcomp.build(func, target=target)(*there)
    for arg, result in zip(args, there, strict=True):
        arg[...] = result.asnumpy()


@pytest.mark.pocl
@pytest.mark.parametrize("own_init", [True, False])
def test_on_a_device(own_init):
    case = cell_in_kernels(2, own_init, 4)
    for m, n in ((5, 6), (1, 3), (3, 70)):
        check(*case, m, n, run=partial(run_on, "opencl"))


@pytest.mark.pocl
@pytest.mark.parametrize("shape", [(), (3,), (2, 33)])
def test_an_init_that_is_given_is_copied_on_the_device(shape):
    """Rows of any rank, by each thread one element, from memory that the host cannot read."""
    first = refcomp.placeholder((2, *shape), "int32", name="F")
    state = refcomp.placeholder((M, *shape), "int32", name="state")
    one = refcomp.compute((M, *shape), lambda t, *i: state(t - 2, *i) + 1, name="one")
    rows = refcomp.scan(first, one, state, name="S")
    s = refcomp.create_schedule(rows)
    s[one].bind(one.op.axis[-1], refcomp.thread_axis("blockIdx.x"))
    func = refcomp.lower(s, [first, rows])
    given = np.arange(np.prod((2, *shape)), dtype=np.int32).reshape(2, *shape)
    for m in (1, 2, 5):
        result = np.zeros((m, *shape), np.int32)
        run_on("opencl", func, [given, result])
        np.testing.assert_array_equal(result, [given[t % 2] + t // 2 for t in range(m)])


def test_a_state_is_read_in_its_scan_only():
    parts, hs, cs = cell()
    s = refcomp.create_schedule(hs)
    (state,) = (t for t in hs.op.state if t.name == "c")
    copy = s.cache_read(state, "global", [parts["uc"]])
    args = [parts["X"], parts["W"], hs, cs]
    with pytest.raises(
        UserError,
        match=r"stage c.global reads the state c outside of scan S\n(.|\n)*"
        "compute it at a loop of the scan",
    ):
        refcomp.lower(s, args)
    s[copy].compute_at(s[parts["uc"]], parts["uc"].op.axis[0])
    check(s, parts, hs, cs, 4, 3)


def test_a_state_is_no_argument():
    parts, hs, cs = cell()
    s = refcomp.create_schedule(hs)
    with pytest.raises(UserError, match="the state h of scan S is an argument"):
        refcomp.lower(s, [parts["X"], parts["W"], hs, cs, hs.op.state[0]])


@pytest.mark.parametrize("place", ["t.outer", "t.inner", "i"])
def test_iterations_beyond_a_tail_read_no_later_rows(place):
    """The rows that they would read are not computed yet, or do not exist."""
    n, m = 5, 3
    x, first = refcomp.placeholder((n, m), name="X"), refcomp.placeholder((1, m), name="I")
    init = refcomp.compute((1, m), lambda t, i: first[t, i] + 1.0, name="init")
    state = refcomp.placeholder((n, m), name="state")
    k = refcomp.reduce_axis((0, m), "k")
    sums = refcomp.compute((n, m), lambda t, i: refcomp.sum(state[t - 1, k], axis=k), name="D")
    update = refcomp.compute(
        (n, m), lambda t, i: refcomp.minimum(sums[t, i] + x[t, i], 5.0), name="U"
    )
    rows = refcomp.scan(init, update, state, inputs=[x], name="S")
    s = refcomp.create_schedule(rows)
    outer, inner = s[update].split(update.op.axis[0], factor=4)
    loops = {"t.outer": outer, "t.inner": inner, "i": update.op.axis[1]}
    s[sums].compute_at(s[update], loops[place])
    func = refcomp.lower(s, [first, x, rows], name="f")
    found = np.empty((n, m), np.float32)
    given = np.ones((1, m), np.float32), np.ones((n, m), np.float32)
    interpret_whole(func, [*given, found])
    wanted = [np.full(m, 2.0)]
    for _ in range(1, n):
        wanted.append(np.minimum(wanted[-1].sum() + np.ones(m), 5.0))
    np.testing.assert_array_equal(found, wanted)


def two_states(shape=(4, 3)):
    """Return (arguments, tensors) of h' = h + 1 and c' = max(T + h', c), where T = 2 h - x."""
    x, first = refcomp.placeholder(shape, name="X"), refcomp.placeholder((1, shape[1]), name="I")
    h, c = refcomp.placeholder(shape, name="h"), refcomp.placeholder(shape, name="c")
    init = refcomp.compute((1, shape[1]), lambda t, i: first[t, i] + 1.0, name="init")
    uh = refcomp.compute(shape, lambda t, i: h[t - 1, i] + 1.0, name="uh")
    mid = refcomp.compute(shape, lambda t, i: h[t - 1, i] * 2.0 - x[t, i], name="T")
    uc = refcomp.compute(
        shape, lambda t, i: refcomp.maximum(mid[t, i] + uh[t, i], c[t - 1, i]), name="uc"
    )
    rows = refcomp.scan([init, init], [uh, uc], [h, c], inputs=[x], name="S")
    return [first, x, *rows], {"init": init, "uh": uh, "T": mid, "uc": uc, "S": rows[0]}


def check_two_states(s, args, n=4, m=3):
    """Every element of the results is written before it is read, and right."""
    func = insert_barriers(refcomp.lower(s, args, name="f"))
    x = np.arange(n * m, dtype=np.float32).reshape(n, m)
    given = [np.ones((1, m), np.float32), x]
    found = [np.empty((n, m), np.float32) for _ in range(2)]
    interpret_whole(func, [*given, *found])
    wanted = evaluate(args[2:], dict(zip(args[:2], given, strict=True)))
    for mine, right in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(mine, right)


def split_row(s, uc, how):
    """Make loops of the row's axis that visit points beyond the row; return them all."""
    t, i = uc.op.axis
    if how == "factor":
        s[uc].split(t, factor=2)
    elif how == "nparts":
        s[uc].split(t, nparts=3)
    elif how == "twice":
        s[uc].split(s[uc].split(t, factor=3)[1], factor=2)
    elif how == "reordered":
        outer, inner = s[uc].split(t, factor=2)
        s[uc].reorder(i, outer, inner)
    else:
        s[uc].split(s[uc].fuse(t, i), factor=5)
    return s[uc].leaf_iter_vars


@pytest.mark.parametrize("shape", [(4, 3), (M, N)], ids=str)
@pytest.mark.parametrize("loop", [0, 1, -1])
@pytest.mark.parametrize("copied", ["uh", "T"])
@pytest.mark.parametrize("how", ["factor", "nparts", "twice", "reordered", "fused"])
def test_a_row_is_computed_once_whatever_loops_its_copies_are_in(how, copied, loop, shape):
    """What iterations beyond the row would need is another row, or beyond the result."""
    args, parts = two_states(shape)
    s = refcomp.create_schedule(args[2])
    leaves = split_row(s, parts["uc"], how)
    copy = s.cache_read(parts[copied], "global", [parts["uc"]])
    s[copy].compute_at(s[parts["uc"]], leaves[loop])
    check_two_states(s, args)


@pytest.mark.search
@pytest.mark.parametrize("shape", [(4, 3), (M, 3)], ids=str)
@pytest.mark.parametrize("scope", ["local", "shared"])
@pytest.mark.parametrize("loop", ["t.outer", "t.inner", "i.outer", "i.inner"])
@pytest.mark.parametrize("copied", ["uh", "T"])
def test_a_row_is_computed_once_for_copies_in_kernels(copied, loop, scope, shape):
    """The loop that visits points beyond the row is around threads beyond its last element."""
    args, parts = two_states(shape)
    s = refcomp.create_schedule(args[2])
    for name in ("init", "uh", "T", "uc"):
        _, inner = s[parts[name]].split(parts[name].op.axis[1], factor=2)
        s[parts[name]].bind(inner, refcomp.thread_axis("threadIdx.x"))
    stage = s[parts["uc"]]
    outer, _ = stage.split(parts["uc"].op.axis[0], factor=2)
    stage.bind(outer, refcomp.thread_axis("blockIdx.x"))
    places = {axis.name: axis for axis in stage.leaf_iter_vars}
    copy = s.cache_read(parts[copied], scope, [parts["uc"]])
    s[copy].compute_at(stage, places[loop])
    s[parts["uh"]].vectorize(parts["uh"].op.axis[0])
    check_two_states(s, args)


@pytest.mark.parametrize("scope", ["local", "shared"])
@pytest.mark.parametrize("copied", ["uh", "T"])
def test_threads_beyond_a_row_compute_no_other_rows(copied, scope):
    """No guard stands around what threads copy for others: they copy the row itself."""
    args, parts = two_states()
    s = refcomp.create_schedule(args[2])
    stage = s[parts["uc"]]
    _, inner = stage.split(parts["uc"].op.axis[0], factor=2)
    stage.bind(inner, refcomp.thread_axis("threadIdx.x"))
    copy = s.cache_read(parts[copied], scope, [parts["uc"]])
    s[copy].compute_at(stage, inner)
    check_two_states(s, args)


@pytest.mark.parametrize("name", ["init", "T", "uh"])
@pytest.mark.parametrize("how", ["factor", "nparts", "twice", "reordered", "fused"])
def test_copies_in_loops_beyond_any_row_read_no_later_ones(name, how):
    """What init, an update and what it needs read is copied, too."""
    args, parts = two_states()
    s = refcomp.create_schedule(args[2])
    split_row(s, parts[name], how)
    source = args[0] if name == "init" else parts["S"].op.state[0]
    copy = s.cache_read(source, "global", [parts[name]])
    s[copy].compute_at(s[parts[name]], s[parts[name]].leaf_iter_vars[1])
    check_two_states(s, args)


def test_a_stage_attached_in_the_row_of_its_reader_computes_that_row():
    args, parts = two_states()
    s = refcomp.create_schedule(args[2])
    _, inner = s[parts["uc"]].split(parts["uc"].op.axis[0], factor=2)
    s[parts["T"]].compute_at(s[parts["uc"]], inner)
    s[parts["T"]].split(parts["T"].op.axis[0], nparts=3)
    copy = s.cache_read(parts["S"].op.state[0], "global", [parts["T"]])
    s[copy].compute_at(s[parts["T"]], parts["T"].op.axis[1])
    check_two_states(s, args)
