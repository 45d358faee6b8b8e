"""Reads the arguments of a kernel from the command line, for `refcomp emulate --arg`.

    a.npy            an array that the kernel only reads
    out:c.npy        an array that the kernel writes; the file is written back
    n:i32=1000       a number of a dtype
    local:256        so many bytes of a group's local memory, in code objects for AMD GPUs

Files that are not arrays, and numbers that their dtype does not have, are refused by UserError.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.foundation.local_memory import LocalMemory
from refcomp.runtime.device import HostArray

_NUMBER = re.compile(r"(\w+):(\w+)=(.+)")
_LOCAL = re.compile(r"local:(-?\w+)")
ARGUMENT_FORMS = (
    "an array is FILE.npy as numpy.save writes it, or out:FILE.npy where the kernel writes it; "
    "a number is NAME:DTYPE=VALUE, such as n:i32=1000"
)
FORMS_WITH_LOCAL = f"{ARGUMENT_FORMS}; local memory is local:BYTES"


@dataclass(frozen=True, slots=True)
class GivenArgument:
    """An argument of a kernel, from a command line."""

    name: str  # the file, or the name before a number's dtype
    value: HostArray | np.generic | LocalMemory
    path: str | None = None  # where to write `value`; None unless the kernel writes it


def read_arguments(texts: Sequence[str], forms: str) -> list[GivenArgument]:
    """Parse all `--arg` options.

    Args:
        texts: their values.
        forms: what is legal, for errors: ARGUMENT_FORMS or FORMS_WITH_LOCAL.

    Raises:
        UserError: an argument is illegal, or two outputs name the same file.
    """
    given = []
    for text in texts:
        try:
            given.append(_read(text))
        except UserError as error:
            error.remedy = error.remedy or forms
            raise
    outputs = [one.path for one in given if one.path]
    if twice := sorted({path for path in outputs if outputs.count(path) > 1}):
        raise UserError(
            f"out:{twice[0]} is given for several arguments",
            remedy="name a file for each: copies will do",
        )
    return given


def _read(text: str) -> GivenArgument:
    """Parse an option. `read_arguments` adds the remedy to errors."""
    if match := _NUMBER.fullmatch(text):
        return GivenArgument(match[1], _number(match[2], match[3], text))
    if match := _LOCAL.fullmatch(text):
        try:
            return GivenArgument(text, LocalMemory(int(match[1], 0)))
        except (ValueError, UserError) as error:
            raise UserError(
                f"--arg {text} is not local memory",
                why="its size is a number of bytes, at least 1",
            ) from error
    path = text.removeprefix("out:")
    array = _read_array(path)
    is_output = text != path
    # A write to an array that is not writeable is the hazard `read-only`.
    array.flags.writeable = is_output
    return GivenArgument(path, array, path if is_output else None)


def _read_array(path: str) -> HostArray:
    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise UserError(
            f"{path} cannot be read",
            why=error.strerror or str(error),
        ) from error
    except (ValueError, EOFError) as error:
        # Not numpy's own message: it explains how to load pickles, which run code.
        raise UserError(
            f"{path} is not an .npy file of a plain array",
            why="it is damaged, of another kind, or holds Python objects",
        ) from error
    if not isinstance(array, np.ndarray):
        raise UserError(f"{path} holds several arrays")
    return np.ascontiguousarray(array, array.dtype.newbyteorder("="))


def _number(dtype: str, value: str, text: str) -> np.generic:
    kind = as_dtype(dtype)
    if kind.lanes > 1:
        raise _not_a_number(text, f"{kind} has {kind.lanes} of them")
    try:
        plain = float(value) if kind.is_float else int(value, 0)
        number: np.generic = to_numpy(kind).type(plain)
    except (ValueError, OverflowError) as error:
        raise _not_a_number(text, str(error)) from error
    return number


def _not_a_number(text: str, why: str) -> UserError:
    return UserError(f"--arg {text} is not a number of that type", why=why)
