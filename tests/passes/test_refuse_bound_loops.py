import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.ir.parser import parse_func
from refcomp.passes import refuse_bound_loops as module
from refcomp.passes.refuse_bound_loops import refuse_bound_loops
from tests.passes.docstring_examples import assert_docstring_holds
from tests.quotations import quoted


def test_docstring():
    assert_docstring_holds(module, refuse_bound_loops)


def test_a_bound_loop_is_refused_with_the_line_that_binds_it():
    a = refcomp.placeholder((8,), name="A")
    c = refcomp.compute((8,), lambda i: a[i] + 1, name="C")
    s = refcomp.create_schedule(c.op)
    s[c].bind(c.op.axis[0], refcomp.thread_axis("threadIdx.x"))
    with pytest.raises(UserError, match="axis i of stage C is bound to threadIdx.x, but") as caught:
        refuse_bound_loops(refcomp.lower(s, [a, c]))
    bound = 's[c].bind(c.op.axis[0], refcomp.thread_axis("threadIdx.x"))'
    assert quoted(caught.value, "bound here") == bound
    assert '"opencl", "rocm"' in caught.value.remedy


def test_a_bound_loop_of_a_text():
    func = parse_func("func f(A: i64[n] out) { for t in range(n) blockIdx.y { A[t] = 1 } }")
    with pytest.raises(UserError, match="loop t is bound to blockIdx.y, but the host has no such"):
        refuse_bound_loops(func)
