"""Input and output of commands: text, bytes, JSON, notes and progress.

`-` stands for stdin or stdout. All functions raise UserError for a file that cannot be read or
written. Colour and progress appear on a terminal only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import click

from refcomp.foundation.errors import UserError

STANDARD = "-"


def is_terminal(stream: IO[str]) -> bool:
    """Return True if a person reads `stream`, not a file or a pipe."""
    return stream.isatty()


def read_bytes(path: str) -> bytes:
    """Return all bytes of a file, or of stdin."""
    if path == STANDARD:
        if is_terminal(sys.stdin):
            note("reading from the terminal; end with Ctrl-D")
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read", why=error.strerror) from error


def read_text(path: str) -> str:
    """Return all text of a file, or of stdin. Raise UserError if it is not UTF-8."""
    return bytes_to_text(read_bytes(path), path)


def bytes_to_text(data: bytes, path: str) -> str:
    """Decode UTF-8. Raise UserError, which names `path`, if `data` is not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{name_of(path)} is not text",
            why=f"byte {error.start} is not UTF-8",
            remedy="`refcomp execute` runs a module file, `refcomp emulate` code of AMD GPUs",
        ) from error


def name_of(path: str) -> str:
    """Return the name of the input `path` in messages."""
    return "<stdin>" if path == STANDARD else path


def write_text(text: str, path: str = STANDARD, language: str = "") -> None:
    """Write `text` to a file or to stdout. A terminal shows it highlighted as `language`.

    `language` is a name that pygments knows; with '', the text is not highlighted.
    """
    if path != STANDARD:
        # Names from programs may hold lone surrogates, which UTF-8 does not have.
        _write_file(path, text.encode("utf-8", "backslashreplace"))
        return
    if not language or not is_terminal(sys.stdout):
        sys.stdout.write(text)
        return
    from rich.console import Console  # noqa: PLC0415  (40 ms that a pipe does not pay)
    from rich.syntax import Syntax  # noqa: PLC0415

    Console().print(
        Syntax(text, language, theme="ansi_dark", background_color="default")
    )


def refuse_terminal(path: str, remedy: str) -> None:
    """Raise UserError, with `remedy`, if `path` is stdout and stdout is a terminal."""
    if path == STANDARD and is_terminal(sys.stdout):
        raise UserError(
            "stdout is a terminal, and machine code would disturb it", remedy=remedy
        )


def write_bytes(data: bytes, path: str) -> None:
    """Write `data` to a file or to stdout."""
    if path != STANDARD:
        _write_file(path, data)
        return
    sys.stdout.flush()  # text and bytes have different buffers
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def write_json(value: object, path: str = STANDARD) -> None:
    """Write one JSON value to a file or to stdout. Raise ValueError for NaN and infinities."""
    write_text(json.dumps(value, indent=1, allow_nan=False) + "\n", path)


def note(text: str) -> None:
    """Print a line for people, on stderr."""
    click.echo(text, err=True)


def _write_file(path: str, data: bytes) -> None:
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        raise UserError(f"{path} cannot be written", why=error.strerror) from error


@contextmanager
def progress(text: str) -> Iterator[Callable[[str], None]]:
    """Show on stderr, if it is a terminal, what is being done.

    Yields a function that replaces the text.
    """
    if not is_terminal(sys.stderr):
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415  (40 ms that a pipe does not pay)

    # On stderr: stdout may be a pipe to the next command.
    with Console(stderr=True).status(text) as status:
        yield lambda more: status.update(more)
