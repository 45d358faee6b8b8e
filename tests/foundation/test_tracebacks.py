"""An uncaught error shows the user's own frames; refcomp's are hidden unless asked for."""

import os
import subprocess
import sys
import textwrap
import traceback
from functools import partial
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import CompilerBug, UserError
from refcomp.foundation.tracebacks import (
    VARIABLE,
    call_of,
    only_users_frames,
    users_frames,
)

ROOT = Path(__file__).parents[2]


def run(folder: Path, program: str, *before: str, choice: str = "") -> str:
    """What the program prints on stdout and stderr; its first line is line 1."""
    path = folder / "users_program.py"
    path.write_text(textwrap.dedent(program).strip() + "\n")
    variables = {**os.environ, VARIABLE: choice, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *before, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=variables,
        cwd=folder,
        timeout=120,
    )
    assert done.returncode == 1
    return done.stdout.replace(str(path), "users_program.py")


def frames(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.startswith("  File ")]


MISTAKE = """
    import refcomp as rc
    def make():
        A = rc.placeholder((4,), name="A")
        return rc.compute((4,), lambda i: rc.exp(A))
    make()
"""


@pytest.mark.tools
def test_a_script_shows_its_own_frames_and_the_message(tmp_path: Path) -> None:
    text = run(tmp_path, MISTAKE)
    assert frames(text) == [
        'File "users_program.py", line 5, in <module>',
        'File "users_program.py", line 4, in make',
        'File "users_program.py", line 4, in <lambda>',
    ]
    assert text.startswith("Traceback (most recent call last):\n")
    assert text.endswith(
        "refcomp.foundation.errors.UserError: tensor A is used as a number\n"
        "  --> users_program.py:3\n"
        '   |     A = rc.placeholder((4,), name="A")\n'
        "   |     ---------------------------------- A: f32[4] is declared here\n"
        "  what to do: read an element: A[i]\n"
    )


@pytest.mark.tools
def test_the_line_that_the_traceback_shows_is_not_quoted_again(tmp_path: Path) -> None:
    text = run(tmp_path, MISTAKE)
    assert "--> users_program.py:4\n" not in text
    again = run(
        tmp_path,
        MISTAKE.replace(
            "    make()", "    try: make()\n    except rc.UserError as e: print(e); raise"
        ),
    )
    assert again.count("--> users_program.py:4\n") == 1, (
        "printed by the program, and not below the traceback"
    )


@pytest.mark.tools
def test_full_tracebacks_end_in_refcomp_and_so_messages_quote_the_call(tmp_path: Path) -> None:
    text = run(tmp_path, MISTAKE, choice="full")
    assert text.endswith(
        "UserError: tensor A is used as a number\n"
        "  --> users_program.py:4\n"
        "   |     return rc.compute((4,), lambda i: rc.exp(A))\n"
        "   |                                       ^^^^^^^^^\n"
        "  --> users_program.py:3\n"
        '   |     A = rc.placeholder((4,), name="A")\n'
        "   |     ---------------------------------- A: f32[4] is declared here\n"
        "  what to do: read an element: A[i]\n"
    )


@pytest.mark.tools
def test_programs_without_a_file_have_no_quotation(tmp_path: Path) -> None:
    program = """
        import refcomp as rc
        try: rc.as_dtype("f33")
        except rc.UserError as e: print(e)
        raise SystemExit(1)
    """
    text = run(tmp_path, "", "-c", textwrap.dedent(program).strip())
    assert text.startswith("unknown dtype 'f33'\n  --> <string>:2\n  what to do: ")


@pytest.mark.tools
def test_everything_is_shown_on_request(tmp_path: Path) -> None:
    assert any(
        "refcomp/te/maths.py" in line for line in frames(run(tmp_path, MISTAKE, choice="full"))
    )


@pytest.mark.tools
def test_a_malformed_choice_is_named(tmp_path: Path) -> None:
    text = run(tmp_path, MISTAKE, choice="all")
    assert len(frames(text)) == 3
    assert text.endswith(
        "environment variable REFCOMP_TRACEBACK: 'all' is not known; use full or user\n"
    )


@pytest.mark.tools
def test_frames_of_decorated_functions_are_hidden(tmp_path: Path) -> None:
    text = run(tmp_path, "import refcomp as rc\nrc.lower(3, [])")
    assert frames(text) == ['File "users_program.py", line 2, in <module>']


