"""Build options: what a user licenses or asks of the compiler, for the builds in a scope.

    with refcomp.build_options(contract=True):
        module = refcomp.build(schedule, [A, B, C])

A scope belongs to the thread (and the task of asyncio) that opened it; scopes nest. Options are no
part of a target, as they say what a result may be, not what it is for.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace

from refcomp.foundation.errors import UserError


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """`contract`: a * b + c on f32 and f64 is rounded once, as one fused multiply-add. Without it
    every operation rounds, and every target gives the same bits. `narrow_indices`: indices are i32
    where they are proved to fit; no result changes, and LLVM finds most of it by itself.
    `certify`: each build is certified first, on small sizes (`refcomp.certify`), and fails with a
    CompilerBug that names the guilty step where a result changes. REFCOMP_CERTIFY=1 in the
    environment asks for it everywhere, and for a line on stderr of each certificate; a scope may
    say otherwise. `check_bounds`: compiled code checks each access that is not proved to be in
    bounds, and a call raises OutOfBounds where an index is wrong. REFCOMP_CHECK_BOUNDS=1 in the
    environment asks for it everywhere; a scope may say otherwise."""

    contract: bool = False
    narrow_indices: bool = False
    certify: bool = False
    check_bounds: bool = False


@dataclass(frozen=True, slots=True)
class _Asking:
    """The environment variable that asks for an option, and what it has builds do."""

    variable: str
    effect: str


# Options that the environment may ask for, and the variables that do.
_ASKED_BY = {
    "certify": _Asking("REFCOMP_CERTIFY", "certify each build"),
    "check_bounds": _Asking("REFCOMP_CHECK_BOUNDS", "check accesses in each build"),
}
_CURRENT: ContextVar[BuildOptions | None] = ContextVar("build_options", default=None)


def current_options() -> BuildOptions:
    """The options that hold here."""
    scoped = _CURRENT.get()
    if scoped is not None:
        return scoped
    return BuildOptions(**{option: _is_asked_for(option) for option in _ASKED_BY})


def is_certify_in_environment() -> bool:
    """Return True if REFCOMP_CERTIFY asks for a certificate of each build.

    UserError for any other text than 0 and 1.
    """
    return _is_asked_for("certify")


def _is_asked_for(option: str) -> bool:
    name = _ASKED_BY[option].variable
    text = os.environ.get(name, "")
    if text not in ("", "0", "1"):
        raise UserError(
            f"{name} is {reprlib.repr(text)}, which is neither 0 nor 1",
            where=f"environment variable {name}",
            remedy=f"set it to 1 to {_ASKED_BY[option].effect}, to 0 or nothing to leave that out",
        )
    return text == "1"


@contextmanager
def build_options(**changes: bool) -> Iterator[BuildOptions]:
    """Some options changed for the builds in its body; UserError for what is no option."""
    _check(changes)
    token = _CURRENT.set(replace(current_options(), **changes))
    try:
        yield current_options()
    finally:
        _CURRENT.reset(token)


def _check(changes: dict[str, bool]) -> None:
    known = [field.name for field in fields(BuildOptions)]
    for name, value in changes.items():
        if name not in known:
            raise UserError(
                f"there is no build option {name!r}",
                remedy=f"options: {', '.join(known)}",
            )
        if not isinstance(value, bool):
            raise UserError(
                f"the build option {name} is {value!r}", remedy="pass True or False"
            )
