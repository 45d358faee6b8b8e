"""Records: dataclasses that are made quickly.

`dataclass` examines each field by regular expressions, and compiles the source of up to seven
methods for each class. Imports spent half of their time there. Here a constructor is compiled when
it is first needed, and the other methods are closures. The standard library describes the fields
when `fields`, `replace` or `astuple` asks for them.

Ensures: a record behaves like the dataclass with the same arguments and `slots=True`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from functools import cache, cached_property
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
        declared = declaration_of(given)
        methods: dict[str, object] = {"__repr__": _repr}
        if init:
            methods["__init__"] = LazyConstructor(declared)
        if frozen:
            methods |= FROZEN
        if eq:
            methods |= _comparison(declared, frozen)
        return with_slots(given, declared, methods, weakref_slot=weakref_slot)

    return make if cls is None else make(cls)


class Declaration(Mapping[str, "Field[Any]"]):
    """The fields of a class by name: its `__dataclass_fields__`.

    Attributes:
        annotations: by name, in order, with those of the bases first.
        defaults: values or results of `field`, for the fields that have one.
    """

    def __init__(self, annotations: dict[str, Any], defaults: dict[str, Any]) -> None:
        self.annotations = annotations
        self.defaults = defaults

    def __iter__(self) -> Iterator[str]:
        return iter(self.annotations)

    def __len__(self) -> int:
        return len(self.annotations)

    def __getitem__(self, name: str) -> Field[Any]:
        return self._described[name]

    @cached_property
    def _described(self) -> dict[str, Field[Any]]:
        """The standard library's description, from a class that has nothing but these fields."""
        names = {
            "__doc__": "Only its fields are used.",
            "__annotations__": self.annotations,
            **self.defaults,
        }
        described: Any = dataclass(init=False, repr=False, eq=False)(
            type("_Fields", (), names)
        )
        fields_by_name: dict[str, Field[Any]] = described.__dataclass_fields__
        return fields_by_name

    def names_with(self, flag: str) -> tuple[str, ...]:
        """Return the names of the fields whose flag `init` or `compare` is set."""
        return tuple(
            name
            for name in self.annotations
            if not isinstance(one := self.defaults.get(name), Field)
            or getattr(one, flag)
        )


@dataclass(init=False, repr=False, eq=False)
class _Plain:
    """A dataclass with the parameters that all records have."""


_PARAMETERS: object = vars(_Plain)["__dataclass_params__"]


def declaration_of(cls: type[Any]) -> Declaration:
    """Return the fields that a class declares, behind those of its bases that are records.

    Raises ValueError if a default could be changed, since all records would share it. Raises
    TypeError if a base is a dataclass and not a record.
    """
    annotations: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    for base in reversed(cls.__mro__[1:]):
        inherited = vars(base).get("__dataclass_fields__")
        if isinstance(inherited, Declaration):
            annotations |= inherited.annotations
            defaults |= inherited.defaults
        elif inherited is not None:
            raise TypeError(f"{cls.__name__}: its base {base.__name__} is not a record")
    names = vars(cls)
    for name, annotation in names.get("__annotations__", {}).items():
        if "ClassVar" in str(annotation).partition("[")[0]:
            continue
        annotations[name] = annotation
        defaults.pop(name, None)
        if name in names:
            default = defaults[name] = names[name]
            if type(default).__hash__ is None:
                raise ValueError(
                    f"field {name!r} of {cls.__name__} needs a default_factory"
                )
    return Declaration(annotations, defaults)


def with_slots(
    cls: type[Any],
    declared: Declaration,
    methods: dict[str, object],
    *,
    weakref_slot: bool = False,
) -> type[Any]:
    """Return `cls` made again as a dataclass with slots for its fields, and with `methods`.

    A method that the class defines itself stays.
    """
    names = dict(vars(cls))
    for unwanted in ("__dict__", "__weakref__", *declared.annotations):
        names.pop(unwanted, None)
    for name, method in methods.items():
        # A class that defines __eq__ has the __hash__ None, which is not its own definition.
        if names.get(name) is None:
            names[name] = method
    inherited = {
        slot for base in cls.__mro__[1:] for slot in vars(base).get("__slots__", ())
    }
    wanted = (
        (*declared.annotations, "__weakref__") if weakref_slot else declared.annotations
    )
    names["__slots__"] = tuple(slot for slot in wanted if slot not in inherited)
    names["__qualname__"] = cls.__qualname__
    names["__dataclass_fields__"] = declared
    names["__dataclass_params__"] = _PARAMETERS
    names.setdefault("__match_args__", declared.names_with("init"))
    metaclass: Any = type(cls)
    made: type[Any] = metaclass(cls.__name__, cls.__bases__, names)
    return made


