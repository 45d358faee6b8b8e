"""Whole modules: golden texts, random programs against the interpreter, the line map, the ABI."""

import copy
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.codegen.llvm.module import HostPrinter
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func, parse_funcs
from refcomp.ir.rewrite import with_fields
from refcomp.ir.stmt import For, Origin, Store
from refcomp.ir.verify import verify
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes.introduce_lets import introduce_lets
from refcomp.passes.lower_intrinsics import lower_intrinsics
from refcomp.toolchain import find_tools, load_description
from tests.codegen.host_kernels import GENERIC, Kernels, print_generic
from tests.strategies.funcs import make_arguments, runnable_funcs

ADD = """
func add(A: f32[n], B: f32[n], C: f32[n] out) {
  for i in range(n // 16) {
    C@[ramp(i * 16, 1, 16)] = A@[ramp(i * 16, 1, 16)] + B@[ramp(i * 16, 1, 16)]
  }
  for i in range(n // 16 * 16, extent=n % 16) {
    C@[i] = A@[i] + B@[i]
  }
}
"""
MATMUL = """
func matmul(A: f32[12, k], B: f32[k, 32], C: f32[12, 32] out) {
  alloc T: f32[2, 16] local align 64 {
    for i in range(6) {
      for j in range(2) {
        T@[ramp(0, 1, 16)] = broadcast(0.0f32, 16)
        T@[ramp(16, 1, 16)] = broadcast(0.0f32, 16)
        for r in range(k) {
          let b: f32x16 = B@[ramp(r * 32 + j * 16, 1, 16)] {
            T@[ramp(0, 1, 16)] = fma(broadcast(A@[i * 2 * k + r], 16), b, T@[ramp(0, 1, 16)])
            T@[ramp(16, 1, 16)] = T@[ramp(16, 1, 16)] + broadcast(A@[(i * 2 + 1) * k + r], 16) * b
          }
        }
        C@[ramp(i * 64 + j * 16, 1, 16)] = T@[ramp(0, 1, 16)]
        C@[ramp(i * 64 + 32 + j * 16, 1, 16)] = T@[ramp(16, 1, 16)]
      }
    }
  }
}
"""
MASKED_TAIL = """
func masked_tail(A: f32[n], B: f32[n] out) {
  for i in range((n + 7) // 8) {
    let mask: boolx8 = ramp(i * 8, 1, 8) < broadcast(n, 8) {
      B@[ramp(i * 8, 1, 8)] = sqrt(A@[ramp(i * 8, 1, 8) if mask]) if mask
    }
  }
}
"""
PARALLEL = """
func parallel(A: f64[n], B: f64[n] out, x: f64, negate: bool) {
  region parallel.parallel0 (n, A, B, x, negate) task t of p {
    for i in range(n * t // p, extent=n * (t + 1) // p - n * t // p) {
      B@[i] = if_then_else(negate, exp(A@[i]) * x, A@[i])
    }
  }
}
"""
HEAP = """
func heap(A: i16[n, m], B: i16[n, m] out) {
  alloc T: i16[n, m] {
    for i in range(n * m) { T@[i] = A@[n * m - 1 - i] }
    for i in range(n * m) { B@[i] = T@[i] + 1i16 }
  }
}
"""
GOLDEN = {
    "add": ADD,
    "matmul": MATMUL,
    "masked_tail": MASKED_TAIL,
    "parallel": PARALLEL,
    "heap": HEAP,
}


def _run_both(func, kernels, args, num_threads=1):
    expected = copy.deepcopy(args)
    interpret(func, expected)
    assert kernels.call(func, args, num_threads) == 0
    for actual, wanted in zip(args, expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name, golden):
    func = parse_func(GOLDEN[name])
    verify(func, "host")
    golden(f"llvm/{name}.ll", print_generic([func]).text)


@pytest.mark.llvm
@pytest.mark.parametrize("name", GOLDEN)
def test_golden_text_is_valid(name, tmp_path: Path):
    tools = find_tools(load_description("llvm")).paths
    source = Path(__file__).parents[2] / "golden" / "llvm" / f"{name}.ll"
    for command in (
        [tools["opt"], "-passes=verify", str(source), "-o", str(tmp_path / "out.bc")],
        [tools["llc"], "-mcpu=x86-64-v4", "-O2", str(source), "-o", str(tmp_path / "out.s")],
    ):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.llvm
