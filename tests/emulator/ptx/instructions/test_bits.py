"""Instructions on bits, against definitions that go bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

from refcomp.emulator.ptx.instructions.bits import field_mask, highest_bit, reversed_bits
from refcomp.foundation.errors import UserError
from tests.emulator.ptx.instructions.edges import grid, integers, signed
from tests.emulator.ptx.instructions.worded import bits, rule, run, undefined

AMOUNTS = [0, 1, 5, 15, 16, 31, 32, 33, 63, 64, 65, 255, 256, 257, 0xFFFFFFFF]


def words(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.uint32)


@pytest.mark.parametrize("kind", ["b16", "b32", "b64"])
def test_logic(kind: str) -> None:
    width = int(kind[1:])
    mask = (1 << width) - 1
    a, b = grid(integers(width), integers(width), kind=f"u{width // 8}")
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    assert bits(run(f"and.{kind} d, a, b", a, b)) == [x & y for x, y in pairs]
    assert bits(run(f"or.{kind} d, a, b", a, b)) == [x | y for x, y in pairs]
    assert bits(run(f"xor.{kind} d, a, b", a, b)) == [x ^ y for x, y in pairs]
    assert bits(run(f"not.{kind} d, a", a)) == [x ^ mask for x, _ in pairs]
    assert bits(run(f"cnot.{kind} d, a", a)) == [int(x == 0) for x, _ in pairs]


def test_logic_of_predicates() -> None:
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    assert run("and.pred d, a, b", a, b).tolist() == [False, False, False, True]
    assert run("xor.pred d, a, b", a, b).tolist() == [False, True, True, False]
    assert run("not.pred d, a", a).tolist() == [True, True, False, False]


@pytest.mark.parametrize("kind", ["b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64"])
def test_shifts_by_the_width_or_more_leave_nothing_but_signs(kind: str) -> None:
    width = int(kind[1:])
    mask = (1 << width) - 1
    a, n = grid(integers(width), AMOUNTS, kind="u8")
    value = a.astype(f"u{width // 8}")
    amount = n.astype(np.uint32)
    pairs = list(zip(a.tolist(), n.tolist(), strict=True))
    numbers = [(signed(x, width) if kind[0] == "s" else x, min(y, 200)) for x, y in pairs]
    assert bits(run(f"shr.{kind} d, a, b", value, amount)) == [x >> y & mask for x, y in numbers]
    if kind[0] == "b":
        assert bits(run(f"shl.{kind} d, a, b", value, amount)) == [
            x << y & mask for x, y in numbers
        ]


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_funnel_shift_moves_two_words(mode: str) -> None:
    a, b, n = grid(integers(32, 3), integers(32, 3), AMOUNTS, kind="u4")
    triples = list(zip(a.tolist(), b.tolist(), n.tolist(), strict=True))
    left, right = [], []
    for low, high, amount in triples:
        by = amount & 31 if mode == "wrap" else min(amount, 32)
        both = high << 32 | low
        left.append(both << by >> 32 & 0xFFFFFFFF)
        right.append(both >> by & 0xFFFFFFFF)
    assert bits(run(f"shf.l.{mode}.b32 d, a, b, c", a, b, n)) == left
    assert bits(run(f"shf.r.{mode}.b32 d, a, b, c", a, b, n)) == right


def _extracted(value: int, start: int, length: int, kind: str) -> int:
    width = int(kind[1:])
    start, length, top = start & 255, length & 255, width - 1
    sign = 0
    if kind[0] == "s" and length:
        sign = value >> min(start + length - 1, top) & 1
    result = 0
    for place in range(width):
        inside = place < length and start + place <= top
        result |= (value >> start + place & 1 if inside else sign) << place
    return result


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_fields_are_extracted(kind: str) -> None:
    width = int(kind[1:])
    a, start, length = grid(integers(width, 3), AMOUNTS, AMOUNTS, kind="u8")
    found = run(
        f"bfe.{kind} d, a, b, c",
        a.astype(f"u{width // 8}"),
        start.astype("u4"),
        length.astype("u4"),
    )
    triples = zip(a.tolist(), start.tolist(), length.tolist(), strict=True)
    assert bits(found) == [_extracted(*triple, kind) for triple in triples]


def _inserted(field: int, value: int, start: int, length: int, width: int) -> int:
    start, length = start & 255, length & 255
    for place in range(length):
        if start + place < width:
            value &= ~(1 << start + place)
            value |= (field >> place & 1) << start + place
    return value


@pytest.mark.parametrize("width", [32, 64])
def test_fields_are_inserted(width: int) -> None:
    axes = ([*integers(width, 1)], [0, (1 << width) - 1, 12345], AMOUNTS, AMOUNTS)
    a, b, start, length = grid(*axes, kind="u8")
    narrow = f"u{width // 8}"
    found = run(
        f"bfi.b{width} d, a, b, c, e",
        a.astype(narrow),
        b.astype(narrow),
        start.astype("u4"),
        length.astype("u4"),
    )
    rows = zip(a.tolist(), b.tolist(), start.tolist(), length.tolist(), strict=True)
    assert bits(found) == [_inserted(*row, width) for row in rows]


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_masks_and_extensions(mode: str) -> None:
    start, length = grid(AMOUNTS, AMOUNTS, kind="u4")
    bound = (lambda x: x & 31) if mode == "wrap" else (lambda x: min(x, 32))
    pairs = list(zip(start.tolist(), length.tolist(), strict=True))
    expected = [((1 << bound(n)) - 1) << bound(s) & 0xFFFFFFFF for s, n in pairs]
    assert bits(run(f"bmsk.{mode}.b32 d, a, b", start, length)) == expected
    a, length = grid(integers(32), AMOUNTS, kind="u4")
    pairs = [(x, bound(n)) for x, n in zip(a.tolist(), length.tolist(), strict=True)]
    short = [x & (1 << n) - 1 for x, n in pairs]
    assert bits(run(f"szext.{mode}.u32 d, a, b", a, length)) == short
    extended = [
        signed(x, n) & 0xFFFFFFFF if n else 0 for x, (_, n) in zip(short, pairs, strict=True)
    ]
    assert bits(run(f"szext.{mode}.s32 d, a, b", a, length)) == extended


@pytest.mark.parametrize("width", [32, 64])
def test_counts_and_places(width: int) -> None:
    given = integers(width, 40)
    a = np.array(given, f"u{width // 8}")
    assert bits(run(f"popc.b{width} d, a", a)) == [x.bit_count() for x in given]
    assert bits(run(f"clz.b{width} d, a", a)) == [width - x.bit_length() for x in given]
    places = [(x.bit_length() - 1) & 0xFFFFFFFF for x in given]
    assert bits(run(f"bfind.u{width} d, a", a)) == places
    amounts = [width - x.bit_length() if x else 0xFFFFFFFF for x in given]
    assert bits(run(f"bfind.shiftamt.u{width} d, a", a)) == amounts
    numbers = [signed(x, width) for x in given]
    sizes = [x if x >= 0 else ~x for x in numbers]
    places = [(x.bit_length() - 1) & 0xFFFFFFFF for x in sizes]
    assert bits(run(f"bfind.s{width} d, a", a)) == places
    text = [f"{x:0{width}b}"[::-1] for x in given]
    assert bits(run(f"brev.b{width} d, a", a)) == [int(x, 2) for x in text]


def _nth(mask: int, base: int, offset: int) -> int:
    if offset == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    places = range(base, 32) if offset > 0 else range(base, -1, -1)
    set_places = [place for place in places if mask >> place & 1]
    return set_places[abs(offset) - 1] if abs(offset) <= len(set_places) else 0xFFFFFFFF


def test_nth_bit_is_found_in_both_directions() -> None:
    masks, bases, offsets = [0, 1, 0x80000001, 0xAAAAAAAA, 0xFFFFFFFF], [0, 5, 31], range(-33, 34)
    a, b, c = grid(masks, bases, [x & 0xFFFFFFFF for x in offsets], kind="u4")
    triples = zip(a.tolist(), b.tolist(), c.view("i4").tolist(), strict=True)
    assert bits(run("fns.b32 d, a, b, c", a, b, c)) == [_nth(*triple) for triple in triples]


@pytest.mark.parametrize("table", [0x00, 0xE8, 0x96, 0x80, 0xFE, 0x1B])
def test_table_of_three_bits(table: int) -> None:
    a, b, c = grid(integers(32, 2), integers(32, 2), [0x12345678, 0xF0F0F0F0], kind="u4")
    expected = []
    for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True):
        result = 0
        for place in range(32):
            number = (x >> place & 1) << 2 | (y >> place & 1) << 1 | z >> place & 1
            result |= (table >> number & 1) << place
        expected.append(result)
    entries = words(table)
    assert bits(run("lop3.b32 d, a, b, c, e", a, b, c, entries)) == expected
    held = np.zeros(a.shape, bool)
    result, predicate = run("lop3.or.b32 d|p, a, b, c, e, q", a, b, c, entries, held)
    assert bits(result) == expected
    assert predicate.tolist() == [x != 0 for x in expected]
    assert not run("lop3.and.b32 d|p, a, b, c, e, q", a, b, c, entries, held)[1].any()


def _permuted(low: int, high: int, selector: int, mode: str) -> int:
    octets = (high << 32 | low).to_bytes(8, "little")
    n = selector & 3
    choices = {
        "f4e": [n + i for i in range(4)],
        "b4e": [(n - i) & 7 for i in range(4)],
        "rc8": [n] * 4,
        "ecl": [max(n, i) for i in range(4)],
        "ecr": [min(n, i) for i in range(4)],
        "rc16": [2 * (n & 1) + (i & 1) for i in range(4)],
        "": [selector >> 4 * i & 15 for i in range(4)],
    }[mode]
    taken = [octets[c & 7] if c < 8 else 255 * (octets[c & 7] >> 7) for c in choices]
    return int.from_bytes(bytes(taken), "little")


@pytest.mark.parametrize("mode", ["", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"])
def test_bytes_are_permuted(mode: str) -> None:
    selectors = [0x3210, 0x7654, 0xBA98, 0xFEDC, 0x0123, 0x89AB0F1E, 1, 2, 3]
    a, b, c = grid([0x83028100, 0x12345678], [0x07860584], selectors, kind="u4")
    text = f"prmt.b32{'.' * bool(mode)}{mode} d, a, b, c"
    triples = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    assert bits(run(text, a, b, c)) == [_permuted(*triple, mode) for triple in triples]


def test_undefined_bits_of_logic() -> None:
    # A defined 0 decides `and`, a defined 1 decides `or`.
    assert undefined("and.b32 d, a, b", [0, 0xF0], [0xFF, 0]) == 0xF0
    assert undefined("or.b32 d, a, b", [0, 0xF0], [0xFF, 0]) == 0x0F
    assert undefined("xor.b32 d, a, b", [0, 0xF0], [0xFF, 0]) == 0xFF
    assert undefined("not.b16 d, a", [0], [3]) == 3
    assert undefined("and.pred d, a, b", [0, 0], [1, 0]) == 0
    # The table of `a & b`, whatever c is.
    assert undefined("lop3.b32 d, a, b, c, e", [0, 0xF0, 0, 0xC0], [0xFF, 0, 0xFF, 0]) == 0xF0
    assert undefined("lop3.b32 d, a, b, c, e", [0, 0, 0, 0x96], [1, 2, 4, 0]) == 7


def test_undefined_bits_are_shifted() -> None:
    assert undefined("shl.b32 d, a, b", [0, 4], [0xFF, 0]) == 0xFF0
    assert undefined("shl.b32 d, a, b", [0, 40], [0xFF, 0]) == 0
    assert undefined("shl.b32 d, a, b", [0, 4], [0, 1]) == 0xFFFFFFFF
    assert undefined("shr.s32 d, a, b", [0, 4], [0x80000000, 0]) == 0xF8000000
    assert undefined("shr.u64 d, a, b", [0, 4], [0xF0, 0]) == 0xF
    assert undefined("shf.l.wrap.b32 d, a, b, c", [0, 0, 8], [0x80000000, 1, 0]) == 0x180
    assert undefined("shf.r.wrap.b32 d, a, b, c", [0, 0, 8], [0, 0, 1]) == 0xFFFFFFFF


def test_undefined_bits_of_fields() -> None:
    assert undefined("bfe.u32 d, a, b, c", [0, 8, 8], [0xFF00FF, 0, 0]) == 0
    assert undefined("bfe.u32 d, a, b, c", [0, 4, 8], [0xFF00FF, 0, 0]) == 0xF
    assert undefined("bfe.s32 d, a, b, c", [0, 0, 8], [0x80, 0, 0]) == 0xFFFFFF80
    assert undefined("bfe.u32 d, a, b, c", [0, 0, 8], [0, 1, 0]) == 0xFFFFFFFF
    assert undefined("bfi.b32 d, a, b, c, e", [0, 0, 8, 8], [0xFF, 0xFFFF, 0, 0]) == 0xFFFF
    assert undefined("bfi.b32 d, a, b, c, e", [0, 0, 8, 8], [0, 0xFFFF, 0, 0]) == 0xFF
    assert undefined("bfi.b64 d, a, b, c, e", [0, 0, 8, 8], [0, 0, 0, 1]) == (1 << 64) - 1
    assert undefined("brev.b32 d, a", [0], [1]) == 0x80000000


def test_undefined_bytes_are_permuted() -> None:
    assert undefined("prmt.b32 d, a, b, c", [0, 0, 0x3210], [0xFF00, 0, 0]) == 0xFF00
    assert undefined("prmt.b32 d, a, b, c", [0, 0, 0x3254], [0xFF, 0xFF00, 0]) == 0xFF00
    # The repeated sign is undefined where the sign is.
    assert undefined("prmt.b32 d, a, b, c", [0, 0, 0x8888], [0x80, 0, 0]) == 0xFFFFFFFF
    assert undefined("prmt.b32 d, a, b, c", [0, 0, 0x8888], [0x7F, 0, 0]) == 0
    assert undefined("prmt.b32 d, a, b, c", [0, 0, 0], [0, 0, 1]) == 0xFFFFFFFF


def test_functions_take_numbers_without_axes() -> None:
    assert highest_bit(np.array(8, np.uint32)) == 3
    assert reversed_bits(np.array(1, np.uint32)) == 1 << 31
    assert field_mask("b32", np.array(4), np.array(4)) == 0xF0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("shl.u32 d, a, b", "shl needs one of the types .b16, .b32, .b64"),
        ("shf.l.b32 d, a, b, c", "shf needs one of .clamp, .wrap"),
        ("prmt.b32.abc d, a, b, c", "prmt does not have the modifier .abc with .b32"),
        ("popc.u32 d, a", "popc needs one of the types .b32, .b64"),
    ],
)
def test_forms_that_ptx_lacks_are_refused(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        rule(text)
