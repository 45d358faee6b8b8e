"""Which accesses are checked, how, and what of a program stays as it was."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

import refcomp
from refcomp.codegen.signature import signature_of
from refcomp.foundation.artifacts import checked_access_from_text
from refcomp.foundation.errors import OutOfBounds
from refcomp.ir.expr import PureExtern, Select
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.ir.rewrite import walk, with_fields
from refcomp.ir.stmt import AtomicUpdate, BufferStore, IfThenElse, LetStmt
from refcomp.ir.structure import structurally_equal
from refcomp.ir.verify import verify
from refcomp.oracle.interpreter.failure import InterpretError
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes import check_accesses as module
from refcomp.passes.check_accesses import check_accesses
from refcomp.passes.make_selects_lazy import make_selects_lazy
from refcomp.runtime.arrays.access_status import fresh_status, require_in_bounds
from tests.passes.docstring_examples import assert_docstring_holds, docstring_example
from tests.passes.kept_meaning import assert_meaning_is_kept
from tests.strategies.funcs import assert_same_values, make_arguments, runnable_funcs
from tests.strategies.unruly_funcs import unruly_funcs


def test_docstring():
    assert_docstring_holds(module, check_accesses)


def test_checked_accesses_are_proved_in_turn():
    after = parse_func(docstring_example(module, "After"))
    bare = with_fields(after, checks=())
    assert check_accesses(bare) is bare


def _checked(body, params="A: f32[n], I: i64[m], B: f32[m] out"):
    func = check_accesses(parse_func(f"func f({params}) {{ {body} }}"))
    verify(func, "nested")
    assert structurally_equal(parse_func(print_func(func)), func)
    return func


def _told(func):
    accesses = map(checked_access_from_text, func.checks)
    return [f"{a.action} {a.buffer} {a.dimension}: {a.index} of {a.extent}" for a in accesses]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("for i in range(m) { B[i] = f32(I[i]) }", []),
        ("for i in range(m) { B[i] = A[I[i]] }", ["reads A 0: I[i] of n"]),
        ("for i in range(n) { B[i] = A[i] }", ["writes B 0: i of m"]),
        ("for i in range(n) { if (i < m) { B[i] = A[i] } }", []),
        ("for i in range(m) { B[i] = if_then_else(i < n, A[i], 0.0f32) }", []),
        ("for i in range(m) { B[i] = select(i < n, A[i], 0.0f32) }", []),
        ("for i in range(m) { B[I[i]] = A[0] }", ["reads A 0: 0 of n", "writes B 0: I[i] of m"]),
        (
            "for i in range(m) { B[i] = A[I[I[i]]] }",
            ["reads I 0: I[i] of m", "reads A 0: I[I[i]] of n"],
        ),
        ("for i in range(m) { atomic add B[I[i]] with 1.0f32 }", ["updates B 0: I[i] of m"]),
        ("for i in range(I[0]) { B[i] = 0.0f32 }", ["reads I 0: 0 of m", "writes B 0: i of m"]),
        ("if (A[2] < 1.0f32) { B[0] = 1.0f32 }", ["reads A 0: 2 of n", "writes B 0: 0 of m"]),
        ("let x: f32 = A[2] { }", ["reads A 0: 2 of n"]),
        ("prefetch A[n]", []),  # it does nothing there
        ("prefetch A[I[m]]", ["reads I 0: m of m"]),
        ("alloc T: f32[4] local { for i in range(5) { T[i] = 0.0f32 } }", ["writes T 0: i of 4"]),
        ("extern i32 f(read(A[m]))", ["passes A 0: m of n"]),
        ("extern i32 f(read(A), A[1])", ["reads A 0: 1 of n"]),
    ],
)
def test_what_is_not_proved_is_checked(body, told):
    text = f"func f(A: f32[n], I: i64[m], B: f32[m] out) {{ {body} }}"
    func = parse_func(text)
    if not told:
        assert check_accesses(func) is func
    assert _told(_checked(body)) == told


def test_what_a_function_requires_of_its_sizes_is_known():
    body = "{ for i in range(m) { A[i] = 0.0f32 } }"
    head = "func f(A: f32[n] out, B: f32[m])"
    assert len(check_accesses(parse_func(f"{head} {body}")).checks) == 1
    func = parse_func(f"{head} requires (m <= n) {body}")
    assert check_accesses(func) is func


def test_each_dimension_is_a_check_of_its_own():
    func = _checked("B[I[0], 1] = 0.0f32", "I: i64[4], B: f32[n, m] out")
    assert _told(func) == ["writes B 0: I[0] of n", "writes B 1: 1 of m"]
    assert [s.name for s in func.params] == ["I", "B", "faults"]


def test_proved_dimensions_are_not_checked():
    func = _checked("for i in range(4) { B[i, 0] = 1.0f32 }", "B: f32[4, n] out")
    assert _told(func) == ["writes B 1: 0 of n"]


def test_the_status_takes_a_name_that_is_free():
    func = _checked("faults[1] = faults_1", "faults: i64[n] out, faults_1: i64")
    assert [param.name for param in func.params] == ["faults", "faults_1", "faults_2"]
    assert func.outputs == ("faults", "faults_2")


def test_threads_update_the_status_and_the_host_writes_it():
    host = _checked("for i in range(n) parallel { B[i] = A[i] }")
    assert not any(isinstance(node, AtomicUpdate) for node in walk(host))
    kernel = _checked("for i in range(n) threadIdx.x { B[i] = A[i] }")
    operators = [node.operator for node in walk(kernel) if isinstance(node, AtomicUpdate)]
    assert operators == ["min", "max", "max"]
    stores = [node.buffer.name for node in walk(kernel) if isinstance(node, BufferStore)]
    assert stores == ["B"]


def test_the_status_is_not_read():
    """Else loops that are not serial would race for it, and double buffers be refused."""
    func = _checked("for i in range(m) { B[I[i]] = A[I[i]] }")
    status = func.params[-1]
    reads = [node for node in walk(func) if getattr(node, "buffer", None) is status]
    assert reads and all(isinstance(node, BufferStore) for node in reads)


def test_a_select_becomes_lazy_where_it_guards_a_read():
    value = "select(i < n, A[i], 0.0f32) + select(i < 4, B[i], 2.0f32)"
    func = _checked(f"for i in range(m) {{ B[i] = {value} + A[I[i]] }}")
    assert _told(func) == ["reads A 0: I[i] of n"]
    (kept,) = [node for node in walk(func) if isinstance(node, Select)]
    assert repr(kept) == "select(i < 4, B[i], 2.0f32)"


def test_a_checked_select_is_lazy_too():
    func = _checked("for i in range(m) { B[i] = select(i < 4, A[I[i]], 0.0f32) }")
    assert not any(isinstance(node, Select) for node in walk(func))
    _run(func, [np.ones(2, np.float32), np.full(6, 0), np.zeros(6, np.float32)])
    with pytest.raises(OutOfBounds):
        _run(func, [np.ones(2, np.float32), np.full(6, 7), np.zeros(6, np.float32)])


def test_names_are_bound_once_by_check_and_statement():
    value = "if_then_else(i < 3, A[I[i % m]], 0.0f32)"
    func = _checked(f"for i in range(4) vectorized {{ B[i] = {value} }}")
    let = next(node for node in walk(func) if isinstance(node, LetStmt))
    (other,) = [node for node in walk(func) if type(node).__name__ == "Let"]
    assert let.var is not other.var and let.var.name == other.var.name


def test_a_value_that_threads_compute_together_is_computed_by_all():
    """A thread whose index is wrong takes part in what its group computes."""
    call = "extern f32 llvm.amdgcn.mfma.f32.16x16x4f32(A[t], A[t], C[t], C[t], C[t], C[t], 0i32)"
    func = _checked(
        f"for t in range(64) threadIdx.x {{ C[I[t]] = {call} }}",
        "A: f32[64], I: i64[64], C: f32[64] out",
    )
    (let,) = [node for node in walk(func) if isinstance(node, LetStmt) and node.var.name != "C.at"]
    assert isinstance(let.value, PureExtern) and let.var.name == "C.value"
    assert not any(isinstance(node, PureExtern) for node in walk(let.body))


def _run(func, arrays):
    signature = signature_of(func)
    status = fresh_status(signature)
    interpret(func, [*arrays, status])
    require_in_bounds(signature, status)


def test_a_store_with_a_wrong_index_is_left_out():
    func = _checked("for i in range(m) { B[I[i]] = A[I[i]] + 1.0f32 }")
    a, b = np.full(3, 5, np.float32), np.zeros(4, np.float32)
    with pytest.raises(OutOfBounds, match="reads from A out of bounds: index 3 in dimension 0"):
        _run(func, [a, np.array([0, 9, 2, 3]), b])
    assert b.tolist() == [6, 0, 6, 0]


def test_a_wrong_read_that_is_chosen_is_zero():
    func = _checked("for i in range(m) { B[i] = if_then_else(i < 2, A[I[i]], 7.0f32) + 1.0f32 }")
    a, b = np.full(3, 5, np.float32), np.zeros(4, np.float32)
    with pytest.raises(OutOfBounds, match="index 9"):
        _run(func, [a, np.array([0, 9, 9, 9]), b])
    assert b.tolist() == [6, 1, 8, 8]


def test_an_index_that_depends_on_a_wrong_read_is_no_second_fault():
    func = _checked("for i in range(m) { B[i] = A[I[I[i]]] }")
    with pytest.raises(OutOfBounds) as error:
        _run(func, [np.ones(3, np.float32), np.array([9, 1]), np.zeros(2, np.float32)])
    assert "reads from I out of bounds: index 9" in error.value.what
    assert "other" not in error.value.why


@pytest.mark.parametrize("chosen", [0, 1])
def test_a_read_that_is_not_made_is_not_reported(chosen):
    func = _checked("B[0] = if_then_else(A[0] < 1.0f32, A[I[0]], 2.0f32)")
    arrays = [np.full(1, chosen, np.float32), np.array([7]), np.zeros(1, np.float32)]
    if chosen:
        _run(func, arrays)
        assert arrays[2].tolist() == [2]
    else:
        with pytest.raises(OutOfBounds, match="index 7"):
            _run(func, arrays)


def test_a_text_says_where_an_access_stands():
    n = refcomp.var("n")
    a, i = refcomp.placeholder((n,), name="A"), refcomp.placeholder((8,), "int64", "I")
    b = refcomp.compute((8,), lambda x: a[i[x]], name="B")
    func = check_accesses(refcomp.lower(refcomp.create_schedule(b), [a, i, b]))
    (access,) = map(checked_access_from_text, func.checks)
    assert (access.statement, access.index) == ("B[x] = A[I[x]]", "I[x]")
    assert access.origin.startswith("stage B, at ") and "test_check_accesses.py" in access.origin


@pytest.mark.search
def test_texts_stay_on_one_line_and_short():
    func = parse_func(f"func f(A: i64[n] out) {{ A[{' + '.join(['A[1]'] * 99)}] = 0 }}")
    *_, last = map(checked_access_from_text, check_accesses(func).checks)
    assert len(last.index) == len(last.statement) == 200 and last.index.endswith("...")
    origin = replace(last, origin="stage B, at a\nb.py:3")
    with pytest.raises(ValueError, match="does not describe an access"):
        checked_access_from_text(origin.to_text())


@pytest.mark.search
@given(runnable_funcs("nested"))
def test_functions_of_all_kinds(drawn):
    assert_meaning_is_kept(check_accesses, *drawn, "nested")


def _outcome(func, arguments):
    try:
        interpret(func, arguments)
    except InterpretError as error:
        return error.what
    return ""


@pytest.mark.search
@given(unruly_funcs())
def test_what_the_interpreter_refuses_is_found(drawn):
    func, symbols = drawn
    wanted, found = make_arguments(func, symbols), make_arguments(func, symbols)
    told = _outcome(make_selects_lazy(func), wanted)
    if "never written" in told:
        return
    checked = check_accesses(func)
    signature = signature_of(checked)
    status = fresh_status(signature)
    second = _outcome(checked, [*found, status] if checked.checks else found)
    assert "out of range" not in second
    if told:
        assert "out of range" in told
        with pytest.raises(OutOfBounds):
            require_in_bounds(signature, status)
        return
    require_in_bounds(signature, status)
    assert not second
    assert_same_values(wanted, found)


@pytest.mark.search
def test_the_strategy_draws_right_and_wrong_functions():
    seen = set()

    @given(unruly_funcs())
    def draw(drawn):
        func, symbols = drawn
        told = _outcome(make_selects_lazy(func), make_arguments(func, symbols))
        seen.add((bool(check_accesses(func).checks), "out of range" in told))

    draw()
    assert seen >= {(True, True), (True, False), (False, False)}


def test_a_branch_keeps_its_cases():
    func = _checked("if (A[0] < A[1]) { B[0] = 1.0f32 } else { B[1] = 1.0f32 }")
    branches = [node for node in walk(func) if isinstance(node, IfThenElse)]
    assert any(node.else_case is not None and "A[0]" in repr(node.condition) for node in branches)
