"""Programs of the user's are run, and what they do wrong is told with its place."""

from pathlib import Path

import pytest

from refcomp.cli.programs import load_program
from refcomp.foundation.errors import UserError


def test_the_default_function_is_called(script: Path) -> None:
    (piece,) = load_program(str(script)).pieces
    assert piece.func.name == "add"
    assert piece.schedule is not None
    assert [step.primitive for step in piece.schedule.steps] == ["split", "vectorize"]


def test_another_function_may_give_several(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pieces = load_program(f"{script}:both").pieces
    assert [piece.func.name for piece in pieces] == ["first", "both_1"]
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "this goes to stderr\n")


def test_a_function_of_the_loop_ir_is_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "direct.py"
    path.write_text(
        "import refcomp\n"
        "def computation():\n"
        "    return refcomp.parse_func('func f(A: f32[1] out) { A[0] = 1.0f32 }')\n"
    )
    (piece,) = load_program(str(path)).pieces
    assert (piece.func.name, piece.schedule) == ("f", None)


def test_a_program_finds_its_neighbours_and_is_not_the_main_one(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_program.py").write_text("import refcomp\nwidth = 4\n")
    path = tmp_path / "program.py"
    path.write_text(
        "import refcomp\n"
        "from neighbour_of_program import width\n"
        "def computation():\n"
        "    A = refcomp.placeholder((width,), name='A')\n"
        "    B = refcomp.compute((width,), lambda i: A[i], 'B')\n"
        "    return refcomp.create_schedule(B), (A, B)\n"
        "assert __name__ != '__main__'\n"
    )
    (piece,) = load_program(str(path)).pieces
    assert piece.func.name == "computation"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", r"defines no function 'missing'\n.*SCRIPT\.py:NAME"),
        ("number", "defines no function 'number'"),
        ("computaton", r"defines no function 'computaton'\n.*did you mean computation\? define"),
        (
            "broken",
            r"ZeroDivisionError: (?s:.*)program\.py:19\n   \|     return 1 // 0\n(?s:.*)--t",
        ),
        ("wrong", r"wrong\(\) returned a int\n.*return \(schedule, \[arguments\]\)"),
    ],
)
def test_what_a_program_does_wrong_is_told(script: Path, name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_program(f"{script}:{name}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = (\n", r"SyntaxError(?s:.*)program\.py:1"),
        ("import nothing_like_this\n", "ModuleNotFoundError: No module named"),
        ("import sys\nsys.exit(3)\n", r"SystemExit: 3(?s:.*)program\.py:2"),
    ],
)
def test_a_program_that_does_not_run_is_told(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "program.py"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        load_program(str(path))


def test_a_missing_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"x\.py cannot be read\n.*no such file"):
        load_program(str(tmp_path / "x.py"))
