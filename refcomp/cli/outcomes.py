"""How a command ends: the exit codes, and an error as text or as JSON.

The codes are part of the interface: scripts may rely on them.
"""

from __future__ import annotations

from errno import EDQUOT, EFBIG, EIO, ENOMEM, ENOSPC
from typing import Any

import click

from refcomp.foundation.errors import (
    CompilerBug,
    RefcompError,
    ToolchainError,
    Unsupported,
    UserError,
)

FINE, FAILED, USAGE, NO_TOOLCHAIN, ILLEGAL, UNSUPPORTED = range(6)
BUG, INTERRUPTED = 70, 130

MEANINGS = {
    FINE: "fine; also when the reader of a pipe stopped reading",
    FAILED: "the computation failed, or its result is wrong",
    USAGE: "the command line is wrong",
    NO_TOOLCHAIN: "a tool is missing, failed or hung",
    ILLEGAL: "an input or a request is illegal",
    UNSUPPORTED: "the request is beyond what refcomp can do",
    BUG: "a bug in refcomp",
    INTERRUPTED: "interrupted (Ctrl-C)",
}
_CODES: dict[type[RefcompError], int] = {
    UserError: ILLEGAL,
    Unsupported: UNSUPPORTED,
    ToolchainError: NO_TOOLCHAIN,
    CompilerBug: BUG,
}


# What Python and the dynamic loader say where memory, or a limit of it, is at its end.
_OUT_OF_MEMORY = (
    "failed to map segment",
    "cannot allocate memory",
    "can't start new thread",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Return True if memory, or the address space that the process may use, is at its end."""
    if isinstance(error, OSError):
        return error.errno == ENOMEM or "cannot allocate memory" in str(error).lower()
    if isinstance(error, ImportError | RuntimeError):
        return any(words in str(error).lower() for words in _OUT_OF_MEMORY)
    return isinstance(error, MemoryError)


def is_of_the_machine(error: BaseException) -> bool:
    """Whether memory or a disk is at its end, or broken: no bug, and nothing illegal."""
    is_disk = isinstance(error, OSError) and error.errno in (ENOSPC, EDQUOT, EFBIG, EIO)
    return is_disk or is_out_of_memory(error)


def exit_code(error: BaseException) -> int:
    """The exit code that `error` ends a command with."""
    codes = (code for kind, code in _CODES.items() if isinstance(error, kind))
    otherwise = (
        FAILED if isinstance(error, RefcompError) or is_of_the_machine(error) else BUG
    )
    return next(codes, otherwise)


def printable(text: str) -> str:
    """Lines of `text` without what a terminal would obey: names in them may be a stranger's."""
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)


def error_to_text(error: BaseException) -> str:
    """What a reader sees of `error`."""
    if isinstance(error, RefcompError):
        return printable(f"error: {error.message()}")
    if is_out_of_memory(error):
        return printable(
            f"error: memory ran out{f': {error}' if str(error) else ''}\n"
            "  what to do: take smaller sizes, or raise the limit of memory (ulimit -v)"
        )
    if is_of_the_machine(error):
        return printable(f"error: what is computed cannot be written: {error}")
    return printable(
        f"error: a bug in refcomp: {type(error).__name__}: {error}\n"
        "  what to do: run `refcomp --traceback ...` again and report what it prints"
    )


def error_to_json(error: BaseException) -> dict[str, Any]:
    """What a program sees of `error`: its parts by name, those that are empty left out."""
    kinds = (kind for kind in _CODES if isinstance(error, kind))
    parts: dict[str, Any] = {
        "kind": next(kinds, type(error)).__name__,
        "exit_code": exit_code(error),
        "what": getattr(error, "what", str(error)),
    }
    for name in ("where", "why", "remedy", "command", "stderr", "kept"):
        value = getattr(error, name, None)
        if value:
            parts[name] = list(value) if isinstance(value, tuple) else str(value)
    if isinstance(error, RefcompError):
        wrong = error.at or error.call
        if wrong is not None:
            parts["line"] = wrong.place
        if error.earlier:
            parts["earlier"] = {each.label: each.place for each in error.earlier}
    return {"error": parts}


def usage_to_json(error: click.ClickException) -> dict[str, Any]:
    """The same of a command line that is wrong."""
    asked = getattr(error, "ctx", None)
    help_of = asked.command_path if asked else "refcomp"
    parts = {"what": error.format_message(), "remedy": f"see `{help_of} --help`"}
    return {
        "error": {"kind": type(error).__name__, "exit_code": error.exit_code, **parts}
    }
