"""Operations of LLVM IR, compiled from one text to PTX and for this machine: both agree.

They are those of AMD's ledger, and some that LLVM has instructions of PTX for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from refcomp.emulator.ptx.run import EmulatedNvidiaGpu
from refcomp.emulator.ptx.text.module import PtxInstruction
from refcomp.foundation.artifacts import Source
from refcomp.toolchain import compile_source, device_layout
from tests.emulator.instructions.ir_operations import Operation, operations, suffix
from tests.emulator.instructions.twice_compiled import (
    COUNT,
    done_text,
    empty_of,
    module_text,
    on_host,
    operands_of,
    parameters_text,
    told_of,
)

_BLOCK = 128
_KERNEL = """
define ptx_kernel void @{name}_k({params}) {{
  %item = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %group = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %start = mul i32 %group, 128
  %i = add i32 %start, %item
{once}
  ret void
}}
"""
_END = """
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
"""


@dataclass
class HostOutcome:
    """How results differ, and the instructions of the kernels that agree."""

    count: int
    wrong: list[str] = field(default_factory=list)
    seen: list[PtxInstruction] = field(default_factory=list)


def check_operations(step: int = 1, offset: int = 0) -> HostOutcome:
    """Every `step`th operation, to the bit."""
    drawn = host_operations()[offset::step]
    with TemporaryDirectory() as folder:
        expected = on_host(drawn, Path(folder))
    gpu = EmulatedNvidiaGpu(size=1 << 22)
    loaded = gpu.load(ptx_of(drawn))
    outcome = HostOutcome(len(drawn))
    for one in drawn:
        result = empty_of(one)
        name = f"{one.name}_k"
        extents = ((COUNT // _BLOCK, 1, 1), (_BLOCK, 1, 1))
        report = gpu.run(loaded, name, *extents, [*operands_of(one), result])
        told = told_of(one, one.name, result, expected[one.name])
        told += [f"{one.name}: {finding}" for finding in report.findings]
        if not told:
            outcome.seen += loaded.module.functions[name].instructions
        outcome.wrong += told
    return outcome


def ptx_of(drawn: Sequence[Operation]) -> str:
    """The operations as PTX, a kernel each."""
    space = " addrspace(1)"
    kernels = "".join(
        _KERNEL.format(
            name=one.name,
            params=parameters_text(one, space),
            once=done_text(one, space, "once"),
        )
        for one in drawn
    )
    text = module_text(drawn, kernels + _END, "nvptx64-nvidia-cuda", device_layout("nvptx"))
    source = Source(text, "llvm", entries=tuple(f"{one.name}_k" for one in drawn))
    options = {"arch": "sm_90", "passes": "always-inline,sroa"}
    return compile_source(source, options, "ptx", description="nvptx").data.decode()


def host_operations() -> list[Operation]:
    """All of them; names are their own."""
    found = [*operations(), *_of_ptx()]
    assert len({one.name for one in found}) == len(found)
    return found


def _of_ptx() -> Iterator[Operation]:
    yield from _extremes_with_nan()
    yield from _whole_floats()
    yield from _long_sums()
    yield from _products()
    yield from _bfloats()
    for name in ("fdiv", "sqrt"):
        for kind in ("float", "double"):
            body = f"%r = fdiv {kind} %a, %b"
            if name == "sqrt":
                body = f"%r = call {kind} @llvm.sqrt.{suffix(kind)}({kind} %a)"
            count = 1 if name == "sqrt" else 2
            yield Operation(f"{name}_{suffix(kind)}", kind, (kind,) * count, body)
    for kind in ("i16", "i32", "i64"):
        for name in ("udiv", "sdiv", "urem", "srem"):
            # Neither 0 nor -1 divides.
            body = f"%d = or {kind} %b, 4\n%x = and {kind} %d, 127\n%r = {name} {kind} %a, %x"
            yield Operation(f"{name}_{kind}", kind, (kind, kind), body)


def _extremes_with_nan() -> Iterator[Operation]:
    for name in ("minimum", "maximum"):
        for kind in ("half", "float"):
            body = f"%r = call {kind} @llvm.{name}.{suffix(kind)}({kind} %a, {kind} %b)"
            yield Operation(f"{name}_{suffix(kind)}", kind, (kind, kind), body)
        # For x86-64, LLVM 19 loses a NaN of the vector function.
        pair, lines, total = "<2 x half>", [], "poison"
        for n in (0, 1):
            lines += [f"%{v}{n} = extractelement {pair} %{v}, i32 {n}" for v in "ab"]
            lines.append(f"%m{n} = call half @llvm.{name}.f16(half %a{n}, half %b{n})")
            target = "%r" if n else "%t"
            lines.append(f"{target} = insertelement {pair} {total}, half %m{n}, i32 {n}")
            total = target
        call = f"%r = call {pair} @llvm.{name}.v2f16({pair} %a, {pair} %b)"
        yield Operation(f"{name}_v2f16", pair, (pair, pair), "\n".join(lines), on_gpu=call)


def _whole_floats() -> Iterator[Operation]:
    """Conversions in the four directions, which LLVM has as functions of NVIDIA's."""
    directions = {"rn": "roundeven", "rz": "trunc", "rm": "floor", "rp": "ceil"}
    for kind, letter in (("float", "f"), ("double", "d")):
        for whole, name in (("i32", "i"), ("i64", "ll")):
            for sign in ("si", "ui"):
                prefix = f"{letter}2{'u' * (sign == 'ui')}{name}"
                for mode, function in directions.items():
                    # A NaN is 0, of 64 bits the sign bit.
                    is_wide = whole == "i64" or kind == "double"
                    width = int(whole[1:])
                    nan = -(1 << width - 1) if is_wide else 0
                    body = "\n".join(
                        [
                            f"%w = call {kind} @llvm.{function}.{suffix(kind)}({kind} %a)",
                            f"%s = call {whole} @llvm.fpto{sign}.sat.{whole}.{suffix(kind)}"
                            f"({kind} %w)",
                            f"%q = fcmp uno {kind} %a, %a",
                            f"%r = select i1 %q, {whole} {nan}, {whole} %s",
                        ]
                    )
                    call = f"%r = call {whole} @llvm.nvvm.{prefix}.{mode}({kind} %a)"
                    yield Operation(f"{prefix}_{mode}", whole, (kind,), body, on_gpu=call)


