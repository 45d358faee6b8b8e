"""Rows that a matrix load can have. The printers' tests have those that it cannot."""

import pytest

from refcomp.codegen.matrix_rows import check_row_alignment, shared_row
from refcomp.foundation.errors import Unsupported
from refcomp.ir.expr import PureExtern
from refcomp.ir.parser import parse_func
from refcomp.ir.rewrite import walk

_NAME = "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16"


def _call(row, scope="shared"):
    func = parse_func(
        "func f(D: f16[256] out) { for t in range(32) threadIdx.x { "
        f"alloc S: f16[256] {scope} {{ D@[ramp(t * 8, 1, 8)] = extern f16x8 {_NAME}({row}) }} }} }}"
    )
    (call,) = [node for node in walk(func.body) if isinstance(node, PureExtern)]
    return call


def test_a_vector_in_shared_memory_is_a_row():
    call = _call("S@[ramp(t * 8, 1, 8)]")
    row = shared_row(call)
    assert row is call.args[0]
    check_row_alignment(call, row, 16)
    with pytest.raises(Unsupported, match="cannot load this row") as caught:
        check_row_alignment(call, row, 8)
    assert "it begins at element t * 8 of S" in caught.value.why


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (_call("broadcast(0f16, 8)"), "its elements are not neighbours"),
        (_call("S@[ramp(t * 8, 1, 8)]", "local"), "S lies in local memory"),
    ],
)
def test_other_rows_are_refused(call, why):
    with pytest.raises(Unsupported, match="cannot load this row") as caught:
        shared_row(call)
    assert why in caught.value.why
