"""Cases of loads, stores, atomic updates, asynchronous copies and conversions of addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from refcomp.emulator.ptx.instructions.types import bits_of
from tests.emulator.ptx.formulas.cases import Case, Rows
from tests.emulator.ptx.formulas.floats import float_formula
from tests.emulator.ptx.formulas.spelled import mask, number, spelled

_PLACES = {"global": "%mem", "shared": "%shared", "local": "%local", "": "%mem"}
_WORDS = ("u64", "u64", "u64", "u64")
_FILL = "st{space}.b64 [{at}+{place}], %x{number};"
_LOADED = "u8 u16 u32 u64 s8 s16 s32 s64 b8 b16 b32 b64 f32 f64"
_LOADS = ("volatile", "relaxed.gpu", "acquire.sys", "relaxed.cta", "ca", "cg", "cs", "lu", "cv")
_STORES = ("volatile", "relaxed.gpu", "release.sys", "relaxed.cta", "wb", "cg", "cs", "wt")


def memory_cases() -> Iterator[Case]:
    """All forms of accesses that differ in what they do, and their modifiers one at a time."""
    for space, kind, count in product(_PLACES, _LOADED.split(), (1, 2, 4)):
        if bits_of(kind) * count <= 128:
            yield _load(space, "", kind, count)
            if kind[0] not in "us":
                yield _store(space, "", kind, count)
    for kind in ("u32", "f64"):
        for words in _LOADS:
            yield _load("global", words, kind, 1)
        for words in _STORES:
            yield _store("global", words, kind, 1)
        for words in ("nc", "nc.L1::no_allocate", "L2::128B", "L1::evict_last"):
            yield _load("global", words, kind, 1)
        yield _load("shared", "volatile", kind, 1)
        yield _load("shared", "cta", kind, 1)
    yield from _constants()
    yield from _updates()
    yield from _copies()
    yield from _addresses()


def _fill(space: str, at: str) -> str:
    dotted = f".{space}" * bool(space)
    return " ".join(
        _FILL.format(space=dotted, at=at, place=8 * n, number=n) for n in range(len(_WORDS))
    )


def _element(row: list[int], place: int, kind: str) -> int:
    """The bits of an element in memory that holds the numbers of the row."""
    whole = sum(one << 64 * n for n, one in enumerate(row))
    return whole >> bits_of(kind) * place & mask(kind)


def _name(opcode: str, space: str, words: str, kind: str, count: int = 1) -> str:
    """The name; `.volatile` and orders stand before the space, others behind it."""
    early = [
        w for w in (words,) if w.split(".")[0] in ("volatile", "relaxed", "acquire", "release")
    ]
    late = [words] if words and not early and words != "cta" else []
    space = f"{space}::cta" if words == "cta" else space
    vector = [f"v{count}"] if count > 1 else []
    return ".".join(filter(None, [opcode, *early, space, *late, *vector, kind]))


def _load(space: str, words: str, kind: str, count: int) -> Case:
    at = _PLACES[space]
    form = _name("ld", space, words, kind, count)
    # A wider register gets the sign of a signed number, and else zeros.
    wide = "f32" if kind == "f32" else "b64"
    targets = ", ".join(f"%y{n}" for n in range(count))
    target = f"{{{targets}}}" if count > 1 else targets

    def expected(rows: Rows) -> list[list[int]]:
        return [
            [number(_element(row, n, kind), kind) & mask(wide) for n in range(count)]
            for row in rows
        ]

    text = f"{_fill(space, at)} {form} {target}, [{at}];"
    return Case(form, text, _WORDS, (wide,) * count, expected)


def _store(space: str, words: str, kind: str, count: int) -> Case:
    at = _PLACES[space]
    form = _name("st", space, words, kind, count)
    sources = ", ".join(f"%x{4 + n}" for n in range(count))
    source = f"{{{sources}}}" if count > 1 else sources
    size = bits_of(kind) // 8
    dotted = f".{space}" * bool(space)

    def expected(rows: Rows) -> list[list[int]]:
        results = []
        for row in rows:
            octets = bytearray(b"".join(one.to_bytes(8, "little") for one in row[:4]))
            for n, one in enumerate(row[4:]):
                octets[size * n : size * (n + 1)] = (one & mask(kind)).to_bytes(size, "little")
            results.append([int.from_bytes(octets[8 * n : 8 * n + 8], "little") for n in range(4)])
        return results

    loads = " ".join(f"ld{dotted}.b64 %y{n}, [{at}+{8 * n}];" for n in range(4))
    text = f"{_fill(space, at)} {form} [{at}], {source}; {loads}"
    return Case(form, text, (*_WORDS, *(kind,) * count), ("b64",) * 4, expected)


def _constants() -> Iterator[Case]:
    octets = [3, 200, 5, 77, 130, 9, 10, 255, 12, 13, 14, 15, 16, 17, 18, 19]
    words = [int.from_bytes(bytes(octets[8 * n : 8 * n + 8]), "little") for n in range(2)]
    table = f".const .align 16 .b8 table[16] = {{{', '.join(map(str, octets))}}};\n"
    for kind in ("u8", "s8", "u16", "s32", "u64", "f32"):
        wide = "f32" if kind == "f32" else "b64"

        def expected(rows: Rows, kind: str = kind, wide: str = wide) -> list[list[int]]:
            return [[number(_element(words, 0, kind), kind) & mask(wide)] for _ in rows]

        form = f"ld.const.{kind}"
        yield Case(form, f"{form} %y0, [table];", ("b32",), (wide,), expected, before=table)


# Atomic updates, each thread on a place of its own.

_Update = Callable[[int, int, int], int]


def _wraps_up(old: int, limit: int, other: int) -> int:
    return 0 if old >= limit else old + 1


def _wraps_down(old: int, limit: int, other: int) -> int:
    return limit if old == 0 or old > limit else old - 1


_UPDATES: dict[str, tuple[str, _Update]] = {
    "and": ("b32 b64", lambda old, b, c: old & b),
    "or": ("b32 b64", lambda old, b, c: old | b),
    "xor": ("b32 b64", lambda old, b, c: old ^ b),
    "exch": ("b32 b64", lambda old, b, c: b),
    "cas": ("b32 b64 b16", lambda old, b, c: c if old == b else old),
    "inc": ("u32", _wraps_up),
    "dec": ("u32", _wraps_down),
    "add": ("u32 s32 u64", lambda old, b, c: old + b),
    "min": ("u32 s32 u64 s64", lambda old, b, c: min(old, b)),
    "max": ("u32 s32 u64 s64", lambda old, b, c: max(old, b)),
}
_ORDERS = ("", "relaxed.cta", "acquire.gpu", "release.sys", "acq_rel.gpu", "relaxed.cluster")


def _updates() -> Iterator[Case]:
    for name, (kinds, update) in _UPDATES.items():
        for kind in kinds.split():
            for space in ("global", "shared", ""):
                yield _update("atom", space, "", name, kind, update)
                if name not in ("exch", "cas"):
                    yield _update("red", space, "", name, kind, update)
        for order in _ORDERS[1:]:
            kind = kinds.split()[0]
            yield _update("atom", "global", order, name, kind, update)
    for order in _ORDERS[1:]:
        if "acq" not in order or order == "acq_rel.gpu":
            yield _update("red", "global", order, "add", "u32", _UPDATES["add"][1])
    for kind in ("f32", "f64"):
        for opcode, space in product(("atom", "red"), ("global", "shared", "")):
            # In global memory denormals of f32 become 0.
            ftz = ".ftz" * (kind == "f32" and space != "shared")
            add = float_formula(spelled(f"add{ftz}.{kind}"))

            def added(old: int, b: int, c: int, add: Any = add) -> Any:
                return add(old, b)[0]

            yield _update(opcode, space, "", "add", kind, added)
    for kind in ("f16x2", "f16"):
        halves = float_formula(spelled(f"add.{kind}"))

        def added_halves(old: int, b: int, c: int, add: Any = halves) -> Any:
            return add(old, b)[0]

        for opcode in ("atom", "red"):
            yield _update(opcode, "global", "", "add.noftz", kind, added_halves)


def _update(opcode: str, space: str, order: str, name: str, kind: str, update: _Update) -> Case:
    at = _PLACES[space]
    form = ".".join(filter(None, [opcode, order, space, name, kind]))
    sources = "%x1, %x2" if name == "cas" else "%x1"
    returned = "%y0, " if opcode == "atom" else ""
    dotted = f".{space}" * bool(space)
    width = bits_of(kind)

    def expected(rows: Rows) -> list[list[Any]]:
        results = []
        for old, b, c in rows:
            signed = kind[0] in "us"
            x, y = (number(old, kind), number(b, kind)) if signed else (old, b)
            new = update(x, y, c)
            new = new & mask(kind) if isinstance(new, int) else new
            results.append([new, old] if opcode == "atom" else [new])
        return results

    def draw(row: list[int]) -> None:
        if name == "cas" and row[1] & 1:
            row[1] = row[0]

    text = (
        f"st{dotted}.b{width} [{at}], %x0; {form} {returned.replace('%y0', '%y1')}[{at}], "
        f"{sources}; ld{dotted}.b{width} %y0, [{at}];"
    )
    results = (kind,) * (2 if opcode == "atom" else 1)
    return Case(form, text, (kind,) * 3, results, expected, draw)


def _copies() -> Iterator[Case]:
    """cp.async from global to shared memory; bytes that are not copied are 0."""
    forms = [("ca", 4, None), ("ca", 8, None), ("ca", 16, None), ("cg", 16, None), ("ca", 8, 4)]
    for cache, size, taken in forms:

        def expected(rows: Rows, size: int = size, taken: int | None = taken) -> list[list[int]]:
            many = 8 * (size if taken is None else taken)
            results = []
            for row in rows:
                whole = (row[0] | row[1] << 64) & (1 << many) - 1
                results.append([whole & mask("u64"), whole >> 64])
            return results

        form = f"cp.async.{cache}.shared.global"
        more = "" if taken is None else f", {taken}"
        zero = "st.shared.b64 [%shared], 0; st.shared.b64 [%shared+8], 0;"
        for wait in ("cp.async.commit_group; cp.async.wait_group 0;", "cp.async.wait_all;"):
            text = (
                f"{_fill('global', '%mem')} {zero} {form} [%shared], [%mem], {size}{more}; {wait} "
                "ld.shared.b64 %y0, [%shared]; ld.shared.b64 %y1, [%shared+8];"
            )
            name = f"{form}.n{size}" + ".part" * bool(more) + ".all" * ("all" in wait)
            yield Case(name, text, _WORDS, ("b64", "b64"), expected)


def _addresses() -> Iterator[Case]:
    """A generic address leads to the same place; isspacep says in which space it is."""
    for space in ("shared", "local"):
        same = lambda rows: [[row[0], row[0]] for row in rows]  # noqa: E731
        text = (
            f"cvt.u64.u32 %v, %{space}; cvta.{space}.u64 %v, %v; st.b64 [%v], %x0; "
            f"ld.{space}.b64 %y0, [%{space}]; cvta.to.{space}.u64 %v, %v; "
            f"ld.{space}.b64 %y1, [%v];"
        )
        yield Case(f"cvta.{space}.u64", text, ("b64",), ("b64", "b64"), same)
        yield Case(f"cvta.to.{space}.u64", text, ("b64",), ("b64", "b64"), same)
        for asked in ("shared", "local", "global"):
            text = f"cvt.u64.u32 %v, %{space}; cvta.{space}.u64 %v, %v; isspacep.{asked} %y0, %v;"
            held = int(asked == space)
            yield Case(
                f"isspacep.{asked}",
                text,
                ("b64",),
                ("pred",),
                lambda rows, h=held: [[h]] * len(rows),
            )
    text = "cvta.global.u64 %v, %mem; st.b64 [%v], %x0; ld.global.b64 %y0, [%mem];"
    for form in ("cvta.global.u64", "cvta.to.global.u64"):
        yield Case(form, text, ("b64",), ("b64",), lambda rows: rows)
