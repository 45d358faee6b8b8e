"""What the statements of hybrid functions become, and the message for each mistake."""

# ruff: noqa: B007, F821, F841

import re

import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.hybrid import script

A = refcomp.placeholder((8,), name="a")


def refused(function, message, line):
    """The message, which names the file and the line, counted from the decorator."""
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        function(A)
    place = f"test_statements.py:{function.source.first_line + line}"
    assert caught.value.at.place.endswith(place), caught.value


def test_names_assigned_once_are_values():
    @script
    def f(a):
        n = a.shape[0] // 2
        c = output_tensor((n,), "float32")
        for i in range(n):
            t = a[i]
            c[i] = t * t
        return c

    assert str(f(A).op.body).splitlines()[1].strip() == "let t: f32 = a[i] {"


def test_names_assigned_again_have_memory():
    @script
    def f(a):
        c = output_tensor((1,), "float32")
        s = 0.0
        for i in range(8):
            s = s + a[i]
        c[0] = s
        return c

    assert str(f(A).op.body).startswith("alloc s: f32[1] local {")


def test_branches_on_constants_are_decided():
    @script
    def f(a):
        c = output_tensor((1,), "float32")
        if a.shape[0] == 8:
            c[0] = 1.0
        else:
            c[0] = undefined_name
        return c

    assert str(f(A).op.body) == "c[0] = 1.0f32"


def test_control_flow_that_is_not_compiled():
    @script
    def loops(a):
        c = output_tensor((1,), "float32")
        while a[0] > 1:
            c[0] = 1.0
        return c

    @script
    def iterates(a):
        c = output_tensor((1,), "float32")
        for x in a:
            c[0] = x
        return c

    @script
    def early(a):
        c = output_tensor((1,), "float32")
        for i in range(8):
            return c

    @script
    def late(a):
        c = output_tensor((1,), "float32")
        return c
        c[0] = 1.0

    @script
    def steps(a):
        c = output_tensor((1,), "float32")
        for i in range(8, 0, -1):
            c[0] = a[i]
        return c

    refused(loops, "While is not part of hybrid functions", 3)
    refused(iterates, "a loop runs over one of its words", 3)
    refused(early, "returns at its end only", 4)
    refused(late, "nothing may follow the return", 4)
    refused(steps, "the step of a range is a constant of at least 1", 3)


def test_assignments_that_are_not_compiled():
    @script
    def writes(a):
        c = output_tensor((1,), "float32")
        a[0] = 1.0
        return c

    @script
    def retypes(a):
        c = output_tensor((1,), "float32")
        s = 0
        for i in range(8):
            s = s + a[i]
        return c

    @script
    def unpacks(a):
        c = output_tensor((1,), "float32")
        x, y = 1, 2
        return c

    @script
    def escapes(a):
        c = output_tensor((1,), "float32")
        for i in range(8):
            t = a[i]
        c[0] = t
        return c

    refused(writes, "the input a cannot be written", 3)
    refused(retypes, "s holds i32 and is assigned f32", 5)
    refused(unpacks, "only names and elements can be assigned", 3)
    refused(escapes, "t has no value here", 5)


def test_outputs_and_expressions_that_are_not_compiled():
    @script
    def nested(a):
        for i in range(8):
            c = output_tensor((1,), "float32")
        return c

    @script
    def rows(a):
        c = output_tensor((2, 2), "float32")
        c[0] = 1.0
        return c

    @script
    def speaks(a):
        c = output_tensor((1,), "float32")
        print(a)
        return c

    refused(nested, "an output is made outside of all loops", 3)
    refused(rows, "c has 2 dimensions and is given 1", 3)
    refused(speaks, "an expression that is not stored has no effect", 3)


def test_iterations_that_run_at_once_share_no_name():
    @script
    def sums(a):
        c = output_tensor((1,), "float32")
        s = 0.0
        for i in parallel(8):
            s += a[i]
        c[0] = s
        return c

    @script
    def apart(a):
        c = output_tensor((8,), "float32")
        for i in parallel(8):
            s = 0.0
            s += a[i]
            c[i] = s
        return c

    refused(sums, "s is assigned by iterations that run at once", 5)
    assert apart(A).name == "apart"


def test_copies_have_a_limit():
    @script
    def f(a):
        c = output_tensor((1,), "float32")
        for i in const_range(5000):
            c[0] = 1.0
        return c

    refused(f, "const_range has at most 1024 values", 3)


def test_other_errors_name_the_line_too():
    @script
    def f(a):
        c = output_tensor((1,), "float99")
        return c

    with pytest.raises(UserError, match="unknown dtype 'float99'"):
        f(A)
