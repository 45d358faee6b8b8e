"""A back end that is registered from outside: all of refcomp knows it, and it is right.

The schedules are those of `tests/properties`, on all dtypes that the toy prints (int8, int32,
int64, uint8, float32, float64 and bfloat16; not float16), without calls of outside functions.
"""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, given, seed, settings

import refcomp
from refcomp.cli import doctor, main
from refcomp.compiler import build_functions
from refcomp.driver import backend
from refcomp.driver.compile import compile_to_source
from refcomp.foundation import target
from refcomp.foundation.artifacts import Source
from refcomp.foundation.errors import OutOfBounds, Unsupported
from refcomp.ir.parser import parse_func
from tests.driver import toy_backend
from tests.properties.differential import RedZoned, agree, expected
from tests.properties.test_schedules import cases
from tests.strategies.computation import DTYPES
from tests.strategies.computes import COMPUTES, SCANS

_EXAMPLES, _DRAWN_BY = 60, 20242
_SEED = 20240  # of arrays: that of `expected`
_PRINTED = tuple(dtype for dtype in DTYPES if dtype != "float16")
_ADD = "func add(A: f32[n], B: f32[n] out) { for i in range(n) parallel { B[i] = A[i] + 1.0f32 } }"


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(backend, "_BACKENDS", dict(backend._BACKENDS))
    monkeypatch.setattr(target, "_KINDS", dict(target._KINDS))
    refcomp.register_backend(toy_backend.TOY)


def _cli(*args, text=None):
    result = CliRunner().invoke(main, list(args), input=text)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_file_has_less_than_80_lines():
    lines = Path(toy_backend.__file__).read_text(encoding="utf-8").splitlines()
    assert len(lines) < 80


def _drawn_cases():
    drawn = []

    @seed(_DRAWN_BY)
    @settings(
        max_examples=_EXAMPLES,
        deadline=None,
        suppress_health_check=[*HealthCheck],
        phases=[Phase.generate],
    )
    @given(cases((*COMPUTES, *SCANS), _PRINTED))
    def draw(case):
        drawn.append(case)

    draw()
    return drawn


@pytest.mark.clang
def test_random_schedules_compute_what_numpy_does():
    """All functions in one file: the compiler is started once."""
    drawn = _drawn_cases()
    assert len(drawn) == _EXAMPLES
    assert {str(computation.args[0].dtype) for computation, _ in drawn} >= {"i32", "f32", "f64"}
    funcs = [
        refcomp.lower(schedule, computation.args, f"case{number}")
        for number, (computation, schedule) in enumerate(drawn)
    ]
    module = build_functions(funcs, "toy")
    for func, (computation, _) in zip(funcs, drawn, strict=True):
        zoned = [RedZoned(array) for array in computation.arrays(_SEED)]
        module[func.name](*(z.array for z in zoned))
        agree([z.array for z in zoned], expected(computation), f"{func}")
        assert all(z.is_intact() for z in zoned), f"memory around an array was written: {func}"


_OPERATORS = """
func ops(A: DTYPE[n], B: DTYPE[n], C: DTYPE[n, 12] out, D: f32[n], E: DTYPE[n] out) {
  for i in range(n) {
    C[i, 0] = truncdiv(A[i], B[i])
    C[i, 1] = truncmod(A[i], B[i])
    C[i, 2] = A[i] // B[i]
    C[i, 3] = A[i] % B[i]
    C[i, 4] = A[i] << B[i]
    C[i, 5] = A[i] >> B[i]
    C[i, 6] = A[i] * B[i] - B[i]
    C[i, 7] = max(A[i], B[i]) ^ min(A[i], B[i])
    C[i, 8] = DTYPE(A[i] >= B[i]) + DTYPE(A[i] > B[i]) * 2DTYPE
    C[i, 9] = DTYPE(A[i] <= B[i]) + DTYPE(A[i] < B[i]) * 2DTYPE
    C[i, 10] = (A[i] & B[i]) - (A[i] | B[i])
    C[i, 11] = select(A[i] == 7DTYPE or not (B[i] != A[i]) and A[i] < 3DTYPE, 5DTYPE, 6DTYPE)
    E[i] = DTYPE(D[i])
  }
}
"""


