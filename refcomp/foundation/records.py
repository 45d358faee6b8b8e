"""Records: dataclasses that are made quickly.

`dataclass` writes and compiles the source of up to seven methods for each class. Imports spent half
of their time there. Here a constructor is compiled when it is first needed, and the other methods
are closures. `fields`, `replace`, `astuple` and `is_dataclass` accept records.

Ensures: a record behaves like the dataclass with the same arguments and `slots=True`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from types import CodeType, FunctionType
from typing import Any, NoReturn, TypeVar, dataclass_transform, overload

_C = TypeVar("_C")


@overload
def record(cls: type[_C], /) -> type[_C]: ...
@overload
def record(
    *,
    init: bool = True,
    eq: bool = True,
    frozen: bool = True,
    weakref_slot: bool = False,
) -> Callable[[type[_C]], type[_C]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(
    cls: type[Any] | None = None,
    /,
    *,
    init: bool = True,
    eq: bool = True,
    frozen: bool = True,
    weakref_slot: bool = False,
) -> Any:
    """Make a dataclass with slots of `cls` (a class decorator).

    The arguments mean what they mean to `dataclass`, but records are frozen by default. A method
    that the class defines itself stays. Fields cannot be keyword-only.
    """

    def make(given: type[Any]) -> Any:
        made = dataclass(
            init=False, repr=False, eq=False, slots=True, weakref_slot=weakref_slot
        )(given)
        methods: dict[str, object] = {"__repr__": _repr}
        if init:
            methods["__init__"] = LazyConstructor(made)
        if frozen:
            methods |= FROZEN
        if eq:
            methods |= _comparison(made, frozen)
        for name, method in methods.items():
            # A class that defines __eq__ has the __hash__ None, which is not its own definition.
            if vars(given).get(name) is None:
                setattr(made, name, method)
        return made

    return make if cls is None else make(cls)


class LazyConstructor:
    """The `__init__` of a class, which is compiled when it is first needed.

    Then the compiled function takes its place, so that an instance is made without a detour.
    """

    def __init__(self, cls: type[Any]) -> None:
        self._cls = cls

    def __get__(self, item: object, owner: type[Any] | None = None) -> Any:
        constructor = self._cls.__init__ = _compiled(self._cls)
        return constructor.__get__(item, owner)


class _Factory:
    """The default of a parameter whose field has a `default_factory`."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _compiled(cls: type[Any]) -> Any:
    """Return `__init__` for a dataclass with slots.

    It sets each slot directly, since `object.__setattr__` has to find the slot first.
    """
    declared = fields(cls)
    # By the name of the module, tracebacks know the frames of refcomp.
    names: dict[str, object] = {"__name__": cls.__module__, "FACTORY": _FACTORY}
    for k, one in enumerate(declared):
        names[f"set{k}"] = getattr(cls, one.name).__set__
        names[f"default{k}"] = one.default
        names[f"make{k}"] = one.default_factory
    given = [(k, one) for k, one in enumerate(declared) if one.init]
    body = [
        f"set{k}(self, {value})"
        for k, one in enumerate(declared)
        if (value := _value(k, one))
    ]
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    # Classes with fields of the same kinds have the same code, but for the names of parameters.
    code = _code(tuple(f"p{k}" for k, _ in given), tuple(body))
    code = code.replace(co_varnames=("self", *(one.name for _, one in given)))
    made = FunctionType(code, names, "__init__", _defaults(one for _, one in given))
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {one.name: one.type for _, one in given} | {"return": None}
    return made


@cache
def _code(parameters: tuple[str, ...], body: tuple[str, ...]) -> CodeType:
    """Return the code of a constructor, which is compiled once for all classes of this form."""
    lines = [f"def __init__({', '.join(('self', *parameters))}):", *(body or ["pass"])]
    names: dict[str, Any] = {}
    exec("\n ".join(lines), names)  # noqa: S102  (numbers of fields, no names)
    code: CodeType = names["__init__"].__code__
    return code


def _value(k: int, one: Field[Any]) -> str:
    """Return the code for the value of the field with number `k`; empty if it stays unset."""
    if one.default_factory is not MISSING:
        return f"make{k}() if p{k} is FACTORY else p{k}" if one.init else f"make{k}()"
    if one.init:
        return f"p{k}"
    return "" if one.default is MISSING else f"default{k}"


def _defaults(given: Iterable[Field[Any]]) -> tuple[object, ...]:
    """Return the defaults of the parameters for fields. The first parameters may have none."""
    defaults: list[object] = []
    for one in given:
        value = one.default if one.default_factory is MISSING else _FACTORY
        if value is not MISSING:
            defaults.append(value)
        elif defaults:
            raise TypeError(
                f"field {one.name!r} without a default follows one with a default"
            )
    return tuple(defaults)


def values_of(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that reads the attributes `names`."""
    if not names:
        return lambda item: ()
    if len(names) > 1:
        return attrgetter(*names)
    read = attrgetter(names[0])
    return lambda item: (read(item),)


def _comparison(cls: type[Any], frozen: bool) -> dict[str, object]:
    """Return `__eq__` and `__hash__` of a class. A record that can be changed has no hash."""
    values = values_of(tuple(one.name for one in fields(cls) if one.compare))

    def __eq__(self: Any, other: object) -> bool:
        if self.__class__ is not other.__class__:
            return NotImplemented
        return values(self) == values(other)

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (one.name for one in fields(self) if one.repr)
    texts = [f"{name}={getattr(self, name)!r}" for name in shown]
    return f"{type(self).__qualname__}({', '.join(texts)})"


def _refuse_assignment(self: object, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[object]:
    return [getattr(self, one.name) for one in fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)


# The methods of frozen classes. The last two are for copies, since nothing can be assigned.
FROZEN = {
    "__setattr__": _refuse_assignment,
    "__delattr__": _refuse_deletion,
    "__getstate__": _get_state,
    "__setstate__": _set_state,
}
