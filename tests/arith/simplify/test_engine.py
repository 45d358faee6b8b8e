import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.arith import Facts, intern, simplify
from refcomp.foundation.dtype import BOOL, F32, I64, as_dtype
from refcomp.ir.buffer import Buffer, BufferLoad, Load
from refcomp.ir.expr import (
    LT,
    Add,
    And,
    BitXor,
    Broadcast,
    Call,
    FloatImm,
    FloorDiv,
    FloorMod,
    IfThenElseExpr,
    IntImm,
    Let,
    Max,
    Min,
    Mul,
    Or,
    Select,
    Sub,
    Var,
)
from refcomp.ir.printer import print_expr
from refcomp.ir.structure import structurally_equal
from tests.arith.evaluate_plain import evaluate
from tests.arith.facts_text import Scope
from tests.strategies.exprs import exprs

X = Var("x", I64)
DEEP = 5000


def _const(value):
    return IntImm(value, I64)


def _chain(cls, items):
    result = items[0]
    for item in items[1:]:
        result = cls(result, item)
    return result


@pytest.mark.search
@pytest.mark.parametrize(
    "cls", [Add, Sub, Mul, FloorDiv, FloorMod, Min, Max, BitXor], ids=lambda c: c.__name__
)
@pytest.mark.parametrize("is_known", [True, False])
def test_deep_chains_do_not_exhaust_the_stack(cls, is_known):
    items = [Var(f"x{k}", I64) for k in range(50)]
    facts = Facts()
    for item in items if is_known else ():
        facts = facts.bind(item, _const(0), _const(9))
    result = simplify(_chain(cls, items * (DEEP // 50)), facts)
    assert result.dtype == I64


@pytest.mark.search
@pytest.mark.parametrize("cls", [And, Or], ids=lambda c: c.__name__)
def test_deep_conditions(cls):
    parts = [LT(Var(f"x{k}", I64), _const(5)) for k in range(DEEP)]
    assert simplify(_chain(cls, parts)).dtype == BOOL


@pytest.mark.search
def test_deep_choices_and_lets():
    choice = body = X
    for k in range(DEEP // 5):
        var = Var(f"x{k}", I64)
        choice = IfThenElseExpr(LT(var, _const(5)), choice, var)
        body = Let(var, X, Add(body, var))
    assert simplify(choice).dtype == I64
    assert print_expr(simplify(body)) == f"x * {DEEP // 5 + 1}"


@pytest.mark.search
def test_a_deep_sum_is_one_sum():
    assert print_expr(simplify(_chain(Add, [X] * DEEP))) == f"x * {DEEP}"
    assert simplify(_chain(Sub, [X] * (DEEP + 1) + [_const(0)])).dtype == I64


def test_shared_parts_are_visited_once():
    """2^300 leaves, if they were not."""
    expr = X
    for k in range(100):
        expr = FloorDiv(Add(Mul(expr, _const(3)), BitXor(expr, expr + k)), _const(2))
    assert simplify(expr).dtype == I64


def test_branches_of_lazy_choices_know_the_condition():
    scope = Scope("n; i in n; x: i64")
    assert scope.simplified("if_then_else(i < 4, min(i, 7), max(i, 2))") == "i"
    assert scope.simplified("if_then_else(x < 4, min(x, 7), 0)") == "if_then_else(x < 4, x, 0)"
    assert scope.simplified("if_then_else(x < 4, 0, max(x, 2))") == "if_then_else(x < 4, 0, x)"


def test_values_that_are_always_evaluated_do_not_know_it():
    """Each index must stay in range where the condition fails, too."""
    buffer, i = Buffer("A", I64, (_const(8),)), Var("i", I64)
    facts = Facts().bind(i, _const(0), _const(16))
    safe = BufferLoad(buffer, (Min(i, _const(7)),))
    for expr in (
        Select(LT(i, _const(8)), safe, _const(0)),
        And(LT(i, _const(8)), LT(safe, _const(3))),
        Or(LT(_const(7), i), LT(safe, _const(3))),
    ):
        assert "A[min(i, 7)]" in print_expr(simplify(expr, facts))
    lazy = IfThenElseExpr(LT(i, _const(8)), safe, _const(0))
    assert print_expr(simplify(lazy, facts)) == "if_then_else(i < 8, A[i], 0)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x < 4 and x < 8", "x < 4"),
        ("x < 8 and x < 4", "x < 4"),
        ("x < 4 or x < 8", "x < 8"),
        ("x < 4 and 8 <= x", "false"),
        ("x < 8 or 4 <= x", "true"),
        ("x < 8 and y < 3 and x < 4", "y < 3 and x < 4"),
        ("x < 4 and y < 3 and x < 8 and y < 2", "x < 4 and y < 2"),
        ("x < 4 and y < 3 and 4 <= x", "false"),
        ("4 <= x or y < 3 or x < 4", "true"),
        ("not (x < 4 and y < 4)", "not (x < 4 and y < 4)"),
        ("(let t: i64 = x + y in t * t)", "(let t: i64 = x + y in t * t)"),
        ("(let t: i64 = x in t * t)", "x * x"),
        ("(let t: i64 = x + y in x)", "x"),
        ("(let t: f32 = 2.0f32 in t * 3.0f32)", "6.0f32"),
        ("i32(i64(i32(x)))", "i32(x)"),
        ("i64(i32(x))", "i64(i32(x))"),
        ("i64(x)", "x"),
        ("u8(300)", "44u8"),
        ("f32(3) + 0.5f32", "3.5f32"),
        ("broadcast(x, 4) + broadcast(x, 4)", "broadcast(x * 2, 4)"),
        ("not broadcast(x < 4, 4)", "broadcast(4 <= x, 4)"),
        ("f32x4(broadcast(3, 4))", "broadcast(3.0f32, 4)"),
        ("true and x < 4", "x < 4"),
        ("exp(1.0f32 * f32(x))", "exp(f32(x))"),
    ],
)
def test_of_values_nothing_is_known_of(text, expected):
    assert Scope("x: i64; y: i64").simplified(text) == expected


def test_predicates_of_loads():
    buffer = Buffer("A", F32, (_const(8),))
    index = Broadcast(X, 4)
    load = simplify(Load(buffer, index, Broadcast(LT(X, X), 4)))
    assert structurally_equal(load, Broadcast(FloatImm(0.0, F32), 4))
    load = simplify(Load(buffer, index, Broadcast(IntImm(1, BOOL), 4)))
    assert isinstance(load, Load) and load.predicate is None


def test_calls_keep_their_arguments():
    call = Call("fma", (FloatImm(1.0, F32), Var("y", F32), FloatImm(2.0, F32)), F32)
    assert simplify(call) is call


@pytest.mark.search
@pytest.mark.parametrize("text", ["i8", "u8", "bool", "f32", "i32x4", "boolx4"])
@given(st.data())
def test_any_expression_keeps_its_value(text, data):
    dtype = as_dtype(text)
    leaves = [Var(name, as_dtype(t)) for name, t in (("a", "i8"), ("b", "u8"), ("p", "bool"))]
    expr = data.draw(exprs(dtype, leaves, depth=3, exact=True, bfloat=False))
    values = {
        var: data.draw(st.integers(var.dtype.min_value, var.dtype.max_value)) for var in leaves
    }
    result = simplify(expr)
    assert result.dtype == dtype
    try:
        expected = evaluate(expr, values)
    except AssertionError:  # a call: tests of the passes cover these
        return
    np.testing.assert_array_equal(evaluate(result, values), expected, print_expr(expr))


def test_work_on_a_chain_of_conditions_is_linear_in_its_length(monkeypatch):
    plain, made = Facts._assume_one, []
    monkeypatch.setattr(Facts, "_assume_one", lambda *args: made.append(0) or plain(*args))
    numbers = []
    for length in (4, 8):
        made.clear()
        simplify(_chain(And, [Var(f"i{k}", I64) < 9 for k in range(length)]))
        numbers.append(len(made))
    assert numbers[0] > 0 and numbers[1] <= 2 * numbers[0] + 2


def test_terms_that_rules_make_stand_behind_those_that_were_there():
    facts = Facts().bind(X, _const(0), _const(64))
    # The first operand becomes x // 2, although x % 2 is visited later.
    made = FloorDiv(Add(Mul(X, _const(2)), _const(1)), _const(4))
    result = simplify(Add(made, FloorMod(X, _const(2))), facts)
    assert print_expr(result) == "x % 2 + x // 2"


def test_variables_are_numbered_in_order_of_appearance():
    names = [Var(name, I64) for name in "abc"]
    first = Min(Add(names[0], names[1]), names[1])
    assert print_expr(simplify(Add(Sub(first, names[1]), names[2]))) == "min(a + b, b) - b + c"


def test_equal_expressions_have_one_simplified_form():
    facts = Facts()
    forms = [simplify(Max(Add(X, _const(0)), _const(3)), facts) for _ in range(2)]
    assert forms[0] is forms[1]


def test_float_arithmetic_that_stays_as_it_is_has_no_representative():
    facts = Facts()
    load = BufferLoad(Buffer("A", F32, (_const(64),)), (X,))
    expr = Add(Mul(load, FloatImm(2.0, F32)), Call("exp", (load,), F32))
    assert simplify(expr, facts) is expr
    assert [item for item in facts.table._all if item.dtype == F32] == []


def test_floats_that_are_compared_have_one():
    facts = Facts()
    buffer = Buffer("A", F32, (_const(64),))
    first = Max(*[Add(BufferLoad(buffer, (X,)), FloatImm(2.0, F32)) for _ in range(2)])
    assert print_expr(simplify(first, facts)) == "A[x] + 2.0f32"
    made = simplify(Select(LT(first, first.a), first.a, first), facts)
    assert print_expr(made) == "A[x] + 2.0f32"


def test_vectors_of_floats_are_opaque_too():
    a, b = (Broadcast(Var(name, F32), 4) for name in "ab")
    load = Load(Buffer("A", F32, (_const(64),)), Add(Broadcast(X, 4), Broadcast(X, 4)))
    assert print_expr(simplify(Add(a, b))) == "broadcast(a + b, 4)"
    assert print_expr(simplify(Mul(Add(load, a), Broadcast(FloatImm(1.0, F32), 4)))) == (
        "A@[broadcast(x * 2, 4)] + broadcast(a, 4)"
    )
    plain = Add(Load(load.buffer, Broadcast(X, 4)), a)
    assert simplify(plain) is plain


@pytest.mark.parametrize("is_simple", [True, False])
def test_work_on_floats_and_maxima_in_turns_is_linear_in_their_number(monkeypatch, is_simple):
    plain, read = intern.children, []
    monkeypatch.setattr(intern, "children", lambda node: read.append(0) or plain(node))
    numbers = []
    for length in (50, 100):
        index = X if is_simple else Add(X, _const(0))
        expr = BufferLoad(Buffer("A", F32, (_const(64),)), (index,))
        for k in range(length):
            expr = Max(Add(expr, FloatImm(float(k + 1), F32)), FloatImm(0.0, F32))
        read.clear()
        assert (simplify(expr) is expr) == is_simple
        numbers.append(len(read))
    assert numbers[0] > 0 and numbers[1] <= 2.1 * numbers[0]
