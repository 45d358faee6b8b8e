"""C functions become LLVM IR that a module takes in, by the pragma import_c."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.schedule.schedule import replay
from refcomp.toolchain.c_functions import llvm_of_c

pytestmark = [pytest.mark.clang, pytest.mark.llvm]

CODE = """\
#include <math.h>
static float twice(float x) { return x + x; }
float curve(float x, int k) { return sqrtf(twice(x)) * x + k; }
"""


def scheduled(code=CODE):
    a = rc.placeholder((8,), name="A")
    b = rc.compute(
        (8,),
        lambda i: rc.call_pure_extern("float32", "curve", a[i], rc.const(3, "int32")),
        name="B",
    )
    schedule = rc.create_schedule(b)
    schedule[b].pragma(b.op.axis[0], "import_c", code)
    return schedule, [a, b]


def test_calls_run_what_clang_compiled():
    schedule, args = scheduled()
    given = np.arange(8, dtype=np.float32)
    got = np.zeros(8, np.float32)
    rc.build(schedule, args)(given, got)
    np.testing.assert_array_equal(got, np.sqrt(given + given) * given + np.float32(3))


def test_equal_texts_give_equal_texts():
    text = llvm_of_c(CODE)
    assert llvm_of_c(CODE) == text
    assert "functions.c" not in text
    assert "define" in text
    assert "fmuladd" not in text


def test_a_replayed_schedule_compiles_it_again():
    schedule, args = scheduled()
    (step,) = schedule.steps
    assert str(step) == "s[B].pragma(i, import_c, <a text of 3 lines>)"
    again = replay(schedule.outputs, schedule.steps)
    assert rc.lower(again, args).imports == rc.lower(schedule, args).imports


def test_what_clang_refuses_is_shown():
    with pytest.raises(ToolchainError, match=r"clang(.|\n)*undeclared identifier 'retrun'"):
        scheduled("float curve(float x, int k) { retrun x; }")
    with pytest.raises(ToolchainError, match="call to undeclared function 'secret'"):
        scheduled("float curve(float x, int k) { return secret(x); }")


@pytest.mark.parametrize("target", ["interp", "opencl", "rocm"])
def test_other_targets_refuse_it(target):
    schedule, args = scheduled()
    with pytest.raises(UserError, match=r"cannot take in LLVM IR(.|\n)*import_llvm and import_c"):
        rc.build(schedule, args, target)


def test_a_text_without_a_function_is_refused():
    with pytest.raises(UserError, match="import_c is 'curve.c', which does not define a function"):
        scheduled("curve.c")
    with pytest.raises(UserError, match="defines no function that others can call"):
        scheduled("int curve(float x);")


def test_a_changed_include_is_read_again(tmp_path):
    header = tmp_path / "factor.h"
    code = f'#include "{header}"\nfloat curve(float x, int k) {{ return x * FACTOR + k; }}'
    given = np.arange(8, dtype=np.float32)
    for factor in (2, 5):
        header.write_text(f"#define FACTOR {factor}.0f\n")
        schedule, args = scheduled(code)
        got = np.zeros(8, np.float32)
        rc.build(schedule, args)(given, got)
        np.testing.assert_array_equal(got, given * np.float32(factor) + np.float32(3))


def test_texts_without_functions_for_others_are_refused():
    with pytest.raises(UserError, match="import_c .* no function that others can call") as caught:
        scheduled("static float curve(float x, int k) { return x; }")
    assert "static" in caught.value.remedy
    with pytest.raises(UserError, match="is not Unicode"):
        scheduled("float curve(float x, int k) { return x; } // \ud800")
