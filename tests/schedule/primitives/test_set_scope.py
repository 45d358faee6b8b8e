import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Allocate


def _two_stages(n=4):
    a = refcomp.placeholder((n,), name="A")
    b = refcomp.compute((n,), lambda i: a[i] + 1.0, name="B")
    c = refcomp.compute((n,), lambda i: b[i] + 1.0, name="C")
    return refcomp.create_schedule(c.op), a, b, c


def _scopes(s, args):
    nodes = walk(refcomp.lower(s, args).body)
    return [node.buffer.scope for node in nodes if isinstance(node, Allocate)]


@pytest.mark.parametrize("scope", ["global", "local"])
def test_memory_lies_where_it_is_asked_for(scope):
    s, a, b, c = _two_stages()
    s[b].set_scope(scope)
    assert _scopes(s, [a, c]) == [scope]


def test_an_unknown_scope():
    s, _, b, _ = _two_stages()
    for call in (
        lambda: s[b].set_scope("moon"),
        lambda: s.cache_read(b, "moon", [s.stages[-1].op]),
        lambda: s.cache_write(b, ["local"]),
    ):
        with pytest.raises(UserError, match=r"is not a scope(.|\n)*one of global, local, shared"):
            call()


@pytest.mark.parametrize(("which", "what"), [(1, "a placeholder"), (3, "an output")])
def test_memory_of_the_caller_is_global(which, what):
    s, *tensors = _two_stages()
    with pytest.raises(UserError, match=f"it is {what}: its memory is global, since"):
        s[tensors[which - 1]].set_scope("local")


def test_an_argument_is_global():
    s, a, b, c = _two_stages()
    s[b].set_scope("local")
    with pytest.raises(UserError, match="tensor B is an argument, but its stage is computed in lo"):
        refcomp.lower(s, [a, b, c])


def test_local_memory_has_a_known_size():
    s, a, b, c = _two_stages(refcomp.var("n"))
    s[b].set_scope("local")
    with pytest.raises(UserError, match=r"local memory of unknown size: dimension 0 of B is n"):
        refcomp.lower(s, [a, c])


def test_shared_memory_belongs_to_a_kernel():
    s, a, b, c = _two_stages()
    s[b].set_scope("shared")
    with pytest.raises(UserError, match=r"B cannot lie in shared memory(.|\n)*no kernel is around"):
        refcomp.lower(s, [a, c])


def test_memory_of_a_warp_is_shared():
    a = refcomp.placeholder((128,), name="A")
    b = refcomp.compute((128,), lambda i: a[i // 32 * 32 + (i + 1) % 32] + 3, name="B")
    s = refcomp.create_schedule(b.op)
    copy = s.cache_read(a, "warp", [b])
    block, inner = s[b].split(b.op.axis[0], 64)
    _, lane = s[b].split(inner, 32)
    thread = refcomp.thread_axis("threadIdx.x")
    s[b].bind(block, refcomp.thread_axis("blockIdx.x"))
    s[b].bind(lane, thread)
    s[copy].compute_at(s[b], block)
    s[copy].bind(s[copy].split(s[copy].op.axis[0], 32)[1], thread)
    assert _scopes(s, [a, b]) == ["shared"]
    values = np.arange(128, dtype="float32")
    found = np.zeros_like(values)
    refcomp.build(s, [a, b], target="interp")(values, found)
    assert (found == values.reshape(4, 32)[:, [*range(1, 32), 0]].ravel() + 3).all()
