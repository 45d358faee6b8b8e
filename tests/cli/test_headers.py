"""The comment lines of a text come back as they were written, and must fit the functions."""

import json
from dataclasses import replace

import pytest

from refcomp.cli.headers import check_header, read_header, signature_lines, with_header
from refcomp.driver.backends import as_target
from refcomp.foundation.artifacts import CheckedAccess, ScalarParam, Signature, Source, TensorParam
from refcomp.foundation.dtype import as_dtype
from refcomp.foundation.errors import UserError

N = ("floordiv", ("add", "n", 3), 4)
SIGNATURE = Signature(
    "f",
    (
        TensorParam("A\n; refcomp.requires libevil", as_dtype("bfloat16"), (N, 2)),
        ScalarParam("h", as_dtype("float16")),
        ScalarParam("b", as_dtype("bool")),
        ScalarParam("x", as_dtype("float64")),
        ScalarParam("u", as_dtype("uint8")),
    ),
    ("n",),
)
TEXT = "define i32 @f(ptr noalias %A, i16 %h, i8 %b, double %x, i8 %u, i64 %n, i32 %num) #0 {\n}\n"


def printed(text: str = TEXT) -> str:
    source = Source(text, "llvm", requires=frozenset({"libm", "libgomp"}))
    return with_header(source, as_target("llvm -mcpu=x86-64"), [SIGNATURE])


def test_what_was_written_is_read_back_whatever_the_names() -> None:
    header = read_header(printed(), "x.ll")
    assert header.signatures == (SIGNATURE,)
    assert header.requires == {"libm", "libgomp"}
    assert str(header.target) == "llvm -mcpu=x86-64"
    check_header(header, printed(), "x.ll")


def test_a_function_that_checks_accesses_takes_one_more_pointer() -> None:
    access = CheckedAccess("reads", "A", 0, "n", "i", "B[i] = A[i]")
    text = printed().replace(json.dumps(SIGNATURE.to_json()), "SIGNATURE")
    checked = json.dumps(replace(SIGNATURE, checks=(access,)).to_json())
    text = text.replace("SIGNATURE", checked)
    with pytest.raises(UserError, match=r"it would get ptr, i16, i8, double, i8, ptr, i64, i32"):
        check_header(read_header(text, "x.ll"), text, "x.ll")
    text = text.replace("i8 %u, ", "i8 %u, ptr %faults, ")
    check_header(read_header(text, "x.ll"), text, "x.ll")


def test_loop_ir_text_has_the_same_lines_behind_its_own_mark() -> None:
    header = read_header(signature_lines([SIGNATURE], "#") + "func f() {\n}\n", "x")
    assert header.signatures == (SIGNATURE,)
    assert (header.requires, header.target.kind) == (frozenset(), "llvm")


def test_text_without_signatures_is_refused() -> None:
    with pytest.raises(
        UserError, match=r"x\.ll does not say how its functions are called(?s:.*)print"
    ):
        check_header(read_header(TEXT, "x.ll"), TEXT, "x.ll")


@pytest.mark.parametrize(
    "line",
    [
        "; refcomp.signature {",
        "; refcomp.signature []",
        '; refcomp.signature {"name": "f"}',
        '; refcomp.signature {"name": "f", "params": [{"name": "A", "dtype": "f33"}]}',
        "; refcomp.signature " + "[" * 100_000,
    ],
)
def test_a_malformed_signature_is_refused(line: str) -> None:
    with pytest.raises(UserError, match=r"x\.ll holds a malformed signature"):
        read_header(f"{line}\n{TEXT}", "x.ll")


def test_a_signature_without_its_function_is_refused() -> None:
    text = printed(TEXT.replace("@f(", "@g("))
    with pytest.raises(UserError, match=r"signature for f, but no such function\n.*functions: g"):
        check_header(read_header(text, "x.ll"), text, "x.ll")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [(", i64 %n", ""), ("double", "float"), ("i8 %b", "i1 %b"), ("ptr noalias %A", "i64 %A")],
)
def test_a_signature_that_does_not_fit_is_refused(right: str, wrong: str) -> None:
    text = printed(TEXT.replace(right, wrong))
    with pytest.raises(UserError, match="signature of f does not fit the function in x.ll"):
        check_header(read_header(text, "x.ll"), text, "x.ll")


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(UserError, match="unknown target 'vax'"):
        read_header("; refcomp.target vax\n", "x.ll")
