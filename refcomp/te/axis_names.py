"""The names of the axes of a compute: those of the parameters of the user's function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType

from refcomp.foundation.errors import UserError


def axis_names(fcompute: Callable[..., object], rank: int, name: str) -> list[str]:
    """Return the names of the parameters of `fcompute`, or i0, i1, ... for `lambda *index`."""
    names = _plain_parameters(fcompute)
    if names is None:
        try:
            parameters = inspect.signature(fcompute).parameters.values()
        except (TypeError, ValueError) as error:  # not callable, or written in C
            raise UserError(
                f"compute {name} is given {fcompute!r}, not a function of its indices",
                remedy="pass a function such as lambda i: A[i] + 1",
            ) from error
        if any(p.kind is p.VAR_POSITIONAL for p in parameters):
            return [f"i{k}" for k in range(rank)]
        # A default binds a value of the enclosing loop, as in `lambda i, k=k: ...`.
        names = [p.name for p in parameters if p.default is p.empty]
    if len(names) != rank:
        raise UserError(
            f"compute {name} has {rank} dimensions, but its function takes {len(names)} indices",
            remedy="let the function take one index per dimension",
        )
    return names


def _plain_parameters(function: object) -> list[str] | None:
    """Return the parameters without defaults of a plain function, None for any other callable.

    The same as from `inspect.signature`, which takes a sixth of the time of `compute`.
    """
    # Decorators leave attributes, such as the function that is wrapped.
    if not isinstance(function, FunctionType) or function.__dict__:
        return None
    code = function.__code__
    if code.co_kwonlyargcount or code.co_flags & (
        inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    ):
        return None
    count = code.co_argcount - len(function.__defaults__ or ())
    return list(code.co_varnames[:count])
