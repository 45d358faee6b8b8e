"""Comment lines that carry between commands what a text cannot express itself.

LLVM IR text begins with its target, the libraries that it needs, and the signature by which each of
its functions is called::

    ; refcomp.target llvm -mcpu=native
    ; refcomp.requires libgomp
    ; refcomp.signature {"name": "add", "params": [...], "symbols": ["n"]}

Loop-IR text has signatures (after `#`) only where lowering changed the types of the arguments.

A signature that is malformed, or that the function in the text does not have, is refused by
UserError: machine code would be called with wrong arguments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from refcomp.driver.backends import Target, as_target
from refcomp.foundation.artifacts import (
    ScalarParam,
    Signature,
    Source,
    TensorParam,
    signature_from_json,
)
from refcomp.foundation.errors import RefcompError, UserError
from refcomp.foundation.python_limits import paused_collector

_LINE = re.compile(r"^[;#] refcomp\.(target|requires|signature) (.*)$", re.MULTILINE)
# As `templates/llvm` prints the functions that can be called from outside.
_DEFINITION = re.compile(r"^define i32 @([A-Za-z0-9_]+)\(([^)\n]*)\)", re.MULTILINE)
# JSON of any shape may stand in a line.
_MALFORMED = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    RecursionError,
    RefcompError,
)
_LANGUAGE = "llvm"


@dataclass(frozen=True, slots=True)
class Header:
    """The content of the comment lines of a text."""

    target: Target
    requires: frozenset[str]  # names of libraries
    signatures: tuple[Signature, ...]


def signature_lines(signatures: Iterable[Signature], mark: str) -> str:
    """Return a comment line for each signature; `mark` begins a comment in the text's language."""
    return "".join(
        f"{mark} refcomp.signature {json.dumps(s.to_json())}\n" for s in signatures
    )


def with_header(source: Source, target: Target, signatures: Sequence[Signature]) -> str:
    """Return LLVM IR text below the lines that `read_header` reads back."""
    lines = [f"; refcomp.target {target}\n"]
    lines += [f"; refcomp.requires {name}\n" for name in sorted(source.requires)]
    return "".join([*lines, signature_lines(signatures, ";"), source.text])


def read_header(text: str, name: str) -> Header:
    """Return the content of the comment lines in `text`; a missing target is llvm.

    Raise UserError, which names the text `name`, if a line is malformed.
    """
    found: dict[str, list[str]] = {"target": [], "requires": [], "signature": []}
    for match in _LINE.finditer(text):
        found[match[1]].append(match[2])
    signatures = []
    for line in found["signature"]:
        try:
            with paused_collector():  # see `refcomp.runtime.files.manifest`
                signatures.append(signature_from_json(json.loads(line)))
        except _MALFORMED as error:
            raise UserError(
                f"{name} holds a malformed signature",
                where=line[:120],
                why=f"{type(error).__name__}: {error}",
                remedy="let `refcomp print` write it",
            ) from error
    requires = frozenset(word for line in found["requires"] for word in line.split())
    target = as_target((found["target"] or [_LANGUAGE])[-1])
    return Header(target, requires, tuple(signatures))


def check_header(header: Header, text: str, name: str) -> None:
    """Raise UserError if functions defined in LLVM IR `text` do not have the header's signatures.

    Raise it also if the header has no signatures.
    """
    if not header.signatures:
        raise UserError(
            f"{name} does not say how its functions are called",
            why="a line `; refcomp.signature {...}` is missing",
            remedy="let `refcomp print` write the text, and keep its first lines",
        )
    defined = {match[1]: match[2] for match in _DEFINITION.finditer(text)}
    for signature in header.signatures:
        if signature.name not in defined:
            raise UserError(
                f"{name} has a signature for {signature.name}, but no such function",
                remedy=f"functions: {', '.join(defined) or 'none'}",
            )
        params = [
            param for param in defined[signature.name].split(",") if param.strip()
        ]
        types = [param.split()[0] for param in params]
        expected = _expected_types(signature)
        if types != expected:
            raise UserError(
                f"the signature of {signature.name} does not fit the function in {name}",
                where=str(signature),
                why=f"the function takes {', '.join(types)}; it would get {', '.join(expected)}",
                remedy="let `refcomp print` write both",
            )


def _expected_types(signature: Signature) -> list[str]:
    """Return the LLVM types of what machine code takes, in order."""
    types = [_type_of(param) for param in signature.params]
    if signature.checks:
        types.append("ptr")  # where the code reports failed bounds checks
    types += ["i64"] * len(signature.symbols)
    types.append("i32")  # the number of threads
    return types


def _type_of(param: TensorParam | ScalarParam) -> str:
    if isinstance(param, TensorParam):
        return "ptr"
    dtype = param.dtype
    if dtype.is_bool:
        return "i8"
    if dtype.is_float and dtype.bits > 16:
        return "float" if dtype.bits == 32 else "double"
    return f"i{dtype.bits}"  # half precision goes as its bits
