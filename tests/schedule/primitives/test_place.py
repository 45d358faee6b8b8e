import pytest

import refcomp
from refcomp.foundation.errors import UserError


def _chain():
    a = refcomp.placeholder((4, 4), name="A")
    k = refcomp.reduce_axis((0, 4), "k")
    b = refcomp.compute((4,), lambda i: refcomp.sum(a[i, k], axis=k), name="B")
    c = refcomp.compute((4,), lambda i: b[i] + 1.0, name="C")
    d = refcomp.compute((4,), lambda i: c[i] * 2.0, name="D")
    return refcomp.create_schedule(d.op), a, b, c, d


def test_inline_and_back():
    s, _, _, c, _ = _chain()
    s[c].compute_inline()
    assert s.stage_of(c).placement == "inline"
    s[c].compute_root()
    assert s.stage_of(c).placement == "root"


@pytest.mark.parametrize(
    ("position", "why"),
    [(0, "it is a placeholder"), (1, "it is a reduction"), (3, "it is an output")],
)
def test_what_cannot_be_inlined(position, why):
    s, *tensors = _chain()
    with pytest.raises(UserError, match=why):
        s[tensors[position]].compute_inline()
