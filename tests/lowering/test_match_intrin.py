import re

import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.lowering.match_intrin import is_covered
from tests.quotations import quoted
from tests.strategies.tensor_intrins import block_product, blocked, product


def _mismatch(value=None, dtype="float32", intrin=None):
    a, b, c, k = product(16, 16, 16, dtype, value)
    s = blocked(c, k, 8, 8, 8, intrin or block_product(8, 8, 8))
    with pytest.raises(UserError, match="does not compute what the loops from axis i.inner") as no:
        refcomp.lower(s, [a, b, c])
    assert ".tensorize(" in quoted(no.value, "tensorized here")
    assert "compute(" in quoted(no.value, "tensor intrinsic gemm is declared here")
    assert "same expression" in no.value.remedy
    return no.value.why.splitlines()


def test_both_computations_are_printed_with_the_first_difference():
    lines = _mismatch(lambda a, b, i, j, k: refcomp.sum(a[i, k] + b[k, j], axis=k))
    assert [line.strip() for line in lines[1:]] == [
        "loops:      C[i, j] = sum(A[i, k] + B[k, j], axis=[k])",
        "intrinsic:  c[i, j] = sum(a[i, k] * b[k, j], axis=[k])",
        "difference: A[i.outer * 8 + i, k.outer * 8 + k] + B[k.outer * 8 + k, j.outer * 8 + j] "
        "in the loops, a[i, k] * b[k, j] in the intrinsic",
    ]


