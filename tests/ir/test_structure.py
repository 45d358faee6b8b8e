"""Structural equality and hashing: renaming, bits, scopes, depth and sharing."""

import math
import re
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.dtype import F32, F64, I32, I64, DType
from refcomp.ir.buffer import Buffer, BufferLoad
from refcomp.ir.expr import Add, Call, Expr, FloatImm, IntImm, Let, Sub, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node, node
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.ir.stmt import Allocate, Block, BufferStore, For, Origin, Stmt
from refcomp.ir.structure import structural_hash, structurally_equal
from tests.ir.samples import EXPRS
from tests.strategies.exprs import dtypes, exprs
from tests.strategies.funcs import runnable_funcs

ZERO, ONE = IntImm(0, I64), IntImm(1, I64)


def agree(a: Node, b: Node) -> bool:
    """Whether a and b are equal; then their hashes are equal too."""
    equal = structurally_equal(a, b)
    assert structurally_equal(b, a) == equal
    assert not equal or structural_hash(a) == structural_hash(b)
    return equal


def var(name: str, dtype: DType = I64) -> Var:
    return Var(name, dtype)


@pytest.mark.parametrize("expr", EXPRS, ids=str)
def test_each_class_equals_itself_only(expr):
    assert [other for other in EXPRS if agree(expr, other)] == [expr]


def test_free_variables_are_equal_to_themselves_only():
    i = var("i")
    assert agree(Add(i, ONE), Add(i, IntImm(1, I64)))
    assert not agree(i, var("i"))


def test_data_is_compared_with_its_type():
    assert not agree(IntImm(1, I64), IntImm(1, I32))
    assert not agree(FloatImm(1.0, F32), FloatImm(1.0, F64))
    x = var("x", F32)
    assert not agree(Call("exp", (x,), F32), Call("log", (x,), F32))


def test_floats_are_compared_by_their_bits():
    assert not agree(FloatImm(0.0, F32), FloatImm(-0.0, F32))
    assert agree(FloatImm(math.nan, F32), FloatImm(-math.nan, F32))
    assert not agree(FloatImm(math.nan, F32), FloatImm(math.inf, F32))


def loop(name: str, extent: Expr, kind: str = "serial") -> For:
    i = var(name)
    buffer = Buffer(name + "_buffer", F32, (extent,))
    store = BufferStore(buffer, (i,), FloatImm(0.0, F32))
    return For(i, ZERO, extent, kind, Allocate(buffer, store))


def test_bound_names_may_differ():
    n = var("n")
    assert agree(loop("i", n), loop("k", n))
    assert not agree(loop("i", n), loop("i", var("n")))
    assert not agree(loop("i", n), loop("i", n, "parallel"))


def test_bound_dtypes_and_buffers_may_not():
    def allocated(**changes: object) -> Stmt:
        fields = {"dtype": F32, "shape": (ONE,), "scope": "local", "alignment": 32} | changes
        return Allocate(Buffer("T", **fields), Block(()))

    assert agree(allocated(), allocated())
    for change in ({"dtype": F64}, {"shape": (ZERO,)}, {"scope": "global"}, {"alignment": 0}):
        assert not agree(allocated(), allocated(**change))
    assert not agree(Let(var("x"), ONE, ONE), Let(var("x", I32), ONE, ONE))


def test_which_bound_variable_is_used_matters():
    def difference(a: Var, b: Var, body: Expr) -> Expr:
        return Let(a, ONE, Let(b, ONE, body))

    a, b, c, d = map(var, "abcd")
    assert agree(difference(a, b, Sub(a, b)), difference(c, d, Sub(c, d)))
    assert not agree(difference(a, b, Sub(a, b)), difference(c, d, Sub(d, c)))
    assert not agree(difference(a, b, Sub(a, b)), difference(c, d, Sub(c, c)))


def test_a_name_is_bound_in_the_body_only():
    x, y = var("x"), var("y")
    assert not agree(Let(x, Add(x, ONE), x), Let(y, Add(y, ONE), y))
    assert agree(Let(x, Add(x, ONE), x), Let(y, Add(x, ONE), y))


def test_a_bound_name_is_not_a_free_one():
    x, y = var("x"), var("y")
    assert not agree(Let(x, ONE, x), Let(x, ONE, y))
    assert not agree(Let(x, ONE, y), Let(y, ONE, y))


def test_a_shared_subtree_is_compared_anew_where_a_name_has_another_meaning():
    x, y, z = map(var, "xyz")
    shared, other = Add(x, ONE), Add(y, ONE)
    same = Add(Let(x, ONE, shared), Let(x, ONE, shared))
    assert agree(same, Add(Let(y, ONE, other), Let(y, ONE, other)))
    assert not agree(same, Add(Let(y, ONE, other), Let(z, ONE, other)))
    # Free outside, bound inside.
    assert not agree(Add(shared, Let(x, ONE, shared)), Add(shared, Let(y, ONE, shared)))
    # Bound twice on one path, as only a broken pass makes it.
    assert agree(Let(x, ONE, Let(x, ZERO, shared)), Let(y, ONE, Let(z, ZERO, Add(z, ONE))))
    assert not agree(Let(x, ONE, Let(x, ZERO, shared)), Let(y, ONE, Let(z, ZERO, other)))


