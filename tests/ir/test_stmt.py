"""The statement classes and what joins them."""

from refcomp.foundation.dtype import F32, I64
from refcomp.foundation.snippets import Snippet
from refcomp.ir import stmt as module
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import FloatImm, IntImm, Var
from refcomp.ir.stmt import Block, BufferStore, Origin, block, line_of, place_of, with_lets
from tests.ir.grammar import assert_grammar_holds

A = Buffer("A", F32, (IntImm(4, I64),))
STORES = [BufferStore(A, (IntImm(k, I64),), FloatImm(0.0, F32)) for k in range(4)]


def test_the_grammar_holds():
    assert_grammar_holds(module)


def test_block_flattens_and_leaves_a_single_statement_alone():
    a, b, c, d = STORES
    assert block([a]) is a
    assert block([Block((a,))]) is a
    assert block([a, Block((b, c)), d]).stmts == (a, b, c, d)
    assert block([]).stmts == ()


def test_the_first_of_several_lets_is_outermost():
    x, y = Var("x", I64), Var("y", I64)
    origin = Origin("C", "i")
    outer = with_lets([(x, IntImm(1, I64)), (y, x)], STORES[0], origin)
    inner = outer.body
    assert (outer.var, inner.var, inner.value) == (x, y, x)
    assert inner.body is STORES[0]
    assert outer.origin is inner.origin is origin
    assert with_lets([], STORES[0]) is STORES[0]


def test_block_keeps_the_origin_it_is_given():
    origin = Origin("C")
    assert block(STORES, origin).origin is origin


def test_an_origin_reads_as_a_sentence_without_what_is_not_known():
    assert str(Origin("C")) == "stage C"
    assert str(Origin("C", "i", "split", "a.py:3")) == "stage C, axis i, by split, at a.py:3"
    assert str(Origin("C", line="a.py:3")) == "stage C, at a.py:3"


def test_an_origin_gives_place_and_line_apart():
    origin = Origin("C", "i", "split", "a.py:3")
    assert place_of(origin) == origin.place() == "stage C, axis i, by split"
    assert line_of(origin) == origin.snippet() == Snippet("a.py:3", "split here")
    assert origin.snippet("axis i") == Snippet("a.py:3", "axis i is split here")
    assert place_of(None) is None and line_of(None) is None
