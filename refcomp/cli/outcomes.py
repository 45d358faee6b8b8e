"""Exit codes of commands, and errors as text or as JSON.

The codes are part of the interface: scripts may rely on them.
"""

from __future__ import annotations

from errno import EDQUOT, EFBIG, EIO, ENOMEM, ENOSPC

import click

from refcomp.foundation.errors import (
    CompilerBug,
    RefcompError,
    ToolchainError,
    Unsupported,
    UserError,
)

FINE, FAILED, USAGE, NO_TOOLCHAIN, ILLEGAL, UNSUPPORTED = range(6)
BUG = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED = 130  # as shells report it: 128 + SIGINT

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


# Messages of Python and of the dynamic loader. Neither has an error class for lack of memory.
_OUT_OF_MEMORY = (
    "failed to map segment",
    "cannot allocate memory",
    "can't start new thread",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Return True if there is no more memory, or the process may not use more of it."""
    if isinstance(error, OSError):
        return error.errno == ENOMEM or "cannot allocate memory" in str(error).lower()
    if isinstance(error, ImportError | RuntimeError):
        return any(words in str(error).lower() for words in _OUT_OF_MEMORY)
    return isinstance(error, MemoryError)


def is_of_the_machine(error: BaseException) -> bool:
    """Return True if memory or a disk is full, or a disk is broken."""
    is_disk = isinstance(error, OSError) and error.errno in (ENOSPC, EDQUOT, EFBIG, EIO)
    return is_disk or is_out_of_memory(error)


def exit_code(error: BaseException) -> int:
    """Return the exit code of a command that ends with `error`."""
    for kind, code in _CODES.items():
        if isinstance(error, kind):
            return code
    if isinstance(error, RefcompError) or is_of_the_machine(error):
        return FAILED
    return BUG


def printable(text: str) -> str:
    """Return `text` with `?` for each character that could control a terminal.

    Names in messages come from files, which may be a stranger's.
    """
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)


def error_to_text(error: BaseException) -> str:
    """Return the message for a reader."""
    if isinstance(error, RefcompError):
        return printable(f"error: {error.message()}")
    if is_out_of_memory(error):
        detail = f": {error}" if str(error) else ""
        return printable(
            f"error: memory ran out{detail}\n"
            "  what to do: take smaller sizes, or raise the limit of memory (ulimit -v)"
        )
    if is_of_the_machine(error):
        return printable(f"error: what is computed cannot be written: {error}")
    return printable(
        f"error: a bug in refcomp: {type(error).__name__}: {error}\n"
        "  what to do: run `refcomp --traceback ...` again and report what it prints"
    )


def error_to_json(error: BaseException) -> dict[str, object]:
    """Return the message for a program: the parts of the error that are not empty, by name."""
    kinds = [kind for kind in _CODES if isinstance(error, kind)]
    parts: dict[str, object] = {
        "kind": (kinds[0] if kinds else type(error)).__name__,
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


def usage_to_json(error: click.ClickException) -> dict[str, object]:
    """Return the message on a wrong command line for a program."""
    ctx = getattr(error, "ctx", None)
    command = ctx.command_path if ctx else "refcomp"
    return {
        "error": {
            "kind": type(error).__name__,
            "exit_code": error.exit_code,
            "what": error.format_message(),
            "remedy": f"see `{command} --help`",
        }
    }
