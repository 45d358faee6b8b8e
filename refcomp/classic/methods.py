"""Classic attributes of refcomp's classes, which importing `refcomp.classic` adds to them.

The table lists them. An attribute with another name in refcomp, such as `device_id` of a Device,
returns the value of refcomp's attribute. An absent attribute raises AttributeError, whose message
says what to write instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from refcomp.classic.table import ClassicName, read_areas, resolve

_Class = TypeVar("_Class")
# The class of each owner in the table -> the classes of refcomp.
CLASSES = {
    "Stage": ["schedule.stage.Stage"],
    "NDArray": ["nd.NDArray"],
    "Device": ["runtime.Device"],
    "Module": ["runtime.Module", "runtime.programs.device_module.DeviceModule"],
    "Expr": ["ir.expr.Expr"],
    "Target": ["Target"],
    "LoweredFunc": ["ir.func.PrimFunc"],
    "For": ["ir.stmt.For"],
    "Buffer": ["ir.view.BufferView"],
    "IRBuilder": ["ir.builder.IRBuilder"],
}


class ClassicAttribute:
    """An attribute of a class under its classic name."""

    def __init__(self, entry: ClassicName) -> None:
        self.name = entry.name.partition(".")[2]
        self.target = entry.target.partition(".")[2]
        self.note = entry.note

    def __get__(self, instance: object, owner: type) -> Any:
        if self.target and instance is not None:
            return getattr(instance, self.target)
        advice = self.note or f"see {owner.__name__}.{self.target}."
        raise AttributeError(
            f"{owner.__name__!r} object has no attribute {self.name!r}: {advice}",
            name=self.name,
            obj=instance,
        )


def add_classic_attributes() -> None:
    """Add the attributes of the table that refcomp's classes lack."""
    for owner, paths in CLASSES.items():
        for path in paths:
            with_classic_attributes(owner)(resolve(path))


def with_classic_attributes(owner: str) -> Callable[[type[_Class]], type[_Class]]:
    """Return a decorator that adds the attributes that the table lists for an owner.

    A class of `refcomp.classic` uses it. So importing `refcomp.classic` need not import the class.
    """

    def add(cls: type[_Class]) -> type[_Class]:
        for entry in (entry for area in read_areas() for entry in area.names):
            listed, _, name = entry.name.partition(".")
            is_added = entry.is_method and entry.name != entry.target
            if is_added and listed == owner and name not in dir(cls):
                setattr(cls, name, ClassicAttribute(entry))
        return cls

    return add
