"""Asserts of hybrid functions: what is decided at once, what calls check, what is refused."""

# ruff: noqa: F821

import re

import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.hybrid import script
from refcomp.oracle.tensors.evaluate import EvaluateError
from refcomp.runtime.module_file import load_module

N, M, K = (refcomp.var(name) for name in "nmk")
A = refcomp.placeholder((N,), name="A")
B = refcomp.placeholder((M,), name="B")
SHORT, LONG = np.ones(3, np.float32), np.ones(4, np.float32)


@script
def added(a, b, k):
    assert a.shape[0] == b.shape[0] and (k >= 1 or k == -5), "a and b are as long, k is positive"
    assert not k > 9
    assert a.ndim == 1
    c = output_tensor(a.shape, "float32")
    for i in range(a.shape[0]):
        c[i] = a[i] + b[i]
    return c


C = added(A, B, K)


def lowered():
    return refcomp.lower(refcomp.create_schedule(C), [A, B, K, C], "added")


def built(target):
    schedule = refcomp.create_schedule(C)
    return refcomp.build(schedule, [A, B, K, C], target, name="added")


def refused(function, message, *args):
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        function(*args)
    return str(caught.value)


def test_conditions_on_sizes_and_integers_are_requirements():

    conditions = [str(requirement.condition) for requirement in lowered().requires]
    assert conditions == ["n == m and (k >= 1 or k == -5)", "not k > 9"]


@pytest.mark.parametrize("target", ["interp", pytest.param("llvm", marks=pytest.mark.llvm)])
def test_a_call_says_what_the_assert_says(target):
    function = built(target)
    result = np.empty(3, np.float32)
    for k in (1, -5, 9):
        function(SHORT, SHORT, k, result)
        assert result.tolist() == [2, 2, 2]
    said = refused(
        function,
        "assert of hybrid function added: a and b are as long, k is positive",
        *(SHORT, LONG, 1, result),
    )
    assert "needs n == m and" in said
    assert "m is 4 by dimension 0 of B" in said
    assert f"test_asserts.py:{added.source.first_line + 2}" in said
    refused(function, "a and b are as long, k is positive", SHORT, SHORT, 0, result)
    refused(function, "hybrid function added: not k > 9 does not hold", SHORT, SHORT, 10, result)


@pytest.mark.llvm
def test_a_saved_module_keeps_the_message(tmp_path):
    built("llvm").save(str(tmp_path / "added.refcomp"))
    function = load_module(str(tmp_path / "added.refcomp"))
    args = (SHORT, LONG, 1, np.empty(3, np.float32))
    refused(function, "a and b are as long, k is positive", *args)


def test_the_definition_checks_them_too():
    with pytest.raises(EvaluateError, match="added: a and b are as long, k is positive"):
        refcomp.oracle.evaluate([C], {A: SHORT, B: SHORT}, {K: 0})


def test_python_checks_them_too():
    with pytest.raises(AssertionError, match="a and b are as long"):
        added(SHORT, LONG, 1)


def test_a_condition_that_is_known_fails_at_once():
    @script
    def of_eight(a):
        assert a.shape[0] == 8, ("eight elements", a.shape)
        c = output_tensor((1,), "float32")
        for i in const_range(2):
            assert i < 2
        c[0] = a[0]
        return c

    assert of_eight(refcomp.placeholder((8,))).op.requires == ()
    said = refused(
        of_eight, "of_eight: assert fails: ('eight elements', (7,))", refcomp.placeholder((7,))
    )
    assert 'assert a.shape[0] == 8, ("eight' in said


@script
def reads(a):
    assert a[0] > 0
    return output_tensor((1,), "float32")


@script
def in_a_loop(a):
    c = output_tensor((1,), "float32")
    for i in range(8):
        assert i < a.shape[0]
        c[0] = a[i]
    return c


@script
def of_floats(a):
    assert a.shape[0] * 0.5 > 2
    return output_tensor((1,), "float32")


@script
def unknown_message(a):
    assert a.shape[0] > 2, a.shape[0]
    return output_tensor((1,), "float32")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (reads, "no call can check a[0] > 0 at its entry: a requirement compares sizes"),
        (in_a_loop, "no call can check i < a.shape[0] at its entry: the assert is in a loop"),
        (of_floats, "no call can check a.shape[0] * 0.5 > 2 at its entry"),
        (unknown_message, "the message of an assert is not known while compiling"),
    ],
)
def test_what_no_call_can_check_is_refused(function, message):
    said = refused(function, message, A)
    assert "numpy before the call" in said or "write a text" in said
