"""The rules for arguments, each with its whole message, and against a search for any solution."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.artifacts import (
    Dim,
    ScalarParam,
    Signature,
    TensorParam,
    evaluate_dim,
    signature_from_json,
)
from refcomp.foundation.dtype import BOOL, F32, I32, I64, STRING, DType
from refcomp.foundation.errors import UserError
from refcomp.runtime.arrays.argument_rules import (
    admit,
    check_signature,
    overlap_error,
    shape_scalars,
)
from refcomp.runtime.arrays.ndarray import ALIGNED, CONTIGUOUS, LAYOUT, WRITABLE, Form


def _signature(
    *shapes: tuple[Dim, ...], symbols: tuple[str, ...] = (), outputs: int = 1
) -> Signature:
    """f(A, B, ...) of f32 with these shapes; the last `outputs` are written."""
    params = tuple(
        TensorParam("ABCDE"[k], F32, shape, k >= len(shapes) - outputs)
        for k, shape in enumerate(shapes)
    )
    return Signature("f", params, symbols)


def _form(*shape: int, dtype: str = "f4", device: str = "cpu:0", layout: int = LAYOUT) -> Form:
    return (np.dtype(dtype), shape, device, layout)


def _refusal(signature: Signature, *forms: Form, **scalars: int) -> str:
    check_signature(signature)
    with pytest.raises(UserError) as caught:
        admit(signature, "cpu:0", forms, scalars)
    return str(caught.value)


# ---- signatures ------------------------------------------------------------------------------


def test_a_symbol_must_be_readable() -> None:
    signature = _signature((("floordiv", "n", 2),), (("max", "n", "m"), "m"), symbols=("n", "m"))
    with pytest.raises(UserError) as caught:
        check_signature(signature)
    assert str(caught.value) == (
        "no argument's shape determines the symbol n\n"
        "  where: f(A: f32[(n // 2)], B: f32[max(n, m), m] (output))\n"
        "  why: it appears only in expressions: (n // 2) in A, max(n, m) in B\n"
        "  what to do: make n alone a dimension of some argument, or pass it as a scalar"
    )
    with pytest.raises(UserError, match="why: it appears in no shape"):
        check_signature(_signature((2,), symbols=("n",)))


def test_symbols_are_solved_from_linear_dimensions() -> None:
    signature = _signature((("sub", "n", 2),), (("mul", "n", "m"),), symbols=("n", "m"))
    check_signature(signature)
    assert admit(signature, "cpu:0", [_form(3), _form(20)], {}).symbols == (5, 4)
    assert _refusal(signature, _form(3), _form(21)) == (
        "dimension 0 of argument B (2 of 2) is 21, expected n * m = 20\n"
        f"  where: {signature}\n"
        "  why: n is 5 by dimension 0 of A; m is 4 by dimension 0 of B\n"
        "  what to do: pass arrays whose shapes agree"
    )


def test_a_negative_dimension_is_refused_with_advice() -> None:
    signature = _signature(("n",), (("sub", "n", 2),), symbols=("n",))
    assert _refusal(signature, _form(1), _form(0)) == (
        "dimension 0 of argument B (2 of 2) is 0, expected n - 2 = -1\n"
        f"  where: {signature}\n"
        "  why: n is 1 by dimension 0 of A\n"
        "  what to do: pass arrays of sizes that fit: n must be at least 2"
    )


def test_a_symbol_that_is_multiplied_by_zero_cannot_be_solved() -> None:
    signature = _signature(("n",), (("mul", "n", "m"),), (4,), symbols=("n", "m"))
    assert _refusal(signature, _form(0), _form(0), _form(4)) == (
        "the size of m does not follow from the shapes of the arguments\n"
        f"  where: {signature}\n"
        "  why: a factor of m is 0 in this call: n is 0\n"
        "  what to do: make m alone a dimension of some argument, or pass it as a scalar"
    )


def test_a_size_that_no_result_can_show_is_zero() -> None:
    signature = _signature(("n",), (("mul", "n", "m"),), symbols=("n", "m"))
    assert admit(signature, "cpu:0", [_form(0), _form(0)], {}).symbols == (0, 0)
    without = _signature(("n",), (("mul", "n", "m"),), symbols=("n", "m"), outputs=0)
    assert "the size of m does not follow" in _refusal(without, _form(0), _form(0))


def test_names_in_shapes_must_be_known() -> None:
    with pytest.raises(
        UserError, match=r"the shape of A depends on k, which is unknown\n(.|\n)*decl"
    ):
        check_signature(_signature(("k",)))
    params = (ScalarParam("k", F32), TensorParam("A", F32, ("k",)))
    with pytest.raises(UserError, match="depends on k, which is unknown"):
        check_signature(Signature("f", params))


def test_names_must_differ() -> None:
    twice = (TensorParam("A", F32, ()), TensorParam("A", F32, ()))
    for signature in (
        Signature("f", twice),
        Signature("f", (TensorParam("A", F32, ("A",)),), ("A",)),
        _signature(("n",), symbols=("n", "n")),
    ):
        with pytest.raises(UserError, match=r"two parameters or symbols are called [An]\n.*where"):
            check_signature(signature)


@pytest.mark.parametrize("dtype", [F32.with_lanes(4), STRING, DType("handle", 64)])
def test_dtypes_must_be_scalar(dtype: DType) -> None:
    for param in (TensorParam("A", dtype, ()), ScalarParam("A", dtype)):
        with pytest.raises(
            UserError, match=rf"parameter A has dtype {dtype}\n.*\n.*a scalar dtype"
        ):
            check_signature(Signature("f", (param,)))


def test_integer_scalars_in_shapes() -> None:
    params = (
        ScalarParam("k", I64),
        ScalarParam("other", I64),
        ScalarParam("flag", BOOL),
        TensorParam("A", F32, (("add", "k", 1), "n")),
    )
    signature = Signature("f", params, ("n",))
    check_signature(signature)
    assert shape_scalars(signature) == {"k": 0}
    assert admit(signature, "cpu:0", [_form(4, 5)], {"k": 3}).symbols == (5,)
    assert _refusal(signature, _form(3, 5), k=3) == (
        "dimension 0 of argument A (4 of 4) is 3, expected k + 1 = 4\n"
        f"  where: {signature}\n"
        "  why: k is 3 by argument k\n"
        "  what to do: pass arrays whose shapes agree"
    )


# ---- one argument ----------------------------------------------------------------------------

ONE = _signature(("n", 4), symbols=("n",))
INPUT = _signature(("n", 4), symbols=("n",), outputs=0)
_WHERE = f"  where: {ONE}\n"


def test_device() -> None:
    assert _refusal(ONE, _form(3, 4, device="cuda:0")) == (
        "argument A (1 of 1) lies on cuda:0, expected on cpu:0\n"
        f"{_WHERE}  what to do: make it there: refcomp.nd.empty(shape, dtype, refcomp.cpu(0))"
    )
    assert _refusal(INPUT, _form(3, 4, device="cuda:0")).endswith(
        "what to do: copy it there: refcomp.nd.array(a, refcomp.cpu(0))"
    )
    with pytest.raises(UserError, match="array.a, x.device., of an array x on that device"):
        admit(INPUT, "rocm_emulator_gfx942:0", (_form(3, 4),), {})


def test_dtype() -> None:
    assert _refusal(ONE, _form(3, 4, dtype="f8")) == (
        "argument A (1 of 1) has dtype float64, expected float32\n"
        f"{_WHERE}  what to do: convert it: a.astype('float32')"
    )
    assert "has dtype object, expected float32" in _refusal(ONE, _form(3, 4, dtype="O"))
    assert "has dtype int32, expected float32" in _refusal(ONE, _form(3, 4, dtype=">i4"))


def test_byte_order() -> None:
    assert _refusal(ONE, _form(3, 4, dtype=">f4")) == (
        "argument A (1 of 1) is in a byte order that is not this machine's (dtype >f4)\n"
        f"{_WHERE}  what to do: convert it: a.astype('float32')"
    )


def test_rank() -> None:
    assert _refusal(ONE, _form(12)) == (
        "argument A (1 of 1) has rank 1 (shape (12,)), expected rank 2 ([n, 4])\n"
        f"{_WHERE}  what to do: reshape it"
    )


def test_contiguity() -> None:
    assert _refusal(ONE, _form(3, 4, layout=ALIGNED | WRITABLE)) == (
        "argument A (1 of 1) is not C-contiguous\n"
        f"{_WHERE}  why: compiled code needs compact row-major memory\n"
        "  what to do: results are written in place: pass a compact array, and copy from it "
        "afterwards"
    )
    assert "pass a compact copy: numpy.array(a, order='C')" in _refusal(
        INPUT, _form(3, 4, layout=ALIGNED)
    )


def test_alignment() -> None:
    assert "does not start at a multiple of its element's 4 bytes" in _refusal(
        ONE, _form(3, 4, layout=CONTIGUOUS | WRITABLE)
    )


def test_only_outputs_must_be_writable() -> None:
    read_only = _form(3, 4, layout=CONTIGUOUS | ALIGNED)
    assert "argument A (1 of 1) is an output, but read-only" in _refusal(ONE, read_only)
    assert admit(INPUT, "cpu:0", [read_only], {}).symbols == (3,)


# ---- dimensions ------------------------------------------------------------------------------


def test_a_constant_dimension() -> None:
    assert _refusal(ONE, _form(3, 5)) == (
        "dimension 1 of argument A (1 of 1) is 5, expected 4\n"
        f"{_WHERE}  what to do: pass arrays whose shapes agree"
    )


def test_a_symbol_keeps_its_first_value() -> None:
    signature = _signature(("n", "k"), ("k", "m"), ("n", "m"), symbols=("n", "m", "k"))
    forms = [_form(2, 3), _form(3, 4), _form(2, 4)]
    assert admit(signature, "cpu:0", forms, {}).symbols == (2, 4, 3)
    assert _refusal(signature, _form(2, 3), _form(5, 4), _form(2, 4)) == (
        "dimension 0 of argument B (2 of 3) is 5, expected k = 3\n"
        f"  where: {signature}\n"
        "  why: k is 3 by dimension 1 of A\n"
        "  what to do: pass arrays whose shapes agree"
    )


def test_expressions_may_come_before_their_symbols() -> None:
    half: Dim = ("floordiv", ("add", "n", 1), 2)
    signature = _signature((half,), ("n", "m"), (("max", "n", "m"),), symbols=("n", "m"))
    admitted = admit(signature, "cpu:0", [_form(4), _form(7, 2), _form(7)], {})
    assert admitted.symbols == (7, 2)
    assert "expected (n + 1) // 2 = 4\n" in _refusal(signature, _form(5), _form(7, 2), _form(7))
    assert "why: n is 7 by dimension 0 of B; m is 2 by dimension 1 of B" in _refusal(
        signature, _form(4), _form(7, 2), _form(8)
    )


_DIMS: st.SearchStrategy[Dim] = st.recursive(
    st.integers(0, 4) | st.sampled_from(["n", "m"]),
    lambda inner: st.tuples(
        st.sampled_from(["add", "sub", "mul", "floordiv", "floormod", "min", "max"]), inner, inner
    ),
    max_leaves=4,
)


@pytest.mark.search
@given(
    st.lists(st.lists(_DIMS, max_size=3).map(tuple), min_size=1, max_size=3),
    st.integers(0, 4),
    st.integers(0, 4),
    st.data(),
)
def test_admits_exactly_the_shapes_that_have_a_solution(
    shapes: list[tuple[Dim, ...]], n: int, m: int, data: st.DataObject
) -> None:
    signature = _signature(*shapes, ("n", "m"), symbols=("m", "n"))
    check_signature(signature)
    expected = [[evaluate_dim(dim, {"n": n, "m": m}) for dim in shape] for shape in shapes]
    found = [*[[max(0, dim) for dim in shape] for shape in expected], [n, m]]
    for shape in data.draw(st.lists(st.sampled_from(found), max_size=1)):
        if shape:
            shape[data.draw(st.integers(0, len(shape) - 1))] = data.draw(st.integers(0, 5))
    has_solution = any(
        all(
            tuple(shape) == tuple(evaluate_dim(dim, {"n": i, "m": j}) for dim in param.shape)
            for shape, param in zip(found, signature.params, strict=True)
        )
        for i, j in itertools.product(range(6), repeat=2)
    )
    forms = [_form(*shape) for shape in found]
    if has_solution:
        assert admit(signature, "cpu:0", forms, {}).symbols == (found[-1][1], found[-1][0])
    else:
        assert "expected" in _refusal(signature, *forms)


# ---- what may overlap ------------------------------------------------------------------------


def test_pairs_are_outputs_with_all_others_once() -> None:
    signature = _signature((2,), (3,), (4,), (5,), outputs=2)
    admitted = admit(signature, "cpu:0", [_form(k) for k in (2, 3, 4, 5)], {})
    assert admitted.pairs == (
        (2, 16, 0, 8),
        (2, 16, 1, 12),
        (2, 16, 3, 20),
        (3, 20, 0, 8),
        (3, 20, 1, 12),
    )


def test_empty_arrays_overlap_nothing() -> None:
    signature = _signature((2, "n"), (3,), (4, "n"), symbols=("n",), outputs=2)
    assert admit(signature, "cpu:0", [_form(2, 0), _form(3), _form(4, 0)], {}).pairs == ()


def test_the_message_of_an_overlap() -> None:
    params = (ScalarParam("k", I32), TensorParam("A", F32, ()), TensorParam("B", F32, (), True))
    assert str(overlap_error(Signature("f", params), 2, 1)) == (
        "argument B (3 of 3) is an output and shares memory with argument A (2 of 3)\n"
        "  where: f(k: i32, A: f32[], B: f32[] (output))\n"
        "  why: compiled code may write the output before it has read the other\n"
        "  what to do: pass an output with memory of its own, or a copy of the other argument"
    )


def test_a_signature_from_a_file_is_checked_the_same() -> None:
    signature = signature_from_json(_signature((("floordiv", "n", 2),), symbols=("n",)).to_json())
    with pytest.raises(UserError, match="no argument's shape determines the symbol n"):
        check_signature(signature)
