"""Functions known by name: what compiled code calls back, and hooks that users put in.

`register_func("my.sum", f)` makes `f` what `call_packed("my.sum", ...)` calls; the name is looked
up at each call, so that it may be registered after compiling. Safe to use from several threads.
Refuses names that no text of the loop IR could hold, and a name that is taken unless `override`.
"""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable
from typing import Any, TypeVar, overload

from refcomp.foundation.errors import UserError
from refcomp.foundation.names import checked_callee, checked_name

_F = TypeVar("_F", bound=Callable[..., Any])

_FUNCTIONS: dict[str, Callable[..., Any]] = {}
_LOCK = threading.Lock()


@overload
def register_func(
    name: str, f: None = None, override: bool = False
) -> Callable[[_F], _F]: ...
@overload
def register_func(name: str, f: _F, override: bool = False) -> _F: ...
@overload
def register_func(name: _F, f: None = None, override: bool = False) -> _F: ...
def register_func(name: Any, f: Any = None, override: bool = False) -> Any:
    """Registers `f` under `name`, and returns it; without `f`, a decorator that does.

    `@register_func` alone takes the function's own name. UserError when the name is taken and
    `override` is false, when it is no identifier (letters, digits, `_` and dots), and when `f`
    cannot be called.
    """
    if f is None and callable(name) and hasattr(name, "__name__"):
        return _register(name.__name__, name, override)
    checked_callee(name)
    if f is None:
        return lambda function: _register(name, function, override)
    return _register(name, f, override)


def _register(name: str, function: Any, override: bool) -> Any:
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
                remedy="choose another name, or pass override=True to put yours in its place",
            )
        _FUNCTIONS[name] = function
    return function


def get_global_func(
    name: str, allow_missing: bool = False
) -> Callable[..., Any] | None:
    """The function registered under `name`; where there is none, None or a UserError."""
    checked_name(name, "a function")
    with _LOCK:
        function = _FUNCTIONS.get(name)
        known = sorted(_FUNCTIONS)
    if function is None and allow_missing is not True:
        near = difflib.get_close_matches(str(name), known, 3)
        raise UserError(
            f"no function {name!r} is registered",
            where=f"did you mean {' or '.join(near)}?" if near else None,
            remedy=f'register it: refcomp.register_func("{name}", f)',
        )
    return function


def list_global_func_names() -> list[str]:
    """The names of all registered functions, in alphabetical order."""
    with _LOCK:
        return sorted(_FUNCTIONS)


def remove_global_func(name: str) -> None:
    """Forgets the function registered under `name`, if there is one."""
    with _LOCK:
        _FUNCTIONS.pop(name, None)
