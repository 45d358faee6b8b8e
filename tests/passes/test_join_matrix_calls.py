"""One call in place of calls for each element, and programs that must stay as they are."""

import numpy as np
import pytest

from refcomp.ir.buffer import Load
from refcomp.ir.expr import PureExtern
from refcomp.ir.parser import parse_func
from refcomp.ir.rewrite import walk
from refcomp.ir.verify import verify
from refcomp.oracle.interpreter.interpret import interpret
from refcomp.passes import join_matrix_calls as module
from refcomp.passes.join_matrix_calls import join_matrix_calls
from tests.passes.docstring_examples import assert_docstring_holds

_FUNC = """
func f(A: f32[64], B: f32[256] out, x: f32) {{
  for t in range(64) threadIdx.x {{
    {0}
  }}
}}
"""


def test_docstring():
    assert_docstring_holds(module, join_matrix_calls)


def _store(number, place="t * 4 + NUMBER", a="A@[t]", x="x"):
    place = place.replace("NUMBER", str(number))
    call = f"extern f32 llvm.amdgcn.mfma.f32.16x16x4f32({a}, A@[t], {x}, x, x, x, {number}i32)"
    return f"B@[{place}] = {call}"


def _func(*stores):
    return parse_func(_FUNC.format(" ".join(stores)))


def _calls(func):
    return [node for node in walk(func.body) if isinstance(node, PureExtern)]


def test_the_joined_call_computes_the_same():
    func = _func(*map(_store, range(4)))
    joined = join_matrix_calls(func)
    verify(joined, "device")
    assert [call.dtype.lanes for call in _calls(joined)] == [4]
    a = np.random.default_rng(1).integers(-9, 9, 64).astype(np.float32)
    results = [np.zeros(256, np.float32) for _ in "ab"]
    for each, result in zip((func, joined), results, strict=True):
        interpret(each, [a, result, np.float32(3)])
    np.testing.assert_array_equal(*results)
    assert results[0].any()


@pytest.mark.parametrize(
    "stores",
    [
        [_store(n) for n in range(3)],  # one element is missing
        [_store(n) for n in (0, 2, 1, 3)],  # another order
        [_store(n, "t * 4 + 2 * NUMBER") for n in range(4)],  # not side by side
        [_store(n, a="B@[t]") for n in range(4)],  # the operands read what is written
        [_store(n, x="x" if n else "1f32") for n in range(4)],  # two different calls
        [_store(0), _store(1), "B@[9] = x", _store(2), _store(3)],  # something in between
    ],
)
def test_other_stores_stay_as_they_are(stores):
    func = _func(*stores)
    assert join_matrix_calls(func) is func


def test_stores_before_and_after_stay():
    joined = join_matrix_calls(_func("B@[9] = x", *map(_store, range(4)), "B@[0] = x"))
    assert len(joined.body.body.stmts) == 3 and len(_calls(joined)) == 1


def _loads(row, transposed=""):
    name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4{transposed}.b16"
    stores = [f"D@[t * 8 + {n}] = extern f16 {name}({row}, {n}i32)" for n in range(8)]
    return parse_func(
        "func f(A: f16[256], D: f16[256] out) { for t in range(32) threadIdx.x { "
        + " ".join(stores)
        + " } }"
    )


@pytest.mark.parametrize("transposed", ["", ".trans"])
def test_a_matrix_load_reads_its_row_as_a_vector(transposed):
    func = _loads(", ".join(f"A@[t * 8 + {n}]" for n in range(8)), transposed)
    joined = join_matrix_calls(func)
    verify(joined, "device")
    (call,) = _calls(joined)
    (row,) = call.args
    assert isinstance(row, Load) and row.dtype.lanes == 8
    a = np.arange(256).astype(np.float16)
    results = [np.zeros(256, np.float16) for _ in "ab"]
    for each, result in zip((func, joined), results, strict=True):
        interpret(each, [a, result])
    np.testing.assert_array_equal(*results)
    matrices = a.reshape(4, 8, 8)
    if transposed:
        matrices = matrices.swapaxes(1, 2)
    # Lane t has columns 2 (t % 4) and the next one of row t // 4 of each matrix.
    expected = matrices.reshape(4, 8, 4, 2).transpose(1, 2, 0, 3)
    np.testing.assert_array_equal(results[0], expected.ravel())


def test_rows_that_are_not_side_by_side_stay_elements():
    for row in (
        ", ".join(f"A@[t * 8 + {7 - n}]" for n in range(8)),
        ", ".join(f"A@[t + 32 * {n}]" for n in range(8)),
        ", ".join(["0f16"] * 8),
    ):
        func = _loads(row)
        assert join_matrix_calls(func) is func
