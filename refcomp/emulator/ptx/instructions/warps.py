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
    """The lanes from which the threads of warps take values by shfl."""

    source: Array  # lanes, int64 [warp, lane]; a thread takes its own value if none is in range
    in_range: Mask  # the predicate of shfl, [warp, lane]


def shuffle(mode: str, amount: Array, limits: Array) -> Shuffle:
    """Return the lane from which each lane takes the value.

    Args:
        mode: "up", "down", "bfly" or "idx".
        amount: the second source, a distance or a lane, of which the lowest 5 bits are used.
        limits: the third source: bits 0 to 4 clamp lanes, bits 8 to 12 are the mask of segments.
    """
    distance = np.asarray(amount).astype(np.int64) & _LOW_5
    limits = np.asarray(limits).astype(np.int64)
    clamp = limits & _LOW_5
    segments = limits >> 8 & _LOW_5
    first = _LANE & segments
    bound = first | (clamp & ~segments)
    lane = {
        "up": _LANE - distance,
        "down": _LANE + distance,
        "bfly": _LANE ^ distance,
        "idx": first | (distance & ~segments),
    }[mode]
    in_range = lane >= bound if mode == "up" else lane <= bound
    source = np.where(in_range, lane, _LANE)
    return Shuffle(
        source=source,
        in_range=np.broadcast_to(in_range, source.shape),
    )


def taken_from(value: Array, source: Array) -> Array:
    """Return the values of the lanes `source`. `value` may hold undefined bits instead."""
    value, source = np.broadcast_arrays(value, source)
    lanes = source & _LOW_5
    return np.take_along_axis(value, lanes, axis=1)


def absent_sources(found: Shuffle, takes: Mask) -> Mask:
    """Return True for threads that take the value of a thread which does not take part."""
    takes_part = taken_from(takes, found.source)
    return np.asarray(takes & ~takes_part)


def ballot(predicate: Mask, takes: Mask) -> Array:
    """Return the mask of the threads that take part and for which the predicate holds."""
    holds = np.logical_and(predicate, takes)
    return _for_all(_bits_of(holds))


def vote(mode: str, predicate: Mask, takes: Mask) -> Mask:
    """Return True if the predicate holds in "all" or "any" threads, or is the same ("uni")."""
    holds = np.logical_and(predicate, takes)
    fails = np.logical_and(np.logical_not(predicate), takes)
    holds_somewhere = holds.any(axis=1)
    fails_somewhere = fails.any(axis=1)
    found = {
        "all": ~fails_somewhere,
        "any": holds_somewhere,
        "uni": ~(holds_somewhere & fails_somewhere),
    }
    return _for_all(np.asarray(found[mode]))


def match_any(value: Array, takes: Mask) -> Array:
    """Return, for each thread, the mask of the threads with an equal value."""
    value, takes = np.broadcast_arrays(value, takes)
    # [warp, lane, other lane]
    is_equal = value[:, :, None] == value[:, None, :]
    matches = is_equal & takes[:, None, :]
    masks = _bits_of(matches.reshape(-1, LANES))
    return masks.reshape(value.shape)


def match_all(value: Array, takes: Mask) -> tuple[Array, Mask]:
    """Return the mask of all threads and True if their values are equal; else 0 and False."""
    value, takes = np.broadcast_arrays(value, takes)
    first_lane = np.argmax(takes, axis=1)[:, None]
    first = np.take_along_axis(value, first_lane, axis=1)
    differs = (value != first) & takes
    is_equal = _for_all(~differs.any(axis=1))
    all_threads = _for_all(_bits_of(takes))
    masks = np.where(is_equal, all_threads, np.uint32(0))
    return masks, is_equal


def _bits_of(lanes: Mask) -> Array:
    """Return bool [warp, lane] as one word for each warp, whose bit i is lane i."""
    contiguous = np.ascontiguousarray(lanes)
    return bits_of_mask(contiguous)


def _for_all(result: Array) -> Array:
    """Return [warp] as [warp, lane]: the result of a warp in each of its lanes."""
    shape = (len(result), LANES)
    return np.broadcast_to(result[:, None], shape)


class Reduction(NamedTuple):
    """A reduction over the threads that take part."""

    kind: str  # the PTX type of source and result
    compute: Callable[[Array, Mask], Array]  # (value, takes) -> [warp, lane]


# The order of the lanes does not matter, since no function of integers rounds.
_INTEGERS: dict[str, Callable[[Array], Array]] = {
    "add": lambda value: value.sum(axis=1, dtype=value.dtype),
    "min": lambda value: value.min(axis=1),
    "max": lambda value: value.max(axis=1),
    "and": lambda value: np.bitwise_and.reduce(value, axis=1),
    "or": lambda value: np.bitwise_or.reduce(value, axis=1),
    "xor": lambda value: np.bitwise_xor.reduce(value, axis=1),
}
_BITWISE = ("and", "or", "xor")


def reduction_of(form: Form) -> Reduction:
    """Return the reduction of a `redux.sync`, after reading its modifiers.

    Raises:
        UserError: PTX has no such reduction.
    """
    form.must_take("sync")
    name = form.must_take(*_INTEGERS)
    kind = form.type
    if kind == "f32" and name in ("min", "max"):
        return _reduction_of_floats(form, name)
    legal = ("b32",) if name in _BITWISE else ("u32", "s32")
    if kind not in legal:
        raise form.damaged(f"redux.{name} does not have the type .{kind}")
    form.check_read()
    reduce = _INTEGERS[name]
    neutral = _neutral(name, kind)

    def compute(value: Array, takes: Mask) -> Array:
        value = np.asarray(value)
        others = np.asarray(neutral, value.dtype)
        reduced = reduce(np.where(takes, value, others))
        return _for_all(reduced)

    return Reduction(
        kind=kind,
        compute=compute,
    )


def _neutral(name: str, kind: str) -> int:
    """Return the neutral element of a reduction of integers."""
    dtype = np.int32 if kind == "s32" else np.uint32
    limits = np.iinfo(dtype)
    match name:
        case "min" | "and":
            return limits.max
        case "max":
            return limits.min
    return 0


def _reduction_of_floats(form: Form, name: str) -> Reduction:
    is_min = name == "min"
    of_magnitudes = form.has("abs")
    keeps_nan = form.has("NaN")
    form.check_read()
    # The extreme of a NaN and a number is the number, unless the reduction keeps NaN.
    neutral = np.nan
    if keeps_nan:
        neutral = np.inf if is_min else -np.inf

    def compute(value: Array, takes: Mask) -> Array:
        numbers = np.abs(value) if of_magnitudes else np.asarray(value)
        rest = np.where(takes, numbers, np.float32(neutral))
        while rest.shape[1] > 1:
            first, second = np.split(rest, 2, axis=1)
            rest = extreme(first, second, is_min=is_min, keeps_nan=keeps_nan)
        result = rest[:, 0]
        return _for_all(with_plain_nan(result))

    return Reduction(
        kind="f32",
        compute=compute,
    )
