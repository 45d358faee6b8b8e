"""The level of a text is found, and what it has still to go through."""

import pytest

from refcomp.cli.levels import check_level, level_of, steps_left
from refcomp.driver.pipeline import passes_for
from refcomp.foundation.errors import UserError
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func, parse_funcs


def flat(kind: str = "", value: str = "A@[i]") -> PrimFunc:
    return parse_func(f"""
        func f(A: f32[n], B: f32[n] out) {{
          for i in range(n) {kind} {{
            B@[i] = {value}
          }}
        }}""")


NESTED = parse_func("func f(A: f32[n], B: f32[n] out) { for i in range(n) { B[i] = A[i] } }")


def names(func: PrimFunc) -> list[str]:
    return [step.name for step in steps_left(func, "llvm")]


def test_each_level_is_found() -> None:
    assert level_of(NESTED) == "nested"
    assert level_of(flat("parallel")) == "flat"
    assert level_of(flat()) == "host"


def test_a_program_stands_at_its_own_levels() -> None:
    text = """
    func f(A: f32[n] out) { launch f_kernel0 (A, n) grid (n, 1, 1) block (1, 1, 1) }
    func f_kernel0(A: f32[n] out, n: i64) { for i in range(n) blockIdx.x { A@[i] = 1.0f32 } }
    """
    host, kernel = parse_funcs(text)
    assert (level_of(host), level_of(kernel)) == ("launch", "flat")
    with pytest.raises(UserError, match="f launches kernels: no pass takes it any further\n"):
        steps_left(host, "opencl")


def test_what_is_legal_at_no_level_is_refused_with_the_statement() -> None:
    mixed = parse_func("func f(A: f32[n], B: f32[n] out) { B[0] = A@[0] }")
    with pytest.raises(UserError, match=r"f is not legal at level nested(?s:.*)B\[0\] = A@\[0\]"):
        level_of(mixed)


def test_a_level_can_be_demanded() -> None:
    check_level(NESTED, "nested")
    with pytest.raises(UserError, match="f is not legal at level flat"):
        check_level(NESTED, "flat")


def test_a_nested_function_has_all_steps_left() -> None:
    assert steps_left(NESTED, "llvm") == passes_for("llvm")


def test_a_flat_function_is_not_flattened_again() -> None:
    left = names(flat("parallel"))
    assert "flatten_storage" not in left
    assert left[0] == "split_vector_loops"
    assert left[-1] == passes_for("llvm")[-1].name


def test_a_host_function_has_nothing_left_but_intrinsics() -> None:
    assert names(flat()) == []
    assert names(flat(value="sigmoid(A@[i])")) == ["lower_intrinsics"]


def test_the_interpreter_needs_what_makes_kernels_complete() -> None:
    assert [step.name for step in steps_left(NESTED, "interp")][-1] == "insert_barriers"


@pytest.mark.parametrize("kind", ["opencl", "rocm"])
def test_flat_text_has_the_split_before_it_on_devices(kind):
    text = "func f(A: f32[4] out) { for i in range(4) { A@[i] = 1.0f32 } }"
    left = steps_left(parse_func(text), kind)
    assert "split_host_device" in [step.name for step in left]
    assert "flatten_storage" not in [step.name for step in left]