def _long_sums() -> Iterator[Operation]:
    """Sums and products of 128 bits, which are done in steps with a carry."""
    wide = "%x = zext i64 %a to i128\n%y = zext i64 %b to i128\n%z = zext i64 %c to i128"
    high = "%h = lshr i128 %s, 64\n%r = trunc i128 %h to i64"
    up = "%u = shl i128 %x, 64\n%v = or i128 %u, %y"
    for name in ("add", "sub"):
        body = f"{wide}\n{up}\n%t = shl i128 %z, 63\n%s = {name} i128 %v, %t\n{high}"
        yield Operation(f"{name}_128", "i64", ("i64",) * 3, body)
    body = f"{wide}\n%p = mul i128 %x, %y\n%s = add i128 %p, %z\n{high}"
    yield Operation("mul_add_128", "i64", ("i64",) * 3, body)
    signed = wide.replace("zext", "sext")
    yield Operation(
        "mul_signed_128", "i64", ("i64",) * 3, f"{signed}\n%s = mul i128 %x, %y\n{high}"
    )


def _products() -> Iterator[Operation]:
    """Products of 24 bits, upper halves, and distances, by functions of NVIDIA's."""
    for sign, left, extend in (("i", "ashr", "sext"), ("ui", "lshr", "zext")):
        wide = f"%x = {extend} i32 %a to i64\n%y = {extend} i32 %b to i64\n%p = mul i64 %x, %y"
        body = f"{wide}\n%h = lshr i64 %p, 32\n%r = trunc i64 %h to i32"
        call = f"%r = call i32 @llvm.nvvm.mulhi.{sign}(i32 %a, i32 %b)"
        yield Operation(f"nvvm_mulhi_{sign}", "i32", ("i32", "i32"), body, on_gpu=call)
        narrow = f"%x = shl i32 %a, 8\n%y = {left} i32 %x, 8\n%u = shl i32 %b, 8\n"
        body = f"{narrow}%v = {left} i32 %u, 8\n%r = mul i32 %y, %v"
        call = f"%r = call i32 @llvm.nvvm.mul24.{sign}(i32 %a, i32 %b)"
        yield Operation(f"nvvm_mul24_{sign}", "i32", ("i32", "i32"), body, on_gpu=call)
        letter = "s" if sign == "i" else "u"
        body = "\n".join(
            [
                f"%x = call i32 @llvm.{letter}max.i32(i32 %a, i32 %b)",
                f"%y = call i32 @llvm.{letter}min.i32(i32 %a, i32 %b)",
                "%d = sub i32 %x, %y\n%r = add i32 %d, %c",
            ]
        )
        call = f"%r = call i32 @llvm.nvvm.sad.{sign}(i32 %a, i32 %b, i32 %c)"
        yield Operation(f"nvvm_sad_{sign}", "i32", ("i32",) * 3, body, on_gpu=call)
    for kind, letter in (("float", "f"), ("double", "d")):
        one = suffix(kind)
        body = (
            f"%x = call {kind} @llvm.maxnum.{one}({kind} %a, {kind} 0.0)\n"
            f"%r = call {kind} @llvm.minnum.{one}({kind} %x, {kind} 1.0)"
        )
        call = f"%r = call {kind} @llvm.nvvm.saturate.{letter}({kind} %a)"
        yield Operation(f"nvvm_saturate_{letter}", kind, (kind,), body, True, call)


def _bfloats() -> Iterator[Operation]:
    """bf16 as bits, since numpy has no such type."""
    body = "%x = bitcast i16 %a to bfloat\n%r = fpext bfloat %x to float"
    yield Operation("bf16_to_f32", "float", ("i16",), body)
