"""A judge notices what is wrong on field elements, on floats, and to the bit."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.certificates.arguments import Arguments
from refcomp.certificates.judge import judge_of_program, judge_of_tensors
from refcomp.ir.parser import parse_func
from refcomp.oracle.interpreter.failure import InterpretError
from refcomp.oracle.tensors.evaluate import EvaluateError

_RIGHT = "func f(A: f32[4, 3], B: f32[4] out) { for i in range(4) { B[i] = 0f32 %s } }"
_SUM = "for k in range(%s) { B[i] = B[i] + A[i, %s] }"


def _judge():
    a = rc.placeholder((4, 3), name="A")
    k = rc.reduce_axis((0, 3), "k")
    b = rc.compute((4,), lambda i: rc.sum(a[i, k], axis=k), name="B")
    return judge_of_tensors(Arguments((a, b), {}))


def _func(extent="3", index="k"):
    return parse_func(_RIGHT % _SUM % (extent, index))


def test_right_programs_pass_both_algebras_in_any_order():
    judge = _judge()
    for func in (_func(), _func(index="2 - k")):
        assert judge.on_field(func) is None
        assert judge.on_floats(func, judge.arguments.floats()) is None


def test_a_lost_term_is_told_with_its_iteration():
    judge = _judge()
    difference = judge.on_field(_func(extent="2"), before=_func(index="2 - k"))
    assert (difference.output, difference.index) == ("B", (0,))
    assert len(difference.writes) == 3 and len(difference.missing) == 1
    assert difference.missing[0].endswith("with i = 0, k = 0")
    assert judge.on_floats(_func(extent="2"), judge.arguments.floats()).index == (0,)


def test_another_order_has_other_bits():
    judge = _judge()
    wanted = judge.arguments.floats()
    assert judge.on_floats(_func(), wanted) is None
    again = judge.to_the_bit(_func(), judge.arguments.floats(), _func(), wanted)
    other = judge.to_the_bit(_func(index="2 - k"), judge.arguments.floats(), _func(), wanted)
    assert again is None
    assert other.missing and other.extra


def test_a_broken_rule_is_a_difference():
    judge = _judge()
    difference = judge.on_field(_func(index="k + 1"))
    assert "InterpretError: index 3 in dimension 1 of A is out of range" in str(difference)
    assert str(judge.on_floats(_func(index="k + 1"), judge.arguments.floats())) != ""


def test_indices_out_of_range_are_refused():
    a, at = rc.placeholder((4,), name="A"), rc.placeholder((3,), "int32", name="I")
    b = rc.compute((3,), lambda i: a[at[i]], name="B")
    with pytest.raises(EvaluateError, match="B reads A at index"):
        judge_of_tensors(Arguments((a, at, b), {}))
    assert judge_of_tensors(Arguments((a, at, b), {}, max_integer=1)).exact[2].shape == (3,)


def test_a_program_says_itself_what_is_right():
    func = _func()
    judge = judge_of_program(func, Arguments(func.params, {}))
    assert judge.bounded is None
    assert judge.on_field(_func(index="2 - k")) is None
    assert judge.on_field(_func(extent="2")).index == (0,)
    assert np.array_equal(judge.exact[1], judge.exact[0].sum(axis=1) % (2**31 - 1))
    with pytest.raises(InterpretError):
        judge_of_program(_func(index="k + 1"), Arguments(func.params, {}))


def test_results_of_scans_and_functions_are_judged():
    a, state = rc.placeholder((4,), name="A"), rc.placeholder((4,), name="state")
    called = rc.extern((4,), [a], lambda i, o: rc.call_packed("tests.nowhere", *i, *o), name="E")
    init = rc.compute((1,), lambda t: called[t] / 3, name="init")
    rows = rc.scan(init, rc.compute((4,), lambda t: state[t - 1] * 0.1 + a[t], name="U"), state)
    judge = judge_of_tensors(Arguments((a, called, rows), {}))
    assert sorted(judge.exact) == sorted(judge.bounded) == [1, 2]
    assert not judge.bounded[1].error.any(), "a function gives what it gives"
    error = judge.bounded[2].error
    assert (error[1:] > 0).all() and error.max() < 1e-6
