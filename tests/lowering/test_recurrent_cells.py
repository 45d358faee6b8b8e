"""The recurrent cells of the classic tutorials, with the schedules that those give them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.oracle.tensors.evaluate import evaluate

HIDDEN = 12

# A target, and where its arrays are.
DEVICES = [
    pytest.param("interp", rc.cpu),
    pytest.param("opencl", lambda: rc.opencl(0), marks=pytest.mark.pocl),
    pytest.param("rocm -mcpu=gfx942", lambda: rc.rocm_emulator("gfx942"), marks=pytest.mark.rocm),
    pytest.param("rocm -mcpu=gfx1100", lambda: rc.rocm_emulator("gfx1100"), marks=pytest.mark.rocm),
]
HOSTS = [DEVICES[0], pytest.param("llvm", rc.cpu, marks=pytest.mark.llvm)]


def threads(extent: int, tag: str) -> Any:
    return rc.thread_axis((0, extent), tag)


def check(
    schedule: Any,
    args: Sequence[Any],
    given: Sequence[np.ndarray],
    target: str,
    device: Any,
    tolerance: float = 0.0,
) -> None:
    """Compare the results, which are the last of `args`, with their definition."""
    results = args[len(given) :]
    wanted = evaluate(results, dict(zip(args, given, strict=False)))
    there = device()
    found = [rc.array(np.full(w.shape, 77, w.dtype), there) for w in wanted]
    function = rc.build(schedule, args, target)
    function(*[rc.array(array, there) for array in given], *found)
    for mine, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine.asnumpy(), right, rtol=tolerance, atol=tolerance)


def whole(*shape: int) -> np.ndarray:
    """Small integers: their products and sums are exact."""
    return np.random.default_rng(shape).integers(-1, 2, shape).astype("float32")


# Sums over rows: the first example of scans.


def sums(shift: str) -> tuple[list[Any], dict[str, Any]]:
    """S[t] = S[t - 1] + what row t - 1 of an input gives, which no first row could read."""
    m, n = rc.var("m"), rc.var("n")
    x = rc.placeholder((m - 1 if shift == "fewer rows" else m, n), name="X")
    state = rc.placeholder((m, n), name="state")
    first = rc.compute((1, n), lambda _, i: rc.const(1.0), name="first")
    inner = {
        "computed": lambda: rc.compute((m, n), lambda t, i: x[t, i] * 2, name="T"),
        "computed later": lambda: rc.compute((m, n), lambda t, i: x[t - 1, i] * 2, name="T"),
    }.get(shift, lambda: None)()
    rows = {
        "input": lambda t, i: x[t - 1, i],
        "fewer rows": lambda t, i: x[t - 1, i],
        "backwards": lambda t, i: x[m - t, i],
        "computed": lambda t, i: inner[t - 1, i],
        "computed later": lambda t, i: inner[t, i] + x[m - t, i],
    }[shift]
    update = rc.compute((m, n), lambda t, i: state[t - 1, i] + rows(t, i), name="update")
    result = rc.scan(first, update, state, inputs=[x], name="S")
    return [x, result], {"first": first, "update": update, "inner": inner, "S": result}


SHIFTS = ["input", "fewer rows", "backwards", "computed", "computed later"]


def check_sums(schedule: Any, args: list[Any], shift: str, target: str, device: Any) -> None:
    for m, n in ((1, 3), (2, 1), (5, 7)):
        rows = m - 1 if shift == "fewer rows" else m
        check(schedule, args, [whole(rows, n)], target, device)


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize(("target", "device"), HOSTS)
def test_only_rows_that_are_computed_read_their_inputs(shift, target, device):
    args, parts = sums(shift)
    s = rc.create_schedule(args[-1].op)
    update = parts["update"]
    outer, inner = s[update].split(update.op.axis[1], factor=4)
    s[update].vectorize(inner)
    if shift == "computed later":
        s[parts["inner"]].compute_at(s[update], outer)
    check_sums(s, args, shift, target, device)


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize(("target", "device"), DEVICES)
def test_kernels_of_rows_read_their_inputs(shift, target, device):
    args, parts = sums(shift)
    s = rc.create_schedule(args[-1].op)
    for tensor in filter(None, (parts["first"], parts["update"], parts["inner"])):
        outer, inner = s[tensor].split(tensor.op.axis[1], factor=4)
        s[tensor].bind(outer, rc.thread_axis("blockIdx.x"))
        s[tensor].bind(inner, threads(4, "threadIdx.x"))
    check_sums(s, args, shift, target, device)


@pytest.mark.parametrize("how", ["inline", "cache_write", "cache_read", "rfactor"])
def test_what_first_rows_cannot_compute_is_scheduled_like_any_row(how):
    x, w = rc.placeholder((5, 4), name="X"), rc.placeholder((4, 4), name="W")
    state, k = rc.placeholder((5, 4), name="state"), rc.reduce_axis((0, 4), "k")
    first = rc.compute((1, 4), lambda _, i: rc.const(1.0), name="first")
    dense = rc.compute((5, 4), lambda t, i: rc.sum(x[t - 1, k] * w[k, i], axis=k), name="dense")
    scaled = rc.compute((5, 4), lambda t, i: dense[t, i] - x[t - 1, i], name="scaled")
    update = rc.compute((5, 4), lambda t, i: state[t - 1, i] + scaled[t, i], name="update")
    result = rc.scan(first, update, state, name="S")
    s = rc.create_schedule(result.op)
    if how == "inline":
        s[scaled].compute_inline()
    elif how == "cache_write":
        made = s.cache_write(dense, "local")
        s[made].compute_at(s[dense], dense.op.axis[0])
    elif how == "cache_read":
        copy = s.cache_read(x, "local", [dense])
        s[copy].compute_at(s[dense], dense.op.axis[0])
    else:
        made = s.rfactor(dense, s[dense].split(k, factor=2)[0])
        s[made].unroll(made.op.axis[0])
    check(s, [x, w, result], [whole(5, 4), whole(4, 4)], "interp", rc.cpu)


def test_first_rows_are_refused_where_all_rows_are_computed():
    """The compute is judged when it is scheduled: only then it is known to be in no scan."""
    x = rc.placeholder((5,), name="X")
    later = rc.compute((5,), lambda t: x[t - 1], name="later")
    with pytest.raises(UserError, match="compute later reads index -1 of dimension 0 of X") as e:
        rc.create_schedule(later.op)
    assert 'later = rc.compute((5,), lambda t: x[t - 1], name="later")' in str(e.value)
    state = rc.placeholder((5,), name="state")
    first = rc.compute((1,), lambda t: later[4], name="first")
    update = rc.compute((5,), lambda t: state[t - 1] + later[t], name="update")
    result = rc.scan(first, update, state, name="S")
    with pytest.raises(UserError, match="first"):
        rc.lower(rc.create_schedule(result.op), [x, result])


def test_a_copy_of_rows_is_refused_where_all_rows_are_computed():
    """Where a schedule moves a row's computation to, it must belong to the row."""
    x, state = rc.placeholder((5, 4), name="X"), rc.placeholder((5, 4), name="state")
    first = rc.compute((1, 4), lambda _, i: rc.const(1.0), name="first")
    later = rc.compute((5, 4), lambda t, i: x[t - 1, i] * 2, name="later")
    update = rc.compute((5, 4), lambda t, i: state[t - 1, i] + later[t, i], name="update")
    result = rc.scan(first, update, state, name="S")
    s = rc.create_schedule(result.op)
    made = s.cache_write(later, "global")
    with pytest.raises(UserError, match="compute later.global reads index -1 of dimension 0 of X"):
        rc.lower(s, [x, result])
    s[made].compute_at(s[later], later.op.axis[0])
    check(s, [x, result], [whole(5, 4)], "interp", rc.cpu)


