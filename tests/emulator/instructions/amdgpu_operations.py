"""Operations that AMD GPUs have instructions for and LLVM has functions of theirs for.

`on_gpu` calls the function; `body` says the same in plain LLVM IR, which runs on this machine, or
is all there is where LLVM finds the instruction by itself.
"""

from __future__ import annotations

from itertools import count, product

from tests.emulator.instructions.ir_operations import Operation


class Lines:
    """Instructions, each of which names its result; the last one is %r."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._numbers = count()

    def of(self, text: str) -> str:
        """The name of what an instruction gives."""
        name = f"%x{next(self._numbers)}"
        self._lines.append(f"{name} = {text}")
        return name

    def call(self, name: str, kind: str, *args: str) -> str:
        return self.of(f"call {kind} @llvm.{name}.{kind}({', '.join(f'{kind} {a}' for a in args)})")

    def body(self, last: str) -> str:
        return "\n".join([*self._lines, f"%r = {last}"])


def _part(lines: Lines, word: str, start: int, bits: int, sign: str = "u", of: str = "i32") -> str:
    """A field of a word, as wide as the word."""
    width = int(of[1:])
    moved = lines.of(f"shl {of} {word}, {width - start - bits}")
    return lines.of(f"{'ashr' if sign == 's' else 'lshr'} {of} {moved}, {width - bits}")


def _difference(lines: Lines, a: str, b: str) -> str:
    least, most = (lines.call(name, "i32", a, b) for name in ("umin", "umax"))
    return lines.of(f"sub i32 {most}, {least}")


def _sum_of_differences(lines: Lines, a: str, b: str, bits: int, *, is_masked: bool) -> str:
    total = "0"
    for start in range(0, 32, bits):
        one, other = (_part(lines, word, start, bits) for word in (a, b))
        term = _difference(lines, one, other)
        if is_masked:
            is_zero = lines.of(f"icmp eq i32 {other}, 0")
            term = lines.of(f"select i1 {is_zero}, i32 0, i32 {term}")
        total = lines.of(f"add i32 {total}, {term}")
    return total


def _differences() -> list[Operation]:
    found = []
    for name, bits, is_masked, shift in (
        *(("sad.u8", 8, False, 0), ("msad.u8", 8, True, 0)),
        *(("sad.hi.u8", 8, False, 16), ("sad.u16", 16, False, 0)),
    ):
        lines = Lines()
        total = _sum_of_differences(lines, "%a", "%b", bits, is_masked=is_masked)
        moved = lines.of(f"shl i32 {total}, {shift}")
        call = f"%r = call i32 @llvm.amdgcn.{name}(i32 %a, i32 %b, i32 %c)"
        found.append(
            _operation(name, "i32", "i32 i32 i32", lines.body(f"add i32 {moved}, %c"), call)
        )
    for name, is_masked in (("qsad.pk.u16.u8", False), ("mqsad.pk.u16.u8", True)):
        found.append(_four_sums(name, is_masked=is_masked))
    return found


def _four_sums(name: str, *, is_masked: bool) -> Operation:
    lines, result = Lines(), "0"
    for number in range(4):
        window = lines.of(f"lshr i64 %a, {8 * number}")
        low = lines.of(f"trunc i64 {window} to i32")
        total = _sum_of_differences(lines, low, "%b", 8, is_masked=is_masked)
        old = lines.of(f"trunc i64 {_part(lines, '%c', 16 * number, 16, of='i64')} to i32")
        both = lines.of(f"zext i32 {lines.of(f'add i32 {total}, {old}')} to i64")
        placed = lines.of(f"shl i64 {_part(lines, both, 0, 16, of='i64')}, {16 * number}")
        result = lines.of(f"or i64 {result}, {placed}")
    call = f"%r = call i64 @llvm.amdgcn.{name}(i64 %a, i32 %b, i64 %c)"
    return _operation(name, "i64", "i64 i32 i64", lines.body(f"or i64 {result}, 0"), call)


def _averages() -> Operation:
    lines, result = Lines(), "0"
    for start in range(0, 32, 8):
        a, b, c = (_part(lines, word, start, 8) for word in ("%a", "%b", "%c"))
        total = lines.of(f"add i32 {a}, {b}")
        up = lines.of(f"add i32 {total}, {lines.of(f'and i32 {c}, 1')}")
        placed = lines.of(f"shl i32 {lines.of(f'lshr i32 {up}, 1')}, {start}")
        result = lines.of(f"or i32 {result}, {placed}")
    call = "%r = call i32 @llvm.amdgcn.lerp(i32 %a, i32 %b, i32 %c)"
    return _operation("lerp", "i32", "i32 i32 i32", lines.body(f"or i32 {result}, 0"), call)


def _dots(signs: str = "su") -> list[Operation]:
    found = []
    for parts, sign, clamp in product((4, 8), signs, (False, True)):
        flag = str(clamp).lower()
        call = f"%r = call i32 @llvm.amdgcn.{sign}dot{parts}(i32 %a, i32 %b, i32 %c, i1 {flag})"
        body = _dot(parts, sign, sign, total=sign, is_clamped=clamp)
        name = f"{sign}dot{parts}{'.clamp' if clamp else ''}"
        found.append(_operation(name, "i32", "i32 i32 i32", body, call))
    return found


def _dots_of_two_kinds() -> list[Operation]:
    """Each factor has signs or none, as RDNA3 has it."""
    found = []
    for parts in (4, 8):
        for a, b in product("su", "su"):
            for clamp in (False, True):
                is_signed = (str(sign == "s").lower() for sign in (a, b))
                given = ", ".join(f"i1 {s}, i32 %{n}" for s, n in zip(is_signed, "ab", strict=True))
                call = f"@llvm.amdgcn.sudot{parts}({given}, i32 %c, i1 {str(clamp).lower()})"
                body = _dot(parts, a, b, total="s", is_clamped=clamp)
                name = f"sudot{parts}.{a}{b}{'.clamp' if clamp else ''}"
                found.append(_operation(name, "i32", "i32 i32 i32", body, f"%r = call i32 {call}"))
    return found


def _dot(parts: int, first: str, second: str, *, total: str, is_clamped: bool) -> str:
    """The sum of products; `s` has signs, `u` none."""
    lines, bits, sign = Lines(), 32 // parts, total
    extend = {"s": "sext", "u": "zext"}
    total = lines.of(f"{extend[sign]} i32 %c to i64")
    signs = tuple(zip(("%a", "%b"), (first, second), strict=True))
    for start in range(0, 32, bits):
        a, b = (_part(lines, word, start, bits, own) for word, own in signs)
        term = lines.of(f"mul i32 {a}, {b}")
        kept = extend["s" if "s" in (first, second) else "u"]
        total = lines.of(f"add i64 {total}, {lines.of(f'{kept} i32 {term} to i64')}")
    if is_clamped and sign == "s":
        total = lines.call("smax", "i64", total, str(-(2**31)))
        total = lines.call("smin", "i64", total, str(2**31 - 1))
    elif is_clamped:
        total = lines.call("umin", "i64", total, str(2**32 - 1))
    return lines.body(f"trunc i64 {total} to i32")


def _mixed() -> list[Operation]:
    found = []
    for name, kinds in (
        ("hhf", "half half float"),
        ("hff", "half float float"),
        ("fhh", "float half half"),
    ):
        lines = Lines()
        wide = [
            f"%{n}" if kind == "float" else lines.of(f"fpext half %{n} to float")
            for n, kind in zip("abc", kinds.split(), strict=True)
        ]
        given = ", ".join(f"float {one}" for one in wide)
        call = f"call float @llvm.fma.f32({given})"
        found.append(_operation(f"mix.{name}", "float", kinds, lines.body(call), ""))
        total = lines.of(call)
        narrow = f"fptrunc float {total} to half"
        found.append(_operation(f"mixlo.{name}", "half", kinds, lines.body(narrow), ""))
    return found


def _from_bytes() -> list[Operation]:
    """f32 of byte n of a word; a denormal is its mantissa times the least number."""
    found = []
    for kind, mantissa, bias in (("fp8", 3, 8), ("bf8", 2, 16)):
        for number in range(4):
            lines = Lines()
            octet = _part(lines, "%a", 8 * number, 8)
            units = _part(lines, octet, 0, mantissa)
            exponent = _part(lines, octet, mantissa, 7 - mantissa)
            high = lines.of(f"shl i32 {lines.of(f'add i32 {exponent}, {127 - bias}')}, 23")
            low = lines.of(f"shl i32 {units}, {23 - mantissa}")
            normal = lines.of(f"bitcast i32 {lines.of(f'or i32 {high}, {low}')} to float")
            scale = f"0x{(1023 + 1 - bias - mantissa) << 52:016X}"
            small = lines.of(f"fmul float {lines.of(f'uitofp i32 {units} to float')}, {scale}")
            is_small = lines.of(f"icmp eq i32 {exponent}, 0")
            size = lines.of(f"select i1 {is_small}, float {small}, float {normal}")
            negative = lines.of(f"fneg float {size}")
            is_negative = lines.of(f"icmp uge i32 {octet}, 128")
            signed = lines.of(f"select i1 {is_negative}, float {negative}, float {size}")
            is_nan = lines.of(f"icmp eq i32 {octet}, 128")
            nan = "0x7FF8000000000000"
            body = lines.body(f"select i1 {is_nan}, float {nan}, float {signed}")
            call = f"%r = call float @llvm.amdgcn.cvt.f32.{kind}(i32 %a, i32 {number})"
            found.append(_operation(f"from.{kind}.{number}", "float", "i32", body, call))
    return found


def _operation(name: str, result: str, args: str, body: str, on_gpu: str) -> Operation:
    return Operation(f"amdgpu.{name}", result, tuple(args.split()), body, on_gpu=on_gpu)


def amdgpu_operations(gpu: str) -> list[Operation]:
    """All that the GPU has; none where that is not written down."""
    shared = [*_differences(), _averages(), *_mixed()]
    return {
        "gfx90a": [*shared, *_dots()],
        "gfx942": [*shared, *_dots(), *_from_bytes()],
        "gfx1100": [*shared, *_dots("u"), *_dots_of_two_kinds()],
    }.get(gpu, [])