def test_loops_that_copy_stay_loops(tmp_path: Path):
    """As calls of memcpy they may be slow: the C library's choice depends on the processor."""
    func = parse_func("func copy(A: f32[n], B: f32[n] out) { for i in range(n) { B@[i] = A@[i] } }")
    source = tmp_path / "copy.ll"
    opt = find_tools(load_description("llvm")).paths["opt"]

    def optimized(text):
        source.write_text(text)
        command = [opt, "-S", "-passes=default<O2>", str(source)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout

    text = print_generic([func]).text
    assert "@llvm.memcpy" not in optimized(text)
    assert "@llvm.memcpy" in optimized(text.replace('"no-builtin-memcpy"', ""))


@pytest.mark.llvm
def test_golden_functions_compute(tmp_path: Path):
    funcs = {name: parse_func(text) for name, text in GOLDEN.items()}
    kernels = Kernels(list(funcs.values()), tmp_path)
    rng = np.random.default_rng(0)
    for n in (0, 1, 15, 16, 33):
        x = rng.integers(1, 9, n).astype(np.float32)
        _run_both(funcs["add"], kernels, [x, x[::-1].copy(), np.zeros(n, np.float32)])
        _run_both(funcs["masked_tail"], kernels, [x * x, np.zeros(n, np.float32)])
        shape = (n, 3)
        small = rng.integers(-9, 9, shape).astype(np.int16)
        _run_both(funcs["heap"], kernels, [small, np.zeros(shape, np.int16)])
        _run_both(
            funcs["matmul"],
            kernels,
            [
                rng.integers(-3, 4, (12, n)).astype(np.float32),
                rng.integers(-3, 4, (n, 32)).astype(np.float32),
                np.zeros((12, 32), np.float32),
            ],
        )


@pytest.mark.llvm
@pytest.mark.parametrize("num_threads", [1, 2, 3])
def test_a_parallel_region_computes_with_any_number_of_threads(num_threads, tmp_path: Path):
    func = parse_func(PARALLEL)
    kernels = Kernels([func], tmp_path)
    for n in (0, 1, 2, 17):
        x = np.arange(n, dtype=np.float64)
        for negate in (False, True):
            result = np.zeros(n)
            assert kernels.call(func, [x, result, 2.0, negate], num_threads) == 0
            np.testing.assert_allclose(result, np.exp(x) * 2.0 if negate else x, rtol=1e-15)


@pytest.mark.llvm
@given(st.data())
def test_random_programs_agree_with_the_interpreter(tmp_path_factory, data):
    func, symbols = data.draw(runnable_funcs("host"))
    func = introduce_lets(lower_intrinsics(func))
    kernels = Kernels([func], tmp_path_factory.mktemp("random"), passes="sroa")
    _run_both(func, kernels, make_arguments(func, symbols), num_threads=2)


def test_every_line_tells_its_statement():
    func = parse_func(HEAP)
    func = func.with_body(with_fields(func.body, origin=Origin("B", "i", "split", "model.py:7")))
    source = print_generic([func])
    lines = source.text.splitlines()
    assert len(lines) == len(source.line_map)
    told = dict(zip(lines, source.line_map, strict=True))
    assert told["  %T.missing = icmp eq ptr %T, null"] == (
        "alloc T: i16[n, m] {  # stage B, axis i, by split, at model.py:7"
    )
    stores = [told[line] for line in lines if line.startswith("  store i16")]
    assert stores == ["T@[i] = A@[n * m - 1 - i]", "B@[i] = T@[i] + 1i16"]
    assert told["declare void @free(ptr) #0"] == ""


def test_what_the_linker_must_bring():
    assert print_generic([parse_func(ADD)]).requires == frozenset()
    assert print_generic([parse_func(PARALLEL)]).requires == {"libm"}
    half = parse_func("func f(A: f16[n], B: f16[n] out) { B@[0] = A@[0] + A@[1] }")
    assert "libgcc_s" in print_generic([half]).requires


@pytest.mark.llvm
def test_scalars_pass_by_the_abi(tmp_path: Path):
    func = parse_func("""
    func f(a: i8, b: u16, c: f16, d: f64, e: bool, g: f32, h: i64, B: f64[7] out) {
      B@[0] = f64(a)  B@[1] = f64(b)  B@[2] = f64(c)  B@[3] = d  B@[4] = f64(e)
      B@[5] = f64(g)  B@[6] = f64(h)
    }
    """)
    result = np.zeros(7)
    kernels = Kernels([func], tmp_path)
    kernels.call(func, [-3, 65535, 0.5, 1e300, True, 0.25, -(2**40), result])
    assert result.tolist() == [-3, 65535, 0.5, 1e300, 1, 0.25, -(2**40)]


@pytest.mark.llvm
def test_memory_that_cannot_be_had_returns_1(tmp_path: Path):
    serial = parse_func("""
    func serial(A: i64[2] out, n: i64) {
      alloc T: i64[n, n] { A@[0] = 5 }
      A@[1] = 6
    }
    """)
    parallel = parse_func("""
    func parallel(A: i64[2] out, n: i64) {
      region r (A, n) task t of p {
        alloc T: i64[n, 2] { A@[0] = 5 }
        if (t == 0) { A@[1] = 6 }
      }
    }
    """)
    # An optimizer may find that memory is not needed after all.
    kernels = Kernels([serial, parallel], tmp_path, passes="sroa")
    for func, sizes in ((serial, (2**31, 2**62, 2**63 - 1)), (parallel, (2**58, 2**63 - 1))):
        for threads in (1, 2):
            for n in sizes:
                a = np.zeros(2, np.int64)
                assert kernels.call(func, [a, n], threads) == 1
                assert a.tolist() == [0, 6]
            for n in (0, -4, 3):
                a = np.zeros(2, np.int64)
                assert kernels.call(func, [a, n], threads) == 0
                assert a.tolist() == [5, 6]


def test_names_of_users_are_harmless():
    hostile = 'x" }\n; define @evil()'
    a, i = Buffer(hostile, I64, (IntImm(8, I64),)), Var(hostile, I64)
    loop = For(i, IntImm(0, I64), IntImm(8, I64), "serial", Store(a, i, i))
    func = PrimFunc(hostile, (a,), loop, (hostile,))
    text = print_generic([func]).text
    body, attributes = text.split("triple")[1].split("\n", 1)[1].split("attributes #0")
    assert "evil()" not in text and '"' not in body and attributes.count('"') == 2
    assert len([line for line in text.splitlines() if line.startswith("define")]) == 1


def test_two_functions_of_one_name_are_refused():
    funcs = parse_funcs(ADD + ADD)
    with pytest.raises(UserError, match="two functions named 'add' cannot stand in one module"):
        print_generic(funcs)


def test_printing_grows_linearly():
    def statements(count):
        body = " ".join(f"A@[{k}] = A@[{k + 1}] + {k}" for k in range(count))
        return len(print_generic([parse_func(f"func f(A: i64[n] out) {{ {body} }}")]).text)

    assert statements(400) < 11 * statements(40)


def test_parts_are_files_of_their_own_and_together_the_file_of_all() -> None:
    """Two functions with the same needs: each part declares them, the whole file once."""
    funcs = parse_funcs(PARALLEL + PARALLEL.replace("parallel", "parallel_again") + ADD)
    one, two, three = funcs
    printer = HostPrinter(**GENERIC)
    parts = [printer.print_part([one]), printer.print_part([two, three])]
    for part, same in ((printer.whole(), funcs), (parts[0], [one])):
        alone = print_generic(same)
        assert (part.text, list(part.line_map)) == (alone.text, list(alone.line_map))
        assert part.requires == alone.requires
    for part, names in zip(parts, (["parallel"], ["parallel_again", "add"]), strict=True):
        assert re.findall(r"^define i32 @(\w+)", part.text, re.MULTILINE) == names
        assert part.text.count("define linkonce_odr hidden void @refcomp.threads.run(") == 1
        assert len(part.line_map) == part.text.count("\n")
    stored = (
        parts[1]
        .text.splitlines()
        .index(next(line for line in reversed(parts[1].text.splitlines()) if "store float" in line))
    )
    assert parts[1].line_map[stored] == "C@[i] = A@[i] + B@[i]"


def test_a_function_of_a_later_part_has_a_name_of_its_own() -> None:
    (func,) = parse_funcs(ADD)
    printer = HostPrinter(**GENERIC)
    printer.print_part([func])
    with pytest.raises(UserError, match="two functions named 'add' cannot stand in one module"):
        printer.print_part([func])