@pytest.mark.parametrize("rows", [1, 2])
def test_an_input_of_two_rows_before_needs_two_first_rows(rows):
    x, state = rc.placeholder((5,), name="X"), rc.placeholder((5,), name="state")
    first = rc.compute((rows,), lambda t: rc.const(1.0), name="first")
    update = rc.compute((5,), lambda t: state[t - 1] + x[t - 2], name="update")
    if rows == 1:
        with pytest.raises(UserError, match="update reads index -1 of dimension 0 of X"):
            rc.scan(first, update, state, name="S")
        return
    result = rc.scan(first, update, state, name="S")
    check(rc.create_schedule(result.op), [x, result], [whole(5)], "interp", rc.cpu)


# Powers of a matrix: the recurrence of a plain cell.


def powers() -> tuple[list[Any], dict[str, Any]]:
    steps = rc.var("steps")
    w, state = rc.placeholder((8, 8), name="W"), rc.placeholder((steps, 2, 8), name="state")
    k = rc.reduce_axis((0, 8), name="k")
    first = rc.compute((1, 2, 8), lambda _, i, j: rc.const(1.0), name="first")
    update = rc.compute(
        (steps, 2, 8), lambda t, i, j: rc.sum(state[t - 1, i, k] * w[j, k], axis=k), name="update"
    )
    result = rc.scan(first, update, state, name="S")
    return [w, result], {"W": w, "first": first, "update": update, "state": state, "S": result}


