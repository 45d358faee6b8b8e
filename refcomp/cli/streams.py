"""What goes into a command and comes out of it: text, bytes, JSON, notes and progress.

`-` stands for stdin or stdout. Refuses, by UserError, a file that cannot be read or written, text
that is not UTF-8, and bytes for a terminal. Colour and progress appear on a terminal only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click

from refcomp.foundation.errors import UserError

STANDARD = "-"


def is_terminal(stream: IO[Any]) -> bool:
    """Whether somebody looks at `stream`."""
    return stream.isatty()


def read_bytes(path: str) -> bytes:
    """All of a file, or of stdin."""
    if path == STANDARD:
        if is_terminal(sys.stdin):
            note("reading from the terminal; end with Ctrl-D")
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read", why=error.strerror) from error


def read_text(path: str) -> str:
    """All of a file, or of stdin, as text."""
    return bytes_to_text(read_bytes(path), path)


def bytes_to_text(data: bytes, path: str) -> str:
    """UTF-8 as text; `path` is for the message."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{name_of(path)} is not text",
            why=f"byte {error.start} is not UTF-8",
            remedy="`refcomp execute` runs a module file, `refcomp emulate` code of AMD GPUs",
        ) from error


def name_of(path: str) -> str:
    """How messages call the input at `path`."""
    return "<stdin>" if path == STANDARD else path


def write_text(text: str, path: str = STANDARD, language: str = "") -> None:
    """`text` to a file, or to stdout: there highlighted as `language` when it is a terminal."""
    if path != STANDARD:
        _write_file(path, text.encode("utf-8", "backslashreplace"))
    elif language and is_terminal(sys.stdout):
        _write_highlighted(text, language)
    else:
        sys.stdout.write(text)


def _write_highlighted(text: str, language: str) -> None:
    from rich.console import Console  # noqa: PLC0415  (40 ms that a pipe does not pay)
    from rich.syntax import Syntax  # noqa: PLC0415

    Console().print(
        Syntax(text, language, theme="ansi_dark", background_color="default")
    )


def refuse_terminal(path: str, remedy: str) -> None:
    """UserError, with `remedy`, when what goes to `path` would go to a terminal."""
    if path == STANDARD and is_terminal(sys.stdout):
        raise UserError(
            "stdout is a terminal, and machine code would disturb it", remedy=remedy
        )


def write_bytes(data: bytes, path: str) -> None:
    """`data` to a file or stdout."""
    if path != STANDARD:
        _write_file(path, data)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def write_json(value: Any, path: str = STANDARD) -> None:
    """One JSON value to a file or stdout."""
    write_text(json.dumps(value, indent=1, allow_nan=False) + "\n", path)


def note(text: str) -> None:
    """A line for people, on stderr."""
    click.echo(text, err=True)


def _write_file(path: str, data: bytes) -> None:
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        raise UserError(f"{path} cannot be written", why=error.strerror) from error


@contextmanager
def progress(text: str) -> Iterator[Callable[[str], None]]:
    """Says on stderr, when it is a terminal, what is being done; the function changes the text."""
    if not is_terminal(sys.stderr):
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415  (40 ms that a pipe does not pay)

    with Console(stderr=True).status(text) as status:
        yield lambda more: status.update(more)
