"""Targets by the functions of `tvm.target`."""

import pytest

from refcomp import classic as tvm
from refcomp.classic import topi
from refcomp.foundation.errors import UserError


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cuda", "cuda"),
        ("rocm", "rocm"),
        ("mali", "opencl"),
        ("bifrost", "opencl"),
        ("intel_graphics", "opencl"),
    ],
)
def test_a_function_returns_the_target_of_its_kind(name: str, kind: str) -> None:
    function = getattr(tvm.target, name)
    assert str(function()) == str(function("some model", options=[])) == kind
    with pytest.raises(UserError, match="has no option '-speed=high'"):
        function(options="-speed=high")


def test_options_are_a_text_or_a_list() -> None:
    assert (
        str(tvm.target.cuda(options="-arch=sm_80 -threads=256")) == "cuda -arch=sm_80 -threads=256"
    )
    assert str(tvm.target.rocm(options=["-mcpu=gfx942"])) == "rocm -mcpu=gfx942"


def test_operators_are_scheduled_for_the_target_of_the_scope() -> None:
    A = tvm.placeholder((64, 32), name="A")
    B = topi.sum(A, axis=1)
    with tvm.target.cuda():
        assert tvm.target.current_target().kind == "cuda"
        s = topi.generic.schedule_reduce(B)
    assert "threadIdx.x" in str(tvm.lower(s, [A, B], simple_mode=True))