@pytest.mark.parametrize(("target", "device"), DEVICES)
def test_all_rows_of_a_matrix_recurrence_in_one_launch(target, device):
    """Threads along y share the reduction, and those along x the row. The weights are local."""
    args, parts = powers()
    rows, update, first = args[-1], parts["update"], parts["first"]
    s = rc.create_schedule(rows.op)
    x, y = threads(4, "threadIdx.x"), threads(2, "threadIdx.y")
    shared = s.cache_read(parts["state"], "shared", [update])
    near = s.cache_read(shared, "local", [update])
    weights = s.cache_read(parts["W"], "local", [update])
    part, _ = s[update].split(s[update].op.reduce_axis[0], nparts=2)
    factored = s.rfactor(update, part)
    summed = s[update].op.reduce_axis[0]
    s[factored].compute_at(s[update], summed)
    s[near].compute_at(s[update], summed)
    s[shared].compute_at(s[rows.op], rows.op.scan_axis)
    s[weights].compute_at(s[factored], factored.op.axis[0])
    s[update].bind(s[update].split(update.op.axis[2], nparts=4)[0], x)
    s[update].bind(summed, y)
    s[update].set_store_predicate(y.var.equal(0))
    s[rows.op].env_threads([y, x])
    for stage, axis in ((s[first], first.op.axis[2]), (s[shared], shared.op.axis[2])):
        stage.bind(stage.split(axis, nparts=4)[0], x)
    given = np.random.default_rng(1).integers(0, 2, (8, 8)).astype("float32")
    out = np.zeros((4, 2, 8), "float32")
    check_powers(s, args, given, out, target, device)


def check_powers(s: Any, args: Any, given: Any, out: Any, target: str, device: Any) -> None:
    there = device()
    found = rc.array(out, there)
    rc.build(s, args, target)(rc.array(given, there), found)
    wanted = np.ones((1, 2, 8), "float32")
    for _ in range(len(out) - 1):
        wanted = np.concatenate([wanted, wanted[-1:] @ given.T])
    np.testing.assert_array_equal(found.asnumpy(), wanted)


# A cell with gates, of two states.


def lstm() -> tuple[list[Any], dict[str, Any]]:
    steps, batch = rc.var("steps"), 1
    xi2h = rc.placeholder((steps, batch, 4, HIDDEN), name="Xi2h")
    wh2h = rc.placeholder((4, HIDDEN, HIDDEN), name="Wh2h")
    shape = (steps, batch, HIDDEN)
    state_h, state_c = rc.placeholder(shape, name="h"), rc.placeholder(shape, name="c")
    init_h = rc.compute((1, batch, HIDDEN), lambda *i: 0.0, name="init_h")
    init_c = rc.compute((1, batch, HIDDEN), lambda *i: 0.0, name="init_c")
    k = rc.reduce_axis((0, HIDDEN), name="k")
    h2h = rc.compute(
        (steps, batch, 4, HIDDEN),
        lambda t, i, x, j: rc.sum(state_h[t - 1, i, k] * wh2h[x, j, k], axis=k),
        name="h2h",
    )
    gates = rc.compute(xi2h.shape, lambda *i: xi2h(*i) + h2h(*i), name="gates")

    def gate(number: int, function: Any, name: str) -> Any:
        return rc.compute(shape, lambda t, i, j: function(gates[t, i, number, j]), name=name)

    enter, change = gate(0, rc.sigmoid, "in_gate"), gate(1, rc.tanh, "in_transform")
    forget, leave = gate(2, rc.sigmoid, "forget_gate"), gate(3, rc.sigmoid, "out_gate")
    next_c = rc.compute(
        shape, lambda *i: forget(*i) * state_c(i[0] - 1, *i[1:]) + enter(*i) * change(*i), "next_c"
    )
    next_h = rc.compute(shape, lambda *i: leave(*i) * rc.tanh(next_c(*i)), name="next_h")
    update_c = rc.compute(shape, lambda *i: next_c(*i), name="update_c")
    update_h = rc.compute(shape, lambda *i: next_h(*i), name="update_h")
    scan_h, scan_c = rc.scan(
        [init_h, init_c], [update_h, update_c], [state_h, state_c], inputs=[xi2h], name="lstm"
    )
    parts = {
        "inline": (gates, enter, change, forget, leave),
        "init": (init_h, init_c),
        "rows": (next_c, next_h, update_c, update_h),
    } | {"h": state_h, "c": state_c, "h2h": h2h, "W": wh2h, "next_c": next_c, "next_h": next_h}
    return [xi2h, wh2h, scan_h, scan_c], parts


