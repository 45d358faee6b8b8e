import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.lowering.bounds.kernels import find_kernels, scope_of
from refcomp.te.operation import ComputeOp


def _row_sums():
    a = refcomp.placeholder((16, 32), name="A")
    b = refcomp.compute((16, 32), lambda i, k: a[i, k] * 2.0, name="B")
    k = refcomp.reduce_axis((0, 32), "k")
    c = refcomp.compute((16,), lambda i: refcomp.sum(b[i, k], axis=k), name="C")
    return refcomp.create_schedule(c), b, c, k


def _bound(s, c, order=("o", "t", "k")):
    (i,) = c.op.axis
    o, t = s[c].split(i, factor=4)
    axes = {"o": o, "t": t, "k": c.op.reduce_axis[0]}
    s[c].reorder(*(axes[name] for name in order))
    s[c].bind(t, refcomp.thread_axis("threadIdx.x"))
    s[c].bind(o, refcomp.thread_axis("blockIdx.x"))
    return o, t


def _kernels(s):
    return find_kernels([stage for stage in s.stages if isinstance(stage.op, ComputeOp)])


def test_a_stage_without_threads_is_in_no_kernel():
    s, _, _, _ = _row_sums()
    assert _kernels(s) == {}


def test_a_kernel_begins_at_the_first_bound_loop_and_takes_in_what_is_attached_inside():
    s, b, c, _ = _row_sums()
    o, _ = _bound(s, c)
    s[b].compute_at(s[c], o)
    kernels = _kernels(s)
    kernel = kernels[s[c].stage]
    assert kernels[s[b].stage] is kernel and kernel.start == 0
    assert kernel.tags == ("blockIdx.x", "threadIdx.x")


def test_a_reduction_loop_is_inside_and_other_serial_loops_are_the_hosts():
    s, _, c, _ = _row_sums()
    _bound(s, c, ("k", "o", "t"))
    assert _kernels(s)[s[c].stage].start == 0
    s, b, c, _ = _row_sums()
    o, t = s[c].split(c.op.axis[0], factor=4)
    s[c].bind(t, refcomp.thread_axis("threadIdx.x"))
    assert _kernels(s)[s[c].stage].start == 1
    s[b].compute_at(s[c], o)
    assert s[b].stage not in _kernels(s)


@pytest.mark.parametrize(("loop", "scope"), [(0, "shared"), (1, "local")])
def test_the_place_suggests_a_scope(loop, scope):
    s, b, c, _ = _row_sums()
    s[b].compute_at(s[c], _bound(s, c)[loop])
    kernels = _kernels(s)
    assert scope_of(s[b].stage, kernels[s[b].stage]) == scope
    assert scope_of(s[c].stage, kernels[s[c].stage]) == "global"


def _lowering(s):
    return refcomp.lower(s, [s.stages[0].op.outputs[0], s.stages[-1].op.outputs[0]])


def test_memory_inside_a_kernel_is_not_global_and_memory_between_kernels_is():
    s, b, c, _ = _row_sums()
    o, _ = _bound(s, c)
    s[b].set_scope("local")
    s[b].bind(b.op.axis[0], refcomp.thread_axis("blockIdx.x"))
    with pytest.raises(UserError, match=r"B cannot lie in local memory(.|\n)*must outlive it"):
        _lowering(s)
    s, b, c, _ = _row_sums()
    o, _ = _bound(s, c)
    s[b].compute_at(s[c], o)
    s[b].set_scope("global")
    with pytest.raises(UserError, match=r"B cannot lie in global memory(.|\n)*at axis i.outer of"):
        _lowering(s)


@pytest.mark.parametrize(
    ("scope", "tag", "owner"),
    [("local", "threadIdx.x", "each thread"), ("shared", "blockIdx.x", "each group of threads")],
)
def test_who_shares_the_work_shares_the_memory(scope, tag, owner):
    s, b, c, _ = _row_sums()
    _, t = _bound(s, c)
    s[b].compute_at(s[c], t)
    s[b].set_scope(scope)
    s[b].bind(b.op.axis[1], refcomp.thread_axis(tag))
    with pytest.raises(UserError) as caught:
        _lowering(s)
    assert f"stage B binds axis k to {tag}, but its memory is {scope}" in str(caught.value)
    assert f"{owner} has its own {scope} memory" in str(caught.value)
