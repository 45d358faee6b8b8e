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


def _called(code, symbol="curve", target="llvm"):
    """Return what a C function makes of 0, 1, ..., by one call for each."""
    a = rc.placeholder((4,), name="A")
    b = rc.compute((4,), lambda i: rc.call_pure_extern("float32", symbol, a[i]), name="B")
    schedule = rc.create_schedule(b)
    schedule[b].pragma(b.op.axis[0], "import_c", code)
    got = np.zeros(4, np.float32)
    rc.build(schedule, [a, b], target)(np.arange(4, dtype=np.float32), got)
    return got.tolist()


PARTS_OF_C = {
    "thread-local": (
        "static _Thread_local float last = 7; float curve(float x) { last = x; return last; }",
        [0, 1, 2, 3],
    ),
    "constructor": (
        "static float f; __attribute__((constructor)) static void set(void) { f = 5; }\n"
        "float curve(float x) { return x * f; }",
        [0, 5, 10, 15],
    ),
    "malloc": (
        "#include <stdlib.h>\nfloat curve(float x) { float *p = malloc(64); p[3] = x;"
        " float y = p[3]; free(p); return y; }",
        [0, 1, 2, 3],
    ),
    "libm": (
        "#include <math.h>\nfloat curve(float x) { return remainderf(x, 2); }",
        [0, 1, 0, -1],
    ),
    "large atomic": (
        "typedef struct { long a, b, c; } T; static _Atomic T last;\n"
        "float curve(float x) { T t = {x, x, x}; last = t; t = last; return t.a; }",
        [0, 1, 2, 3],
    ),
    "alias": (
        "float thrice(float x) { return x * 3; }\n"
        'float curve(float x) __attribute__((alias("thrice")));',
        [0, 3, 6, 9],
    ),
}


@pytest.mark.parametrize("part", PARTS_OF_C)
def test_parts_of_c_work(part):
    code, expected = PARTS_OF_C[part]
    assert _called(code) == expected


def test_what_is_chosen_while_loading_is_refused():
    code = '__attribute__((target_clones("avx2", "default"))) float curve(float x) { return x; }'
    with pytest.raises(UserError, match=r"chooses the code of curve(.|\n)*leave out target_clones"):
        _called(code)


@pytest.mark.parametrize(
    "code",
    [
        "float mine(float); float curve(float x) { return mine(x); }",
        "extern float mine; float curve(float x) { return mine * x; }",
    ],
)
def test_names_that_no_library_defines_are_refused_before_compiling(code):
    with pytest.raises(UserError, match=r"unknown C function 'mine'\n(.|\n)*-libs=/path"):
        _called(code)


def test_two_texts_stand_in_one_module():
    """Each has a static variable n, a static function, a structure S and a constructor."""
    texts = [
        f"""
        #include <string.h>
        struct S {{ {field} a; }};
        static struct S s;
        static float n = {start};
        __attribute__((noinline)) static float add(float x) {{ return x + n; }}
        __attribute__((constructor)) static void set(void) {{ s.a = {start}; }}
        float {name}(float x) {{ return add(x) * s.a + strlen("{"a" * start}"); }}
        """
        for name, field, start in [("one", "int", 2), ("two", "float", 3)]
    ]
    a = rc.placeholder((4,), name="A")
    b = rc.compute((4,), lambda i: rc.call_pure_extern("float32", "one", a[i]), name="B")
    c = rc.compute((4,), lambda i: rc.call_pure_extern("float32", "two", b[i]), name="C")
    schedule = rc.create_schedule(c)
    for tensor, text in zip([b, c], texts, strict=True):
        schedule[tensor].pragma(tensor.op.axis[0], "import_c", text)
    given = np.arange(4, dtype=np.float32)
    got = np.zeros(4, np.float32)
    rc.build(schedule, [a, c])(given, got)
    first = (given + 2) * 2 + 2
    np.testing.assert_array_equal(got, (first + 3) * 3 + 3)
