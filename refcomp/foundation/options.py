"""Build options: what a user permits or requests, for all builds in a scope.

    with refcomp.build_options(contract=True):
        module = refcomp.build(schedule, [A, B, C])

A scope belongs to the thread or the asyncio task that opened it. Scopes nest. Options are not part
of a target: a target says where the result runs, an option says which results are right.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, replace

from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.foundation.records import record


@record
class BuildOptions:
    """The options of a build.

    Attributes:
        contract: Round a * b + c on f32 and f64 once, as a fused multiply-add. Without this option
            each operation rounds, and all targets give the same bits. With None, the functions of
            a graph contract if the target has the instruction, and other builds do not.
        narrow_indices: Compute indices as i32 if they are proved to fit. Results do not change.
            LLVM does most of this without the option.
        certify: Certify each build first, on small sizes (see `refcomp.certify`). If a step
            changes a result, the build raises CompilerBug and names the step. REFCOMP_CERTIFY=1 in
            the environment sets this option, and prints a line on stderr for each certificate.
        check_bounds: Check each access that is not proved to be in bounds when the compiled code
            runs. A call raises OutOfBounds if an index is wrong. REFCOMP_CHECK_BOUNDS=1 in the
            environment sets this option.
        verify_steps: Verify the loop IR that is lowered, and the result of each step of the
            pipeline. A broken step is then named. Without this option, only the result of the last
            step is verified. REFCOMP_VERIFY_STEPS=1 in the environment sets this option.

    A scope overrides the environment.
    """

    contract: bool | None = None
    narrow_indices: bool = False
    certify: bool = False
    check_bounds: bool = False
    verify_steps: bool = False


@record
class _Variable:
    """An environment variable that sets an option."""

    name: str
    effect: str  # on builds, as an infinitive


# Option -> the variable that sets it. The other options have none.
_VARIABLES = {
    "certify": _Variable("REFCOMP_CERTIFY", "certify each build"),
    "check_bounds": _Variable("REFCOMP_CHECK_BOUNDS", "check accesses in each build"),
    "verify_steps": _Variable("REFCOMP_VERIFY_STEPS", "verify each step of each build"),
}
_CURRENT: ContextVar[BuildOptions | None] = ContextVar("build_options", default=None)


def current_options() -> BuildOptions:
    """Return the options of the innermost scope; outside of all scopes, of the environment.

    Raises UserError if a variable of the environment is neither 0 nor 1.
    """
    scoped = _CURRENT.get()
    if scoped is not None:
        return scoped
    return BuildOptions(**{option: _is_set(option) for option in _VARIABLES})


def is_certify_in_environment() -> bool:
    """Return True if REFCOMP_CERTIFY is 1. UserError if it is neither 0 nor 1."""
    return _is_set("certify")


def _is_set(option: str) -> bool:
    variable = _VARIABLES[option]
    return environment_flag(variable.name, variable.effect)


def environment_flag(name: str, effect: str, *, default: bool = False) -> bool:
    """Return True if the variable `name` is 1, False if it is 0, and `default` if it is not set.

    Raises UserError for other values. `effect` says what the value other than the default does, as
    an infinitive.
    """
    text = os.environ.get(name, "")
    if text not in ("", "0", "1"):
        usual, other = ("1", "0") if default else ("0", "1")
        raise UserError(
            f"{name} is {reprlib.repr(text)}, which is neither 0 nor 1",
            where=f"environment variable {name}",
            remedy=f"set it to {other} to {effect}; otherwise set it to {usual} or unset it",
        )
    return text == "1" if text else default


@contextmanager
def build_options(**changes: bool) -> Iterator[BuildOptions]:
    """Change options for the builds in the `with` block.

    A scope belongs to its thread or asyncio task, and scopes nest. A scope overrides the
    environment.

    Args:
        **changes: the options to change, each True or False. All but `contract` are False by
            default.

            - `contract`: round a * b + c once, on f32 and f64. If it is not given, graphs do so
              for targets that have the instruction, and other programs do not.
            - `narrow_indices`: compute indices as i32 if they are proved to fit.
            - `certify`: certify each build first (`REFCOMP_CERTIFY=1`).
            - `check_bounds`: check accesses in each call (`REFCOMP_CHECK_BOUNDS=1`).
            - `verify_steps`: verify the result of each step, and not only of the last
              (`REFCOMP_VERIFY_STEPS=1`).

    Yields:
        The options in force, a `BuildOptions`.

    Raises:
        UserError: an option is unknown, or its value is not a bool.

    Example::

        >>> with rc.build_options(contract=True) as options:
        ...     print(options.contract, options.certify)
        True False
        >>> with rc.build_options(fast=True): pass
        Traceback (most recent call last):
            ...
        refcomp.foundation.errors.UserError: unknown build option 'fast'...
    """
    known = [field.name for field in fields(BuildOptions)]
    for name, value in changes.items():
        if name not in known:
            raise UserError(
                f"unknown build option {name!r}",
                remedy=advise(name, known, f"options: {', '.join(known)}"),
            )
        if not isinstance(value, bool):
            raise UserError(
                f"the build option {name} is {value!r}", remedy="pass True or False"
            )
    token = _CURRENT.set(replace(current_options(), **changes))
    try:
        yield current_options()
    finally:
        _CURRENT.reset(token)