@pytest.mark.clang
@pytest.mark.parametrize("dtype", ["i8", "u8", "i32", "u32", "i64", "u64"])
def test_integers_at_their_limits_are_as_the_interpreter_says(dtype):
    func = parse_func(_OPERATORS.replace("DTYPE", dtype))
    info = np.iinfo(func.buffers[0].dtype.dtype)
    edges = [info.min, info.min + 1, 0, 1, 2, 7, info.bits - 1, info.bits, info.max]
    a, b = (np.array(column, info.dtype) for column in zip(*product(edges, edges), strict=True))
    given_floats = [np.nan, np.inf, -np.inf, -1.5, 1.9, 3e9, -3e9, 1e20, -0.0]
    floats = np.resize(np.array(given_floats, np.float32), len(a))
    results = []
    for kind in ("interp", "toy"):
        c, e = np.zeros((len(a), 12), info.dtype), np.zeros(len(a), info.dtype)
        refcomp.build(func, target=kind)(a, b, c, floats, e)
        results.append((c, e))
    (c, e), (c_toy, e_toy) = results
    assert np.array_equal(c, c_toy) and np.array_equal(e, e_toy)


@pytest.mark.clang
def test_a_shown_computation_has_every_step_and_the_c_text():
    headings = [
        line
        for line in _cli("show", "-", "--target", "toy", text=_ADD).splitlines()
        if line.startswith("== ")
    ]
    steps = [f"after:{step.name}" for step in toy_backend.TOY.steps if not step.licence]
    assert headings == [f"== {stage} ==" for stage in ("loop-ir", *steps, "c")]


@pytest.mark.clang
def test_the_text_is_c():
    text = _cli("show", "-", "--target", "toy", "--stage", "c", text=_ADD)
    assert "B_1[i_3] = (A_0[i_3] + (float)1.0);" in text


def test_a_text_for_others_is_refused_as_the_record_has_no_printer():
    with pytest.raises(Unsupported, match="nothing is printed for the target toy") as caught:
        compile_to_source([parse_func(_ADD)], "toy")
    assert caught.value.why == "its back end prints only what it compiles at once"
    assert caught.value.remedy == "`refcomp show` shows the text"


@pytest.mark.clang
def test_accesses_are_checked_where_that_is_asked_for():
    text = "func g(A: u8[n], I: i64[m], B: u8[m] out) { for i in range(m) { B[i] = A[I[i]] } }"
    with refcomp.build_options(check_bounds=True):
        module = refcomp.build(parse_func(text), target="toy")
    with pytest.raises(OutOfBounds, match="9"):
        module(np.arange(4, dtype=np.uint8), np.array([1, 9]), np.zeros(2, np.uint8))


def test_the_passes_are_listed():
    listed = _cli("pass", "--list", "--target", "toy")
    assert "make_selects_lazy" in listed and "vectorize_loops" not in listed


@pytest.mark.clang
def test_the_doctor_tries_it():
    report = doctor._try_target("toy", toy_backend.TOY.summary)
    assert (report.target, report.works, report.reason) == ("toy", True, "")


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("B[0] = popcount(A[0])", "the toy does not print popcount"),
        ("B[0] = i32(f16(A[0]))", "the toy does not print f16"),
    ],
)
def test_what_is_not_printed_is_refused(body, what):
    func = parse_func(f"func f(A: i32[n], B: i32[n] out) {{ {body} }}")
    with pytest.raises(Unsupported, match=what):
        refcomp.build(func, target="toy")


def test_certificates_leave_bounds_checks_out_of_copied_steps():
    a = refcomp.placeholder((8,), name="A")
    b = refcomp.compute((8,), lambda i: a[i] * 2, name="B")
    index = refcomp.placeholder((8,), "int32", name="I")
    c = refcomp.compute((8,), lambda i: b[index[i] % 8], name="C")
    schedule = refcomp.create_schedule(c)
    with refcomp.build_options(check_bounds=True):
        assert refcomp.certify(schedule, [a, index, c], kind="toy").holds


def test_only_llvm_ir_is_printed_for_assemble():
    def printed(_made, _target):
        return Source("int add(void);\n", "c")

    record = replace(toy_backend.TOY, name="toy_that_prints", print=printed)
    refcomp.register_backend(record)
    result = CliRunner().invoke(
        main, ["print", "--all-passes", "--target", "toy_that_prints"], input=_ADD
    )
    assert result.exit_code == 5
    assert "the target toy_that_prints prints c, and not LLVM IR" in result.stderr
