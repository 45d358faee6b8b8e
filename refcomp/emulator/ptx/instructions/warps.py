"""Instructions in which the threads of a warp exchange values: shfl, vote, match, redux.

Arrays are [warp, lane], with 32 lanes. `takes` is True for the threads that execute an instruction
together. The values of other threads do not matter, except for shfl (see `Shuffle.source`).
Source: NVIDIA, "Parallel Thread Execution ISA", sections "shfl.sync", "vote.sync", "match.sync" and
"redux.sync".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from refcomp.emulator.machine.arrays import Array, Mask, bits_of_mask
from refcomp.emulator.ptx.instructions.floats import extreme, with_plain_nan
from refcomp.emulator.ptx.instructions.form import Form

LANES = 32
_LANE = np.arange(LANES, dtype=np.int64)
_LOW_5 = 31


class Shuffle(NamedTuple):
    """The lanes from which the lanes of warps take their values."""

    source: Array  # lanes, int64 [warp, lane]; a thread takes its own value if none is in range
    in_range: Mask  # the predicate of shfl, [warp, lane]


def shuffle(mode: str, amount: Array, limits: Array) -> Shuffle:
    """Return from which lane each lane takes the value.

    Args:
        mode: "up", "down", "bfly" or "idx".
        amount: the second source, a distance or a lane; only the lowest 5 bits count.
        limits: the third source: bits 0 to 4 clamp lanes, bits 8 to 12 are the mask of segments.
    """
    distance = np.asarray(amount).astype(np.int64) & _LOW_5
    limits = np.asarray(limits).astype(np.int64)
    segments = limits >> 8 & _LOW_5
    first = _LANE & segments
    bound = first | (limits & _LOW_5 & ~segments)
    if mode == "up":
        lane = _LANE - distance
        in_range = lane >= bound
    else:
        lane = {
            "down": _LANE + distance,
            "bfly": _LANE ^ distance,
            "idx": first | (distance & ~segments),
        }[mode]
        in_range = lane <= bound
    source = np.where(in_range, lane, _LANE)
    return Shuffle(source, np.broadcast_to(in_range, source.shape))


def taken_from(value: Array, source: Array) -> Array:
    """Return the values of the lanes `source`. `value` may hold undefined bits instead."""
    value, source = np.broadcast_arrays(value, source)
    return np.take_along_axis(value, source & _LOW_5, axis=1)


def absent_sources(found: Shuffle, takes: Mask) -> Mask:
    """Return True for threads that take the value of a thread which does not take part."""
    is_there = taken_from(takes, found.source)
    return np.asarray(takes & ~is_there)


def ballot(predicate: Mask, takes: Mask) -> Array:
    """Return the mask of the threads that take part and for which the predicate holds."""
    holds = np.ascontiguousarray(np.logical_and(predicate, takes))
    return _for_all(bits_of_mask(holds))


def vote(mode: str, predicate: Mask, takes: Mask) -> Mask:
    """Return True if the predicate holds in "all" or "any" threads, or is the same ("uni")."""
    holds_somewhere = np.any(np.logical_and(predicate, takes), axis=1)
    fails_somewhere = np.any(~np.asarray(predicate) & takes, axis=1)
    found = {
        "all": ~fails_somewhere,
        "any": holds_somewhere,
        "uni": ~(holds_somewhere & fails_somewhere),
    }[mode]
    return _for_all(np.asarray(found))


def match_any(value: Array, takes: Mask) -> Array:
    """Return, for each thread, the mask of the threads with an equal value."""
    value, takes = np.broadcast_arrays(value, takes)
    equal = (value[:, :, None] == value[:, None, :]) & takes[:, None, :]
    masks = bits_of_mask(np.ascontiguousarray(equal.reshape(-1, LANES)))
    return masks.reshape(value.shape)


def match_all(value: Array, takes: Mask) -> tuple[Array, Mask]:
    """Return the mask of all threads and True if their values are equal; else 0 and False."""
    value, takes = np.broadcast_arrays(value, takes)
    first = np.argmax(takes, axis=1)[:, None]
    differs = (value != np.take_along_axis(value, first, axis=1)) & takes
    is_equal = _for_all(~differs.any(axis=1))
    masks = _for_all(bits_of_mask(np.ascontiguousarray(takes)))
    return np.where(is_equal, masks, np.uint32(0)), is_equal


def _for_all(result: Array) -> Array:
    """Return one result for each warp as [warp, lane]."""
    return np.broadcast_to(result[:, None], (len(result), LANES))


class Reduction(NamedTuple):
    """A reduction over the threads that take part."""

    kind: str  # the PTX type of source and result
    compute: Callable[[Array, Mask], Array]  # (value, takes) -> [warp, lane]


_BITWISE = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


def reduction_of(form: Form) -> Reduction:
    """Return what a `redux.sync` computes, after reading its modifiers.

    Raises:
        UserError: PTX has no such reduction.
    """
    form.must_take("sync")
    name = form.must_take("add", "min", "max", *_BITWISE)
    kind = form.type
    if kind == "f32" and name in ("min", "max"):
        return _reduction_of_floats(form, name)
    if kind not in (("b32",) if name in _BITWISE else ("u32", "s32")):
        raise form.damaged(f"redux.{name} does not have the type .{kind}")
    form.check_read()
    reduce = _INTEGERS[name]
    neutral = _neutral(name, kind)

    def compute(value: Array, takes: Mask) -> Array:
        others = np.asarray(neutral, np.asarray(value).dtype)
        return _for_all(reduce(np.where(takes, value, others)))

    return Reduction(kind, compute)


_INTEGERS: dict[str, Callable[[Array], Array]] = {
    "add": lambda value: value.sum(axis=1, dtype=value.dtype),
    "min": lambda value: value.min(axis=1),
    "max": lambda value: value.max(axis=1),
    "and": lambda value: np.bitwise_and.reduce(value, axis=1),
    "or": lambda value: np.bitwise_or.reduce(value, axis=1),
    "xor": lambda value: np.bitwise_xor.reduce(value, axis=1),
}


def _neutral(name: str, kind: str) -> int:
    """Return the neutral element of a reduction."""
    limits = np.iinfo(np.int32 if kind == "s32" else np.uint32)
    return {"min": limits.max, "max": limits.min, "and": limits.max}.get(name, 0)


def _reduction_of_floats(form: Form, name: str) -> Reduction:
    of_magnitudes = form.has("abs")
    keeps_nan = form.has("NaN")
    form.check_read()

    def compute(value: Array, takes: Mask) -> Array:
        numbers = np.abs(value) if of_magnitudes else np.asarray(value)
        # A NaN is neutral, unless the reduction keeps NaN.
        none = np.array(-np.inf if name == "max" else np.inf, np.float32)
        others = none if keeps_nan else np.array(np.nan, np.float32)
        rest = np.where(takes, numbers, others)
        while rest.shape[1] > 1:
            half = rest.shape[1] // 2
            first, second = rest[:, :half], rest[:, half:]
            rest = extreme(first, second, is_min=name == "min", keeps_nan=keeps_nan)
        return _for_all(with_plain_nan(rest[:, 0]))

    return Reduction("f32", compute)
