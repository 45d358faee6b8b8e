"""Sizes that a schedule's function requires, as text."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.ir.expr import Var
from refcomp.ir.printer import print_expr

N, M, K, T = (rc.var(name) for name in "nmkt")
STRIDE = rc.var("stride")
A = rc.placeholder((N,), name="A")
B = rc.placeholder((K,), name="B")
X = rc.placeholder((N, M), name="X")


def _required(output, args, change=lambda s: None):
    schedule = rc.create_schedule(output.op)
    change(schedule)
    known = {tensor for stage in schedule.stages for tensor in stage.op.outputs}
    used = [arg for arg in args if isinstance(arg, Var) or arg in known]
    func = rc.lower(schedule, [*used, output])
    return [print_expr(requirement.condition) for requirement in func.requires]


def _compute(shape, function, name="C"):
    return rc.compute(shape, function, name=name)


@pytest.mark.parametrize(
    ("shape", "function", "conditions"),
    [
        ((N,), lambda i: A[i] * 2.0, []),
        ((M,), lambda i: A[i] * B[i], ["m - 1 < n", "m - 1 < k"]),
        ((M,), lambda i: A[i] + A[i], ["m - 1 < n"]),
        ((M,), lambda i: A[i + 1], ["m <= 0 or m < n"]),
        ((M, K), lambda i, j: A[i], ["k <= 0 or m - 1 < n"]),
        ((4,), lambda i: A[i], ["3 < n"]),
        ((M,), lambda i: A[i // 2], ["(m + 1) // 2 - 1 < n"]),
        ((M,), lambda i: rc.if_then_else(i < N, A[i], 0.0), []),
        ((M,), lambda i: rc.if_then_else(A[i] > 0, 1.0, A[i + 9]), ["m - 1 < n"]),
        ((M,), lambda i: A[i * i], ["m <= 0 or (m - 1) * (m - 1) < n"]),
        (
            (M,),
            lambda i: rc.if_then_else(i < 5, A[i + 1], 0.0),
            ["m <= 0 or min(m - 1, 4) + 1 < n"],
        ),
        ((M,), lambda i: rc.select(i > 0, A[i - 1], 0.0), ["m - 2 < n"]),
        (
            (M,),
            lambda i: rc.if_then_else(rc.any(i < 2, i > 7), A[i], 0.0),
            ["m - 8 <= 0 or m - 1 < n", "min(m - 1, 1) < n"],
        ),
        (
            (M,),
            lambda i: rc.if_then_else(rc.all(i >= 2, i != 5), A[i - 2], 0.0),
            ["m - 6 <= 0 or m - 3 < n", "min(m - 1, 4) - 2 < n"],
        ),
        ((M,), lambda i: rc.if_then_else(A[0] > 0, A[i], 0.0), ["m <= 0 or 0 < n"]),
        ((M, K), lambda i, j: rc.if_then_else(j < i, A[j], 0.0), ["min(k - 1, m - 2) < n"]),
    ],
)
def test_conditions_of_one_compute(shape, function, conditions):
    assert _required(_compute(shape, function), [A, B, X]) == conditions


def test_a_triangular_reduction():
    r = rc.reduce_axis((0, K), name="r")
    total = _compute((M,), lambda i: rc.sum(A[r], axis=r, where=r < i))
    assert _required(total, [A, K]) == ["0 <= k", "min(k - 1, m - 2) < n"]


def test_a_condition_in_many_levels_is_followed_to_a_limit():
    def nested(i):
        value = A[i]
        for level in range(200):
            value = rc.if_then_else(i < level, value + 1.0, value)
        return value

    # Each level doubles the number of ways to the read. They are not all followed.
    assert isinstance(_required(_compute((M,), nested), [A]), list)


def test_a_scalar_that_is_an_extent_is_at_least_0():
    length = rc.var("length")
    r = rc.reduce_axis((0, length), name="r")
    total = _compute((N,), lambda i: rc.sum(X[i, r], axis=r))
    assert _required(total, [X, length]) == ["0 <= length", "n <= 0 or length - 1 < m"]
    filled = _compute((length + 1,), lambda i: 1.0)
    assert _required(filled, [length]) == ["0 <= length"]
    # A dimension of its own shows how great it is.
    plain = _compute((length,), lambda i: 1.0)
    assert _required(plain, [length]) == []


def test_a_scalar_in_an_index():
    offset = rc.var("offset", "int32")
    moved = _compute((4,), lambda i: A[i + offset])
    assert _required(moved, [A, offset]) == ["0 <= i64(offset)", "i64(offset) + 3 < n"]
    strided = _compute((M,), lambda i: A[i * STRIDE])
    assert _required(strided, [A, STRIDE]) == [
        "m <= 0 or 0 <= min(stride * (m - 1), 0)",
        "m <= 0 or max(stride * (m - 1), 0) < n",
    ]


def test_a_scalar_of_u64_is_stated_as_i64():
    offset, length = rc.var("offset", "uint64"), rc.var("length", "uint64")
    moved = _compute((4,), lambda i: A[i + offset])
    assert _required(moved, [A, offset]) == ["0 <= i64(offset)", "i64(offset) + 3 < n"]
    r = rc.reduce_axis((0, length), name="r")
    total = _compute((N,), lambda i: rc.sum(X[i, r], axis=r))
    assert _required(total, [X, length]) == ["0 <= i64(length)", "n <= 0 or i64(length) - 1 < m"]


def test_tuples_that_are_reduced():
    r = rc.reduce_axis((0, K), name="r")

    def combine(a, b):
        return tuple(rc.select(a[1] >= b[1], a[k], b[k]) for k in (0, 1))

    argmax = rc.comm_reducer(
        combine, lambda t0, t1: (rc.const(-1, t0), rc.min_value(t1)), name="argmax"
    )
    outputs = rc.compute((N,), lambda i: argmax((r.var, X[i, r]), axis=r), name="best")
    schedule = rc.create_schedule(outputs[0].op)
    func = rc.lower(schedule, [X, K, *outputs])
    assert [print_expr(r.condition) for r in func.requires] == ["0 <= k", "n <= 0 or k - 1 < m"]


def _chain():
    first = _compute((N,), lambda i: A[i] + B[i], "first")
    return first, _compute((M,), lambda i: first[i] + first[i + 1], "last")


def test_a_stage_at_the_root_is_computed_whole():
    _, last = _chain()
    assert _required(last, [A, B]) == ["n - 1 < k", "m - 1 < n", "m <= 0 or m < n"]


def test_an_inlined_stage_reads_what_its_consumer_needs():
    first, last = _chain()
    found = _required(last, [A, B], lambda s: s[first].compute_inline())
    assert found == ["m - 1 < n", "m - 1 < k", "m <= 0 or m < n", "m <= 0 or m < k"]


def test_an_attached_stage_reads_what_its_consumer_needs():
    first, last = _chain()
    found = _required(last, [A, B], lambda s: s[first].compute_at(s[last], s[last].op.axis[0]))
    assert sorted(found) == ["m - 1 < k", "m - 1 < n", "m <= 0 or m < k", "m <= 0 or m < n"]


def test_an_attached_reduction_reads_its_whole_axis():
    r = rc.reduce_axis((0, K), name="r")
    rows = _compute((N,), lambda i: rc.sum(X[i, r], axis=r), "rows")
    last = _compute((M,), lambda i: rows[i], "last")
    found = _required(last, [X, K], lambda s: s[rows].compute_at(s[last], s[last].op.axis[0]))
    assert sorted(found) == [
        "0 <= k",
        "k <= 0 or m - 1 < n",
        "m - 1 < n",
        "m <= 0 or k - 1 < m",
    ]


def test_a_split_that_leaves_a_rest_changes_nothing():
    output = _compute((M,), lambda i: A[i])
    assert _required(output, [A], lambda s: s[output].split(output.op.axis[0], 7)) == ["m - 1 < n"]


def _scan(first_rows):
    state = rc.placeholder((T, M), name="S")
    init = rc.compute((first_rows, M), lambda r, i: X[r, i], name="init")
    update = rc.compute((T, M), lambda t, i: state[t - 1, i] + X[t, i], name="update")
    return rc.scan(init, update, state, name="R")


def test_a_scan_computes_the_rows_behind_its_init():
    assert _required(_scan(1), [X]) == [
        "t <= 0 or (m <= 0 or 0 < n)",
        "t - 1 <= 0 or (m <= 0 or t - 1 < n)",
    ]


def test_a_scan_needs_a_row_to_begin_with():
    found = _required(_scan(K), [X, K])
    assert "t - k <= 0 or (m <= 0 or 0 <= k - 1)" in found


def test_origins_say_where_a_read_stands():
    output = _compute((M,), lambda i: A[i + 1])
    func = rc.lower(rc.create_schedule(output.op), [A, output])
    origin = func.requires[0].origin
    assert (origin.text, origin.by, origin.buffer, origin.dim) == (
        "A[i + 1]",
        "compute C reads",
        "A",
        0,
    )
    assert "test_required_reads.py:" in origin.line


def test_symbols_of_one_name_are_renamed_in_requirements():
    other = rc.placeholder((rc.var("n"),), name="B")
    output = _compute((M,), lambda i: A[i] + other[i])
    assert _required(output, [A, other]) == ["m - 1 < n", "m - 1 < n.1"]


@pytest.mark.search
def test_only_so_many_reads_are_followed_through_attached_stages():
    tensor, stages = A, []
    for k in range(9):
        tensor = rc.compute(
            (N - 4 * k - 4,),
            lambda i, t=tensor: sum((t[i + d] for d in range(1, 5)), t[i]),
            name=f"t{k}",
        )
        stages.append(tensor)

    def attach(schedule):
        for stage in stages[:-1]:
            schedule[stage].compute_at(schedule[tensor], tensor.op.axis[0])

    assert _required(tensor, [A], attach) == []


@pytest.mark.parametrize("target", ["interp", pytest.param("llvm", marks=pytest.mark.tools)])
def test_a_call_that_reads_beyond_under_a_condition_is_refused(target):
    r = rc.reduce_axis((0, K), name="r")
    total = _compute((M,), lambda i: rc.sum(A[r], axis=r, where=r < i))
    func = rc.build(rc.create_schedule(total.op), [A, K, total], target)
    values = np.arange(4, dtype="float32")
    out = np.zeros(5, "float32")
    func(values, 9, out)  # the last row reads 4 elements
    assert out.tolist() == [0, 0, 1, 3, 6]
    with pytest.raises(rc.UserError, match=r"min\(k - 1, m - 2\) < n"):
        func(values, 9, np.zeros(6, "float32"))
