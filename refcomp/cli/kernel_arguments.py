"""The arguments of a kernel on the command line, as `refcomp emulate --arg` takes them.

    a.npy            an array, only read
    out:c.npy        an array that the kernel writes; the file is written back
    n:i32=1000       a number of a dtype
    local:256        so many bytes of a group's local memory

Refuses, by UserError, files that are not arrays and numbers that their dtype does not have.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.foundation.local_memory import LocalMemory

_NUMBER = re.compile(r"(\w+):(\w+)=(.+)")
_LOCAL = re.compile(r"local:(-?\w+)")
ARGUMENT_FORMS = (
    "an array is FILE.npy as numpy.save writes it, out:FILE.npy where the kernel writes it, "
    "a number NAME:DTYPE=VALUE, such as n:i32=1000, and local memory local:BYTES"
)


@dataclass(frozen=True, slots=True)
class GivenArgument:
    """An argument as it was given.

    Attributes:
        name: The file, or the name before a number's dtype.
        value: A numpy array, a numpy scalar or a LocalMemory.
        path: Where an array that the kernel writes goes; None for all else.
    """

    name: str
    value: Any
    path: str | None


def read_arguments(texts: Sequence[str]) -> list[GivenArgument]:
    """Parse all `--arg` options. Raise UserError if two outputs name the same file."""
    given = [_read(text) for text in texts]
    outputs = [one.path for one in given if one.path]
    if twice := sorted({path for path in outputs if outputs.count(path) > 1}):
        remedy = "name a file for each: copies will do"
        raise UserError(f"out:{twice[0]} is given for several arguments", remedy=remedy)
    return given


def _read(text: str) -> GivenArgument:
    if match := _NUMBER.fullmatch(text):
        return GivenArgument(match[1], _number(match[2], match[3], text), None)
    if match := _LOCAL.fullmatch(text):
        return GivenArgument(text, _local(match[1], text), None)
    path = text.removeprefix("out:")
    array = _array(path)
    is_output = text != path
    array.flags.writeable = is_output
    return GivenArgument(path, array, path if is_output else None)


def _array(path: str) -> Any:
    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        why = error.strerror or str(error)
        raise UserError(
            f"{path} cannot be read", why=why, remedy=ARGUMENT_FORMS
        ) from error
    except (ValueError, EOFError) as error:
        # Not numpy's own words: they tell how to load what is hostile.
        why = "it is damaged, of another kind, or holds Python objects"
        what = f"{path} is no .npy file of a plain array"
        raise UserError(what, why=why, remedy=ARGUMENT_FORMS) from error
    if not isinstance(array, np.ndarray):
        raise UserError(f"{path} holds several arrays", remedy=ARGUMENT_FORMS)
    return np.ascontiguousarray(array, array.dtype.newbyteorder("="))


def _local(size: str, text: str) -> LocalMemory:
    try:
        return LocalMemory(int(size, 0))
    except (ValueError, UserError) as error:
        why = "its size is a number of bytes, at least 1"
        what = f"--arg {text} is not local memory"
        raise UserError(what, why=why, remedy=ARGUMENT_FORMS) from error


def _number(dtype: str, value: str, text: str) -> Any:
    kind = as_dtype(dtype)
    if kind.lanes > 1:
        raise _not_a_number(text, f"{kind} has {kind.lanes} of them")
    try:
        return to_numpy(kind).type(float(value) if kind.is_float else int(value, 0))
    except (ValueError, OverflowError) as error:
        raise _not_a_number(text, str(error)) from error


def _not_a_number(text: str, why: str) -> UserError:
    return UserError(
        f"--arg {text} is no number of that type", why=why, remedy=ARGUMENT_FORMS
    )
