"""Schedules: how a computation is carried out, kept as data.

Reading order:

- stage.py: the loops of one operation
- relations.py, axes.py: loops made of loops
- stage_view.py: what programs can read of a stage
- stage_schedule.py: the primitives, with the loops before and after
- schedule.py, step.py: the schedule and its recorded primitives
- primitives/: the checks of each primitive
- identity.py: a hash of all that lowering reads
- auto_inline.py

Example::

    >>> A = rc.placeholder((8,), name="A")
    >>> B = rc.compute((8,), lambda i: A[i] + 1.0, name="B")
    >>> C = rc.compute((8,), lambda i: B[i] * 2.0, name="C")
    >>> s = rc.create_schedule(C)
    >>> rc.schedule.AutoInlineElemWise(s)
    >>> [(step.stage, step.primitive) for step in s.steps]
    [('B', 'compute_inline')]
"""

from refcomp.schedule.auto_inline import AutoInlineElemWise, AutoInlineInjective
from refcomp.schedule.relations import Fuse, Singleton, Split
from refcomp.schedule.schedule import Schedule, create_schedule
from refcomp.te.tensor import IterVar

__all__ = [
    "AutoInlineElemWise",
    "AutoInlineInjective",
    "Fuse",
    "IterVar",
    "Schedule",
    "Singleton",
    "Split",
    "create_schedule",
]
