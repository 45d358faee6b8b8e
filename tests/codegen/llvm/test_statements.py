"""Statements one by one: what each is printed as, and what it computes."""

import ctypes
from pathlib import Path

import numpy as np
import pytest

from refcomp.codegen.llvm.module import HostPrinter
from refcomp.codegen.llvm.statements import STACK_ARRAY_BYTES, STACK_BYTES
from refcomp.codegen.spelling import load_spelling
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import Unsupported
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func, parse_funcs
from refcomp.ir.stmt import LetStmt, Store
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.runtime.host.threads import MAX_THREADS
from refcomp.toolchain import host_triple_and_layout
from refcomp.toolchain.parts import PartsBuild
from tests.codegen.host_kernels import GENERIC, Kernels, print_generic


def _text(body, params="A: i64[n] out"):
    return print_generic([parse_func(f"func f({params}) {{ {body} }}")]).text


@pytest.mark.llvm
def test_loops_run_as_often_as_they_say(tmp_path: Path):
    func = parse_func(
        """
    func f(A: i64[8] out, m: i64, e: i64, s: i32) {
      for i in range(m, extent=e) { A@[0] = A@[0] + i }
      for i in range(e) { A@[1] = A@[1] + 1 }
      for j: i32 in range(s, extent=3i32) { for k in range(j < 1i32) { A@[2] = A@[2] + 5 } }
    }
    """.replace("range(j < 1i32)", "range(i64(j < 1i32))")
    )
    kernels = Kernels([func], tmp_path)
    for minimum, extent, start in ((0, 0, 0), (5, 3, -1), (-3, 4, -2), (7, -2, 1)):
        actual, expected = np.zeros(8, np.int64), np.zeros(8, np.int64)
        interpret(func, [expected, minimum, extent, start])
        assert kernels.call(func, [actual, minimum, extent, start]) == 0
        assert actual.tolist() == expected.tolist()


@pytest.mark.llvm
def test_conditions(tmp_path: Path):
    func = parse_func("""
    func f(A: i64[4] out, x: i64) {
      if (x > 2) { A@[0] = 1 } else { if (x > 1) { A@[1] = 2 } A@[2] = 3 }
      if (x == 3) { A@[3] = 4 }
    }
    """)
    kernels = Kernels([func], tmp_path)
    for x in range(5):
        actual, expected = np.zeros(4, np.int64), np.zeros(4, np.int64)
        interpret(func, [expected, x])
        kernels.call(func, [actual, x])
        assert actual.tolist() == expected.tolist()


def test_a_long_chain_of_lets_prints():
    value, buffer = Var("t", I64), Buffer("A", I64, (IntImm(1, I64),))
    stmt = Store(buffer, IntImm(0, I64), value)
    for _ in range(5000):
        before = Var("t", I64)
        stmt, value = LetStmt(value, before + 1, stmt), before
    body = LetStmt(value, IntImm(0, I64), stmt)
    text = print_generic([PrimFunc("f", (buffer,), body, ("A",))]).text
    assert text.count(" = add i64") == 5000


def test_small_constant_arrays_lie_in_the_entry_block():
    text = _text("for i in range(n) { alloc T: i64[4, 2] local { T@[0] = i A@[i] = T@[0] } }")
    head = text[text.index("entry:") : text.index("br label")]
    assert "%T = alloca [8 x i64], align 64" in head
    assert "aligned_alloc" not in text and "ret i32 0" in text


@pytest.mark.parametrize("shape", [f"{STACK_ARRAY_BYTES // 8 + 1}", "n", f"{STACK_ARRAY_BYTES}, 2"])
def test_large_and_symbolic_arrays_lie_on_the_heap(shape):
    text = _text(f"alloc T: i64[{shape}] {{ T@[0] = 1 A@[0] = T@[0] }}")
    assert "call ptr @aligned_alloc(i64 64" in text and "call void @free(ptr %T)" in text


def test_many_small_arrays_do_not_fill_the_stack():
    count = STACK_BYTES // STACK_ARRAY_BYTES + 1
    allocs = "".join(f"alloc T{k}: u8[{STACK_ARRAY_BYTES}] {{ " for k in range(count))
    text = _text(f"{allocs} A@[0] = 1 {'}' * count}")
    assert text.count("= alloca [") == count - 1
    assert text.count("call ptr @aligned_alloc") == 1


def test_a_wider_alignment_is_kept():
    text = _text("alloc T: i8[n] align 4096 { A@[0] = 1 }")
    assert "@aligned_alloc(i64 4096" in text
    assert "alloca [2 x i8], align 256" in _text("alloc T: i8[2] align 256 { A@[0] = 1 }")


