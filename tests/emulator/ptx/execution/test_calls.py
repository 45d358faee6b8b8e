"""Calls of functions of a PTX file."""

import numpy as np
import pytest

from refcomp.foundation.errors import Unsupported, UserError
from tests.emulator.ptx.texts import OWN_PLACE, kernel, run, words

FACTORIAL = """
.func (.param .b32 result) factorial(.param .b32 n)
{
    .reg .pred %p<3>; .reg .b32 %r<9>;
    ld.param.u32 %r1, [n];
    setp.gt.u32 %p1, %r1, 1;
    @%p1 bra $more;
    st.param.b32 [result], 1;
    ret;
$more:
    sub.u32 %r2, %r1, 1;
    {
        .param .b32 given; .param .b32 got;
        st.param.b32 [given], %r2;
        call (got), factorial, (given);
        ld.param.b32 %r3, [got];
    }
    mul.lo.u32 %r4, %r1, %r3;
    st.param.b32 [result], %r4;
    ret;
}
"""


def test_functions_call_themselves():
    text = kernel(
        f"""
        {OWN_PLACE}
        .param .b32 given; .param .b32 got;
        st.param.b32 [given], %r1;
        call (got), factorial, (given);
        ld.param.b32 %r2, [got];
        st.global.u32 [%rd2], %r2;
        ret;
        """,
        before=FACTORIAL,
    )
    data = words(10)
    assert run(text, [data, np.uint32(0)], block=10).findings == ()
    assert data.tolist() == [1, 1, 2, 6, 24, 120, 720, 5040, 40320, 362880]


def test_calls_that_never_return_are_refused():
    endless = FACTORIAL.replace("sub.u32 %r2, %r1, 1", "add.u32 %r2, %r1, 1")
    text = kernel(
        """
        .param .b32 given; .param .b32 got;
        st.param.b32 [given], 2;
        call (got), factorial, (given);
        ret;
        """,
        before=endless,
    )
    with pytest.raises(UserError, match="the kernel k calls functions 200 deep"):
        run(text, [words(1), np.uint32(0)])


def test_functions_without_a_body_are_refused():
    text = kernel("call missing; ret;", before=".extern .func missing;\n")
    with pytest.raises(Unsupported, match="the function missing has no body in the file"):
        run(text, [words(1), np.uint32(0)])


def test_threads_call_different_functions_by_their_addresses():
    functions = """
    .func (.param .b32 result) doubled(.param .b32 n) {
        .reg .b32 %r<3>; ld.param.u32 %r1, [n]; add.u32 %r2, %r1, %r1;
        st.param.b32 [result], %r2; ret;
    }
    .func (.param .b32 result) squared(.param .b32 n) {
        .reg .b32 %r<3>; ld.param.u32 %r1, [n]; mul.lo.u32 %r2, %r1, %r1;
        st.param.b32 [result], %r2; ret;
    }
    """
    text = kernel(
        f"""
        {OWN_PLACE}
        and.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 0;
        mov.u64 %rd3, doubled; mov.u64 %rd4, squared; selp.b64 %rd5, %rd3, %rd4, %p1;
    $shape: .callprototype (.param .b32 _) _ (.param .b32 _);
        .param .b32 given; .param .b32 got;
        st.param.b32 [given], %r1;
        call (got), %rd5, (given), $shape;
        ld.param.b32 %r2, [got];
        st.global.u32 [%rd2], %r2;
        ret;
        """,
        before=functions,
    )
    data = words(6)
    assert run(text, [data, np.uint32(0)], block=6).findings == ()
    assert data.tolist() == [0, 1, 4, 9, 8, 25]
    with pytest.raises(UserError, match="calls no function, but the address 0x1234"):
        run(text.replace("mov.u64 %rd4, squared", "mov.u64 %rd4, 0x1234"), [data, np.uint32(0)])


@pytest.mark.parametrize("call", ["call f, (a);", "call f, (a, a, a);", "call (a), f, (a, a);"])
def test_call_with_other_arguments_than_declared_is_refused(call):
    before = ".func f(.param .b32 x, .param .b32 y) { ret; }\n"
    with pytest.raises(
        UserError, match="f with other (arguments|results) than it declares"
    ) as caught:
        run(kernel(f".param .b32 a; {call} ret;", before=before), [words(1), np.uint32(0)])
    assert "line " in str(caught.value)


def test_call_that_passes_what_nothing_declares_is_refused():
    before = ".func f(.param .b32 x) { ret; }\n.global .b32 g;\n"
    with pytest.raises(UserError, match="passes g"):
        run(kernel("call f, (g); ret;", before=before), [words(1), np.uint32(0)])
