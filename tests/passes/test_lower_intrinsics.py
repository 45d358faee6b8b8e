import itertools

import mpmath
import numpy as np
import pytest

from refcomp.foundation.dtype import SCALAR_DTYPES
from refcomp.ir.expr import Call
from refcomp.ir.intrinsics import INTRINSICS
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.ir.rewrite import walk
from refcomp.ir.verify import verify
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes import lower_intrinsics as module
from refcomp.passes.lower_intrinsics import lower_intrinsics
from tests.passes.docstring_examples import assert_docstring_holds


def _calls(func):
    return [node for node in walk(func.body) if isinstance(node, Call)]


def _one_call(name, dtype, result=None):
    args = ", ".join(f"X@[{k} * n + i]" for k in range(INTRINSICS[name].arity))
    return parse_func(
        f"func f(X: {dtype}[{INTRINSICS[name].arity} * n], Y: {result or dtype}[n] out, n: i64) "
        f"{{ for i in range(n) {{ Y@[i] = {name}({args}) }} }}"
    )


def _run(func, operands, result):
    interpret(func, [operands, result, len(result)])
    return result


def test_docstring():
    assert_docstring_holds(module, lower_intrinsics)


_ON_FLOATS = [
    (name, str(dtype))
    for name, intrinsic in INTRINSICS.items()
    for dtype in SCALAR_DTYPES
    if dtype.is_float and dtype.kind in intrinsic.kinds and not intrinsic.result_kind
]


@pytest.mark.parametrize(("name", "dtype"), _ON_FLOATS)
def test_only_what_a_host_has_is_left(name, dtype):
    result = "bool" if INTRINSICS[name].result_bool else None
    func = lower_intrinsics(_one_call(name, dtype, result))
    verify(func, "flat")
    for call in _calls(func):
        assert call.name not in ("rsqrt", "sigmoid", "isnan", "isinf", "isfinite")
        assert call.dtype.bits > 16 or call.name in ("abs", "copysign")


def test_the_sigmoid_keeps_its_digits_where_it_is_small():
    x = np.array([-87.0, -50.5, -1.0, -1e-3, -0.0, 0.0, 1.0, 30.0, 200.0], np.float32)
    y = _run(lower_intrinsics(_one_call("sigmoid", "f32")), x, np.zeros(len(x), np.float32))
    expected = np.array([float(1 / (1 + mpmath.exp(-float(v)))) for v in x])
    assert np.all(np.abs(y - expected) <= 3 * np.spacing(expected.astype(np.float32)))


@pytest.mark.parametrize("name", ["sigmoid", "rsqrt", "exp", "tanh"])
def test_special_values_stay(name):
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0], np.float16)
    plain = _run(_one_call(name, "f16"), x, np.zeros(len(x), np.float16))
    lowered = _run(lower_intrinsics(_one_call(name, "f16")), x, np.zeros(len(x), np.float16))
    np.testing.assert_array_equal(plain.view(np.int16), lowered.view(np.int16))


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_questions_about_floats(name, dtype):
    kind = f"float{dtype[1:]}"
    x = np.array([0, -1, np.inf, -np.inf, np.nan, np.finfo(kind).max], kind)
    expected = _run(_one_call(name, dtype, "bool"), x, np.zeros(len(x), np.bool_))
    lowered = lower_intrinsics(_one_call(name, dtype, "bool"))
    assert _run(lowered, x, np.zeros(len(x), np.bool_)).tolist() == expected.tolist()


def test_fma_of_halves_rounds_once():
    tiny, edges = 2.0**-24, [1.0, -1.0, 0.0, -0.0, 2.0**-14, 65504.0, 1 + 2.0**-10, 3.14]
    # (1 + e)(1 - e) / 2^11 + (1 + e) lies just below a tie, which f32 cannot tell from it.
    near_tie = [(1 + 2.0**-10) / 32, (1 - 2.0**-10) / 64]
    values = np.array([*edges, *near_tie, tiny, -tiny, 2047.0, 33 * tiny], np.float16)
    triples = np.array(list(itertools.product(values, repeat=3)), np.float16).T.ravel()
    count = len(values) ** 3
    plain = _run(_one_call("fma", "f16"), triples, np.zeros(count, np.float16))
    lowered = _run(lower_intrinsics(_one_call("fma", "f16")), triples, np.zeros(count, np.float16))
    np.testing.assert_array_equal(plain.view(np.int16), lowered.view(np.int16))


def test_other_functions_stay_as_they_are():
    func = _one_call("exp", "f32")
    assert lower_intrinsics(func) is func


def test_values_of_atomic_updates():
    func = parse_func("func f(A: f32[n] out) { atomic add A[0] with rsqrt(2f32) }")
    assert "with 1.0f32 / sqrt(2.0f32)" in print_func(lower_intrinsics(func))