def field_names(cls: type[Any]) -> tuple[str, ...]:
    """Return the names of all fields of a dataclass, in order."""
    declared = vars(cls).get("__dataclass_fields__")
    if isinstance(declared, Declaration):
        return tuple(declared.annotations)
    return tuple(one.name for one in fields(cls))


class LazyConstructor:
    """The `__init__` of a class, which is compiled when it is first needed.

    Then the compiled function takes its place, so that an instance is made without a detour.
    """

    def __init__(self, declared: Declaration) -> None:
        self._declared = declared

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._cls = owner

    def __get__(self, item: object, owner: type[Any] | None = None) -> Any:
        constructor = self._cls.__init__ = _compiled(self._cls, self._declared)
        return constructor.__get__(item, owner)


class _Factory:
    """The default of a parameter whose field has a `default_factory`."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _compiled(cls: type[Any], declared: Declaration) -> Any:
    """Return `__init__` for a dataclass with slots.

    It sets each slot directly, since `object.__setattr__` has to find the slot first.
    """
    # By the name of the module, tracebacks know the frames of refcomp.
    names: dict[str, object] = {"__name__": cls.__module__, "FACTORY": _FACTORY}
    body = []
    defaults: dict[str, object] = {}  # of the parameters
    parameters = declared.names_with("init")
    for k, name in enumerate(declared.annotations):
        names[f"set{k}"] = getattr(cls, name).__set__
        default: Any = declared.defaults.get(name, MISSING)
        make: object = MISSING
        if isinstance(default, Field):
            default, make = default.default, default.default_factory
        names |= {f"default{k}": default, f"make{k}": make}
        is_parameter = name in parameters
        if is_parameter:
            defaults[name] = default if make is MISSING else _FACTORY
        value = _value(k, is_parameter, make is not MISSING)
        if is_parameter or make is not MISSING or default is not MISSING:
            body.append(f"set{k}(self, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    # Classes with fields of the same kinds have the same code, but for the names of parameters.
    numbers = [k for k, name in enumerate(declared.annotations) if name in parameters]
    code = _code(tuple(f"p{k}" for k in numbers), tuple(body))
    code = code.replace(co_varnames=("self", *parameters))
    made = FunctionType(code, names, "__init__", _trailing(defaults))
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {name: declared.annotations[name] for name in parameters}
    made.__annotations__["return"] = None
    return made


@cache
def _code(parameters: tuple[str, ...], body: tuple[str, ...]) -> CodeType:
    """Return the code of a constructor, which is compiled once for all classes of this form."""
    lines = [f"def __init__({', '.join(('self', *parameters))}):", *(body or ["pass"])]
    names: dict[str, Any] = {}
    exec("\n ".join(lines), names)  # noqa: S102  (numbers of fields, no names)
    code: CodeType = names["__init__"].__code__
    return code


def _value(k: int, is_parameter: bool, has_factory: bool) -> str:
    """Return the code for the value of the field with number `k`."""
    if has_factory:
        return (
            f"make{k}() if p{k} is FACTORY else p{k}" if is_parameter else f"make{k}()"
        )
    return f"p{k}" if is_parameter else f"default{k}"


def _trailing(defaults: dict[str, object]) -> tuple[object, ...]:
    """Return the defaults of the last parameters. The first ones may have none."""
    values: list[object] = []
    for name, value in defaults.items():
        if value is not MISSING:
            values.append(value)
        elif values:
            raise TypeError(
                f"field {name!r} without a default follows one with a default"
            )
    return tuple(values)


def values_of(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that reads the attributes `names`."""
    if not names:
        return lambda item: ()
    if len(names) > 1:
        return attrgetter(*names)
    read = attrgetter(names[0])
    return lambda item: (read(item),)


def _comparison(declared: Declaration, frozen: bool) -> dict[str, object]:
    """Return `__eq__` and `__hash__` of a class. A record that can be changed has no hash."""
    values = values_of(declared.names_with("compare"))

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
    return [getattr(self, name) for name in field_names(type(self))]


def _set_state(self: Any, state: list[object]) -> None:
    for name, value in zip(field_names(type(self)), state, strict=True):
        object.__setattr__(self, name, value)


# The methods of frozen classes. The last two are for copies, since nothing can be assigned.
FROZEN = {
    "__setattr__": _refuse_assignment,
    "__delattr__": _refuse_deletion,
    "__getstate__": _get_state,
    "__setstate__": _set_state,
}
