"""Classic attributes of refcomp's classes, which importing `refcomp.classic` adds to them.

The table lists them. An attribute with another name in refcomp, such as `device_id` of a Device,
returns the value of refcomp's attribute. An absent attribute raises AttributeError, whose message
says what to write instead.
"""

from __future__ import annotations

from typing import Any

from refcomp.classic.table import ClassicName, read_areas, resolve

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
    for entry in (entry for area in read_areas() for entry in area.names):
        owner, _, name = entry.name.partition(".")
        if not entry.is_method or entry.name == entry.target:
            continue
        for path in CLASSES[owner]:
            if name not in dir(resolve(path)):
                setattr(resolve(path), name, ClassicAttribute(entry))
