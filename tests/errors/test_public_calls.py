"""Every public function, called with the likely wrong things, answers in refcomp's own words.

What may come out: a result, one of refcomp's errors, MemoryError, or Python's TypeError for a wrong
number of arguments, which is raised before any line of refcomp runs.
"""

import itertools
import traceback
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import CompilerBug, RefcompError, UserError
from refcomp.ir.rewrite import children

PACKAGE = str(Path(rc.__file__).parent)

A = rc.placeholder((4,), name="A")
C = rc.compute((4,), lambda i: A[i] + 1, name="C")
S = rc.create_schedule(C)
X = np.ones(4, np.float32)
BUILT = rc.build(S, [A, C], "interp", name="next")

WRONG = {
    "None": None,
    "text": "text",
    "NUL": "a\0b",
    "number": 3,
    "negative": -1,
    "float": 2.5,
    "huge": 2**70,
    "empty list": [],
    "list": [1, 2],
    "pair": (0, 4),
    "dict": {},
    "array": X,
    "array of objects": np.array([None]),
    "NDArray": rc.array(X),
    "tensor": A,
    "list of a tensor": [A],
    "element": A[0],
    "variable": rc.var("n"),
    "axis": rc.reduce_axis((0, 4)),
    "schedule": S,
    "function": rc.lower(S, [A, C]),
    "object": object(),
    "type": int,
    "bytes": b"x",
}
ROOMS = (rc, rc.te, rc.topi, rc.contrib.sparse, rc.graph, rc.symbol, rc.oracle, rc.frontend)
PUBLIC = {
    f"{room.__name__}.{name}": value
    for room in ROOMS
    for name in room.__all__
    if callable(value := getattr(room, name))
    and not isinstance(value, types.ModuleType)
    and not (isinstance(value, type) and issubclass(value, BaseException))
    and (room is rc or name not in rc.__all__)
}


