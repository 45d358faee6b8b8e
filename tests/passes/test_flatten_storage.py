import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.dtype import F32, I64, as_dtype
from refcomp.ir.buffer import Buffer, BufferLoad, Load
from refcomp.ir.expr import IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import BufferStore, For, Origin, Store
from refcomp.ir.verify import verify
from refcomp.oracle.interpreter.interpret import InterpretError
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes import flatten_storage as module
from refcomp.passes.flatten_storage import flatten_storage
from tests.passes.docstring_examples import assert_docstring_holds
from tests.passes.kept_meaning import assert_meaning_is_kept
from tests.strategies.funcs import runnable_funcs


def test_docstring():
    assert_docstring_holds(module, flatten_storage)


def _body(text):
    func = flatten_storage(parse_func(text))
    verify(func, "flat")
    return [line.strip() for line in print_func(func).splitlines()[1:-1]]


def test_rank_zero_is_offset_zero():
    assert _body("func f(A: f32[], B: f32[] out) { B[] = A[] }") == ["B@[0] = A@[0]"]


def test_updates_of_one_element():
    text = "func f(A: i64[n, m] out) { atomic max A[1, 2] with A[0, 3] }"
    assert _body(text) == ["atomic max A[1 * m + 2] with A@[0 * m + 3]"]


def test_symbolic_shapes_in_row_major_order():
    text = "func f(A: f32[n, m, k] out) { for i in range(n) { A[i, i + 1, 2] = 0.0f32 } }"
    assert _body(text)[1] == "A@[(i * m + (i + 1)) * k + 2] = 0.0f32"


def test_constant_rows_fold():
    assert _body("func f(A: f32[4, 5, 6] out) { A[1, 2, 3] = 0.0f32 }") == [
        "A@[(5 + 2) * 6 + 3] = 0.0f32"
    ]


@pytest.mark.parametrize(
    ("indices", "offset"),
    [
        ("0, i // 5, i % 5, 3", "i * 6 + 3"),
        ("0, i // 5, 0, i % 6", "i // 5 * 30 + i % 6"),  # of different divisors
        ("0, i // 5, 0, 3", "((0 + i // 5) * 5 + 0) * 6 + 3"),  # no remainder: as it is written
    ],
)
def test_quotient_and_remainder_of_an_index_are_joined(indices, offset):
    text = f"func f(A: f32[2, 4, 5, 6] out) {{ for i in range(4) {{ A[{indices}] = 0.0f32 }} }}"
    assert _body(text)[1] == f"A@[{offset}] = 0.0f32"


def test_indices_that_are_loads_and_narrow_are_widened():
    text = "func f(A: f32[n, 4], I: i32[n], B: f32[n] out) { B[1] = A[I[0], I[1]] }"
    assert _body(text) == ["B@[1] = A@[i64(I@[0]) * 4 + i64(I@[1])]"]


def test_loads_in_extents_conditions_and_allocations():
    text = """
    func f(N: i64[2], B: f32[2, 2] out) {
      alloc T: f32[2, 2] {
        for i in range(N[0]) { if (N[1] > i) { T[i, 0] = 1.0f32 B[i, 1] = T[i, 0] } }
      }
    }
    """
    lines = _body(text)
    assert lines[:3] == ["alloc T: f32[2, 2] {", "for i in range(N@[0]) {", "if (N@[1] > i) {"]


def test_origins_are_kept_and_a_flat_function_is_itself():
    a, origin = Buffer("A", F32, (IntImm(2, I64),)), Origin("A", "i")
    store = BufferStore(a, (IntImm(0, I64),), BufferLoad(a, (IntImm(1, I64),)), origin)
    flat = flatten_storage(PrimFunc("f", (a,), store, ("A",)))
    assert isinstance(flat.body, Store)
    assert flat.body.origin is origin
    assert flatten_storage(flat) is flat


def test_a_wrong_number_of_indices_is_a_bug_that_is_seen():
    a = Buffer("A", F32, (IntImm(2, I64), IntImm(2, I64)))
    with pytest.raises(ValueError, match="zip"):
        flatten_storage(PrimFunc("f", (a,), BufferStore(a, (IntImm(0, I64),), IntImm(0, I64))))


@pytest.mark.search
@given(st.data(), st.lists(st.integers(0, 4), min_size=0, max_size=4), st.booleans())
def test_every_element_is_reached_as_before(data, shape, symbolic):
    """Each element gets a value that tells its indices, in an order drawn."""
    dims = [
        Var(f"n{d}", I64) if symbolic else IntImm(extent, I64) for d, extent in enumerate(shape)
    ]
    out = Buffer("A", as_dtype("i64"), tuple(dims))
    loops = [Var(f"i{d}", I64) for d in range(len(shape))]
    value = IntImm(7, I64)
    for var in loops:
        value = value * 10 + var
    body = BufferStore(out, tuple(loops), value)
    for d in data.draw(st.permutations(range(len(shape)))):
        body = For(loops[d], IntImm(0, I64), dims[d], "serial", body)
    func = PrimFunc("f", (out,), body, ("A",))
    flat = flatten_storage(func)
    assert not any(isinstance(node, BufferLoad | BufferStore) for node in walk(flat.body))
    results = []
    for version in (func, flat):
        array = np.zeros(shape, np.int64)
        interpret(version, [array])
        results.append(array.tolist())
    assert results[0] == results[1]


def test_a_shared_load_stays_shared():
    a = Buffer("A", F32, (IntImm(2, I64),))
    load = BufferLoad(a, (IntImm(1, I64),))
    func = flatten_storage(PrimFunc("f", (a,), BufferStore(a, (IntImm(0, I64),), load + load)))
    assert sum(isinstance(node, Load) for node in walk(func.body)) == 1


def test_out_of_range_rows_that_stay_in_the_buffer_are_lost_to_the_flat_level():
    """What the nested level alone can tell: why the nested level is interpreted too."""
    func = parse_func("func f(A: f32[2, 3] out) { A[0, 4] = 1.0f32 }")
    with pytest.raises(InterpretError):
        interpret(func, [np.zeros((2, 3), np.float32)])
    array = np.zeros((2, 3), np.float32)
    interpret(flatten_storage(func), [array])
    assert array[1, 1] == 1


@pytest.mark.search
@given(runnable_funcs("nested"))
def test_functions_of_all_kinds(drawn):
    assert_meaning_is_kept(flatten_storage, *drawn, "flat")
