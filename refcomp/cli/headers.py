"""Comment lines that carry between commands what a text cannot say by itself.

LLVM IR text begins with the target it was printed for, the libraries it needs, and how each of
its functions is called::

    ; refcomp.target llvm -mcpu=native
    ; refcomp.requires libgomp
    ; refcomp.signature {"name": "add", "params": [...], "symbols": ["n"]}

Loop-IR text has signatures (after `#`) only where lowering changed the arguments' types. Refuses,
by UserError, a signature that is malformed, or that the function in the text does not have: it
would be called with the wrong arguments.
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
from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import RefcompError, UserError
from refcomp.foundation.python_limits import paused_collector

_LINE = re.compile(r"^[;#] refcomp\.(target|requires|signature) (.*)$", re.MULTILINE)
_DEFINITION = re.compile(r"^define i32 @([A-Za-z0-9_]+)\(([^)\n]*)\)", re.MULTILINE)
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
    """What the comment lines of a text say."""

    target: Target
    requires: frozenset[str]
    signatures: tuple[Signature, ...]


def signature_lines(signatures: Iterable[Signature], mark: str) -> str:
    """A comment line for each signature; `mark` begins a comment in the text's language."""
    return "".join(
        f"{mark} refcomp.signature {json.dumps(s.to_json())}\n" for s in signatures
    )


def with_header(source: Source, target: Target, signatures: Sequence[Signature]) -> str:
    """LLVM IR text below the lines that `read_header` reads back."""
    lines = [f"; refcomp.target {target}\n"]
    lines += [f"; refcomp.requires {name}\n" for name in sorted(source.requires)]
    return "".join([*lines, signature_lines(signatures, ";"), source.text])


def read_header(text: str, name: str) -> Header:
    """What the lines in `text` say, none of them where there are none; UserError."""
    found: dict[str, list[str]] = {"target": [], "requires": [], "signature": []}
    for match in _LINE.finditer(text):
        found[match[1]].append(match[2])
    signatures = tuple(_read_signature(line, name) for line in found["signature"])
    requires = frozenset(word for line in found["requires"] for word in line.split())
    return Header(as_target((found["target"] or [_LANGUAGE])[-1]), requires, signatures)


def _read_signature(line: str, name: str) -> Signature:
    try:
        with paused_collector():  # see `refcomp.runtime.files.manifest`
            return signature_from_json(json.loads(line))
    except _MALFORMED as error:
        raise UserError(
            f"{name} holds a malformed signature",
            where=line[:120],
            why=f"{type(error).__name__}: {error}",
            remedy="let `refcomp print` write it",
        ) from error


def check_header(header: Header, text: str, name: str) -> None:
    """Refuse, by UserError, signatures that the functions defined in LLVM IR text do not have."""
    if not header.signatures:
        raise UserError(
            f"{name} says of no function how it is called",
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
        _check_types(signature, defined[signature.name], name)


def _check_types(signature: Signature, params: str, name: str) -> None:
    types = [param.split()[0] for param in params.split(",") if param.strip()]
    expected = [*map(_type_of, signature.params), *["ptr"] * bool(signature.checks)]
    expected += [*("i64" for _ in signature.symbols), "i32"]
    if types != expected:
        raise UserError(
            f"the signature of {signature.name} does not fit the function in {name}",
            where=str(signature),
            why=f"the function takes {', '.join(types)}; it would get {', '.join(expected)}",
            remedy="let `refcomp print` write both",
        )


def _type_of(param: TensorParam | ScalarParam) -> str:
    """How LLVM spells what machine code takes for `param`."""
    return "ptr" if isinstance(param, TensorParam) else _scalar_type(param.dtype)


def _scalar_type(dtype: DType) -> str:
    if dtype.is_bool:
        return "i8"
    if dtype.is_float and dtype.bits > 16:
        return "float" if dtype.bits == 32 else "double"
    return f"i{dtype.bits}"
