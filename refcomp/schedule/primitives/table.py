"""All primitives by name, and all that `replay` repeats.

A schedule that is not replayed imports only the primitives that it uses.
"""

from __future__ import annotations

from collections.abc import Callable

from refcomp.schedule.primitives.bind import bind
from refcomp.schedule.primitives.cache_read import cache_read
from refcomp.schedule.primitives.cache_write import cache_write
from refcomp.schedule.primitives.compute_at import compute_at
from refcomp.schedule.primitives.create_group import create_group
from refcomp.schedule.primitives.env_threads import env_threads
from refcomp.schedule.primitives.fuse import fuse
from refcomp.schedule.primitives.hint import (
    double_buffer,
    pragma,
    prefetch,
    storage_align,
)
from refcomp.schedule.primitives.mark import parallel, unroll, vectorize
from refcomp.schedule.primitives.place import compute_inline, compute_root
from refcomp.schedule.primitives.reorder import reorder
from refcomp.schedule.primitives.rfactor import rfactor
from refcomp.schedule.primitives.set_scope import set_scope
from refcomp.schedule.primitives.set_store_predicate import set_store_predicate
from refcomp.schedule.primitives.split import split, tile
from refcomp.schedule.primitives.tensorize import tensorize

_ALL: tuple[Callable[..., object], ...] = (
    split,
    tile,
    fuse,
    reorder,
    vectorize,
    unroll,
    parallel,
    bind,
    tensorize,
    compute_inline,
    compute_root,
    compute_at,
    set_scope,
    cache_read,
    cache_write,
    rfactor,
    pragma,
    prefetch,
    double_buffer,
    storage_align,
    set_store_predicate,
    env_threads,
)
PRIMITIVES = {function.__name__: function for function in _ALL}
# What steps record: also the groups, which change no stage.
REPLAYED = {**PRIMITIVES, create_group.__name__: create_group}