@pytest.mark.llvm
def test_empty_arrays_can_be_had(tmp_path: Path):
    func = parse_func("""
    func f(A: i64[2] out, m: i64) {
      alloc T: i64[m] { alloc S: i64[0, 3] { for i in range(m) { T@[i] = i } A@[0] = 4 } }
    }
    """)
    a = np.zeros(2, np.int64)
    assert Kernels([func], tmp_path, passes="sroa").call(func, [a, 0]) == 0
    assert a.tolist() == [4, 0]


def test_a_region_is_a_function_of_its_own():
    text = _text("region f.r0 (A, n) task t of p { for i in range(n) { A@[i] = t } }")
    assert "define internal void @f.r0(ptr noalias %A, i64 %n, i64 %t, i64 %p) #0" in text
    assert "define internal void @f.r0.entry(ptr %captures, i64 %task, i64 %tasks) #0" in text
    assert "call void @f.r0(ptr %A, i64 %n, i64 0, i64 1)" in text
    assert "call void %region.2.run(ptr @f.r0.entry, ptr %.1, i32 %num_threads)" in text


def test_regions_of_one_name_are_told_apart():
    region = "region r (A) task t of p { A@[t] = 0 }"
    text = _text(f"{region} {region}")
    assert "@r(" in text and "@r.1(" in text


@pytest.mark.llvm
@pytest.mark.parametrize("num_threads", [0, 1, 3])
def test_all_kinds_of_captures_arrive(num_threads, tmp_path: Path):
    func = parse_func(
        """
    func f(A: f64[8] out, a: i8, b: bool, c: f16, d: f32) {
      alloc S: f64[1] {
        alloc T: f64[n] {
          S@[0] = 1.5f64
          T@[0] = 2.5f64
          let v: f32x4 = broadcast(d, 4) {
            region r (A, a, b, c, d, S, T, v) task t of p {
              if (t == p - 1) {
                A@[0] = f64(a)  A@[1] = f64(b)  A@[2] = f64(c)  A@[3] = f64(d)
                A@[4] = S@[0]  A@[5] = T@[0]
                alloc U: f32[4] { U@[ramp(0, 1, 4)] = v  A@[6] = f64(U@[3]) }
                A@[7] = 9.0f64
              }
            }
          }
        }
      }
    }
    """.replace("T: f64[n]", "T: f64[i64(a) + 100]")
    )
    a = np.zeros(8)
    assert Kernels([func], tmp_path).call(func, [a, -5, True, 0.5, 0.25], num_threads) == 0
    assert a.tolist() == [-5, 1, 0.5, 0.25, 1.5, 2.5, 0.25, 9]


def _region_for(triple: str) -> str:
    func = parse_func("func f(A: i64[n] out) { region r (A) task t of p { A@[t] = 0 } }")
    return HostPrinter(**{**GENERIC, "triple": triple}).print_part([func]).text


@pytest.mark.parametrize(
    ("triple", "futex", "pause"),
    [("x86_64-pc-linux-gnu", 202, "pause"), ("aarch64-linux-gnu", 98, "yield")],
)
def test_threads_wait_by_the_means_of_the_processor(triple: str, futex: int, pause: str):
    text = _region_for(triple)
    assert text.count(f"@syscall(i64 {futex}, ptr %word, ") == 2
    assert f'asm sideeffect "{pause}"' in text


def test_a_region_for_an_unknown_processor_is_refused():
    with pytest.raises(Unsupported, match="cannot be compiled for the architecture sparc"):
        _region_for("sparc-linux-gnu")


def test_max_threads_is_that_of_the_runtime():
    assert load_spelling("llvm").tables["pool"]["max_threads"] == MAX_THREADS


@pytest.mark.llvm
def test_parts_with_regions_link_to_one_pool(tmp_path: Path):
    funcs = parse_funcs(
        "func f(A: i64[n] out) { region r (A, n) task t of p { if (t < n) { A@[t] = 1 } } }"
        "func g(A: i64[n] out) { region r (A, n) task t of p { if (t < n) { A@[t] = 2 } } }"
    )
    triple, layout = host_triple_and_layout()
    printer = HostPrinter(triple=triple, layout=layout, vector_bits=128)
    with PartsBuild({}, "so", description="llvm", processes=1, notice=lambda: None) as parts:
        for func in funcs:
            parts.start(printer.print_part([func]))
        binary = parts.join(frozenset())
    path = tmp_path / "parts.so"
    path.write_bytes(binary.data)
    library = ctypes.CDLL(str(path))
    a = np.zeros(2, np.int64)
    for number, name in enumerate(("f", "g"), 1):
        status = library[name](ctypes.c_void_p(a.ctypes.data), ctypes.c_int64(2), 2)
        assert (status, a.tolist()) == (0, [number, number])
