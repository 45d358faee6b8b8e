"""Python functions that compiled code calls by name, and hooks that users install.

After `register_func("my.sum", f)`, compiled code with `call_packed("my.sum", ...)` calls `f`. Each
call looks up the name, so a function may be registered after compiling. Several threads may use the
registry. Refuses names that loop IR cannot hold, and a name that is taken unless `override` is set.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar, overload

from refcomp.foundation.errors import UserError
from refcomp.foundation.names import checked_callee, checked_name
from refcomp.foundation.near_misses import did_you_mean

RegisteredFunction = Callable[..., Any]
_F = TypeVar("_F", bound=RegisteredFunction)

_FUNCTIONS: dict[str, RegisteredFunction] = {}
_LOCK = threading.Lock()


@overload
def register_func(
    name: str, f: None = None, override: bool = False
) -> Callable[[_F], _F]: ...
@overload
def register_func(name: str, f: _F, override: bool = False) -> _F: ...
@overload
def register_func(name: _F, f: None = None, override: bool = False) -> _F: ...
def register_func(
    name: str | RegisteredFunction,
    f: RegisteredFunction | None = None,
    override: bool = False,
) -> RegisteredFunction:
    """Register `f` under `name`, and return `f`. Without `f`, return a decorator.

    A plain `@register_func` uses the function's own name. Raises UserError if the name is taken
    and `override` is false, if it is not an identifier (letters, digits, `_` and dots), and if `f`
    is not callable.
    """
    if f is None and callable(name) and hasattr(name, "__name__"):
        return _register(name.__name__, name, override)
    checked = checked_callee(name)
    if f is None:
        return lambda function: _register(checked, function, override)
    return _register(checked, f, override)


def _register(name: str, function: _F, override: bool) -> _F:
    checked_callee(name)
    if not callable(function):
        raise UserError(
            f"{function!r} cannot be registered as {name!r}",
            remedy="register what can be called",
        )
    with _LOCK:
        if name in _FUNCTIONS and override is not True:
            raise UserError(
                f"a function {name!r} is registered already",
                where=f"it is {_FUNCTIONS[name]!r}",
                remedy="choose another name, or pass override=True to replace it",
            )
        _FUNCTIONS[name] = function
    return function


def get_global_func(
    name: str, allow_missing: bool = False
) -> RegisteredFunction | None:
    """Return the function that is registered under `name`.

    If it is missing, return None with `allow_missing`, and raise UserError without.
    """
    checked_name(name, "a function")
    with _LOCK:
        function = _FUNCTIONS.get(name)
        known = sorted(_FUNCTIONS)
    if function is None and allow_missing is not True:
        raise UserError(
            f"no function {name!r} is registered",
            where=did_you_mean(name, known),
            remedy=f'register it: refcomp.register_func("{name}", f)',
        )
    return function


def list_global_func_names() -> list[str]:
    """Return the names of all registered functions, in alphabetical order."""
    with _LOCK:
        return sorted(_FUNCTIONS)


def remove_global_func(name: str) -> None:
    """Remove the function that is registered under `name`, if any."""
    with _LOCK:
        _FUNCTIONS.pop(name, None)
