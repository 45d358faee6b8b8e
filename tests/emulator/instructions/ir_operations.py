"""Operations of LLVM IR that kernels of refcomp need not have: one line each, as text.

    Operation("med3_i32", "i32", ("i32", "i32", "i32"), "%m = call i32 @llvm.smin...")

`body` computes %r of %a, %b and %c. The same text is compiled for the emulated GPU and for this
machine (twice_compiled.py beside this file), so that each says what the other one must give. Chosen
for the instructions that LLVM makes of them: each in all types that have it.

Never made: what the two may do differently: shifts by too much, conversions out of range, the bits
of a NaN, libraries' functions. Where a minimum of 0 and -0 may be either, `any_zero` says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_WIDTHS = {"i16": 16, "i32": 32, "i64": 64, "<2 x i16>": 16}
_INTEGERS = tuple(_WIDTHS)
_FLOATS = ("half", "float", "double")
_PAIRS = ("<2 x half>", "<2 x float>")
_SUFFIX = {"half": "f16", "float": "f32", "double": "f64"}


@dataclass(frozen=True)
class Operation:
    """`is_scalar` where scalar instructions may do it, too. `on_gpu` is another body for the GPU,
    which calls a function of its own."""

    name: str
    result: str
    args: tuple[str, ...]
    body: str
    any_zero: bool = False
    on_gpu: str = ""

    @property
    def is_scalar(self) -> bool:
        """Whether it works on nothing but whole registers of integers."""
        return {self.result, *self.args} <= {"i32", "i64"}


def suffix(kind: str) -> str:
    """A type as names of intrinsics have it: `v2i16`, `f32`."""
    if match := re.fullmatch(r"<(\d) x (\w+)>", kind):
        return f"v{match[1]}{suffix(match[2])}"
    return _SUFFIX.get(kind, kind)


def splat(kind: str, value: str) -> str:
    """A constant of a type."""
    if match := re.fullmatch(r"<(\d) x (\w+)>", kind):
        return "<" + ", ".join([f"{match[2]} {value}"] * int(match[1])) + ">"
    return value


def _call(name: str, kind: str, *args: str, more: str = "", result: str = "%r") -> str:
    given = ", ".join(f"{kind} {arg}" for arg in args)
    return f"{result} = call {kind} @llvm.{name}.{suffix(kind)}({given}{more})"


def _same(name: str, kind: str, count: int, body: str, any_zero: bool = False) -> Operation:
    return Operation(f"{name}_{suffix(kind)}", kind, (kind,) * count, body, any_zero)


# Integers.


def _of_two_integers(kind: str) -> Iterator[Operation]:
    for name in ("add", "sub", "mul", "and", "or", "xor"):
        yield _same(name, kind, 2, f"%r = {name} {kind} %a, %b")
    least = splat(kind, str(_WIDTHS[kind] - 1))
    for name in ("shl", "lshr", "ashr"):
        body = f"%s = and {kind} %b, {least}\n%r = {name} {kind} %a, %s"
        yield _same(name, kind, 2, body)
    for name in ("smin", "smax", "umin", "umax", "uadd.sat", "usub.sat"):
        yield _same(name.replace(".", "_"), kind, 2, _call(name, kind, "%a", "%b"))
    if kind != "i64":
        for name in ("sadd.sat", "ssub.sat"):
            yield _same(name.replace(".", "_"), kind, 2, _call(name, kind, "%a", "%b"))
    ones = splat(kind, "-1")
    for name in ("and", "or", "xor"):
        body = f"%n = xor {kind} %b, {ones}\n%r = {name} {kind} %a, %n"
        yield _same(f"{name}_not", kind, 2, body)
        body = f"%n = {name} {kind} %a, %b\n%r = xor {kind} %n, {ones}"
        yield _same(f"not_{name}", kind, 2, body)


def _of_one_integer(kind: str) -> Iterator[Operation]:
    for name, more in (("ctpop", ""), ("bitreverse", ""), ("bswap", "")):
        yield _same(name, kind, 1, _call(name, kind, "%a", more=more))
    for name in ("ctlz", "cttz"):
        yield _same(name, kind, 1, _call(name, kind, "%a", more=", i1 false"))
    yield _same("abs", kind, 1, _call("abs", kind, "%a", more=", i1 false"))
    zero = splat(kind, "0")
    yield _same("negate", kind, 1, f"%r = sub {kind} {zero}, %a")


def _of_three_integers(kind: str) -> Iterator[Operation]:
    for one in ("add", "xor", "or", "and", "mul"):
        for two in ("add", "or", "sub"):
            body = f"%x = {one} {kind} %a, %b\n%r = {two} {kind} %x, %c"
            yield _same(f"{one}_{two}", kind, 3, body)
    least = splat(kind, str(_WIDTHS[kind] - 1))
    for two in ("add", "or"):
        body = f"%s = and {kind} %b, {least}\n%x = shl {kind} %a, %s\n%r = {two} {kind} %x, %c"
        yield _same(f"shl_{two}", kind, 3, body)
    body = f"%x = add {kind} %a, %b\n%s = and {kind} %c, {least}\n%r = shl {kind} %x, %s"
    yield _same("add_shl", kind, 3, body)
    for amount in (1, 2, 3, 4):
        constant = splat(kind, str(amount))
        body = f"%x = shl {kind} %a, {constant}\n%r = add {kind} %x, %b"
        yield _same(f"shl{amount}_add", kind, 2, body)
    for sign in "su":
        low, high = f"{sign}min", f"{sign}max"
        for name in (low, high):
            body = f"{_call(name, kind, '%a', '%b', result='%x')}\n{_call(name, kind, '%x', '%c')}"
            yield _same(f"{name}3", kind, 3, body)
        middle = [
            _call(low, kind, "%a", "%b", result="%x"),
            _call(high, kind, "%a", "%b", result="%y"),
            _call(low, kind, "%y", "%c", result="%z"),
            _call(high, kind, "%x", "%z"),
        ]
        yield _same(f"{sign}med3", kind, 3, "\n".join(middle))
    ones = splat(kind, "-1")
    picked = [
        f"%n = xor {kind} %a, {ones}",
        f"%x = and {kind} %a, %b",
        f"%y = and {kind} %n, %c",
        f"%r = or {kind} %x, %y",
    ]
    yield _same("pick_bits", kind, 3, "\n".join(picked))


_PREDICATES = ("eq", "ne", "ugt", "uge", "ult", "ule", "sgt", "sge", "slt", "sle")


def _integer_comparisons(kind: str) -> Iterator[Operation]:
    for name in _PREDICATES:
        body = f"%q = icmp {name} {kind} %a, %b\n%r = select i1 %q, {kind} %a, {kind} %c"
        yield _same(f"icmp_{name}", kind, 3, body)


def _words(name: str, count: int, *lines: str) -> Operation:
    return Operation(name, "i32", ("i32",) * count, "\n".join(lines))


def _products(sign: str, left: str, extend: str) -> Iterator[Operation]:
    wide = f"%x = {extend} i32 %a to i64\n%y = {extend} i32 %b to i64\n%p = mul i64 %x, %y"
    yield _words(f"mul_high_{sign}", 2, wide, "%h = lshr i64 %p, 32", "%r = trunc i64 %h to i32")
    body = f"{wide}\n%r = add i64 %p, %c"
    yield Operation(f"mul_wide_{sign}", "i64", ("i32", "i32", "i64"), body)
    narrow = f"%x = shl i32 %a, 8\n%y = {left} i32 %x, 8\n%u = shl i32 %b, 8\n%v = {left} i32 %u, 8"
    yield _words(f"mul24_{sign}", 2, narrow, "%r = mul i32 %y, %v")
    yield _words(f"mad24_{sign}", 3, narrow, "%p = mul i32 %y, %v", "%r = add i32 %p, %c")
    for small in ("i8", "i16"):
        body = f"%x = trunc i32 %a to {small}\n%r = {extend} {small} %x to i32"
        yield _words(f"extend_{sign}_{small}", 1, body)
    for start, width in ((0, 7), (5, 8), (9, 16), (30, 2)):
        up = f"%x = shl i32 %a, {32 - start - width}"
        yield _words(f"field_{sign}{start}_{width}", 1, up, f"%r = {left} i32 %x, {32 - width}")


def _of_words() -> Iterator[Operation]:
    for name in ("fshl", "fshr"):
        yield _words(name, 3, _call(name, "i32", "%a", "%b", "%c"))
    yield _words("align_bytes", 3, "%s = and i32 %c, 24", _call("fshr", "i32", "%a", "%b", "%s"))
    ones = "%y = and i32 %b, 31\n%m = shl i32 1, %y\n%n = sub i32 %m, 1"
    yield _words(
        "field_of", 3, ones, "%x = and i32 %c, 31", "%z = lshr i32 %a, %x\n%r = and i32 %z, %n"
    )
    yield _words("ones", 2, ones, "%x = and i32 %a, 31", "%r = shl i32 %n, %x")
    larger = _call("umax", "i32", "%a", "%b", result="%x")
    smaller = _call("umin", "i32", "%a", "%b", result="%y")
    yield _words("differences", 3, larger, smaller, "%d = sub i32 %x, %y\n%r = add i32 %d, %c")
    for name, low, high in (("ll", "%a", "%b"), ("lh", "%a", "%q"), ("hh", "%p", "%q")):
        halves = "%p = lshr i32 %a, 16\n%q = lshr i32 %b, 16"
        joined = f"%x = and i32 {low}, 65535\n%y = shl i32 {high}, 16\n%r = or i32 %x, %y"
        yield _words(f"pack_{name}", 2, halves, joined)
    for number, order in enumerate(((0, 5, 2, 7), (3, 2, 1, 0), (4, 0, 5, 1))):
        yield _words(f"permute_{number}", 2, _permuted(order))
    for byte in range(4):
        body = f"%x = lshr i32 %a, {8 * byte}\n%y = and i32 %x, 255\n%r = uitofp i32 %y to float"
        yield Operation(f"byte{byte}_to_float", "float", ("i32",), body)
    for name in ("uadd", "usub"):
        both = f"%o = call {{ i32, i1 }} @llvm.{name}.with.overflow.i32(i32 %a, i32 %b)"
        parts = "%s = extractvalue { i32, i1 } %o, 0\n%k = extractvalue { i32, i1 } %o, 1"
        yield _words(f"{name}_carry", 2, both, parts, "%z = zext i1 %k to i32\n%r = xor i32 %s, %z")


def _of_bits(kind: str) -> Iterator[Operation]:
    bit = f"%s = and {kind} %b, {_WIDTHS[kind] - 1}\n%m = shl {kind} 1, %s"
    yield _same("set_bit", kind, 2, f"{bit}\n%r = or {kind} %a, %m")
    yield _same("clear_bit", kind, 2, f"{bit}\n%n = xor {kind} %m, -1\n%r = and {kind} %a, %n")
    asked = f"{bit}\n%y = and {kind} %a, %m\n%q = icmp ne {kind} %y, 0"
    yield _same("test_bit", kind, 3, f"{asked}\n%r = select i1 %q, {kind} %a, {kind} %c")


def _permuted(order: tuple[int, ...]) -> str:
    """A word of some bytes of %a (0 to 3) and %b (4 to 7)."""
    lines, total = [], "0"
    for place, byte in enumerate(order):
        source = "%a" if byte < 4 else "%b"
        lines.append(f"%x{place} = lshr i32 {source}, {8 * (byte % 4)}")
        lines.append(f"%y{place} = and i32 %x{place}, 255")
        lines.append(f"%z{place} = shl i32 %y{place}, {8 * place}")
        result = "%r" if place == 3 else f"%t{place}"
        lines.append(f"{result} = or i32 {total}, %z{place}")
        total = result
    return "\n".join(lines)


# Floats.

_FINITE = 0x1F8  # of the classes of a number
_ORDERED = ("oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule")


def _of_floats(kind: str) -> Iterator[Operation]:
    for name in ("fadd", "fsub", "fmul"):
        yield _same(name, kind, 2, f"%r = {name} {kind} %a, %b")
        body = f"%n = fneg {kind} %b\n{_call('fabs', kind, '%a', result='%p')}\n"
        yield _same(f"{name}_signs", kind, 2, f"{body}%r = {name} {kind} %p, %n")
    for name in ("minnum", "maxnum"):
        yield _same(name, kind, 2, _call(name, kind, "%a", "%b"), any_zero=True)
    for name in ("fabs", "floor", "ceil", "trunc", "rint"):
        yield _same(name, kind, 1, _call(name, kind, "%a"))
    yield _same("fneg", kind, 1, f"%r = fneg {kind} %a")
    yield _same("copysign", kind, 2, _call("copysign", kind, "%a", "%b"))
    one, zero = splat(kind, "1.0"), splat(kind, "0.0")
    body = f"%s = fadd {kind} %a, %b\n{_call('maxnum', kind, '%s', zero, result='%x')}\n"
    yield _same("clamp", kind, 2, body + _call("minnum", kind, "%x", one), any_zero=True)


def _of_single_floats(kind: str) -> Iterator[Operation]:
    if kind != "half":  # this machine rounds it twice
        yield _same("fma", kind, 3, _call("fma", kind, "%a", "%b", "%c"))
        signs = f"%n = fneg {kind} %b\n{_call('fabs', kind, '%c', result='%p')}\n"
        yield _same("fma_signs", kind, 3, signs + _call("fma", kind, "%a", "%n", "%p"))
    for name in ("minnum", "maxnum"):
        body = f"{_call(name, kind, '%a', '%b', result='%x')}\n{_call(name, kind, '%x', '%c')}"
        yield _same(f"{name}3", kind, 3, body, any_zero=True)
    for name in (*_ORDERED, "une", "uno"):
        body = f"%q = fcmp {name} {kind} %a, %b\n%r = select i1 %q, {kind} %a, {kind} %c"
        yield _same(f"fcmp_{name}", kind, 3, body)
        signs = f"%n = fneg {kind} %b\n{_call('fabs', kind, '%a', result='%p')}\n"
        body = f"{signs}%q = fcmp {name} {kind} %p, %n\n%r = select i1 %q, {kind} %a, {kind} %c"
        yield _same(f"fcmp_{name}_signs", kind, 3, body)
    for mask in (3, 4, 8, 16, 32, 64, 128, 256, 512, _FINITE, 519):
        asked = f"%q = call i1 @llvm.is.fpclass.{suffix(kind)}({kind} %a, i32 {mask})"
        body = f"{asked}\n%r = zext i1 %q to i32"
        yield Operation(f"class{mask}_{suffix(kind)}", "i32", (kind,), body)
    for whole in ("i16", "i32", "i64"):
        for sign in ("si", "ui"):
            body = f"%r = call {whole} @llvm.fpto{sign}.sat.{whole}.{suffix(kind)}({kind} %a)"
            yield Operation(f"{suffix(kind)}_to_{sign}_{whole}", whole, (kind,), body)
            body = f"%r = {sign}tofp {whole} %a to {kind}"
            yield Operation(f"{sign}_{whole}_to_{suffix(kind)}", kind, (whole,), body)
    pair = f"{{ {kind}, i32 }}"
    parts = [
        f"%o = call {pair} @llvm.frexp.{suffix(kind)}.i32({kind} %a)",
        f"%f = call i1 @llvm.is.fpclass.{suffix(kind)}({kind} %a, i32 {_FINITE})",
    ]
    body = "\n".join(parts)
    body += f"\n%m = extractvalue {pair} %o, 0\n%r = select i1 %f, {kind} %m, {kind} %a"
    yield Operation(f"mantissa_{suffix(kind)}", kind, (kind,), body)


def _between_floats() -> Iterator[Operation]:
    for wide, narrow in (("double", "float"), ("float", "half")):
        body = f"%r = fptrunc {wide} %a to {narrow}"
        yield Operation(f"{_SUFFIX[wide]}_to_{_SUFFIX[narrow]}", narrow, (wide,), body)
        body = f"%r = fpext {narrow} %a to {wide}"
        yield Operation(f"{_SUFFIX[narrow]}_to_{_SUFFIX[wide]}", wide, (narrow,), body)


def _of_pairs(kind: str) -> Iterator[Operation]:
    swap = f"%w = shufflevector {kind} %b, {kind} poison, <2 x i32> <i32 1, i32 0>\n"
    for name in ("fadd", "fmul"):
        yield _same(f"{name}_swapped", kind, 2, f"{swap}%r = {name} {kind} %a, %w")
    if "float" in kind:
        yield _same("fma", kind, 3, _call("fma", kind, "%a", "%b", "%c"))
        yield _same("fma_swapped", kind, 3, swap + _call("fma", kind, "%a", "%w", "%c"))
        negated = f"%n = fneg {kind} %c\n"
        yield _same("fma_negated", kind, 3, negated + _call("fma", kind, "%a", "%b", "%n"))


def _of_integer_pairs() -> Iterator[Operation]:
    kind = "<2 x i16>"
    swap = f"%w = shufflevector {kind} %b, {kind} poison, <2 x i32> <i32 1, i32 0>\n"
    for name in ("add", "sub", "mul"):
        yield _same(f"{name}_swapped", kind, 2, f"{swap}%r = {name} {kind} %a, %w")


def operations() -> list[Operation]:
    """All of them; names are their own."""
    found: list[Operation] = [*_of_words(), *_between_floats(), *_of_integer_pairs()]
    for sign, left, extend in (("u", "lshr", "zext"), ("s", "ashr", "sext")):
        found += _products(sign, left, extend)
    for kind in ("i32", "i64"):
        found += _of_bits(kind)
    for kind in _INTEGERS:
        for make in (_of_one_integer, _of_two_integers, _of_three_integers):
            found += make(kind)
    for kind in ("i16", "i32", "i64"):
        found += _integer_comparisons(kind)
    for kind in (*_FLOATS, *_PAIRS):
        found += _of_floats(kind)
    for kind in _FLOATS:
        found += _of_single_floats(kind)
    for kind in _PAIRS:
        found += _of_pairs(kind)
    assert len({one.name for one in found}) == len(found)
    return found