@pytest.mark.tools
def test_an_error_in_the_users_function_keeps_the_users_frames(tmp_path: Path) -> None:
    text = run(tmp_path, "import refcomp as rc\nrc.compute((4,), lambda i: absent)")
    assert frames(text) == [
        'File "users_program.py", line 2, in <module>',
        'File "users_program.py", line 2, in <lambda>',
    ]
    assert text.endswith("NameError: name 'absent' is not defined\n")


@pytest.mark.tools
def test_causes_inside_refcomp_are_left_out_and_the_users_are_kept(tmp_path: Path) -> None:
    assert run(tmp_path, "import refcomp as rc\nrc.as_dtype({})").count("Traceback") == 1
    program = """
        import refcomp as rc
        try:
            rc.as_dtype("f33")
        except rc.UserError as error:
            raise ValueError("mine") from error
    """
    text = run(tmp_path, program)
    assert frames(text) == [
        'File "users_program.py", line 3, in <module>',
        'File "users_program.py", line 5, in <module>',
    ]
    assert "direct cause of the following exception" in text


@pytest.mark.tools
def test_threads_and_coroutines_show_the_users_frames(tmp_path: Path) -> None:
    program = """
        import asyncio, threading
        import refcomp as rc
        def wrong():
            rc.as_dtype("f33")
        async def waits():
            await asyncio.sleep(0)
            wrong()
        thread = threading.Thread(target=wrong)
        thread.start()
        thread.join()
        asyncio.run(waits())
    """
    text = run(tmp_path, program)
    assert text.count("unknown dtype 'f33'") == 2
    assert not any("refcomp/" in line for line in frames(text))
    assert sum("line 4, in wrong" in line for line in frames(text)) == 2


def test_a_hook_of_the_user_is_called(tmp_path: Path) -> None:
    program = """
        import sys, traceback
        def mine(kind, error, entry):
            print("mine:", [frame.name for frame in traceback.extract_tb(entry)])
        sys.excepthook = mine
        import refcomp as rc
        rc.as_dtype("f33")
    """
    assert run(tmp_path, program) == "mine: ['<module>']\n"


@pytest.mark.tools
def test_pytest_shows_the_users_frames(tmp_path: Path) -> None:
    program = """
        import refcomp as rc
        def test_mine():
            rc.compute((4,), lambda i: rc.exp("a"))
    """
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
    text = run(tmp_path, program, *words)
    assert "users_program.py:3: " in text
    assert "UserError: str 'a' cannot be used" in text
    assert "refcomp/" not in text
    assert "-->" not in text, "pytest shows the line above the message"
    assert "refcomp/te" in run(tmp_path, program, *words, choice="full")


def test_ipython_is_given_the_users_frames() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "user")
        try:
            rc.as_dtype("f33")
        except UserError as error:
            lines = error._render_traceback_()
    assert sum(line.startswith("  File ") for line in lines) == 1
    assert any(__file__ in line for line in lines)
    assert not any("-->" in line for line in lines)
    assert sum('rc.as_dtype("f33")' in line for line in lines) == 1


def test_a_bug_of_refcomp_keeps_its_frames_and_hidden_ones_come_back() -> None:
    def fail(kind: type[Exception]) -> None:
        raise kind("x")

    def raised(kind: type[Exception]) -> Exception:
        inside = FunctionType(fail.__code__, {"__name__": "refcomp.somewhere"})
        try:
            inside(kind)
        except kind as error:
            return error
        raise AssertionError

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "")
        for kind, shown in ((UserError, 1), (CompilerBug, 2), (KeyError, 2)):
            error = raised(kind)
            with only_users_frames(error):
                assert len(traceback.extract_tb(error.__traceback__)) == shown
            assert len(traceback.extract_tb(error.__traceback__)) == 2


def test_a_traceback_of_refcomp_alone_has_no_frame_of_the_user() -> None:
    try:
        raise UserError("x")
    except UserError as error:
        assert users_frames(error.__traceback__) is not None
    assert users_frames(None) is None


def test_the_call_is_the_innermost_line_outside_of_refcomp_and_of_libraries() -> None:
    def mine(*_: object) -> None:
        rc.as_dtype("f33")

    with pytest.raises(UserError) as caught:
        max([1], key=partial(np.vectorize(mine, otypes=[object])))
    call = call_of(caught.value)
    assert call is not None
    assert call.place == f"{__file__}:{mine.__code__.co_firstlineno + 1}"
    with pytest.raises(UserError) as caught:
        np.vectorize(rc.as_dtype, otypes=[object])("f33")
    assert "np.vectorize(rc.as_dtype" in call_of(caught.value).render("^")[1]
    assert call_of(UserError("not raised")) is None