def raw_error(function: Callable[..., Any], words: tuple[str, ...]) -> str:
    """What is wrong with how the call ends; '' for nothing."""
    try:
        function(*(WRONG[word] for word in words))
    except CompilerBug as error:
        return f"blames refcomp: {error.what}"
    except (RefcompError, MemoryError):
        return ""
    except Exception as error:
        places = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        if isinstance(error, TypeError) and not any(p.startswith(PACKAGE) for p in places):
            return ""
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.tools
@pytest.mark.parametrize("name", PUBLIC)
def test_wrong_arguments_are_refused_in_words(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a text may be the name of a file
    monkeypatch.setattr("refcomp.foundation.registry._FUNCTIONS", {})
    calls = (words for count in range(3) for words in itertools.product(WRONG, repeat=count))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's, about what becomes of an array
        found = {words: raw_error(PUBLIC[name], words) for words in calls}
    assert {words: text for words, text in found.items() if text} == {}


def test_a_raw_error_would_be_found() -> None:
    def blame(value: Any) -> None:
        raise CompilerBug("it is broken")

    assert raw_error(children, ("number",)) == "KeyError: <class 'int'>"
    assert raw_error(blame, ("number",)) == "blames refcomp: it is broken"
    assert raw_error(rc.exp, ()) == ""


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "sum without an axis": (
        lambda: rc.sum(A[0]),
        r"sum reduces over no axis(.|\n)*make one with reduce_axis\(\(0, extent\), name\), and",
    ),
    "max of an expression and a number": (
        lambda: rc.max(A[0], 0),
        r"max reduces over(.|\n)*of an expression and a number: refcomp\.maximum\(a, 0\)",
    ),
    "arguments by name": (
        lambda: BUILT(A=X, C=X),
        r"next is called with A=\.\.\., C=\.\.\.\n  where: next\("
        r"(.|\n)*by position\n.*pass A, C in",
    ),
    "one argument by name": (lambda: BUILT["next"](X, C=X), r"next is called with C=\.\.\."),
    "lower without arguments": (
        lambda: rc.lower(S),
        r"a schedule is lowered without arguments\n  what to do: pass args=\[A, B, C\]",
    ),
    "device as text": (
        lambda: rc.empty((2,), "float32", "cpu"),
        r"'cpu' is not a device(.|\n)*refcomp\.cpu\(\), .*context\(target\)",
    ),
    "target as device": (lambda: rc.array(X, "llvm"), "'llvm' is not a device"),
    "device of an executor": (
        lambda: rc.GraphExecutor(rc.compile_graph(_graph(), "interp"), "cpu"),
        "'cpu' is not a device",
    ),
    "tensor as dtype": (
        lambda: rc.placeholder((2,), A),
        r"a Tensor is given as a dtype\n  why: it has a dtype, but is not a dtype itself\n"
        r".*pass its dtype: x",
    ),
    "array as dtype": (lambda: rc.empty((2,), X), "a ndarray is given as a dtype"),
    "None as dtype": (lambda: rc.placeholder((2,), None), "None is given as a dtype"),
    "text of a tensor": (
        lambda: rc.print_func(A),
        r"a Tensor is not a function of the loop IR\n.*pass refcomp\.lower\(schedule, \[A",
    ),
    "number as text": (lambda: rc.parse_func(3), "a int is not a text to parse"),
    "huge extent": (
        lambda: rc.empty((2**63,)),
        r"an array of shape \(9223372036854775808,\) has \d+ bytes\n  why: this exceeds the addr",
    ),
    "huge product": (
        lambda: rc.empty((2**40, 2**40)),
        r"has \d+ bytes\n  why: this exceeds the address",
    ),
    "just too large": (lambda: rc.empty((2**63 - 4000,), "u8"), "has 9223372036854771808 bytes"),
    "no shape": (lambda: rc.empty(None), "None is not a shape\n.*such as \\(2, 3\\)"),
    "number as path": (
        lambda: rc.load_module(3),
        r"3 is not a path for a module file\n  why: a path is a str or a pathlib\.Path(.|\n)*int",
    ),
    "NUL in a path": (
        lambda: rc.load_module("a\0b"),
        r"'a\\x00b' cannot be the path of a module file\n  why: .* no NUL character",
    ),
    "NUL where a module is saved": (
        lambda: BUILT.save("a\0b"),
        r"'a\\x00b' cannot be the path of a module file",
    ),
    "number where a library is saved": (
        lambda: BUILT.export_library(3),
        "3 is not a path for a module file",
    ),
    "empty path": (lambda: rc.load_module(""), "'' cannot be the path of a module file"),
    "NUL in a code object's path": (
        lambda: rc.load_code_object("a\0b"),
        r"'a\\x00b' cannot be the path of a code object",
    ),
    "list as a model": (lambda: rc.from_onnx([]), r"\[\] is not a path for an ONNX model"),
    "NUL in a target": (lambda: rc.build(S, [A, C], "llvm\0"), r"unknown target 'llvm\\x00'"),
    "NUL in an option": (
        lambda: rc.build(S, [A, C], "llvm -mcpu=a\0b"),
        r"the target 'llvm -mcpu=a\\x00b' has a character that cannot be printed",
    ),
    "schedule as graph": (lambda: rc.compile_graph(S), "is not a graph\n.*from_onnx or GraphBuild"),
    "graph that is not compiled": (
        lambda: rc.GraphExecutor(_graph()),
        r"is not a compiled graph\n.*refcomp\.compile_graph",
    ),
    "steps": (lambda: rc.replay([C.op], [3]), r"\[3\] are not the steps of a schedule\n.*\.steps"),
    "functions": (
        lambda: rc.build_functions(S),
        r"is not a list of functions of the loop IR\n.*refcomp\.lower",
    ),
    "extern": (
        lambda: rc.extern((4,), [A], 3),
        "extern extern is given 3, not a function of its buffers\n.*lambda ins, outs",
    ),
    "array as operand": (
        lambda: rc.topi.relu(X),
        "relu is applied to a ndarray, not to a tensor\n.*refcomp.placeholder; arrays are given to",
    ),
    "one output": (
        lambda: rc.oracle.evaluate(C, {A: X}),
        r"Tensor\(C: f32, rank 1\) is not a list of tensors\n.*such as \[C\]",
    ),
    "feeds in a list": (
        lambda: rc.oracle.evaluate([C], [X]),
        r"feeds are a list, not arrays by tensor\n.*pass a dict: \{A: array\}",
    ),
    "a feed in a list": (
        lambda: rc.oracle.evaluate([C], {A: [1.0, 2.0]}),
        r"the value of A cannot be a list\n.*pass a numpy array",
    ),
    "scalars in a list": (
        lambda: rc.oracle.evaluate([C], {A: X}, [3]),
        r"scalars are a list, not numbers by variable\n.*\{n: 3\}",
    ),
    "schedule interpreted": (
        lambda: rc.oracle.interpret(S, [X, X]),
        r"a Schedule is interpreted on a list\n.*refcomp\.lower\(s, \[A, B\]\), and a list of arr",
    ),
    "judged by an array": (
        lambda: rc.oracle.judge_bounded(X, X),
        r"a ndarray does not say which values are legal\n.*bound_errors returned; compare\(a, b\)",
    ),
    "bound in words": (
        lambda: rc.oracle.compare(X, X, "small"),
        r"a str is not a bound for arrays of shape \(4,\)(.|\n)*an array of numbers of that shape",
    ),
    "feeds of a graph": (
        lambda: rc.graph.evaluate_graph(_graph(), [X]),
        r"feeds are a list, not arrays by name\n.*\{\"x\": array\}",
    ),
    "operator": (lambda: rc.graph.register_operator(3), "3 is not an operator\n.*graph.Operator"),
    "kind of device": (lambda: rc.device([]), r"unknown kind of device \[\]"),
    "name of a function": (lambda: rc.get_global_func([]), r"\[\] is not a name for a function"),
}


def _graph() -> Any:
    builder = rc.graph.GraphBuilder("net")
    return builder.finish([builder.node("relu", [builder.input("x", "f32", (2,))])])


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_likely_mistake_has_words_of_its_own(mistake: str) -> None:
    program, message = MISTAKES[mistake]
    with pytest.raises(UserError, match=message):
        program()


@pytest.mark.parametrize("name", ["a\0b", "", "ä ü", "1", "for", "\n", "a" * 10_000])
def test_any_text_is_a_name(name: str) -> None:
    a = rc.placeholder((4,), name=name)
    b = rc.compute((4,), lambda i: a[i] + 1, name=name)
    result = np.zeros(4, np.float32)
    rc.build(rc.create_schedule(b), [a, b], "interp", name=name)(X, result)
    assert (result == 2).all()