def check_lstm(schedule: Any, args: list[Any], target: str, device: Any) -> None:
    random = np.random.default_rng(7)
    given = [random.random((5, 1, 4, HIDDEN), "float32"), random.random((4, HIDDEN, HIDDEN), "f4")]
    given[1] *= 0.2
    check(schedule, args, given, target, device, tolerance=1e-5)


@pytest.mark.parametrize(("target", "device"), HOSTS)
def test_lstm_on_the_host(target, device):
    args, parts = lstm()
    s = rc.create_schedule(args[2].op)
    for tensor in parts["inline"]:
        s[tensor].compute_inline()
    outer, inner = s[parts["next_c"]].split(parts["next_c"].op.axis[2], factor=5)
    s[parts["h2h"]].compute_at(s[parts["next_c"]], outer)
    s[parts["next_c"]].unroll(inner)
    # The hidden state reads the gates, too: the sums are for both.
    s[parts["h2h"]].compute_root()
    s[parts["h2h"]].parallel(parts["h2h"].op.axis[3])
    check_lstm(s, args, target, device)


def factored_sum(s: Any, parts: dict[str, Any], count: int) -> Any:
    """Let threads along y share the reduction of h2h, each with its weights in registers."""
    h2h = parts["h2h"]
    weights = s.cache_read(parts["W"], "local", [h2h])
    part, _ = s[h2h].split(s[h2h].op.reduce_axis[0], nparts=count)
    factored = s.rfactor(h2h, part)
    summed = s[h2h].op.reduce_axis[0]
    y = threads(count, "threadIdx.y")
    s[h2h].bind(summed, y)
    s[factored].compute_at(s[h2h], summed)
    s[weights].compute_at(s[factored], factored.op.axis[0])
    return y


@pytest.mark.parametrize(("target", "device"), DEVICES)
def test_lstm_with_kernels_for_each_row(target, device):
    args, parts = lstm()
    s = rc.create_schedule(args[2].op)
    for tensor in parts["inline"]:
        s[tensor].compute_inline()
    h2h = parts["h2h"]
    shared = s.cache_read(parts["h"], "shared", [h2h])
    y = factored_sum(s, parts, 2)
    for tensor in (h2h, *parts["init"], *parts["rows"]):
        block, rest = s[tensor].split(tensor.op.axis[-1], nparts=3)
        thread, rest = s[tensor].split(rest, nparts=2)
        s[tensor].reorder(block, thread, *tensor.op.axis[:-1], rest)
        s[tensor].bind(block, threads(3, "blockIdx.x"))
        s[tensor].bind(thread, threads(2, "threadIdx.x"))
        if tensor is h2h:
            s[shared].compute_at(s[h2h], thread)
    _, rest = s[shared].split(shared.op.axis[2], factor=4)
    row, column = s[shared].split(rest, nparts=2)
    s[shared].bind(row, y)
    s[shared].bind(column, threads(2, "threadIdx.x"))
    check_lstm(s, args, target, device)


@pytest.mark.parametrize(("target", "device"), DEVICES)
def test_lstm_in_one_launch(target, device):
    """A group keeps all rows: `env_threads` of the scan name its threads."""
    args, parts = lstm()
    rows = args[2]
    s = rc.create_schedule(rows.op)
    for tensor in parts["inline"]:
        s[tensor].compute_inline()
    h2h, x = parts["h2h"], threads(6, "threadIdx.x")
    copies = [
        s.cache_read(parts["h"], "shared", [h2h]),
        s.cache_read(parts["c"], "shared", [parts["next_c"]]),
    ]
    y = factored_sum(s, parts, 2)
    s[rows.op].env_threads([y, x])
    for copy in copies:
        s[copy].compute_at(s[rows.op], rows.op.scan_axis)
        row, rest = s[copy].split(copy.op.axis[2], nparts=2)
        s[copy].bind(row, y)
        s[copy].bind(rest, x)
    for tensor in (h2h, *parts["rows"], *parts["init"]):
        s[tensor].bind(s[tensor].split(tensor.op.axis[-1], nparts=6)[0], x)
        if tensor not in parts["init"]:
            s[tensor].set_store_predicate(y.var.equal(0))
    check_lstm(s, args, target, device)


def test_groups_of_one_launch_cannot_wait_for_each_other_between_rows():
    """The classic recipe has a barrier of all groups; the message says what to do instead."""
    args, _ = lstm()
    s = rc.create_schedule(args[2].op)
    with pytest.raises(UserError, match="groups of blockIdx.x cannot wait for each other") as e:
        s[args[2].op].env_threads([threads(3, "blockIdx.x"), threads(2, "threadIdx.x")])
    assert "bind blockIdx in the stages that compute a row" in str(e.value)
