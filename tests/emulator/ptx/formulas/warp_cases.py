"""Cases of instructions that the threads of a warp do together, by the formulas of the ISA."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

from tests.emulator.ptx.formulas.cases import Case, Rows
from tests.emulator.ptx.formulas.floats import float_formula
from tests.emulator.ptx.formulas.spelled import number, spelled

_ALL = 0xFFFFFFFF
_WARP = 32
# (sources of the lanes of a warp) -> the results of each lane.
_OfWarp = Callable[[Rows], list[list[Any]]]


def warp_cases() -> Iterator[Case]:
    """All forms of shfl, vote, match, redux, elect and activemask."""
    for mode in ("up", "down", "bfly", "idx"):
        for clamp in (0, 31, 0x1C03, 0x181F, 0x1007):
            yield _shuffle(mode, clamp)
    for mode in ("all", "any", "uni", "ballot"):
        result = "b32" if mode == "ballot" else "pred"
        kind = "b32" if mode == "ballot" else "pred"
        text = f"vote.sync.{mode}.{kind} %y0, %x0, -1;"
        yield _case(f"vote.sync.{mode}.{kind}", text, ("pred",), (result,), _vote(mode))
    for kind in ("b32", "b64"):
        few = _few_values
        text = f"match.any.sync.{kind} %y0, %x0, -1;"
        yield _case(f"match.any.sync.{kind}", text, (kind,), ("b32",), _match_any, few)
        text = f"match.all.sync.{kind} %y0|%y1, %x0, -1;"
        yield _case(f"match.all.sync.{kind}", text, (kind,), ("b32", "pred"), _match_all, _same_low)
    yield from _reductions()
    yield _case(
        "elect.sync", "elect.sync %y0|%y1, -1;", ("b32",), ("b32", "pred"),
        lambda rows: [[0, int(lane == 0)] for lane in range(_WARP)],
    )  # fmt: skip
    yield _case(
        "activemask.b32", "activemask.b32 %y0;", ("b32",), ("b32",), lambda rows: [[_ALL]] * _WARP
    )


def _case(
    form: str,
    text: str,
    sources: tuple[str, ...],
    results: tuple[str, ...],
    of_warp: _OfWarp,
    draw: Callable[[list[int]], None] = lambda row: None,
) -> Case:
    def expected(rows: Rows) -> list[list[Any]]:
        warps = [rows[first : first + _WARP] for first in range(0, len(rows), _WARP)]
        return [result for warp in warps for result in of_warp(warp)]

    return Case(form, text, sources, results, expected, draw)


def _few_values(row: list[int]) -> None:
    row[0] &= 3


def _same_low(row: list[int]) -> None:
    row[0] = 7


def _shuffle(mode: str, clamp: int) -> Case:
    segments, bound = clamp >> 8 & 31, clamp & 31

    def lane_of(lane: int, b: int) -> int | None:
        b &= 31
        most = (lane & segments) | (bound & ~segments)
        least = lane & segments
        if mode == "up":
            source = lane - b
            return source if source >= most else None
        source = {
            "down": lane + b,
            "bfly": lane ^ b,
            "idx": least | (b & ~segments & 31),
        }[mode]
        return source if source <= most else None

    def of_warp(rows: Rows) -> list[list[Any]]:
        results = []
        for lane, (_, b) in enumerate(rows):
            source = lane_of(lane, b)
            results.append([rows[lane if source is None else source][0], int(source is not None)])
        return results

    form = f"shfl.sync.{mode}.b32"
    text = f"{form} %y0|%y1, %x0, %x1, {clamp:#x}, -1;"
    return _case(f"{form}.c{clamp:x}", text, ("b32", "b32"), ("b32", "pred"), of_warp)


def _vote(mode: str) -> _OfWarp:
    def of_warp(rows: Rows) -> list[list[Any]]:
        held = [row[0] for row in rows]
        result = {
            "all": int(all(held)),
            "any": int(any(held)),
            "uni": int(len({*held}) == 1),
            "ballot": sum(one << lane for lane, one in enumerate(held)),
        }[mode]
        return [[result]] * _WARP

    return of_warp


def _match_any(rows: Rows) -> list[list[Any]]:
    return [
        [sum(1 << lane for lane, other in enumerate(rows) if other[0] == row[0])] for row in rows
    ]


def _match_all(rows: Rows) -> list[list[Any]]:
    is_same = len({row[0] for row in rows}) == 1
    return [[_ALL * is_same, int(is_same)]] * _WARP


def _reductions() -> Iterator[Case]:
    operations: dict[str, Callable[[int, int], int]] = {
        "add": lambda a, b: a + b,
        "min": min,
        "max": max,
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
    }
    for name, function in operations.items():
        for kind in ("b32",) if name in ("and", "or", "xor") else ("u32", "s32"):

            def of_warp(rows: Rows, function: Any = function, kind: str = kind) -> list[list[Any]]:
                total = reduce(function, (number(row[0], kind) for row in rows))
                return [[total & _ALL]] * _WARP

            form = f"redux.sync.{name}.{kind}"
            yield _case(form, f"{form} %y0, %x0, -1;", (kind,), (kind,), of_warp)
    for name in ("min", "max"):
        for words in ("", ".abs", ".NaN", ".abs.NaN"):
            yield _reduction_of_floats(name, words)


def _reduction_of_floats(name: str, words: str) -> Case:
    nan = ".NaN" if "NaN" in words else ""
    of_two = float_formula(spelled(f"{name}{nan}.f32"))

    def of_warp(rows: Rows) -> list[list[Any]]:
        values = [row[0] & 0x7FFFFFFF if "abs" in words else row[0] for row in rows]
        total = reduce(lambda a, b: of_two(a, b)[0], values)
        return [[total]] * _WARP

    form = f"redux.sync.{name}{words}.f32"
    return _case(form, f"{form} %y0, %x0, -1;", ("f32",), ("f32",), of_warp)
