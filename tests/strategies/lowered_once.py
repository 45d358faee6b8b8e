"""The loop IR of a schedule, lowered once for as long as the schedule stays as it is.

A random schedule is lowered while it is drawn, because only `lower` can tell whether it is legal.
Who checks the schedule needs the same function. Steps are only added to a schedule, so the same
steps mean the same function.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from weakref import WeakKeyDictionary

import refcomp
from refcomp.ir.func import PrimFunc
from refcomp.ir.rewrite import with_fields
from refcomp.schedule.schedule import Schedule

# Steps and arguments are compared by identity: `==` of expressions makes an expression.
_Key = tuple[object, ...]
_KNOWN: WeakKeyDictionary[Schedule, tuple[_Key, PrimFunc]] = WeakKeyDictionary()


def lowered_once(schedule: Schedule, args: Sequence[object], name: str = "case") -> PrimFunc:
    """Return what `refcomp.lower` returns, or raise what it raises. Refusals are not kept."""
    key: _Key = (*schedule.steps, None, *args)
    known = _KNOWN.get(schedule)
    if known is None or len(known[0]) != len(key) or not all(map(is_, known[0], key)):
        known = _KNOWN[schedule] = (key, refcomp.lower(schedule, args, "case"))
    func = known[1]
    return func if func.name == name else with_fields(func, name=name)
