"""Functions: their buffers, their symbols, and a function with another body."""

from refcomp.foundation.dtype import F32, I32, I64
from refcomp.ir import func as module
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Cast, Var
from refcomp.ir.func import PrimFunc, symbol_of
from refcomp.ir.stmt import Block
from tests.ir.grammar import assert_grammar_holds

N, M, K = Var("n", I64), Var("m", I64), Var("k", I64)


def test_the_grammar_holds():
    assert_grammar_holds(module)


def test_symbols_are_shape_variables_that_are_no_params_in_order_of_appearance():
    a, b = Buffer("A", F32, (M, N + 1)), Buffer("B", F32, (N, K))
    func = PrimFunc("f", (a, K, b), Block(()), ("B",))
    assert [symbol.name for symbol in func.symbols] == ["m", "n"]
    assert func.buffers == (a, b)
    assert PrimFunc("f", (K,), Block(())).symbols == ()


def test_with_body_keeps_the_function_when_the_body_is_the_same():
    func = PrimFunc("f", (), Block(()), ())
    assert func.with_body(func.body) is func
    other = Block((Block(()),))
    assert func.with_body(other).body is other and func.with_body(other).name == "f"


def test_with_body_keeps_all_else():
    func = PrimFunc("f", (), Block(()), (), ("text",), checks=("check",))
    other = func.with_body(Block((Block(()),)))
    assert (other.imports, other.checks) == (("text",), ("check",))


def test_symbol_of_sees_through_a_conversion_only():
    n = Var("n", I32)
    assert symbol_of(N) is N
    assert symbol_of(Cast(I64, n)) is n
    assert symbol_of(N + 1) is None
