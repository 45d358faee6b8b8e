"""Targets under their classic names: `refcomp.target.create("llvm")` and its kin.

Example::

    >>> with rc.target.create("llvm -mcpu=x86-64-v2") as target:
    ...     print(rc.target.current_target() == target)
    True
"""

from refcomp.foundation.generic_func import (
    GenericFunction,
    generic_func,
    override_native_generic_func,
)
from refcomp.foundation.target import Target, as_target, current_target

create = as_target

__all__ = [
    "GenericFunction",
    "Target",
    "create",
    "current_target",
    "generic_func",
    "override_native_generic_func",
]
