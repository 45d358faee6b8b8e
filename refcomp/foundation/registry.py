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
from refcomp.foundation.near_misses import advise
from refcomp.foundation.provenance import caller_line
from refcomp.foundation.snippets import Snippet

RegisteredFunction = Callable[..., Any]
_F = TypeVar("_F", bound=RegisteredFunction)

_FUNCTIONS: dict[str, RegisteredFunction] = {}
_LINES: dict[
    str, str
] = {}  # name -> the user's line that registered it, as `file:line`
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
    """Register a Python function, so that compiled code can call it by `call_packed`.

    Args:
        name: letters, digits, `_` and dots, as in `"my.sum"`. A plain `@register_func` uses the
            function's own name.
        f: the function. Without it, the result is a decorator.
        override: True to replace a function that has the name.

    Returns:
        The function `f`, or a decorator that returns the function.

    Raises:
        UserError: the name is taken and `override` is not True, the name is not an identifier, or
            `f` cannot be called.

    Source: TVM, tvm.register_func.

    Example::

        >>> @rc.register_func("demo.double", override=True)
        ... def double(x):
        ...     return 2 * x
        >>> rc.get_global_func("demo.double")(21)
        42
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
                earlier=[Snippet(_LINES[name], "registered here")],
            )
        _FUNCTIONS[name] = function
        _LINES[name] = caller_line()
    return function


def get_global_func(
    name: str, allow_missing: bool = False
) -> RegisteredFunction | None:
    """Return the Python function that is registered under a name.

    Args:
        name: the name that `register_func` was given.
        allow_missing: True to return None if there is no such function.

    Raises:
        UserError: no function has the name, and `allow_missing` is not True; or the name is not a
            text.

    Source: TVM, tvm.get_global_func.

    Example::

        >>> rc.get_global_func("demo.missing", allow_missing=True) is None
        True
        >>> rc.get_global_func("demo.missing")
        Traceback (most recent call last):
            ...
        refcomp.foundation.errors.UserError: no function 'demo.missing' is registered...
    """
    checked_name(name, "a function")
    with _LOCK:
        function = _FUNCTIONS.get(name)
        known = sorted(_FUNCTIONS)
    if function is None and allow_missing is not True:
        raise UserError(
            f"no function {name!r} is registered",
            remedy=advise(
                name, known, f'register it: refcomp.register_func("{name}", f)'
            ),
        )
    return function


def list_global_func_names() -> list[str]:
    """Return the names of all registered functions, in alphabetical order.

    Source: TVM, tvm.registry.list_global_func_names.

    Example::

        >>> _ = rc.register_func("demo.first", abs, override=True)
        >>> "demo.first" in rc.list_global_func_names()
        True
    """
    with _LOCK:
        return sorted(_FUNCTIONS)


def remove_global_func(name: str) -> None:
    """Remove the function that is registered under `name`, if any."""
    with _LOCK:
        _FUNCTIONS.pop(name, None)
