"""Integer expressions as closures: the values that the interpreter gives, and the refusals."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.dtype import BOOL, F32, I32, I64, DType, as_dtype
from refcomp.foundation.errors import Unsupported
from refcomp.ir import expr as ir
from refcomp.ir.expr import Expr, FloatImm, IntImm, Var
from refcomp.ir.parser import parse_expr
from refcomp.oracle.interpreter.scalars import OPERATORS, make_scalar
from refcomp.runtime.programs.host_integers import MAX_DEPTH, Slots, compile_integer

_INTEGERS = ["i8", "i16", "i32", "i64", "u8", "u32", "u64"]
_BINARY = sorted(
    (cls for cls in OPERATORS if cls not in (ir.And, ir.Or)), key=lambda cls: cls.__name__
)


def _evaluate(text: str, **values: int) -> int:
    names = {name: Var(name, I64) for name in values}
    slots = Slots()
    for var in names.values():
        slots.place(var)
    evaluate = compile_integer(parse_expr(text, names), slots)
    return evaluate([*values.values(), *[None] * (len(slots) - len(values))])


def _values(dtype: DType) -> st.SearchStrategy[int]:
    edges = [dtype.min_value, dtype.max_value, 0, 1, min(7, dtype.max_value)]
    return st.sampled_from(edges) | st.integers(dtype.min_value, dtype.max_value)


@pytest.mark.search
@pytest.mark.parametrize("cls", _BINARY, ids=lambda cls: cls.__name__)
@given(data=st.data(), name=st.sampled_from(_INTEGERS))
def test_each_operator_means_what_the_oracle_says(cls: Any, data: Any, name: str) -> None:
    dtype = as_dtype(name)
    a, b = data.draw(_values(dtype)), data.draw(_values(dtype))
    x, y, slots = Var("x", dtype), Var("y", dtype), Slots()
    places = [slots.place(x), slots.place(y)]
    assert places == [0, 1]
    assert compile_integer(cls(x, y), slots)([a, b]) == int(OPERATORS[cls](a, b, dtype))


@given(data=st.data(), source=st.sampled_from(_INTEGERS), target=st.sampled_from(_INTEGERS))
def test_casts_wrap(data: Any, source: str, target: str) -> None:
    value = data.draw(_values(as_dtype(source)))
    x, slots = Var("x", as_dtype(source)), Slots()
    evaluate = compile_integer(ir.Cast(as_dtype(target), x), slots)
    assert evaluate([value]) == make_scalar(value, as_dtype(target))


def test_bools_lets_and_choices() -> None:
    assert _evaluate("(n + 63) // 64", n=65) == 2
    assert _evaluate("select(n < 3 and not (n == 1), n, 0 - n)", n=2) == 2
    assert _evaluate("select(n < 3 or n == 9, n, 0 - n)", n=5) == -5
    assert _evaluate("i64(bool(n)) + i64(n != 0)", n=7) == 2
    assert _evaluate("min(max(n, 2), 8)", n=99) == 8
    m = Var("m", I64)
    slots = Slots()
    evaluate = compile_integer(ir.Let(m, IntImm(5, I64), m * m), slots)
    assert evaluate([None] * len(slots)) == 25
    choice = ir.IfThenElseExpr(IntImm(0, BOOL), IntImm(1, I32), IntImm(2, I32))
    assert compile_integer(choice, Slots())([]) == 2


@pytest.mark.parametrize(
    "expr",
    [
        FloatImm(1.0, F32),
        ir.Cast(I64, FloatImm(1.0, F32)),
        FloatImm(1.0, F32) < FloatImm(2.0, F32),
        ir.Broadcast(IntImm(1, I64), 4),
        ir.Call("popcount", (IntImm(1, I32),), I32),
    ],
)
def test_what_the_host_cannot_evaluate(expr: Expr) -> None:
    with pytest.raises(Unsupported, match=r"the host cannot evaluate .*(\n.*)*computes integers"):
        compile_integer(expr, Slots())


def test_depth_is_limited_but_not_size() -> None:
    n: Expr = Var("n", I64)
    slots = Slots()
    slots.place(n)
    expr = n
    for _ in range(MAX_DEPTH - 1):
        expr = expr + n
    assert compile_integer(expr, slots)([3]) == 3 * MAX_DEPTH
    with pytest.raises(Unsupported, match=f"of more than {MAX_DEPTH} nested operations"):
        compile_integer(expr + n, slots)