def test_the_hash_of_a_shared_subtree_does_not_depend_on_its_depth():
    def inner() -> Expr:
        w = var("w")
        return Let(w, ONE, Add(w, w))

    shared, x, y = inner(), var("x"), var("y")
    assert agree(Add(shared, Let(x, ONE, shared)), Add(inner(), Let(y, ONE, inner())))


def func(n: str, a: str, b: str, outputs: tuple[str, ...], name: str = "f") -> PrimFunc:
    symbol = var(n)
    first, second = Buffer(a, F32, (symbol,)), Buffer(b, F32, (Add(symbol, ONE),))
    body = BufferStore(second, (symbol,), BufferLoad(first, (ZERO,)))
    return PrimFunc(name, (first, second), body, outputs)


def test_functions_are_equal_up_to_the_names_of_params_and_symbols():
    assert agree(func("n", "A", "B", ("B",)), func("m", "X", "Y", ("Y",)))
    assert agree(func("n", "A", "B", ("A", "B")), func("n", "A", "B", ("B", "A")))
    assert not agree(func("n", "A", "B", ("B",)), func("n", "A", "B", ("A",)))
    assert not agree(func("n", "A", "B", ("B",)), func("n", "A", "B", ("B",), name="g"))


def test_shapes_of_params_are_compared():
    def shaped(*dims: Expr) -> PrimFunc:
        return PrimFunc("f", (Buffer("A", F32, dims),), Block(()))

    n, m = var("n"), var("m")
    assert agree(shaped(n, m), shaped(m, n))
    assert not agree(shaped(n, n), shaped(n, m))
    assert not agree(shaped(n), shaped(n, m))
    assert not agree(shaped(n), shaped(ONE))


def test_the_origin_takes_no_part():
    assert agree(Block((), Origin("A")), Block((), Origin("B")))


def test_blocks_of_other_lengths_differ():
    assert not agree(Block(()), Block((Block(()),)))
    assert not agree(Block((Block(()), Block(()))), Block((Block(()),)))


def test_data_of_other_rooms_is_compared_by_value_or_by_identity():
    @dataclass(frozen=True)
    class Value:
        number: int

    class Thing:
        pass

    @node
    class Foreign(Expr):
        data: "object"
        dtype: "DType"

    def foreign(data: object) -> Expr:
        return Foreign(data, F32)

    thing = Thing()
    assert agree(foreign(Value(1)), foreign(Value(1)))
    assert not agree(foreign(Value(1)), foreign(Value(2)))
    assert agree(foreign((thing, "a", 0.5)), foreign((thing, "a", 0.5)))
    assert not agree(foreign((thing,)), foreign((Thing(),)))
    assert not agree(foreign(True), foreign(1))
    assert not agree(foreign((0.0,)), foreign((-0.0,)))
    assert agree(foreign([1]), foreign([1])) and not agree(foreign([1]), foreign([2]))


@pytest.mark.search
def test_deep_trees_are_compared_and_hashed_without_recursion():
    def deep(end: int) -> Expr:
        expr: Expr = IntImm(end, I64)
        for _ in range(20_000):
            expr = Add(expr, ONE)
        return expr

    assert agree(deep(0), deep(0))
    assert not agree(deep(0), deep(1))


@pytest.mark.search
def test_deep_scopes_are_compared_and_hashed_without_recursion():
    def deep() -> Expr:
        expr: Expr = ONE
        for _ in range(5_000):
            expr = Let(var("x"), ONE, expr)
        return expr

    assert agree(deep(), deep())


def test_shared_trees_are_not_larger_than_what_they_are_made_of():
    def shared() -> Expr:
        x = var("x")
        expr: Expr = x
        for _ in range(200):
            expr = Add(expr, expr)
        return Let(x, ONE, expr)

    assert agree(shared(), shared())


def test_hashes_of_what_differs_differ_mostly():
    hashes = {structural_hash(Add(IntImm(k, I64), ONE)) for k in range(100)}
    assert len(hashes) > 95


@pytest.mark.search
@given(st.data())
def test_random_expressions_with_one_text_are_equal(data: st.DataObject):
    dtype = data.draw(dtypes())
    a, b = data.draw(exprs(dtype)), data.draw(exprs(dtype))
    assert agree(a, a) and agree(b, b)
    assert agree(a, b) or repr(a) != repr(b)


@pytest.mark.search
@given(runnable_funcs("flat"), st.data())
def test_a_copy_is_equal_and_a_changed_copy_is_not(drawn: tuple[PrimFunc, object], data):
    text = print_func(drawn[0])
    copy = parse_func(text)
    assert agree(drawn[0], copy)
    places = [match.start() for match in re.finditer("(?<= )[+*<](?= )", text)]
    if places:
        place = data.draw(st.sampled_from(places))
        other = {"+": "-", "*": "+", "<": ">"}[text[place]]
        assert not agree(copy, parse_func(text[:place] + other + text[place + 1 :]))
