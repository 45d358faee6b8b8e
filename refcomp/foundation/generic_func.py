"""Functions with a variant for each kind of target, such as a user's own schedules.

Ensures: a call runs the variant of the first of the current target's `keys` that has one. Without
a current target, or without such a variant, it runs the function that was decorated. As an
attribute of a class, it is a method.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any, Generic, ParamSpec, TypeVar, overload

from refcomp.foundation.errors import UserError
from refcomp.foundation.names import checked_name
from refcomp.foundation.near_misses import advise
from refcomp.foundation.target import current_target, target_kinds

_P = ParamSpec("_P")
_R = TypeVar("_R")
# Of all kinds of targets, beside their names and devices.
_GENERAL_KEYS = ("cpu", "gpu")
# Of targets that refcomp does not have. Classic programs register variants for them.
_FOREIGN_KEYS = frozenset(
    {"arm_cpu", "bifrost", "hexagon", "hls", "intel_graphics", "mali", "metal"}
    | {"opengl", "sdaccel", "vta", "vulkan"}
)


class GenericFunction(Generic[_P, _R]):
    """A function that chooses its variant by the current target. `generic_func` makes it.

    Args:
        default: what runs if no variant fits.

    Attributes:
        fdefault: the function that was given as `default`.
        variants: key of a target -> variant.

    Source: TVM, tvm.target.generic_func.

    Example::

        >>> lanes = rc.target.GenericFunction(lambda: 1)
        >>> _ = lanes.register("gpu", lambda: 32)
        >>> with rc.Target("opencl"):
        ...     print(lanes(), lanes.fdefault(), list(lanes.variants))
        32 1 ['gpu']

    In a class, it is a method::

        >>> class Tuned:
        ...     factor = 8
        ...
        ...     @rc.generic_func
        ...     def lanes(self):
        ...         return self.factor
        ...
        ...     @lanes.register("gpu")
        ...     def lanes_of_gpu(self):
        ...         return 2 * self.factor
        >>> with rc.Target("opencl"):
        ...     print(Tuned().lanes())
        16
    """

    def __init__(self, default: Callable[_P, _R]) -> None:
        if not callable(default) or isinstance(default, type):
            raise UserError(
                f"{default!r} is not a function",
                remedy="write @refcomp.generic_func above a function",
            )
        functools.update_wrapper(self, default)
        self.fdefault = default
        self.variants: dict[str, Callable[_P, _R]] = {}

    def __call__(self, *args: _P.args, **named: _P.kwargs) -> _R:
        target = current_target()
        for key in () if target is None else target.keys:
            if key in self.variants:
                return self.variants[key](*args, **named)
        return self.fdefault(*args, **named)

    @overload
    def __get__(
        self, instance: None, owner: type | None = None
    ) -> GenericFunction[_P, _R]: ...
    @overload
    def __get__(
        self, instance: object, owner: type | None = None
    ) -> Callable[..., _R]: ...
    def __get__(
        self, instance: object | None, owner: type | None = None
    ) -> GenericFunction[_P, _R] | Callable[..., _R]:
        """Return a method of `instance`, as functions of a class do; variants get `self`, too."""
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        name = getattr(self.fdefault, "__name__", "function")
        return f"<generic function {name} for: {', '.join(self.variants) or 'none'}>"

    @overload
    def register(
        self, key: str | Sequence[str], func: None = None, override: bool = False
    ) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]: ...
    @overload
    def register(
        self,
        key: str | Sequence[str],
        func: Callable[_P, _R],
        override: bool = False,
    ) -> Callable[_P, _R]: ...
    def register(
        self,
        key: str | Sequence[str],
        func: Callable[_P, _R] | None = None,
        override: bool = False,
    ) -> Callable[_P, _R] | Callable[[Callable[_P, _R]], Callable[_P, _R]]:
        """Register the variant of some targets.

        Args:
            key: a kind of target such as `"rocm"`, or `"cpu"` or `"gpu"`; or a list of these.
            func: the variant. Without it, the result is a decorator.
            override: True to replace a variant that is registered already.

        Returns:
            The variant, or a decorator that returns it.

        Raises:
            UserError: a key is unknown or has a variant already, or `func` cannot be called.
        """
        keys = _checked_keys(key)

        def add(variant: Callable[_P, _R]) -> Callable[_P, _R]:
            if not callable(variant):
                raise UserError(
                    f"{variant!r} cannot be a variant for {', '.join(keys)}",
                    remedy="register what can be called",
                )
            for word in keys:
                if word in self.variants and override is not True:
                    raise UserError(
                        f"{self!r} has a variant for {word!r} already",
                        remedy="pass override=True to replace it",
                    )
            self.variants.update(dict.fromkeys(keys, variant))
            return variant

        return add if func is None else add(func)


def generic_func(fdefault: Callable[_P, _R]) -> GenericFunction[_P, _R]:
    """Make a function that has variants for targets (a decorator).

    Args:
        fdefault: what runs if no variant fits the current target.

    Returns:
        A function with the decorator `register(key)` for its variants.

    Raises:
        UserError: `fdefault` is not a function.

    Source: TVM, tvm.target.generic_func.

    Example::

        >>> @rc.generic_func
        ... def threads():
        ...     return 1
        >>> @threads.register(["rocm", "opencl"])
        ... def threads_of_gpu():
        ...     return 256
        >>> with rc.Target("opencl"):
        ...     print(threads())
        256
        >>> threads()
        1
    """
    return GenericFunction(fdefault)


# Name given to `override_native_generic_func` -> variants.
_NAMED: dict[str, dict[str, Callable[..., Any]]] = {}


def override_native_generic_func(
    func_name: str,
) -> Callable[[Callable[_P, _R]], GenericFunction[_P, _R]]:
    """Return a decorator that makes the generic function of a name, or replaces its default.

    All users of a name share one function with its variants. refcomp's own compiler calls none of
    these: its schedules are functions of `refcomp.topi`.

    Args:
        func_name: the name, as in `"schedule_injective"`.

    Raises:
        UserError: the name is not a text, or what is decorated is not a function.

    Source: TVM, tvm.target.override_native_generic_func.

    Example::

        >>> @rc.target.override_native_generic_func("demo.schedule")
        ... def demo_schedule(outs):
        ...     return "plain"
        >>> _ = demo_schedule.register("gpu", lambda outs: "threads")
        >>> with rc.Target("rocm"):
        ...     print(demo_schedule([]))
        threads
    """
    name = checked_name(func_name, "a generic function")

    def replace(fdefault: Callable[_P, _R]) -> GenericFunction[_P, _R]:
        made = GenericFunction(fdefault)
        # A variant that is registered by one of them is known to all.
        made.variants = _NAMED.setdefault(name, made.variants)
        return made

    return replace


def _checked_keys(key: str | Sequence[str]) -> tuple[str, ...]:
    keys = (key,) if isinstance(key, str) else key
    kinds = target_kinds()
    known = {kind.name for kind in kinds} | {kind.device for kind in kinds}
    known.update(_GENERAL_KEYS)
    possible = known | _FOREIGN_KEYS
    if not isinstance(keys, list | tuple) or not keys:
        raise UserError(
            f"{key!r} is not a key of targets",
            remedy='pass a text such as "gpu", or a list of texts',
        )
    for word in keys:
        if not isinstance(word, str) or word not in possible:
            raise UserError(
                f"no target has the key {word!r}",
                why="its variant would never run",
                remedy=advise(
                    str(word), known, f"use one of {', '.join(sorted(known))}"
                ),
            )
    return tuple(keys)
