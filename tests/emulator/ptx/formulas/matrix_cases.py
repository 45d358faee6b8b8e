"""Cases of products of matrices and of their loads, with the layouts that the ISA draws."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from refcomp.emulator.ptx.instructions.types import bits_of
from tests.emulator.ptx.formulas.cases import Case, Rows
from tests.emulator.ptx.formulas.converted import small_values
from tests.emulator.ptx.formulas.spelled import number
from tests.emulator.ptx.instructions.exact_floats import FORMATS, rounded

_WARP = 32
_INT = ("s8", "u8")
_SHAPES = {
    "f16": ("m16n8k8 m16n8k16", "f16 f32"),
    "bf16": ("m16n8k8 m16n8k16", "f32"),
    "tf32": ("m16n8k4 m16n8k8", "f32"),
    "f64": ("m8n8k4 m16n8k4 m16n8k8 m16n8k16", "f64"),
    "s8": ("m8n8k16 m16n8k16 m16n8k32", "s32"),
    "u8": ("m8n8k16 m16n8k16 m16n8k32", "s32"),
    "e4m3": ("m16n8k32", "f32"),
    "e5m2": ("m16n8k32", "f32"),
}


def matrix_cases() -> Iterator[Case]:
    """All shapes and types of mma, ldmatrix, stmatrix, movmatrix and wmma that are emulated."""
    for factor, (shapes, sums) in _SHAPES.items():
        others = [factor]
        if factor in _INT:
            others = [*_INT]
        if factor in ("e4m3", "e5m2"):
            others = ["e4m3", "e5m2"]
        for shape in shapes.split():
            for kind in sums.split():
                for other in others:
                    yield _product(shape, kind, factor, other)
                    if factor in _INT:
                        yield _product(shape, kind, factor, other, ".satfinite")
    for count in (1, 2, 4):
        for words in ("", ".trans"):
            yield _loaded(count, words)
            yield _stored(count, words)
    yield _transposed()
    for shape in ("m16n16k16", "m32n8k16", "m8n32k16"):
        yield from (_warp_product(shape, "f16", kind) for kind in ("f16", "f32"))
        yield _warp_product(shape, "bf16", "f32")
        yield from (_warp_product(shape, kind, "s32") for kind in _INT)
    yield _warp_product("m16n16k8", "tf32", "f32")
    yield _warp_product("m8n8k4", "f64", "f64")


def _sizes(shape: str) -> tuple[int, int, int]:
    rows, _, rest = shape[1:].partition("n")
    columns, _, depth = rest.partition("k")
    return int(rows), int(columns), int(depth)


# Where an element is: (lane, register, place in the register).


def _place_in_rows(row: int, column: int, rows: int, per: int) -> tuple[int, int, int]:
    """Of A, C and D: groups of four lanes share a row; registers alternate between row blocks."""
    lane = row % 8 * 4 + column // per % 4
    register = column // (4 * per) * (rows // 8) + row // 8
    return lane, register, column % per


def _place_in_b(row: int, column: int, per: int) -> tuple[int, int, int]:
    return column * 4 + row // per % 4, row // (4 * per), row % per


def _number_of(bits: int, kind: str) -> Any:
    if kind == "tf32":
        kind = "f32"
    if kind in FORMATS:
        return FORMATS[kind].value(bits)
    if kind in ("e4m3", "e5m2"):
        return small_values(kind)[bits & 0x7F] * (-1 if bits & 0x80 else 1)
    return number(bits, kind)


def _small_number(kind: str, draw: random.Random) -> int:
    """The bits of a small whole number, of whose products all sums are exact."""
    value = draw.randint(0 if kind == "u8" else -4, 4)
    if kind in ("s8", "u8"):
        return value & 0xFF if kind == "s8" else draw.choice((value, 255))
    if kind == "s32":
        return draw.choice((value, 2**31 - 1, -(2**31))) & 0xFFFFFFFF
    if kind in ("e4m3", "e5m2"):
        codes = {number_: code for code, number_ in small_values(kind).items()}
        return codes[Fraction(abs(value))] | (0x80 if value < 0 else 0)
    shape = FORMATS["f32" if kind == "tf32" else kind]
    return rounded(Fraction(value), shape, "rn")


def _register_type(kind: str) -> str:
    return {"f64": "f64", "f32": "f32"}.get(kind, "b32")


def _product(shape: str, kind: str, first: str, second: str, words: str = "") -> Case:
    rows, columns, depth = _sizes(shape)
    per_a, per_b = max(1, 32 // bits_of(first)), max(1, 32 // bits_of(second))
    per_c = 2 if kind == "f16" else 1
    in_a = rows * depth // _WARP // per_a
    in_b = depth * columns // _WARP // per_b
    in_c = rows * columns // _WARP // per_c

    def register(lane: int, start: int, place: tuple[int, int, int]) -> tuple[int, int, int]:
        return lane, start + place[1], place[2]

    def of_sum(row: int, column: int) -> tuple[int, int, int]:
        lane, block, place = _place_in_rows(row, column, rows, 2)
        element = 2 * block + place
        return lane, element // per_c, element % per_c

    def read(given: Rows, start: int, place: tuple[int, int, int], kind: str) -> Any:
        lane, number_, part = place
        width = 16 if per_c == 2 and kind == "f16" else bits_of(kind)
        width = max(width, 32) if kind == "tf32" else width
        return _number_of(given[lane][start + number_] >> width * part & (1 << width) - 1, kind)

    def of_warp(given: Rows) -> list[list[int]]:
        results = [[0] * in_c for _ in range(_WARP)]
        for row in range(rows):
            for column in range(columns):
                total = read(given, in_a + in_b, of_sum(row, column), kind)
                for k in range(depth):
                    a = read(given, 0, _place_in_rows(row, k, rows, per_a), first)
                    b = read(given, in_a, _place_in_b(k, column, per_b), second)
                    total += a * b
                lane, number_, part = of_sum(row, column)
                results[lane][number_] |= _bits_of_sum(total, kind, words) << 16 * part
        return results

    def draw(row: list[int]) -> None:
        source = random.Random(str(row))
        for n in range(len(row)):
            held, per = (first, per_a) if n < in_a else (second, per_b)
            if n >= in_a + in_b:
                held, per = kind, per_c
            parts = [_small_number(held, source) for _ in range(per)]
            row[n] = sum(part << 32 // per * place for place, part in enumerate(parts))

    types = f"{kind}.{first}.{second}.{kind}"
    form = f"mma.sync.aligned.{shape}.row.col{words}.{types}"
    names = [f"%x{n}" for n in range(in_a + in_b + in_c)]
    groups = names[:in_a], names[in_a : in_a + in_b], names[in_a + in_b :]
    results = [f"%y{n}" for n in range(in_c)]
    text = f"{form} {', '.join('{' + ', '.join(one) + '}' for one in (results, *groups))};"
    kinds = [first] * in_a + [second] * in_b + [kind] * in_c
    sources = tuple(map(_register_type, kinds))
    return Case(form, text, sources, (_register_type(kind),) * in_c, _warps(of_warp), draw)


def _bits_of_sum(total: Any, kind: str, words: str) -> int:
    if kind != "s32":
        return rounded(Fraction(total), FORMATS[kind], "rn")
    if words:
        total = min(max(total, -(2**31)), 2**31 - 1)
    return int(total) & 0xFFFFFFFF


def _warps(of_warp: Any) -> Any:
    def expected(rows: Rows) -> Any:
        warps = [rows[first : first + _WARP] for first in range(0, len(rows), _WARP)]
        return [result for warp in warps for result in of_warp(warp)]

    return expected


# ldmatrix, stmatrix and movmatrix: 8 rows of 8 numbers of 16 bits. Lane i has the address of row i.

_FOUR = ("b32", "b32", "b32", "b32")


def _row_of(given: Rows, lane: int) -> list[int]:
    """The numbers of 16 bits that the lane has stored: its four words."""
    return [word >> 16 * part & 0xFFFF for word in given[lane] for part in range(2)]


def _fragments(matrices: list[list[list[int]]], words: str) -> list[list[int]]:
    """Lane 4 * i + j holds the elements 2 * j and 2 * j + 1 of row i, of columns with .trans."""
    results = []
    for lane in range(_WARP):
        i, j = divmod(lane, 4)
        own = []
        for matrix in matrices:
            pair = [matrix[2 * j + n][i] if words else matrix[i][2 * j + n] for n in range(2)]
            own.append(pair[0] | pair[1] << 16)
        results.append(own)
    return results


def _loaded(count: int, words: str) -> Case:
    form = f"ldmatrix.sync.aligned.m8n8.x{count}{words}.shared.b16"
    targets = ", ".join(f"%y{n}" for n in range(count))

    def of_warp(given: Rows) -> list[list[int]]:
        matrices = [[_row_of(given, 8 * m + row) for row in range(8)] for m in range(count)]
        return _fragments(matrices, words)

    text = (
        "st.shared.v4.b32 [%shared], {%x0, %x1, %x2, %x3}; bar.warp.sync -1; "
        f"{form} {{{targets}}}, [%shared];"
    )
    return Case(form, text, _FOUR, ("b32",) * count, _warps(of_warp))


def _stored(count: int, words: str) -> Case:
    form = f"stmatrix.sync.aligned.m8n8.x{count}{words}.shared.b16"
    sources = ", ".join(f"%x{n}" for n in range(count))

    def of_warp(given: Rows) -> list[list[int]]:
        results = [[0] * 4 for _ in range(_WARP)]
        for lane in range(_WARP):
            i, j = divmod(lane, 4)
            for m in range(count):
                for n in range(2):
                    row, column = (2 * j + n, i) if words else (i, 2 * j + n)
                    part = given[lane][m] >> 16 * n & 0xFFFF
                    results[8 * m + row][column // 2] |= part << 16 * (column % 2)
        return results

    text = (
        "st.shared.v4.b32 [%shared], {0, 0, 0, 0}; bar.warp.sync -1; "
        f"{form} [%shared], {{{sources}}}; bar.warp.sync -1; "
        "ld.shared.v4.b32 {%y0, %y1, %y2, %y3}, [%shared];"
    )
    return Case(form, text, _FOUR, _FOUR, _warps(of_warp))


def _transposed() -> Case:
    form = "movmatrix.sync.aligned.m8n8.trans.b16"

    def of_warp(given: Rows) -> list[list[int]]:
        matrix = [[0] * 8 for _ in range(8)]
        for lane in range(_WARP):
            for n in range(2):
                matrix[lane // 4][2 * (lane % 4) + n] = given[lane][0] >> 16 * n & 0xFFFF
        return _fragments([matrix], ".trans")

    return Case(form, f"{form} %y0, %x0;", ("b32",), ("b32",), _warps(of_warp))


# wmma: the ISA does not say which lane holds which element. Only loads and stores together do.


def _warp_product(shape: str, factor: str, kind: str) -> Case:
    """Each lane writes elements to global memory; the warp loads, multiplies and stores."""
    rows, columns, depth = _sizes(shape)
    size_a, size_b, size_c = rows * depth, depth * columns, rows * columns
    counts = [one // _WARP for one in (size_a, size_b, size_c)]
    width, wide = max(bits_of(factor), 8), bits_of(kind)
    if factor == "tf32":
        width = 32
    a_bytes, b_bytes = size_a * width // 8, size_b * width // 8
    total_bytes = a_bytes + b_bytes + size_c * wide // 8
    assert total_bytes % 16 == 0
    begin_b, begin_c = a_bytes, a_bytes + b_bytes
    kinds = [factor] * counts[0] + [factor] * counts[1] + [kind] * counts[2]

    def of_warp(given: Rows) -> list[list[int]]:
        parts: list[list[Any]] = [[], [], []]
        for part, (start, count) in enumerate(
            zip((0, counts[0], counts[0] + counts[1]), counts, strict=True)
        ):
            held = kind if part == 2 else factor
            for lane in range(_WARP):
                parts[part] += [_number_of(one, held) for one in given[lane][start : start + count]]
        a, b, c = parts
        results = []
        for number_ in range(size_c):
            i, j = divmod(number_, columns)
            total = c[number_]
            for k in range(depth):
                total += a[i * depth + k] * b[k * columns + j]
            results.append(_bits_of_sum(total, kind, ""))
        return [results[lane * counts[2] : (lane + 1) * counts[2]] for lane in range(_WARP)]

    def draw(row: list[int]) -> None:
        source = random.Random(str(row))
        for n, held in enumerate(kinds):
            row[n] = _small_number(held, source)

    text = _warp_text(
        shape, factor, kind, counts, (0, begin_b, begin_c), (width, wide), total_bytes
    )
    types = f"{kind}.{kind}" if factor == "f16" else f"{kind}.{factor}.{factor}.{kind}"
    form = f"wmma.mma.sync.aligned.row.row.{shape}.{types}"
    sources = tuple(_element_type(held) for held in kinds)
    return Case(form, text, sources, (_element_type(kind),) * counts[2], _warps(of_warp), draw)


def _element_type(kind: str) -> str:
    width = 32 if kind == "tf32" else bits_of(kind)
    return f"b{width}" if width > 8 else "u8"


def _warp_text(
    shape: str,
    factor: str,
    kind: str,
    counts: list[int],
    begins: tuple[int, int, int],
    widths: tuple[int, int],
    total: int,
) -> str:
    _, columns, depth = _sizes(shape)
    name = f"{shape}_{factor}_{kind}"
    each = [(n, w // 8) for n, w in zip(counts, (widths[0], widths[0], widths[1]), strict=True)]
    lines = [
        f".shared .align 128 .b8 {name}[{2 * total}]; .reg .b32 %base, %at, %lane;",
        "mov.u32 %at, %tid.x; and.b32 %lane, %at, 31; shr.u32 %at, %at, 5;",
        f"mov.u32 %base, {name}; mad.lo.u32 %base, %at, {total}, %base;",
    ]
    source = 0
    for begin, (count, size) in zip(begins, each, strict=True):
        lines.append(f"mad.lo.u32 %at, %lane, {count * size}, %base;")
        for n in range(count):
            lines.append(f"st.shared.b{8 * size} [%at+{begin + size * n}], %x{source};")
            source += 1
    lines.append("bar.warp.sync -1;")
    names = {}
    moved = {"a": (factor, depth), "b": (factor, columns), "c": (kind, columns)}
    for (part, (held, stride)), begin in zip(moved.items(), begins, strict=True):
        many = _registers_of(part, shape, held)
        names[part] = [f"%{part}{n}" for n in range(many)]
        register = {"f64": "f64", "f32": "f32"}.get(held, "b32")
        lines.append(f".reg .{register} {', '.join(names[part])};")
        group = ", ".join(names[part])
        lines.append(
            f"wmma.load.{part}.sync.aligned.row.{shape}.shared.{held} {{{group}}}, "
            f"[%base+{begin}], {stride};"
        )
    types = f"{kind}.{kind}" if factor == "f16" else f"{kind}.{factor}.{factor}.{kind}"
    a, b, c = (", ".join(names[part]) for part in "abc")
    lines.append(
        f"wmma.mma.sync.aligned.row.row.{shape}.{types} {{{c}}}, {{{a}}}, {{{b}}}, {{{c}}};"
    )
    lines.append(
        f"wmma.store.d.sync.aligned.row.{shape}.shared.{kind} [%base+{begins[2]}], {{{c}}}, "
        f"{columns}; bar.warp.sync -1;"
    )
    lines.append(f"mad.lo.u32 %at, %lane, {each[2][0] * each[2][1]}, %base;")
    for n in range(counts[2]):
        size = each[2][1]
        lines.append(f"ld.shared.b{8 * size} %y{n}, [%at+{begins[2] + size * n}];")
    return "\n".join(lines)


def _registers_of(part: str, shape: str, kind: str) -> int:
    rows, columns, depth = _sizes(shape)
    elements = {"a": rows * depth, "b": depth * columns, "c": rows * columns}[part] // _WARP
    if part in "ab" and kind == "f16":
        return 8
    return elements // max(1, 32 // (32 if kind == "tf32" else bits_of(kind)))
