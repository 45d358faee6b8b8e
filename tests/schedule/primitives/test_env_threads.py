"""env_threads: one launch for all loops of a stage, on every target, and what is refused."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.certificates import certify
from refcomp.driver.pipeline import run_passes
from refcomp.foundation.errors import UserError
from refcomp.schedule.schedule import replay

TARGETS = ["interp", pytest.param("opencl", marks=pytest.mark.pocl)]


def blurred(n=13, at="root", env=None, block=False):
    """Each row of B from a row of T, its neighbours included; a serial loop outside."""
    a = rc.placeholder((n, 16), name="A")
    t = rc.compute((n, 18), lambda i, j: a[i, rc.minimum(rc.maximum(j - 1, 0), 15)] * 2.0, name="T")
    b = rc.compute((n, 16), lambda i, j: t[i, j] + t[i, j + 1] + t[i, j + 2], name="B")
    s = rc.create_schedule(b)
    i, j = b.op.axis
    outer, inner = s[b].split(j, factor=8)
    tx = rc.thread_axis("threadIdx.x")
    s[b].bind(inner, tx)
    if block:
        s[b].bind(outer, rc.thread_axis("blockIdx.x"))
    if at == "root":
        s[t].compute_inline()
    else:
        s[t].compute_at(s[b], i if at == "row" else outer)
        s[t].bind(s[t].split(t.op.axis[1], factor=8)[1], tx)
    s[b].env_threads([tx] if env is None else env)
    return s, [a, b]


def ran(s, args, target, *arrays):
    """What the last of the arrays is then."""
    device = rc.cpu(0) if target == "interp" else rc.opencl(0)
    given = [rc.nd.array(array, device) for array in arrays]
    rc.build(s, args, target)(*given)
    return given[-1].asnumpy()


def agrees(s, args, n, target):
    x = np.random.default_rng(0).integers(-9, 9, (n, 16)).astype(np.float32)
    y = np.full((n, 16), 77, np.float32)
    wide = 2 * np.pad(x, ((0, 0), (1, 1)), "edge")
    y = ran(s, args, target, x, y)
    np.testing.assert_array_equal(y, wide[:, :-2] + wide[:, 1:-1] + wide[:, 2:])


def text_of(s, args):
    return rc.print_func(rc.lower(s, args))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("at", ["root", "row", "tile"])
def test_one_launch_runs_all_rows(at, target):
    s, args = blurred(at=at)
    text = text_of(s, args)
    assert text.index("threadIdx.x {") < text.index("for i in range(13)")
    assert text.count("threadIdx.x {") == 1
    agrees(s, args, 13, target)


@pytest.mark.parametrize("target", TARGETS)
def test_groups_may_share_out_a_loop_of_the_stage(target):
    env = [rc.thread_axis("blockIdx.x"), rc.thread_axis((0, 8), "threadIdx.x")]
    s, args = blurred(at="tile", env=env, block=True)
    agrees(s, args, 13, target)


@pytest.mark.search
@pytest.mark.parametrize("target", TARGETS)
def test_threads_that_no_loop_is_bound_to_stay_idle(target):
    env = [rc.thread_axis((0, 3), "threadIdx.y"), rc.thread_axis("threadIdx.x")]
    s, args = blurred(at="row", env=env)
    assert "threadIdx.y == 0" in text_of(s, args)
    agrees(s, args, 13, target)


@pytest.mark.search
def test_it_is_certified_and_replayed():
    s, args = blurred(at="row")
    assert certify(s, args, every_step=True).holds
    assert str(s.steps[-1]) == "s[B].env_threads([threadIdx.x])"
    again = replay(s.outputs, s.steps)
    assert rc.print_func(rc.lower(again, args)) == text_of(s, args)


def test_memory_of_a_row_is_shared_and_lies_in_the_kernel():
    func = rc.lower(*blurred(at="row"))
    text = rc.print_func(func)
    assert "alloc T: f32[1, 18] shared" in text
    assert rc.print_func(run_passes(func, "interp")).count("barrier") == 2


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n", [1, 7])
def test_rows_are_reduced_across_threads_in_one_launch(n, target):
    m = rc.var("m")
    a, k = rc.placeholder((m, 32), name="A"), rc.reduce_axis((0, 32), "k")
    b = rc.compute((m,), lambda i: rc.sum(a[i, k], axis=k), name="B")
    s = rc.create_schedule(b)
    _, inner = s[b].split(k, factor=8)
    s[b].bind(inner, rc.thread_axis("threadIdx.x"))
    s[b].env_threads([rc.thread_axis((0, 2), "threadIdx.y"), rc.thread_axis("threadIdx.x")])
    text = text_of(s, [a, b])
    assert text.index("threadIdx.x {") < text.index("for i in range(m)")
    x = np.arange(n * 32, dtype=np.float32).reshape(n, 32)
    y = ran(s, [a, b], target, x, np.zeros(n, np.float32))
    np.testing.assert_array_equal(y, x.sum(axis=1))


@pytest.mark.parametrize(
    ("env", "why"),
    [
        ([], "no thread axis is given"),
        ([3], "3 is not an axis of real threads"),
        ([rc.thread_axis("vthread")], "not an axis of real threads"),
        ([rc.thread_axis("threadIdx.x")] * 2, "not different thread axes"),
        ([rc.thread_axis((0, rc.var("n")), "threadIdx.x")], "which is not a constant"),
        ([rc.thread_axis("threadIdx.y")], "no extent, and no loop in the kernel is bound"),
        ([rc.thread_axis((0, 4), "blockIdx.x")], "all groups would do the same work"),
        ([rc.thread_axis((0, 4), "threadIdx.x")], "the thread axis has 4"),
    ],
)
def test_threads_that_make_no_kernel_are_refused(env, why):
    with pytest.raises(UserError, match=why):
        text_of(*blurred(env=env))


def test_a_second_call_is_refused():
    s, args = blurred()
    with pytest.raises(UserError, match="its threads are named already"):
        s[args[1]].env_threads([rc.thread_axis("threadIdx.x")])


def test_inside_another_kernel_it_is_refused():
    s, args = blurred(at="row")
    t = s.stages[1]
    s[t.op].env_threads([rc.thread_axis("threadIdx.x")])
    with pytest.raises(UserError, match="in the kernel that begins at stage B"):
        rc.lower(s, args)


def scanned(m=6, middle=False, env=None, block=False):
    """Rows of B, each from its right neighbours in the row before, in one launch: a scan."""
    a = rc.placeholder((m, 12), name="A")
    state = rc.placeholder((m, 12), name="S")
    init = rc.compute((1, 12), lambda _, j: a[0, j], name="I")
    right = lambda j: rc.if_then_else(j < 11, j + 1, 0)  # noqa: E731
    inner = []
    source = lambda t, j: state[t - 1, right(j)]  # noqa: E731
    if middle:
        inner = [rc.compute((m, 12), lambda t, j: state[t - 1, right(j)] * 2.0, name="M")]
        source = lambda t, j: inner[0][t, right(j)]  # noqa: E731
    update = rc.compute((m, 12), lambda t, j: source(t, j) + a[t, j], name="U")
    b = rc.scan(init, update, state, inputs=[a], name="B")
    s = rc.create_schedule(b)
    tx = rc.thread_axis("threadIdx.x")
    for tensor in (init, update, *inner):
        outer, lanes = s[tensor].split(tensor.op.axis[1], factor=4)
        s[tensor].bind(lanes, tx)
        if block and tensor is update:
            s[tensor].bind(outer, rc.thread_axis("blockIdx.x"))
    s[b].env_threads([tx] if env is None else env)
    return s, [a, b]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("middle", [False, True])
def test_one_launch_runs_all_rows_of_a_scan(middle, target):
    env = [rc.thread_axis((0, 2), "threadIdx.y"), rc.thread_axis("threadIdx.x")]
    s, args = scanned(middle=middle, env=env)
    text = text_of(s, args)
    assert text.index("threadIdx.y in range(2)") < text.index("for B.idx in range(1, extent=5)")
    assert text.count("threadIdx.x {") == 2  # the init's, and that of all rows
    x = np.arange(72, dtype=np.float32).reshape(6, 12)
    rows = [x[0]]
    for t in range(1, 6):
        before = np.roll(rows[-1], -1)
        rows.append((np.roll(2 * before, -1) if middle else before) + x[t])
    np.testing.assert_array_equal(ran(s, args, target, x, np.zeros_like(x)), np.stack(rows))


def test_threads_wait_for_each_other_between_the_rows_of_a_scan():
    func = run_passes(rc.lower(*scanned()), "interp")
    assert rc.print_func(func).count("barrier") == 1
    assert rc.print_func(run_passes(rc.lower(*scanned(middle=True)), "interp")).count("barrier") > 1


def test_a_scan_in_one_launch_is_replayed():
    s, args = scanned(middle=True)
    again = replay(s.outputs, s.steps)
    assert rc.print_func(rc.lower(again, args)) == text_of(s, args)


def test_groups_cannot_share_out_the_rows_of_a_scan():
    env = [rc.thread_axis((0, 3), "blockIdx.x"), rc.thread_axis("threadIdx.x")]
    with pytest.raises(UserError, match="groups of blockIdx.x cannot wait for each other") as told:
        scanned(env=env)
    assert "one group computes all rows" in str(told.value)
    s, args = scanned(block=True)
    with pytest.raises(UserError, match="U binds axis j.outer to blockIdx.x within one") as told:
        rc.lower(s, args)
    assert "do without env_threads of B" in str(told.value)


def test_rows_of_a_scan_lie_in_its_memory():
    s, args = scanned()
    update = next(stage for stage in s.stages if stage.name == "U")
    s[update.op].set_scope("shared")
    with pytest.raises(UserError, match="U cannot lie in shared memory") as told:
        rc.lower(s, args)
    assert "its rows are those of scan B" in str(told.value)


def test_what_has_no_loops_is_refused():
    s, (a, _) = blurred()
    with pytest.raises(UserError, match="a placeholder, which has no loops"):
        s[a].env_threads([rc.thread_axis("threadIdx.x")])
