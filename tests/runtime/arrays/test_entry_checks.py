"""Whole calls: what machine code is handed, what is refused each time, and no overlap missed."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from refcomp.foundation.artifacts import ScalarParam, Signature, TensorParam
from refcomp.foundation.dtype import F32, I64, SCALAR_DTYPES, DType, as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.runtime.arrays import entry_checks
from refcomp.runtime.arrays.entry_checks import EntryChecks
from refcomp.runtime.arrays.ndarray import array, empty, from_numpy
from refcomp.runtime.device import Device
from tests.runtime.test_device import FarMemory

MATMUL = Signature(
    "matmul",
    (
        TensorParam("A", F32, ("n", "k")),
        TensorParam("B", F32, ("k", "m")),
        TensorParam("C", F32, ("n", "m"), is_output=True),
        ScalarParam("alpha", F32),
    ),
    ("n", "k", "m"),
)


def _arrays(n: int = 2, k: int = 3, m: int = 4) -> list[np.ndarray]:
    return [np.zeros(shape, np.float32) for shape in ((n, k), (k, m), (n, m))]


def _address(array: np.ndarray) -> int:
    return array.ctypes.data


def test_what_machine_code_is_handed() -> None:
    a, b, c = _arrays()
    values = EntryChecks(MATMUL).check((a, array(b), from_numpy(c), 0.5))
    assert values[0] == _address(a)
    assert values[1] not in (0, _address(b))
    assert values[2:] == [_address(c), 0.5, 2, 3, 4]


@pytest.mark.parametrize(("n", "k", "m"), [(0, 0, 0), (0, 3, 4), (2, 0, 4), (1, 1, 1)])
def test_empty_extents(n: int, k: int, m: int) -> None:
    assert EntryChecks(MATMUL).check((*_arrays(n, k, m), 1.0))[4:] == [n, k, m]


def test_the_number_of_arguments() -> None:
    checks = EntryChecks(MATMUL)
    for args in ((), (1, 2, 3), (1, 2, 3, 4, 5)):
        with pytest.raises(UserError) as caught:
            checks.check(args)
        assert str(caught.value) == (
            f"matmul takes 4 arguments, not {len(args)}\n"
            f"  where: {MATMUL}\n"
            "  what to do: pass A, B, C, alpha; outputs are arguments, too: "
            "refcomp.empty(shape, dtype)"
        )


@pytest.mark.parametrize(
    "value", [None, [1.0], 1.0, np.float32(1), b"12", np.ma.masked_array(np.zeros((3, 4)))]
)
def test_what_is_no_array(value: Any) -> None:
    a, _, c = _arrays()
    with pytest.raises(UserError) as caught:
        EntryChecks(MATMUL).check((a, value, c, 1.0))
    assert str(caught.value) == (
        f"argument B (2 of 4) is a {type(value).__name__}, expected an array\n"
        f"  where: {MATMUL}\n"
        "  what to do: pass an NDArray or a numpy array: refcomp.array(value)"
    )


def test_subclasses_of_numpy_arrays_are_arrays(tmp_path: Any) -> None:
    a, b, _ = _arrays()
    c = np.memmap(tmp_path / "c", np.float32, "w+", shape=(2, 4))
    assert EntryChecks(MATMUL).check((a.view(np.recarray), b, c, 1.0))[2] == _address(c)


def test_every_rule_holds_on_every_call() -> None:
    """Also after a call of the same shapes has been admitted."""
    checks = EntryChecks(MATMUL)
    a, b, c = _arrays()
    read_only = c.copy()
    read_only.flags.writeable = False
    raw = np.zeros(4 * c.size + 1, np.uint8)
    for _ in range(2):
        checks.check((a, b, c, 1.0))
        for args, message in (
            ((a, b, c, 1), None),
            ((a, b, c, "1"), "argument alpha is a str, expected a scalar f32"),
            ((a, b, c, 1e300), "argument alpha is 1e.300, which f32 cannot hold"),
            ((a, b.astype(np.float64), c, 1.0), r"B \(2 of 4\) has dtype float64"),
            ((a, b.astype(">f4"), c, 1.0), r"B \(2 of 4\) is in a byte order"),
            ((a, b.T.copy().T, c, 1.0), r"B \(2 of 4\) is not C-contiguous"),
            ((a, b[0], c, 1.0), r"B \(2 of 4\) has rank 1"),
            ((a, b, c[:1], 1.0), r"dimension 0 of argument C \(3 of 4\) is 1, expected n = 2"),
            ((a, b, read_only, 1.0), r"C \(3 of 4\) is an output, but read-only"),
            ((a, b, from_numpy(read_only), 1.0), r"C \(3 of 4\) is an output, but read-only"),
            ((a, b, raw[1:].view(np.float32).reshape(2, 4), 1.0), r"C \(3 of 4\) does not start"),
            ((a, b, empty((2, 4), "float32", FAR), 1.0), r"C \(3 of 4\) lies on far:0"),
        ):
            if message is None:
                checks.check(args)
                continue
            with pytest.raises(UserError, match=message):
                checks.check(args)


FAR = Device("far", 0, FarMemory())


def test_read_only_inputs_are_welcome() -> None:
    a, b, c = _arrays()
    a.flags.writeable = False
    assert EntryChecks(MATMUL).check((a, from_numpy(b), c, 1.0))[0] == _address(a)


def test_a_function_of_another_device() -> None:
    signature = Signature("f", (TensorParam("A", F32, (2,)),))
    checks = EntryChecks(signature, "far:0")
    on_device = empty(2, "float32", FAR)
    assert checks.check((on_device,)) == [on_device.address]
    for on_host in (np.zeros(2, np.float32), empty(2)):
        with pytest.raises(UserError, match="A .1 of 1. lies on cpu:0, expected on far:0"):
            checks.check((on_host,))


def test_signatures_are_checked_at_once() -> None:
    with pytest.raises(UserError, match="no argument's shape determines the symbol n"):
        EntryChecks(Signature("f", (TensorParam("A", F32, (("floordiv", "n", 2),)),), ("n",)))


def test_scalars_in_shapes_are_told_apart() -> None:
    params = (ScalarParam("k", I64), TensorParam("A", F32, (("mul", "k", 2),)))
    checks = EntryChecks(Signature("f", params))
    four = np.zeros(4, np.float32)
    assert checks.check((2, four)) == [2, _address(four)]
    with pytest.raises(UserError, match=r"is 4, expected k \* 2 = 6"):
        checks.check((3, four))
    assert checks.check((2, four)) == [2, _address(four)]
    with pytest.raises(UserError, match="k must be at least 0"):
        checks.check((-1, four))


def test_many_shapes_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_checks, "_MAX_KNOWN", 4)
    checks = EntryChecks(MATMUL)
    for n in range(11):
        assert checks.check((*_arrays(n), 1.0))[4] == n
        assert len(checks._known) <= 4


@pytest.mark.parametrize("dtype", SCALAR_DTYPES, ids=str)
def test_every_dtype_is_told_from_all_others(dtype: DType) -> None:
    checks = EntryChecks(Signature("f", (TensorParam("A", dtype, ("n",), True),), ("n",)))
    for other in SCALAR_DTYPES:
        value = np.zeros(3, to_numpy(other))
        for arg in (value, from_numpy(value)):
            if other == dtype:
                assert checks.check((arg,)) == [_address(value), 3]
                continue
            with pytest.raises(UserError, match=f"has dtype {to_numpy(other).name}, expected"):
                checks.check((arg,))


def test_bfloat16_is_not_any_two_bytes() -> None:
    checks = EntryChecks(Signature("f", (TensorParam("A", as_dtype("bf16"), (1,)),)))
    checks.check((np.zeros(1, ml_dtypes.bfloat16),))
    with pytest.raises(UserError, match="has dtype uint16, expected bfloat16"):
        checks.check((np.zeros(1, np.uint16),))


# ---- overlap ---------------------------------------------------------------------------------

TWO_OUTPUTS = Signature(
    "f",
    (
        TensorParam("A", F32, ("a",)),
        TensorParam("B", F32, ("b",)),
        TensorParam("C", F32, ("c",), is_output=True),
        TensorParam("D", F32, ("d",), is_output=True),
    ),
    ("a", "b", "c", "d"),
)
_SPANS = st.tuples(st.integers(0, 12), st.integers(0, 12)).map(sorted)


@given(st.lists(_SPANS, min_size=4, max_size=4), st.lists(st.booleans(), min_size=4, max_size=4))
def test_overlap_is_exact(spans: list[list[int]], wrapped: list[bool]) -> None:
    memory = np.zeros(12, np.float32)
    parts = [memory[start:stop] for start, stop in spans]
    for part in parts[:2]:
        part.flags.writeable = False
    args = [from_numpy(part) if wrap else part for part, wrap in zip(parts, wrapped, strict=True)]
    elements = [set(range(start, stop)) for start, stop in spans]
    overlaps = [
        (i, j) for i, j in ((2, 0), (2, 1), (2, 3), (3, 0), (3, 1)) if elements[i] & elements[j]
    ]
    checks = EntryChecks(TWO_OUTPUTS)
    if not overlaps:
        checks.check(args)
        return
    output, other = ("ABCD"[position] for position in overlaps[0])
    with pytest.raises(
        UserError, match=rf"argument {output} .* shares memory with argument {other} "
    ):
        checks.check(args)


def test_inputs_may_share_memory() -> None:
    a = np.zeros((3, 3), np.float32)
    EntryChecks(MATMUL).check((a, a, a.copy(), 1.0))


def test_neighbours_do_not_overlap() -> None:
    memory = np.zeros(4, np.float32)
    EntryChecks(TWO_OUTPUTS).check((memory[:1], memory[3:], memory[1:2], memory[2:3]))


def test_reinterpreted_memory_overlaps_too() -> None:
    signature = Signature(
        "f", (TensorParam("A", as_dtype("u8"), (4,)), TensorParam("B", F32, (2,), is_output=True))
    )
    out = np.zeros(2, np.float32)
    for start in range(5):
        with pytest.raises(UserError, match="B .2 of 2. is an output and shares memory with"):
            EntryChecks(signature).check((out.view(np.uint8)[start : start + 4], out))


# ---- what hypothesis draws -------------------------------------------------------------------


@given(
    st.sampled_from(SCALAR_DTYPES),
    st.lists(st.integers(0, 3), max_size=4),
    st.lists(st.sampled_from(["transpose", "step", "wider", "swap", "shift"]), max_size=2),
)
def test_accepts_an_array_exactly_when_numpy_says_it_is_compact(
    dtype: DType, shape: list[int], changes: list[str]
) -> None:
    value = np.zeros(shape, to_numpy(dtype))
    for change in changes:
        value = _changed(value, change)
    assume(value.ndim == len(shape))
    signature = Signature("f", (TensorParam("A", dtype, tuple("abcd"[: len(shape)]), True),))
    checks = EntryChecks(Signature("f", signature.params, tuple("abcd"[: len(shape)])))
    is_plain = value.flags.carray and value.dtype == to_numpy(dtype)
    if is_plain:
        assert checks.check((value,)) == [_address(value), *value.shape]
    else:
        with pytest.raises(UserError, match=r"argument A \(1 of 1\) (is|has|does)"):
            checks.check((value,))


def _changed(value: np.ndarray, change: str) -> np.ndarray:
    match change:
        case "transpose":
            return value.T
        case "step" if value.ndim:
            return np.repeat(value, 2, axis=0)[::2]
        case "wider" if value.ndim:
            return np.concatenate([value, value], axis=-1)[..., : value.shape[-1]]
        case "swap" if value.dtype.kind in "iuf":
            return value.astype(value.dtype.newbyteorder())
        case "shift":
            raw = np.zeros(value.nbytes + 1, np.uint8)
            return raw[1:].view(value.dtype).reshape(value.shape)
    return value
