"""Loads and stores in the text of a unit.

An access first checks that all lanes stay in one allocation, or in their group's memory. Then
lanes that lie side by side are loaded at once, and so is a word that all lanes read. A store keeps
its places and data in scratch memory until the end of the unit.

Lanes of a wave may store to overlapping places. Then the order is the interpreter's: items of two
or four words are stored lane by lane, three words one word after the other. One wave stores after
the other, whereas the interpreter stores each item for all waves: only kernels with races differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from refcomp.emulator.machine.memory import BASE
from refcomp.emulator.translation.steps import (
    MemoryAccess,
    Piece,
    ResultPlace,
    ScalarLoad,
)
from refcomp.emulator.translation.values import Loop, VectorValues

_ITEMS = {1: "i8", 2: "i16", 4: "i32"}


@dataclass(frozen=True, slots=True)
class KeptStore:
    """A store whose places and data are in scratch memory."""

    is_shared: bool
    piece: Piece
    places: int  # offset in scratch memory of i64 [lane]
    data: tuple[int, ...]  # offsets of u32 [lane], one for each register
    start: int = 0  # bytes that are added to the places


class AccessPrinter:
    """Prints the accesses of a unit."""

    def __init__(self, values: VectorValues, *, is_checked: bool) -> None:
        self.values = values
        self.windows = 0  # numbers of i64 in the function's table of allocations
        self.stores: list[KeptStore] = []
        self._is_checked = is_checked
        self._width = values.texts.width

    def put(self, loop: Loop, access: MemoryAccess) -> None:
        """Print an access of all lanes."""
        address = access.address
        assert address.number is not None
        lanes = self.values.word(loop, address.number)
        base = "0"
        if address.kind == "u64":
            high = self.values.word(loop, address.number + 1)
            base = self._lane_base(loop, high)
        elif access.base is not None:
            start = self.values.scalars.read(access.base)
            lines = self.values.scalars.lines
            base = lines.put("memory", "scalar_base", base=start, offset=-BASE)
        if self.values.is_masked:
            lanes = loop.lines.put(
                "memory",
                "follow_first",
                v=lanes,
                bits=f"%{loop.name}.bits",
                mask=loop.mask,
            )
        loaded: list[tuple[int, str]] = []
        for piece in access.pieces:
            t = self._check(loop, access, piece, lanes, base)
            if access.is_store:
                self._keep(loop, access, piece, t)
            else:
                loaded += self._load(loop, access, piece, lanes, t)
        for number, value in loaded:
            self.values.set(loop, number, value)

    def _lane_base(self, loop: Loop, high: str) -> str:
        t = loop.lines.fresh()
        bits = f"%{loop.name}.bits"
        if not self.values.is_masked:
            bits = "-1"
        holes = {"high": high, "bits": bits, "mask": loop.mask, "offset": -BASE}
        loop.label = f"{t}.same"
        return loop.lines.put("memory", "lane_base", t, **holes)

    def _check(
        self, loop: Loop, access: MemoryAccess, piece: Piece, lanes: str, base: str
    ) -> str:
        """Print the check of bounds, and return the prefix of its names."""
        t = loop.lines.fresh()
        if access.is_shared:
            offsets = self.values.texts.expand(f"$[i32 {piece.offset}]")
            holes = {
                "v": lanes,
                "reach": piece.offset + piece.size,
                "offset": piece.offset,
            }
            loop.lines.put("memory", "shared_check", t, offsets=offsets, **holes)
        else:
            own = loop.lines.put(
                "memory", "scalar_base", base=base, offset=piece.offset
            )
            loop.lines.put(
                "memory",
                "global_check",
                t,
                v=lanes,
                base=own,
                before=loop.label,
                size=piece.size,
                window=self._window(),
            )
        loop.label = f"{t}.within"
        return t

    def _window(self) -> int:
        self.windows += 2
        return self.windows - 2

    # Loads.

    def _load(
        self, loop: Loop, access: MemoryAccess, piece: Piece, lanes: str, t: str
    ) -> list[tuple[int, str]]:
        """Print a load, and return the registers with their values."""
        memory = "%shared" if access.is_shared else "%arena"
        put = loop.lines.put
        steps = self._steps(piece.size, 32)
        put("memory", "choose_way", t, v=lanes, steps=steps)
        found = [
            self._row(loop, piece, memory, t),
            self._words(loop, piece, memory, t, "same"),
            self._words(loop, piece, memory, t, "each"),
        ]
        put("memory", "loaded", t)
        loop.label = f"{t}.loaded"
        item = _ITEMS[piece.width]
        merged = []
        for n in range(piece.count + int(self._is_checked)):
            ways = {
                name: words[n]
                for name, words in zip(("row", "same", "each"), found, strict=True)
            }
            put("memory", "merge", t, x=f"m{n}", item=item, **ways)
            merged.append(f"%{t}.m{n}")
        if self._is_checked:
            self._note_known(loop, self._extended(loop, merged.pop(), item, "sext"))
        how = "sext" if piece.is_signed else "zext"
        values = [self._extended(loop, value, item, how) for value in merged]
        return list(zip(piece.numbers, values, strict=True))

    def _extended(self, loop: Loop, value: str, item: str, how: str) -> str:
        if item == "i32":
            return value
        return loop.lines.put("memory", "extend", how=how, item=item, value=value)

    def _note_known(self, loop: Loop, known: str) -> None:
        if loop.known:
            known = loop.lines.put("registers", "intersection", a=loop.known, b=known)
        loop.known = known

    def _row(self, loop: Loop, piece: Piece, memory: str, t: str) -> list[str]:
        """Print a load whose lanes read neighbouring words.

        Return the words and, in a checked run, where all of their bits are known.
        """
        put = loop.lines.put
        shape = {"items": self._width * piece.count, "item": _ITEMS[piece.width]}
        put("memory", "row", t, memory=memory, **shape)
        words = self._separated(loop, piece, t, "rv", 0)
        if self._is_checked:
            put("memory", "row_known", t, known=self._known_of(memory), **shape)
            words.append(
                self._all_known(loop, self._separated(loop, piece, t, "rkv", 8))
            )
        put("memory", "jump", t)
        return words

    def _separated(
        self, loop: Loop, piece: Piece, t: str, of: str, first: int
    ) -> list[str]:
        """Return the vector of each word of rows that were loaded as one vector."""
        if piece.count == 1:
            return [f"%{t}.{of}"]
        shape = {"items": self._width * piece.count, "item": _ITEMS[piece.width]}
        for n in range(piece.count):
            places = range(n, self._width * piece.count, piece.count)
            picked = _indices(places)
            holes = {"n": first + n, "of": of, "picked": picked}
            loop.lines.put("memory", "row_word", t, **holes, **shape)
        return [f"%{t}.rw{first + n}" for n in range(piece.count)]

    def _words(
        self, loop: Loop, piece: Piece, memory: str, t: str, way: str
    ) -> list[str]:
        """Print the load of each word by a way; return the words, and then what is known."""
        put = loop.lines.put
        item = _ITEMS[piece.width]
        letter = way[0]
        put("memory", way, t, memory=memory)
        parts = [(letter, f"{letter}p")]
        if self._is_checked:
            put("memory", f"{way}_known", t, known=self._known_of(memory))
            parts.append((f"{letter}k", f"{letter}kp"))
        words: list[str] = []
        for x, of in parts:
            for n in range(piece.count):
                offset = piece.width * n
                put(
                    "memory",
                    f"{way}_word",
                    t,
                    x=x,
                    n=n,
                    of=of,
                    item=item,
                    offset=offset,
                )
            words += [f"%{t}.{x}w{n}" for n in range(piece.count)]
        if self._is_checked:
            words[piece.count :] = [self._all_known(loop, words[piece.count :], item)]
        put("memory", "jump", t)
        return words

    def _all_known(self, loop: Loop, words: Sequence[str], item: str = "i32") -> str:
        known = words[0]
        for other in words[1:]:
            pair = {"a": known, "b": other}
            known = loop.lines.put("memory", "both_known", item=item, **pair)
        return known

    def _known_of(self, memory: str) -> str:
        return f"{memory}.known"

    def _steps(self, size: int, bits: int) -> str:
        steps = (f"i{bits} {size * n}" for n in range(self._width))
        return f"<{', '.join(steps)}>"

    # Stores.

    def _keep(self, loop: Loop, access: MemoryAccess, piece: Piece, t: str) -> None:
        scratch = self.values.scratch
        lanes = self.values.lanes
        places = scratch.reserve(8 * lanes)
        loop.lines.put("memory", "keep_places", t, offset=places, loop=loop.name)
        data: list[int] = []
        for number in piece.numbers:
            value = self.values.word(loop, number)
            offset = scratch.reserve(4 * lanes)
            place = self._kept_place(loop, offset)
            types = self.values.texts.expand("$I")
            loop.lines.put("registers", "store", place, type=types, value=value)
            data.append(offset)
        if piece.count != 3:
            kept = KeptStore(access.is_shared, piece, places, tuple(data))
            self.stores.append(kept)
            return
        # All lanes store the first word, then all store the second one.
        for n, offset in enumerate(data):
            kept = KeptStore(
                access.is_shared, piece, places, (offset,), piece.width * n
            )
            self.stores.append(kept)

    def commit(self, loop: Loop, store: KeptStore) -> None:
        """Print a store that was kept, in a loop over lanes of its own."""
        width = store.piece.width
        t = loop.lines.fresh()
        steps = self._steps(width * len(store.data), 64)
        put = loop.lines.put
        item = _ITEMS[width]
        places = [self._kept_place(loop, offset) for offset in store.data]
        words = [self._kept_word(loop, place, item) for place in places]
        holes = {"offset": store.places, "start": store.start, "loop": loop.name}
        put("memory", "kept_places", t, steps=steps, **holes)
        memory = "%shared" if store.is_shared else "%arena"
        ones = self.values.texts.expand(f"$[{item} -1]")
        targets = [(memory, words)]
        if self._is_checked:
            targets.append((self._known_of(memory), [ones] * len(words)))
        put("memory", "label", t, way="row")
        for n, (target, values) in enumerate(targets):
            self._store_row(loop, t, n, target, values, item)
        put("memory", "store_done", t)
        put("memory", "label", t, way="each")
        if len(words) > 1:
            self._store_items(loop, t, [target for target, _ in targets], places)
        else:
            for n, (target, values) in enumerate(targets):
                more = {"memory": target, "value": values[0], "item": item}
                put("memory", "store_each", t, x=f"e{n}", loop=loop.name, **more)
            put("memory", "store_done", t)
        put("memory", "stored", t)
        loop.label = f"{t}.stored"

    def _store_items(
        self, loop: Loop, t: str, memories: Sequence[str], places: Sequence[str]
    ) -> None:
        """Print the store of items of several words, one lane after the other."""
        put = loop.lines.put
        put("memory", "next_lane", t, loop=loop.name)
        for k, place in enumerate(places):
            put("memory", "item_word", t, k=k, place=place, offset=4 * k)
            for n, memory in enumerate(memories):
                value = "-1" if n else f"%{t}.i{k}"
                put(
                    "memory",
                    "store_word",
                    t,
                    x=f"i{k}m{n}",
                    k=k,
                    memory=memory,
                    value=value,
                )
        put("memory", "lanes_done", t)

    def _kept_place(self, loop: Loop, offset: int) -> str:
        place = loop.lines.fresh()
        holes = {"offset": offset, "chunk": f"%{loop.name}.o"}
        loop.lines.put("registers", "scratch_place", place, **holes)
        return place

    def _kept_word(self, loop: Loop, place: str, item: str) -> str:
        types = self.values.texts.expand("$I")
        value = loop.lines.put("registers", "load", place, type=types)
        if item == "i32":
            return value
        return loop.lines.put("memory", "narrow", value=value, item=item)

    def _store_row(
        self, loop: Loop, t: str, n: int, memory: str, words: Sequence[str], item: str
    ) -> None:
        """Print the store of lanes side by side, one or all words of each."""
        width = self._width
        count = len(words)
        whole = words[0]
        items = width
        for k, word in enumerate(words[1:], 1):
            # Vectors of one length are joined, so the next word is widened first.
            wide = word
            if k > 1:
                places = [*range(width), *[0] * (items - width)]
                wide = self._shuffled(loop, word, word, width, places, item)
            whole = self._shuffled(loop, whole, wide, items, range(items + width), item)
            items += width
        if count > 1:
            order = [width * k + lane for lane in range(width) for k in range(count)]
            whole = self._shuffled(loop, whole, whole, items, order, item)
        holes = {"x": f"r{n}", "memory": memory, "items": items, "item": item}
        loop.lines.put("memory", "store_row", t, value=whole, **holes)

    def _shuffled(
        self, loop: Loop, a: str, b: str, items: int, places: Sequence[int], item: str
    ) -> str:
        holes = {"items": items, "item": item, "a": a, "b": b}
        picked = _indices(places)
        return loop.lines.put("memory", "interleave", picked=picked, **holes)

    # Loads of scalar registers.

    def put_scalar(self, load: ScalarLoad) -> None:
        """Print a load of scalar registers."""
        scalars = self.values.scalars
        put = scalars.lines.put
        base = scalars.read(load.base)
        more = scalars.read(load.more)
        holes = {"base": base, "more": more, "offset": load.offset}
        address = put("scalar_memory", "address", **holes)
        t = scalars.lines.fresh()
        size = 4 * load.count
        window = self._window()
        holes = {"window": window, "address": address, "arena": BASE, "size": size}
        put("scalar_memory", "check", t, **holes)
        for n in range(load.count):
            put("scalar_memory", "word", t, n=n, offset=4 * n)
            if self._is_checked:
                put("scalar_memory", "known", t, n=n)
        for n in range(load.count):
            scalars.write(ResultPlace("u32", load.first + n), f"%{t}.{n}")


def _indices(places: Sequence[int]) -> str:
    return f"<{len(places)} x i32> <{', '.join(f'i32 {n}' for n in places)}>"
