"""Functions and statements in text, and the message for each mistake."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.dtype import F32, I32, I64
from refcomp.foundation.errors import UserError
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Cast, Var
from refcomp.ir.parser import MAX_BLOCKS, parse_func, parse_funcs, parse_funcs_with_lines
from refcomp.ir.printer import print_func, print_requirement
from refcomp.ir.rewrite import variables_in, walk
from refcomp.ir.stmt import Block, BufferStore, For, IfThenElse, LetStmt, ParallelRegion, Store
from refcomp.ir.structure import structurally_equal
from refcomp.ir.verify import find_fault
from tests.strategies.funcs import runnable_funcs

HEAD = "func f(A: f32[n, 4] out, s: i32) "


def body(text: str):
    return parse_func(HEAD + "{" + text + "}").body


def test_a_header_gives_params_outputs_and_symbols():
    func = parse_func("func g(A: f32[n, m + 1], B: u8[] align 64 out, s: f32, n: i64) { }")
    assert func.name == "g" and func.outputs == ("B",)
    a, b, s, n = func.params
    assert isinstance(a, Buffer) and a.dtype == F32 and a.shape[0] is n
    assert (b.shape, b.alignment, b.scope) == ((), 64, "global")
    assert isinstance(s, Var) and s.dtype == F32
    assert [symbol.name for symbol in func.symbols] == ["m"]


def test_a_shape_may_name_a_scalar_param_that_comes_later():
    func = parse_func("func g(A: f32[i64(n) + m], n: i32) { }")
    cast = func.params[0].shape[0].a
    assert isinstance(cast, Cast) and cast.value is func.params[1]
    assert func.params[1].dtype == I32


def test_loops():
    loop = body("for i in range(n) { for k: i32 in range(2i32, extent=8i32) unrolled { } }")
    assert isinstance(loop, For) and (loop.kind, loop.minimum.value) == ("serial", 0)
    assert loop.var.dtype == I64
    inner = loop.body
    assert (inner.var.dtype, inner.kind) == (I32, "unrolled")
    assert (inner.minimum.value, inner.extent.value) == (2, 8)


def test_blocks_are_as_written():
    store = "A[0, 0] = 1f32 "
    assert isinstance(body(""), Block) and body("").stmts == ()
    assert isinstance(body(store), BufferStore)
    assert len(body(store * 3).stmts) == 3
    single = body("block {" + store + "}")
    assert isinstance(single, Block) and len(single.stmts) == 1
    assert len(body("block { block { } block { } }").stmts) == 2


def test_else_belongs_to_the_nearest_if():
    first = body("if (s == 0i32) { } else if (s == 1i32) { A[0,0] = 1f32 } else { block { } }")
    second = first.else_case
    assert isinstance(first, IfThenElse) and isinstance(second, IfThenElse)
    assert isinstance(second.then_case, BufferStore) and second.else_case.stmts == ()
    assert body("if (s == 0i32) { } else if (s == 1i32) { }").else_case.else_case is None


def test_an_if_on_the_line_of_a_store_is_its_predicate():
    masked = body("A@[0] = 1f32 if s == 0i32")
    assert isinstance(masked, Store) and masked.predicate is not None
    plain, branch = body("A@[0] = 1f32\nif (s == 0i32) { }").stmts
    assert plain.predicate is None and isinstance(branch, IfThenElse)


def test_lets_allocations_and_regions():
    let = body("let t: i64 = n * 2 { alloc T: f32[t] local align 32 { T[t] = A[t, 0] } }")
    assert isinstance(let, LetStmt)
    assert let.body.buffer.shape == (let.var,) and let.body.body.indices == (let.var,)
    region = body("region f.p (A, n) task t of p { A@[t + n] = f32(p) }")
    assert isinstance(region, ParallelRegion)
    assert [captured.name for captured in region.captures] == ["A", "n"]
    assert region.body.index.a is region.task and region.body.value.value is region.num_tasks
    assert region.task.dtype == I64


def test_an_inner_name_hides_an_outer_one_until_its_end():
    outer = body("for i in range(n) { for i in range(4) { A[i, i] = 0f32 } A[i, 0] = 0f32 }")
    inner, after = outer.body.stmts
    assert inner.body.indices == (inner.var, inner.var)
    assert after.indices[0] is outer.var


def test_several_functions_have_names_of_their_own():
    text = "func f(A: f32[n]) { }\nfunc g(n: i32) { }\n"
    first, second = parse_funcs(text)
    assert (first.name, second.name) == ("f", "g")
    assert first.symbols[0].dtype == I64 and second.params[0].dtype == I32
    assert parse_funcs("# nothing\n") == []
    with pytest.raises(UserError, match="expected the end of the text, found `func`"):
        parse_func(text)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "1:1", "expected `func` where a function begins, found the end of the text"),
        ("func 1() { }", "1:6", "expected the name of a function, found `1`"),
        ("func f { }", "1:8", "expected `(` before the parameters, found `{`"),
        ("func f(A) { }", "1:9", "expected `:` and a dtype after the name of a parameter"),
        ("func f(A: f31) { }", "1:11", "unknown dtype `f31`"),
        ("func f(for: f32) { }", "1:8", "expected the name of a parameter, but `for`"),
        ("func f(a: i32, a: i32) { }", "1:16", "two parameters are named `a`"),
        ("func f(A: f32[n], n: f32[4]) { }", "1:19", "`n` is a variable already"),
        ("func f(A: f32[n], n: i32) { }", "1:8", "a dimension of A has dtype i32; it must be i64"),
        ("func f(a: i32 out) { }", "1:15", "expected `,`, `)` or `[` after `i32`, found `out`"),
        ("func f(a: f32x4) { }", "1:1", "the parameter a is a scalar or a buffer, not f32x4"),
        ("func f(A: f32x4[2]) { }", "1:8", "the elements of A are scalars of memory, not f32x4"),
        ("func f(A: f32[2] warp) { }", "1:18", "'warp' is not a scope"),
        ("func f(A: f32[2] shared) { }", "1:1", "the parameter A is shared"),
        ("func f(A: f32[2] align 3) { }", "1:8", "the alignment of A is a power of two or 0"),
        ("func f(A: f32[2] align x) { }", "1:24", "expected an alignment in bytes, found `x`"),
        ("func f() {", "1:11", "expected a statement or `}`, found the end of the text"),
        ("func f() { } }", "1:14", "expected the end of the text, found `}`"),
        ("func f() { } func", "1:14", "expected the end of the text, found `func`"),
        ("func f() {\n  3\n}", "2:3", "expected a statement or `}`, found `3`"),
        ("func f() {\n  x\n}", "2:3", "expected a statement or `}`, found `x`"),
        ("func f() {\n  x[0] = 1\n}", "2:3", "unknown buffer `x`"),
    ],
)
def test_mistakes_in_a_function_are_told_with_their_place(text, place, message):
    with pytest.raises(UserError) as caught:
        parse_func(text, "in.txt")
    assert caught.value.what.startswith(message)
    assert f"\n  --> in.txt:{place}\n" in f"{caught.value}\n"


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("A[0, 0] 1f32", 9, "expected `=` after what is written to, found `1f32`"),
        ("A[0, 0] = 1", 1, "a value of dtype i64 is stored to A, which holds f32"),
        ("A[0] = 1f32", 1, "A has rank 2, but 1 indices"),
        ("A@0 = 1f32", 3, "expected `[` after `@`, found `0`"),
        ("A@[ramp(0, 1, 4)] = 1f32", 1, "a value of dtype f32 is stored to A, which holds f32x4"),
        ("A@[0] = 1f32 if n", 1, "the predicate has dtype i64"),
        ("s[0] = 1f32", 1, "`s` is a variable, not a buffer"),
        ("for i in 4 { }", 10, "expected `range` after `in`, found `4`"),
        ("for i range(4) { }", 7, "expected `in` after the loop variable, found `range`"),
        ("for i in range(4i32) { }", 1, "variable, minimum and extent of a loop have dtypes"),
        ("for i: u8 in range(4u8) { }", 1, "a loop variable has dtype u8; it must be i64 or i32"),
        ("for i in range(0, 4) { }", 19, "expected `extent` after the minimum"),
        ("for i in range(n) vectorized { }", 1, "the extent of a loop that is vectorized must be"),
        ("for i in range(n) fast { }", 19, "expected `{` or one of serial, parallel, vectorized"),
        ("for i in range(n) A[i, 0] = 1f32", 19, "expected `{` or one of serial"),
        ("if n { }", 4, "expected `(` before the condition, found `n`"),
        ("if (n) { }", 1, "the condition has dtype i64; it must be bool"),
        ("if (n == 0) { } else A[0, 0] = 1f32", 22, "expected `{` after `else`, found `A`"),
        ("else { }", 1, "expected a statement or `}`, found `else`"),
        ("let t = n { }", 7, "expected `:` and a dtype after the name of a variable"),
        ("let t: i32 = n { }", 1, "t has dtype i32, its value has i64"),
        ("let t: i64 = t { }", 14, "unknown variable `t`"),
        ("let t: i64 = n { } A[t, 0] = 1f32", 22, "unknown variable `t`"),
        ("alloc T: f32[s] { }", 7, "a dimension of T has dtype i32; it must be i64"),
        ("alloc T: f32[4] local align { }", 29, "expected an alignment in bytes, found `{`"),
        ("region r (q) task t of p { }", 11, "unknown name `q`"),
        ("region r (A) job t of p { }", 14, "expected `task` after the captured names"),
        ("block A[0, 0] = 1f32", 7, "expected `{` before the body of `block`, found `A`"),
    ],
)
def test_mistakes_in_a_statement_are_told_with_their_place(text, column, message):
    with pytest.raises(UserError) as caught:
        parse_func(f"{HEAD}{{\n{text}\n}}", "in.txt")
    assert caught.value.what.startswith(message)
    assert f"\n  --> in.txt:2:{column}\n" in str(caught.value)


def test_the_nesting_of_statements_is_bounded():
    def nest(levels: int) -> str:
        return "func f() {" + "if (true) {" * levels + "}" * levels + "}"

    assert isinstance(parse_func(nest(MAX_BLOCKS)).body, IfThenElse)
    with pytest.raises(UserError, match=f"statements are nested deeper than {MAX_BLOCKS} levels"):
        parse_func(nest(MAX_BLOCKS + 1))


@pytest.mark.search
def test_long_chains_of_else_if_are_no_nesting():
    links = 3000
    func = parse_func("func f() {" + " else ".join(["if (true) { }"] * links) + "}")
    assert sum(isinstance(node, IfThenElse) for node in walk(func)) == links
    assert structurally_equal(func, parse_func(print_func(func)))


@pytest.mark.search
@given(
    st.sampled_from(["nested", "flat", "host"]).flatmap(lambda v: runnable_funcs(v, exact=False))
)
def test_random_functions_print_and_read_back(drawn):
    func, _ = drawn
    text = print_func(func)
    back = parse_func(text)
    assert structurally_equal(func, back), text
    assert print_func(back) == text


@pytest.mark.parametrize("given", ["7", '"a', '"\\q"', "x"])
def test_what_is_imported_must_be_a_text(given):
    what = r"(expected a text in quotes|the char).*\n  --> in.txt:1:1[78]\n"
    with pytest.raises(UserError, match=what):
        parse_func(f"func f() import {given} {{ }}", "in.txt")
    assert parse_func('func f() import "a\\n\\"b" { }').imports == ('a\n"b',)


_CHECKED = """\
func f(A: f32[n] out, faults: i64[1, 3] out)
  check "writes\\nA\\n0\\nn\\n3\\nA[3] = 0.0f32\\n" {
  A[3] = 0.0f32
}
"""


def test_checks_are_read_back():
    func = parse_func(_CHECKED)
    assert func.checks == ("writes\nA\n0\nn\n3\nA[3] = 0.0f32\n",)
    assert print_func(func) == _CHECKED
    for wrong in ("7", '"reads A"', "x"):
        begin, end = _CHECKED.index('"'), _CHECKED.index(" {")
        with pytest.raises(
            UserError, match=r"(expected a text|'reads A' does not desc).*\n  --> in.txt:\d:\d+\n"
        ):
            parse_func(_CHECKED[:begin] + wrong + _CHECKED[end:], "in.txt")
    with pytest.raises(UserError, match=r"takes an i64\[1, 3\] out last"):
        parse_func(_CHECKED.replace("i64[1, 3]", "i64[2, 3]"))


@pytest.mark.search
@given(runnable_funcs("flat"), st.data())
def test_damaged_text_is_read_or_refused_with_its_place(drawn, data: st.DataObject):
    text = print_func(drawn[0])
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, min(len(text), begin + 9)))
    damaged = text[:begin] + data.draw(st.text("(){}[]@,:=+-0 if", max_size=3)) + text[end:]
    try:
        parse_func(damaged, "in.txt")
    except UserError as error:
        assert error.at.place.startswith("in.txt:")


def test_requirements_are_read_and_printed():
    text = "func f(A: f32[n], k: i64) requires (k - 1 < n, n % 4 == 0 or not k < 0) {\n}\n"
    func = parse_func(text)
    assert len(func.requires) == 2 and print_func(func) == text
    n, k = func.symbols[0], func.params[1]
    assert set(variables_in(func.requires[0])) == {n, k}
    other = parse_func(text.replace("k - 1", "k - 2"))
    assert not structurally_equal(func, other)
    assert structurally_equal(
        func, parse_func(text.replace("[n]", "[m]").replace("< n", "< m").replace("n %", "m %"))
    )


def test_requirements_with_axes_are_read_and_printed():
    text = (
        "func f(A: f32[n], k: i32) requires (0 < n, for i in range(n) for j in range(i, extent=2) "
        "i ^ j < n or sqrt(f64(i)) < 2.0f64, for i: i32 in range(k) i < 9i32) {\n}\n"
    )
    func = parse_func(text)
    assert print_func(func) == text
    assert structurally_equal(func, parse_func(text.replace(" j", " t")))
    assert not structurally_equal(func, parse_func(text.replace("extent=2", "extent=3")))
    assert print_requirement(func.requires[2]) == "for i: i32 in range(k) i < 9i32"
    i, j = func.requires[1].axes
    assert set(variables_in(func.requires[1])) == {i, j, func.symbols[0]}
    assert find_fault(func, "nested") is None


@pytest.mark.parametrize(
    ("condition", "what"),
    [
        ("for i in range(n) i", "a requirement is a bool, not i64"),
        ("for i in range(n) A[i] < 1.0f32", "a requirement has no BufferLoad"),
        ("for i in range(n) f32(i) < x", "a requirement has no value of f32"),
        ("for i in range(n) exp(f32(i)) < 1.0f32", "a requirement calls sqrt, floor, ceil, "),
        ("for i in range(n) bf16(i) < 1.0bf16", "a requirement has no value of bf16"),
        ("for i: i8 in range(3i8) i < 1i8", "an axis and its range are i64 or i32, not i8"),
        ("for i in range(3i32) i < 1", "an axis and its range are i64 or i32, not i64"),
        ("for i in range(n) j < 1", "unknown"),
        ("for i in range(n) i < n, i < n", "unknown"),
        ("for i in range(i) i < n", "unknown"),
    ],
)
def test_a_requirement_with_axes_that_no_caller_could_check_is_refused(condition, what):
    with pytest.raises(UserError, match=re.escape(what)):
        parse_func(f"func f(A: f32[n], x: f32) requires ({condition}) {{ }}")


@pytest.mark.parametrize(
    ("condition", "what"),
    [
        ("n", "a requirement is a bool, not i64"),
        (
            "A[0] < 1.0f32",
            "a requirement compares sizes and integers, by +, -, *, //, %, min, max, "
            "comparisons, and, or, not only",
        ),
        ("x < 1.0f32", "a requirement compares sizes and integers, not values of f32"),
        ("(n << 2) < 3", "a requirement compares sizes and integers, by +, -,"),
        ("popcount(n) < 3", "a requirement compares sizes and integers, by +, -,"),
        ("i < n", "unknown"),
    ],
)
def test_a_requirement_that_no_caller_could_check_is_refused(condition, what):
    with pytest.raises(UserError, match=re.escape(what)):
        parse_func(f"func f(A: f32[n], x: f32) requires ({condition}) {{ }}")


def test_lines_on_which_statements_begin():
    text = "func f(A: f32[n] out) {\n  for i in range(n) {\n    A[i] = 1f32\n    barrier\n  }\n}\n"
    (func,), lines = parse_funcs_with_lines(text, "a.ir")
    assert lines[func.body] == "a.ir:2"
    assert [lines[stmt] for stmt in func.body.body.stmts] == ["a.ir:3", "a.ir:4"]
