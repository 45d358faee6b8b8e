"""Expressions in text: precedence, constants, and the message for each mistake."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.dtype import F32, I64, DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Add, Expr, FloatImm, IntImm
from refcomp.ir.expr_parser import MAX_NESTING
from refcomp.ir.parser import parse_expr
from refcomp.ir.printer import print_expr
from refcomp.ir.structure import structurally_equal
from tests.ir.samples import EXPRS, NAMES, TEXTS
from tests.strategies.exprs import dtypes, exprs


def parse(text: str) -> Expr:
    return parse_expr(text, NAMES)


def same(a: str, b: str) -> bool:
    return structurally_equal(parse(a), parse(b))


@pytest.mark.parametrize(("cls", "text"), TEXTS.items(), ids=lambda value: str(value))
def test_each_class_is_read_and_printed_as_it_was(cls, text):
    assert type(parse(text)) is cls
    assert print_expr(parse(text)) == text


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("i - j - i", "(i - j) - i"),
        ("i - j * i", "i - (j * i)"),
        ("i // j % i", "(i // j) % i"),
        ("i << j + i", "i << (j + i)"),
        ("i & j << i", "i & (j << i)"),
        ("i ^ j & i", "i ^ (j & i)"),
        ("i | j ^ i", "i | (j ^ i)"),
        ("i < j | i", "i < (j | i)"),
        ("not i < j", "not (i < j)"),
        ("not p and p", "(not p) and p"),
        ("p or p and p", "p or (p and p)"),
        ("p and not not p", "p and (not (not p))"),
        ("p == (not p)", "p == not p"),
        ("-3 - -4", "(-3) - (-4)"),
    ],
)
def test_operators_bind_as_in_python_and_print_without_needless_parentheses(text, meaning):
    assert same(text, meaning)
    assert print_expr(parse(meaning)) == text


@pytest.mark.parametrize(
    ("text", "value", "dtype"),
    [
        ("5", 5, "i64"),
        ("-128i8", -128, "i8"),
        ("255u8", 255, "u8"),
        ("-9223372036854775808", -(1 << 63), "i64"),
        ("true", 1, "bool"),
        ("2f32", 2.0, "f32"),
        ("1e3f64", 1000.0, "f64"),
        ("1.f32", 1.0, "f32"),
        ("-1.5bf16", -1.5, "bf16"),
        ("f32.inf", math.inf, "f32"),
        ("-f16.inf", -math.inf, "f16"),
    ],
)
def test_constants(text, value, dtype):
    expr = parse(text)
    assert isinstance(expr, IntImm | FloatImm)
    assert (expr.value, str(expr.dtype)) == (value, dtype)


def test_nan_and_the_sign_of_zero():
    assert math.isnan(parse("f64.nan").value)
    assert math.copysign(1, parse("-0.0f32").value) == -1


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("i +", 4, "expected an expression, found the end"),
        ("i + * j", 5, "expected an expression, found `*`"),
        ("(i + j", 7, "expected `)` after the expression, found the end"),
        ("i + j)", 6, "expected the end of the text, found `)`"),
        ("k + 1", 1, "unknown variable `k`"),
        ("B[i]", 1, "unknown buffer `B`"),
        ("i[0]", 1, "`i` is a variable, not a buffer"),
        ("A + 1", 1, "`A` is a buffer"),
        ("expp(x)", 1, "unknown function `expp`"),
        ("A[i]", 1, "A has rank 2, but 1 indices"),
        ("A[i, u]", 1, "an index of A has dtype u8; it must be i64 or i32"),
        ("A@[i if i]", 1, "the predicate has dtype i64; it must be bool with 1 lane"),
        ("x + 1", 3, "the operands of `+` have dtypes f32 and i64"),
        ("i + j * x", 7, "the operands of `*` have dtypes i64 and f32"),
        ("p + p", 3, "Add is not defined on dtype bool"),
        ("i / j", 3, "`/` divides floats, not i64"),
        ("x % x", 3, "`%` takes integers, not f32"),
        ("truncdiv(x, x)", 1, "truncdiv takes integers, not f32"),
        ("x & x", 3, "BitAnd is not defined on dtype f32"),
        ("i and j", 3, "And is not defined on dtype i64"),
        ("not i", 1, "Not is not defined on dtype i64"),
        ("0 <= i < j", 8, "comparisons do not chain"),
        ("-i", 1, "only a constant can have a sign"),
        ("1.5", 1, "`1.5` needs the dtype of a float"),
        ("300u8", 1, "the constant does not fit u8"),
        ("-129i8", 1, "the constant does not fit i8"),
        ("-1u8", 1, "the constant does not fit u8"),
        ("9" * 5000, 1, "the constant does not fit i64"),
        ("1e999f64", 1, "the constant does not fit f64"),
        ("7e", 1, "`7e` is not a number"),
        ("1bool", 1, "`1bool` is not a number"),
        ("min(i)", 1, "`min` takes 2 operands, 1 given"),
        ("min(i, x)", 1, "the operands of `min` have dtypes i64 and f32"),
        ("select(i, i, i)", 1, "the condition of Select has dtype i64"),
        ("select(p, i, x)", 1, "the values of Select have dtypes i64 and f32"),
        ("f32(i, j)", 1, "`f32` takes 1 operands, 2 given"),
        ("f32x4(i)", 1, "a conversion from i64 to f32x4 changes the number of lanes"),
        ("exp(i)", 1, "exp is not defined on dtype i64"),
        ("exp()", 1, "exp takes 1 operands, 0 given"),
        ("ramp(i, 1, j)", 12, "expected the number of lanes, a constant, found `j`"),
        ("ramp(i, 1, -4)", 12, "expected the number of lanes, a constant, found `-`"),
        ("ramp(i, 1, 1)", 1, "a vector has 2 to 65536 lanes, not 1"),
        ("ramp(x, x, 4)", 1, "Ramp is not defined on dtype f32"),
        ("broadcast(x, 0)", 1, "a vector has 2 to 65536 lanes, not 0"),
        ("broadcast(broadcast(x, 2), 2)", 1, "Broadcast takes a scalar, not f32x2"),
        ("(let k: i64 = x in k)", 2, "k has dtype i64, its value has f32"),
        ("(let k: i65 = i in k)", 9, "unknown dtype `i65`"),
        ("(let for: i64 = i in i)", 6, "expected the name of a variable, but `for` means"),
        ("(let k: i64 = i in k) + k", 25, "unknown variable `k`"),
        ("if", 1, "expected an expression, found `if`"),
        ("A[i, j", 7, "expected `,` or `]` in the list, found the end"),
    ],
)
def test_mistakes_are_told_with_their_place(text, column, message):
    with pytest.raises(UserError) as caught:
        parse_expr(text, NAMES, "in.txt")
    assert caught.value.what.startswith(message)
    assert f"\n  --> in.txt:1:{column}\n" in str(caught.value)


def test_a_similar_name_is_offered():
    with pytest.raises(UserError) as caught:
        parse("sqr(x)")
    assert caught.value.remedy == "did you mean sqrt or rsqrt?"
    with pytest.raises(UserError) as caught:
        parse("zzz")
    assert caught.value.remedy == "known here: i j x p u A"


def nested(levels: int, begin: str = "(", end: str = ")") -> str:
    return begin * levels + "i" + end * levels


@pytest.mark.search
@pytest.mark.parametrize(("begin", "end"), [("(", ")"), ("select(p, i, ", ")"), ("A@[i64(", ")]")])
def test_nesting_is_bounded(begin, end):
    per_level = 2 if begin.startswith("A") else 1
    if per_level == 1:
        assert parse(nested(MAX_NESTING, begin, end)).dtype == I64
    with pytest.raises(UserError, match=f"nested deeper than {MAX_NESTING} levels"):
        parse(nested(MAX_NESTING * 50, begin, end))


@pytest.mark.search
def test_long_chains_are_no_nesting():
    expr = parse(" + ".join(["i"] * 20_000))
    assert isinstance(expr, Add)
    assert len(print_expr(expr)) == 4 * 20_000 - 3
    assert parse("not " * 10_000 + "p").dtype.is_bool


@pytest.mark.search
@given(dtypes().flatmap(lambda dtype: exprs(dtype, list(NAMES.values())[:5], depth=4)))
def test_random_expressions_print_and_read_back(expr: Expr):
    text = print_expr(expr)
    back = parse(text)
    assert structurally_equal(expr, back), text
    assert print_expr(back) == text


@given(st.lists(st.sampled_from([*TEXTS.values(), "(", ")", "+", "[", "@", ",", "not", "1.5"])))
def test_any_sequence_of_words_is_read_or_refused_with_its_place(words: list[str]):
    try:
        parse(" ".join(words))
    except UserError as error:
        assert error.at.place.startswith("<expression>:1:")


def test_samples_have_the_dtypes_of_their_nodes():
    vectors = {"ramp(i, 1, 8)": I64.with_lanes(8), "broadcast(x, 8)": F32.with_lanes(8)}
    for expr in EXPRS:
        expected: DType = vectors.get(print_expr(expr), expr.dtype.element)
        assert expr.dtype == expected
