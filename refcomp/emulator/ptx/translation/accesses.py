"""Loads and stores as LLVM IR, with their checks.

Accesses of a block that differ only in a constant offset are checked together, before the first of
them. Their bytes must lie in one allocation, and each access must be aligned. Undefined bits are
looked for at the end of a block. If a check fails, the function bails out, and the writes of its
threads are undone. So a check may come early, and fail although a later branch avoids the access.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from refcomp.emulator.ptx.instructions.types import bits_of
from refcomp.emulator.ptx.machine.spaces import WINDOWS
from refcomp.emulator.ptx.text.module import (
    Address,
    Operand,
    PtxInstruction,
    Register,
    SymbolAddress,
)
from refcomp.emulator.ptx.translation.emitter import ThreadText, type_of
from refcomp.emulator.ptx.translation.refusal import NotTranslated
from refcomp.emulator.ptx.translation.values import flat

# Modifiers that change nothing here: cache hints.
_HINTS = frozenset(
    {"nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "weak", "v2", "v4", "v8"}
    | {"L1::evict_last", "L1::evict_first", "L1::no_allocate", "L1::evict_normal"}
    | {"L2::64B", "L2::128B", "L2::256B", "L1::evict_unchanged"}
)
SPACES = {"global": "global", "shared": "shared", "local": "local", "param": "param"}
SPACES |= {"const": "global", "shared::cta": "shared"}
_MAX_SPAN = 1 << 16  # bytes that one check covers


@dataclass(frozen=True, slots=True)
class PlainAccess:
    """A load or store whose modifiers all have a meaning here.

    Attributes:
        space: "global", "shared", "local" or "param"; "" for generic addresses.
        is_store: True if it writes.
        kind: the type of each value.
        size: bytes of each value.
        count: the number of values.
        address: the address of the access.
        values: the registers or numbers that the access moves.
    """

    instruction: PtxInstruction
    space: str
    is_store: bool
    kind: str
    size: int
    count: int
    address: Address
    values: tuple[Operand, ...]

    @property
    def whole(self) -> int:
        """Bytes of all values."""
        return self.size * self.count


def access_of(instruction: PtxInstruction) -> PlainAccess:
    """Return a load or store. Raises NotTranslated for one that orders memory."""
    *names, kind = instruction.modifiers
    spaces = [SPACES[one] for one in names if one in SPACES]
    if len(spaces) > 1 or not _HINTS.union(SPACES).issuperset(names) or kind == "b128":
        raise NotTranslated(instruction)
    vectors = [int(one[1:]) for one in names if one in ("v2", "v4", "v8")]
    is_store = instruction.opcode == "st"
    address, values = instruction.operands[:: 1 if is_store else -1]
    if not isinstance(address, Address):
        raise NotTranslated(instruction)
    return PlainAccess(
        instruction=instruction,
        space=spaces[0] if spaces else "",
        is_store=is_store,
        kind=kind,
        size=max(bits_of(kind) // 8, 1),
        count=vectors[0] if vectors else 1,
        address=address,
        values=tuple(flat(values)),
    )


def _base_of(access: PlainAccess) -> tuple[str, int]:
    """Return the register of an address, or "", and the constant offset."""
    base, offset = access.address.base, access.address.offset
    if isinstance(base, Register):
        return base.name, offset
    if isinstance(base, SymbolAddress):
        return f"&{base.symbol}", offset + base.offset
    return "", offset


def _writes(instruction: PtxInstruction, name: str) -> bool:
    """Return True if an instruction writes a register, perhaps only in some threads."""
    written = flat(instruction.operands[0]) if instruction.operands else []
    return any(isinstance(one, Register) and one.name == name for one in written)


class ThreadAccesses:
    """Prints loads and stores, and tracks the checked bytes of the block that is printed."""

    def __init__(self, text: ThreadText) -> None:
        self._text = text
        # (space, is written, value of the base) -> the bytes that were checked, with pointers.
        self._checked: dict[tuple[str, bool, str], CheckedSpan] = {}
        self._known = (
            ""  # name of a value: all ones, unless a load found undefined bits
        )

    def forget(self) -> None:
        """Begin a block, in which nothing has been checked."""
        self._checked.clear()
        self._known = ""

    def settle(self) -> None:
        """Bail out if a load has found undefined bits."""
        if self._known:
            known, self._known = self._known, ""
            self._text.stop_if(self._text.let(f"icmp ne i64 {known}, -1"))

    def put(self, access: PlainAccess, following: Iterable[PtxInstruction]) -> None:
        """Print an access.

        Args:
            access: the load or store.
            following: the instructions after it, up to the next branch or wait.
        """
        values = access.values
        if len(values) != access.count:
            raise NotTranslated(access.instruction)
        if access.space == "param":
            self._put_parameter(access)
            return
        span, offset = self.place(access, following)
        for number, operand in enumerate(values):
            place = offset + number * access.size
            if access.is_store:
                self._store(access, operand, span, place)
            else:
                self._load(access, operand, span, place)

    # Places.

    def place(
        self, access: PlainAccess, following: Iterable[PtxInstruction] = ()
    ) -> tuple[CheckedSpan, int]:
        """Return checked bytes with pointers, and the offset of the access from these pointers."""
        name, offset = _base_of(access)
        base = self._base_value(access, name)
        writes = access.is_store and access.space in ("global", "")
        key = (access.space, writes, base)
        found = self._checked.get(key)
        if found is None or not found.covers(access, offset):
            group = [(access, offset), *self._alike(access, name, following)]
            found = self._check(access, base, group)
            self._checked[key] = found
        return found, offset

    def _base_value(self, access: PlainAccess, name: str) -> str:
        text = self._text
        base = access.address.base
        if isinstance(base, SymbolAddress):
            return text.symbol_address(base.symbol, 0, access.space)
        if not name:
            return "0"
        if access.space in WINDOWS and text.types.get(name) == "i32":
            # The sum wraps around at 32 bits. That of a signed base needs no wrap.
            narrow = text.operand(access.instruction, base, "u32")
            return text.let(f"sext i32 {narrow} to i64")
        return text.operand(access.instruction, base, "u64")

    def _alike(
        self, access: PlainAccess, name: str, following: Iterable[PtxInstruction]
    ) -> Iterator[tuple[PlainAccess, int]]:
        """Yield the accesses of the block by the same address, with their offsets."""
        _, first = _base_of(access)
        if _writes(access.instruction, name):
            return
        for one in following:
            if one.opcode in ("ld", "st") and one.predicate is None:
                other = access_of(one)
                is_alike = other.space == access.space and (
                    other.space in ("shared", "local")
                    or other.is_store == access.is_store
                )
                if is_alike:
                    base, offset = _base_of(other)
                    if base == name and abs(offset - first) < _MAX_SPAN:
                        yield other, offset
            if _writes(one, name):
                return

    def _check(
        self, access: PlainAccess, base: str, group: list[tuple[PlainAccess, int]]
    ) -> CheckedSpan:
        """Print the checks of some accesses by one address."""
        low = min(offset for _, offset in group)
        high = max(offset + one.whole for one, offset in group)
        sizes = frozenset((one.whole, offset % one.whole) for one, offset in group)
        text = self._text
        address = text.let(f"add i64 {base}, {low}") if low else base
        self._check_alignment(base, sizes)
        if not access.space:
            return self._anywhere(access, address, low, high, sizes)
        if access.space == "global":
            place = self._in_arena(address, high - low, access.is_store)
            pointers = "%arena", "%arena.known"
        else:
            place = self._in_window(access, base, low, high)
            pointers = f"%{access.space}", f"%{access.space}.known"
        data, known = (
            text.let(f"getelementptr i8, ptr {one}, i64 {place}") for one in pointers
        )
        return CheckedSpan(data, known, place, low, high, sizes)

    def _check_alignment(self, base: str, sizes: frozenset[tuple[int, int]]) -> None:
        text = self._text
        for size, rest in sorted(sizes):
            if size > 1:
                moved = text.let(f"add i64 {base}, {rest}") if rest else base
                low_bits = text.let(f"and i64 {moved}, {size - 1}")
                text.stop_if(text.let(f"icmp ne i64 {low_bits}, 0"))

    def _anywhere(
        self,
        access: PlainAccess,
        address: str,
        low: int,
        high: int,
        sizes: frozenset[tuple[int, int]],
    ) -> CheckedSpan:
        """Print the check of a generic address."""
        text = self._text
        window = self._window()
        flag = "true" if access.is_store else "false"
        found = text.let(
            f"call %Place @generic(ptr %ctx, i64 %thread, i64 {address}, i64 {high - low}, "
            f"ptr {window}, i1 {flag})"
        )
        data, known, place, fits = (
            text.let(f"extractvalue %Place {found}, {number}") for number in range(4)
        )
        text.stop_if(text.let(f"xor i1 {fits}, true"))
        return CheckedSpan(data, known, place, low, high, sizes)

    def _window(self) -> str:
        """Return the address of a new window."""
        number = self._text.windows
        self._text.windows += 1
        return self._text.let(f"getelementptr i64, ptr %windows, i64 {2 * number}")

    def _in_arena(self, address: str, span: int, writes: bool) -> str:
        """Return the offset in the arena of an address in one allocation."""
        text = self._text
        window = self._window()
        more = text.let(f"getelementptr i64, ptr {window}, i64 1")
        start = text.let(f"load i64, ptr {window}")
        room = text.let(f"load i64, ptr {more}")
        inside = text.let(f"sub i64 {address}, {start}")
        fits = text.let(f"icmp ult i64 {inside}, {room}")
        look, after = text.fresh_label("look"), text.fresh_label("found")
        text.put(f"br i1 {fits}, label %{after}, label %{look}, !prof !1")
        text.label(look)
        flag = "true" if writes else "false"
        found = text.let(
            f"call i1 @find(ptr %ctx, i64 {address}, i64 {span}, ptr {window}, i1 {flag})"
        )
        text.put(f"br i1 {found}, label %{after}, label %trouble")
        text.label(after)
        return text.let(f"sub i64 {address}, %base")

    def _in_window(self, access: PlainAccess, base: str, low: int, high: int) -> str:
        """Return the offset in shared memory, or in the local memory of all threads."""
        text = self._text
        place = text.let(f"add i64 {base}, {low}")
        is_static = access.space == "shared" and base.isdigit()
        if (
            not is_static
            or int(base) + high > text.names.shared_bytes
            or int(base) + low < 0
        ):
            less = high - low - 1
            limit = f"%{access.space}.limit"
            room = text.let(f"call i64 @llvm.usub.sat.i64(i64 {limit}, i64 {less})")
            text.stop_if(text.let(f"icmp uge i64 {place}, {room}"))
        if access.space == "local":
            return text.let(f"add i64 {place}, %local.begin")
        return place

    # Values.

    def _load(
        self, access: PlainAccess, operand: Operand, span: CheckedSpan, place: int
    ) -> None:
        kind = access.kind if access.kind[0] != "b" else f"b{8 * access.size}"
        value = self.load_bits(span, place, access.size, type_of(kind))
        self._text.result(access.instruction, operand, access.kind, value)

    def load_bits(self, span: CheckedSpan, place: int, size: int, kind: str) -> str:
        """Print the load of a value of a type of LLVM IR, and return it."""
        text = self._text
        step = place - span.low
        where = text.let(f"getelementptr i8, ptr {span.data}, i64 {step}")
        value = text.let(f"load {kind}, ptr {where}, align {size}")
        if text.is_watched:
            mark = text.let(f"getelementptr i8, ptr {span.known}, i64 {step}")
            known = text.let(f"load i{8 * size}, ptr {mark}, align {size}")
            if size < 8:
                known = text.let(f"sext i{8 * size} {known} to i64")
            if self._known:
                known = text.let(f"and i64 {self._known}, {known}")
            self._known = known
        return value

    def _store(
        self, access: PlainAccess, operand: Operand, span: CheckedSpan, place: int
    ) -> None:
        kind = f"b{8 * access.size}"
        value = self._text.operand(access.instruction, operand, kind)
        self.store_bits(access, span, place, value)

    def store_bits(
        self, access: PlainAccess, span: CheckedSpan, place: int, value: str
    ) -> None:
        """Print the store of bits. Before it, the old bits are recorded in the journal."""
        text, size = self._text, access.size
        step = place - span.low
        if access.space == "global":
            at = text.let(f"add i64 {span.place}, {step}") if step else span.place
            fits = text.let(f"call i1 @journal{size}(ptr %ctx, i64 {at})")
            text.stop_if(text.let(f"xor i1 {fits}, true"))
        elif not access.space:
            fits = text.let(
                f"call i1 @journal.any{size}(ptr %ctx, i64 {span.place}, i64 {step})"
            )
            text.stop_if(text.let(f"xor i1 {fits}, true"))
        where = text.let(f"getelementptr i8, ptr {span.data}, i64 {step}")
        text.put(f"store i{8 * size} {value}, ptr {where}, align {size}")
        if text.is_watched:
            mark = text.let(f"getelementptr i8, ptr {span.known}, i64 {step}")
            text.put(f"store i{8 * size} -1, ptr {mark}, align {size}")

    def _put_parameter(self, access: PlainAccess) -> None:
        """Print a load of a kernel's parameter. Its bounds are checked here, not when it runs."""
        text, base = self._text, access.address.base
        if access.is_store or not isinstance(base, SymbolAddress):
            raise NotTranslated(access.instruction)
        offset = base.offset + access.address.offset
        extent = text.names.parameters.get(base.symbol, range(0))
        is_inside = 0 <= offset <= len(extent) - access.whole
        if not is_inside or (extent.start + offset) % access.whole:
            raise NotTranslated(access.instruction)
        address = text.symbol_address(base.symbol, offset, "param")
        place = text.let(f"sub i64 {address}, %base")
        begin = text.let(f"getelementptr i8, ptr %arena, i64 {place}")
        kind = type_of(access.kind) if access.kind[0] != "b" else f"i{8 * access.size}"
        for number, operand in enumerate(access.values):
            where = text.let(
                f"getelementptr i8, ptr {begin}, i64 {number * access.size}"
            )
            value = text.let(f"load {kind}, ptr {where}, align {access.size}")
            text.result(access.instruction, operand, access.kind, value)


@dataclass(frozen=True, slots=True)
class CheckedSpan:
    """Bytes that were checked.

    Attributes:
        low, high: the first byte, and the end of the bytes, as offsets from the base of accesses.
        data, known: pointers to the first byte, and to the bits that say if it was written.
        place: the offset of the first byte in its memory; -1 for a generic address outside of the
            arena.
        sizes: the alignments that were checked: (bytes of an access, its offset modulo them).
    """

    data: str
    known: str
    place: str
    low: int
    high: int
    sizes: frozenset[tuple[int, int]]

    def covers(self, access: PlainAccess, offset: int) -> bool:
        """Return True if the checks included those of an access."""
        is_inside = self.low <= offset and offset + access.whole <= self.high
        return is_inside and (access.whole, offset % access.whole) in self.sizes