@pytest.mark.parametrize(
    ("value", "difference"),
    [
        (  # an index the other way round
            lambda a, b, i, j, k: refcomp.sum(a[i, k] * b[j, k], axis=k),
            "B[j.outer * 8 + j, k.outer * 8 + k] in the loops, b[k, j] in the intrinsic",
        ),
        (  # another stride
            lambda a, b, i, j, k: refcomp.sum(a[i, k // 2] * b[k, j], axis=k),
            "A[i.outer * 8 + i, (k.outer * 8 + k) // 2] in the loops, a[i, k] in the intrinsic",
        ),
        (
            lambda a, b, i, j, k: refcomp.max(a[i, k] * b[k, j], axis=k),
            "reduced by max in the loops, by sum in the intrinsic",
        ),
        (
            lambda a, b, i, j, k: refcomp.sum(a[i, k] * b[k, j] * 2.0, axis=k),
            "* B[k.outer * 8 + k, j.outer * 8 + j] in the loops, a[i, k] in the intrinsic",
        ),
        (
            lambda a, b, i, j, k: refcomp.sum(a[i, k] * b[k, j], axis=k, where=k < 9),
            "k.outer * 8 + k < 9 in the loops, true in the intrinsic",
        ),
        (
            lambda a, b, i, j, k: refcomp.sum(a[i, k] * refcomp.exp(b[k, j]), axis=k),
            "exp(B[k.outer * 8 + k, j.outer * 8 + j]) in the loops, b[k, j] in the intrinsic",
        ),
    ],
)
def test_differences(value, difference):
    assert difference in _mismatch(value)[-1]


def test_a_function_of_another_name():
    def by(function):
        return lambda a, b, i, j, k: refcomp.sum(function(a[i, k]) * b[k, j], axis=k)

    a, b, c, k = product(16, 16, 16, value=by(refcomp.exp))
    _, _, z, _ = product(8, 8, 8, value=by(refcomp.tanh))
    intrin = refcomp.decl_tensor_intrin(z, lambda i, o: (None, None, _touch(o[0])))
    with pytest.raises(
        UserError, match=r"exp\(A\[.*\]\) in the loops, tanh\(A\[i, k\]\) in the int"
    ):
        refcomp.lower(blocked(c, k, 8, 8, 8, intrin), [a, b, c])


def test_a_reducer_of_the_same_identity():
    most = refcomp.comm_reducer(refcomp.maximum, lambda dtype: refcomp.const(0, dtype), "most")
    a, b, c, k = product(
        *(16, 16, 16), "uint8", lambda a, b, i, j, k: most(a[i, k] * b[k, j], axis=k)
    )
    s = blocked(c, k, 8, 8, 8, block_product(8, 8, 8, "uint8"))
    with pytest.raises(UserError, match="reduced by most in the loops, by sum in the intrinsic"):
        refcomp.lower(s, [a, b, c])


def test_what_moves_inside_is_left_over_nowhere():
    """The intrinsic reads one row for all of its rows, the loops read another for each."""
    a, b, c, k = product(16, 16, 16)
    w, y = refcomp.placeholder((8,), name="w"), refcomp.placeholder((8, 8), name="y")
    r = refcomp.reduce_axis((0, 8), "r")
    z = refcomp.compute((8, 8), lambda i, j: refcomp.sum(w[r] * y[r, j], axis=r), name="z")
    intrin = refcomp.decl_tensor_intrin(z, lambda i, o: (None, None, _touch(o[0])))
    with pytest.raises(UserError, match=r"A\[.*\] in the loops, w\[r\] in the intrinsic"):
        refcomp.lower(blocked(c, k, 8, 8, 8, intrin), [a, b, c])


def test_another_dtype():
    a = refcomp.placeholder((16, 16), "float16", "A")
    _, b, _, k = product(16, 16, 16)
    c = refcomp.compute(
        (16, 16), lambda i, j: refcomp.sum(a[i, k].astype("float32") * b[k, j], axis=k), name="C"
    )
    x, y = refcomp.placeholder((8, 8), name="a"), refcomp.placeholder((8, 8), name="b")
    r = refcomp.reduce_axis((0, 8), "r")
    z = refcomp.compute(
        (8, 8), lambda i, j: refcomp.sum(x[i, r].astype("float32") * y[r, j], axis=r)
    )
    f64 = refcomp.placeholder((8, 8), "float64", "a")
    w = refcomp.compute(
        (8, 8), lambda i, j: refcomp.sum(f64[i, r].astype("float32") * y[r, j], axis=r), name="c"
    )
    for op, difference in (
        (z, "f32(A[i.outer * 8 + i, k.outer * 8 + r]) in the loops, a[i, r] in the intrinsic"),
        (w, "A is f16 in the loops, a is f64 in the intrinsic"),
    ):
        intrin = refcomp.decl_tensor_intrin(op, lambda i, o: (None, None, _touch(o[0])))
        s = blocked(c, k, 8, 8, 8, intrin)
        with pytest.raises(UserError, match=re.escape(difference)):
            refcomp.lower(s, [a, b, c])


def _touch(view):
    return view.vstore((0, 0), view[0, 0])


def test_other_ranges():
    assert _mismatch(intrin=block_product(4, 16, 8))[-1].strip() == (
        "difference: the ranges: 8 i x 8 j in the loops, 4 i x 16 j in the intrinsic"
    )
    assert _mismatch(intrin=block_product(8, 4, 16))[-1].strip() == (
        "difference: the ranges: 8 i x 8 j in the loops, 8 i x 4 j in the intrinsic"
    )


def test_a_block_has_no_holes():
    a, b, c, k = product(16, 16, 16)
    s = refcomp.create_schedule(c)
    i, j = c.op.axis
    y, yi = s[c].split(i, 8)
    x, xi = s[c].split(j, 8)
    s[c].reorder(k, yi, x, xi, y)  # the inner loop visits rows yi and yi + 8
    s[c].tensorize(y, block_product(2, 1, 1))
    with pytest.raises(UserError, match="not seen to visit all points of a block, 9 i x"):
        refcomp.lower(s, [a, b, c])


def test_a_tensor_stands_for_one_tensor_at_one_place():
    x = refcomp.placeholder((9,), name="x")
    y = refcomp.compute((8,), lambda i: x[i] + x[i + 1], name="y")
    intrin = refcomp.decl_tensor_intrin(y, lambda i, o: o[0].vstore(0, i[0][0]), "pairs")
    a, b = (refcomp.placeholder((18,), name=name) for name in "AB")
    for value, difference in (
        (
            lambda i: a[i] + a[i + 2],
            "A[i.outer * 8 + i + 2] in the loops, x[i + 1] in the intrinsic",
        ),
        (lambda i: a[i] + b[i + 1], "B[i.outer * 8 + i + 1] in the loops, x[i + 1] in the intrin"),
    ):
        c = refcomp.compute((16,), value, name="C")
        s = refcomp.create_schedule(c)
        s[c].tensorize(s[c].split(c.op.axis[0], 8)[1], intrin)
        with pytest.raises(UserError, match=re.escape(difference)) as refused:
            refcomp.lower(s, [*c.op.inputs, c])
        assert "whose x is A from [i.outer * 8] already" in refused.value.why


def test_axes_that_stand_still_may_be_left_over():
    """Row h of a convolution over 1 x 1, in blocks of 4 columns and 8 channels."""
    a = refcomp.placeholder((2, 3, 8, 8), name="A")
    w = refcomp.placeholder((16, 8), name="W")
    k = refcomp.reduce_axis((0, 8), "k")
    c = refcomp.compute(
        (2, 3, 8, 16),
        lambda n, h, x, o: refcomp.sum(a[n, h, x, k] * w[o, k], axis=k),
        name="C",
    )
    x, y = refcomp.placeholder((4, 8), name="x"), refcomp.placeholder((8, 8), name="y")
    r = refcomp.reduce_axis((0, 8), "r")
    z = refcomp.compute((4, 8), lambda i, o: refcomp.sum(x[i, r] * y[o, r], axis=r), name="z")

    def body(ins, outs):
        return outs[0].vstore((0, 0), ins[0][3, 7] * ins[1][5, 6])

    s = refcomp.create_schedule(c)
    n, h, i, o = c.op.axis
    io, ii = s[c].split(i, 4)
    oo, oi = s[c].split(o, 8)
    s[c].reorder(n, io, oo, h, ii, oi, k)
    s[c].tensorize(ii, refcomp.decl_tensor_intrin(z, body))
    stores = [
        line.strip()
        for line in refcomp.print_func(refcomp.lower(s, [a, w, c])).splitlines()
        if "=" in line
    ]
    assert stores == [
        "C[n, h, x.outer * 4, o.outer * 8] = A[n, h, x.outer * 4 + 3, 7] * W[o.outer * 8 + 5, 6]"
    ]


def test_an_axis_as_a_value_is_what_it_is():
    a, x = refcomp.placeholder((16,), name="A"), refcomp.placeholder((8,), name="x")
    c = refcomp.compute((16,), lambda i: a[i] * i.astype("float32"), name="C")
    y = refcomp.compute((8,), lambda i: x[i] * i.astype("float32"), name="y")
    s = refcomp.create_schedule(c)
    intrin = refcomp.decl_tensor_intrin(y, lambda i, o: o[0].vstore(0, i[0][0]))
    s[c].tensorize(s[c].split(c.op.axis[0], 8)[1], intrin)
    with pytest.raises(UserError, match=re.escape("i.outer * 8 + i in the loops, i in the intrin")):
        refcomp.lower(s, [a, c])


def test_the_stage_s_own_operation_is_an_intrinsic():
    a, b, c, _ = product(8, 8, 8)
    s = refcomp.create_schedule(c)
    intrin = refcomp.decl_tensor_intrin(c, lambda i, o: o[0].vstore((0, 0), i[0][1, 2]))
    s[c].tensorize(c.op.axis[0], intrin)
    assert "C[0, 0] = A[1, 2]" in refcomp.print_func(refcomp.lower(s, [a, b, c]))


def test_what_an_operation_does_not_read():
    x = refcomp.placeholder((9, 8), name="x")
    for value, is_read_whole in (
        (lambda i: x[i, 0], False),
        (lambda i: x[i, i] + x[i + 1, 7], True),
        (lambda i: x[8 - i, i], False),
    ):
        y = refcomp.compute((8,), value, name="y")
        assert is_covered(y.op, x) is is_read_whole
