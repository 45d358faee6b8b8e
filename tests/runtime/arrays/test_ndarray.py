"""Arrays: what copies and what shares, conversions, DLPack both ways, and the refusals."""

import gc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

from refcomp.foundation.dtype import SCALAR_DTYPES, DType, to_numpy
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.runtime.arrays.ndarray import NDArray, array, empty, from_dlpack, from_numpy
from refcomp.runtime.device import Device, cpu
from tests.runtime.test_device import FarMemory

DTYPES = pytest.mark.parametrize("dtype", SCALAR_DTYPES, ids=str)


def _numbers(dtype: DType, shape: tuple[int, ...] = (2, 3)) -> np.ndarray:
    size = int(np.prod(shape))
    return np.arange(size).reshape(shape).astype(to_numpy(dtype))


@pytest.fixture
def far() -> Device:
    return Device("far", 0, FarMemory())


# ---- attributes ------------------------------------------------------------------------------


@DTYPES
def test_attributes(dtype: DType) -> None:
    a = array(_numbers(dtype))
    assert (a.shape, a.ndim, len(a)) == ((2, 3), 2, 2)
    assert a.type == dtype
    assert a.dtype == to_numpy(dtype).name
    assert a.device == a.ctx == cpu(0)
    assert repr(a) == f"NDArray(shape=(2, 3), dtype={a.dtype}, device=cpu:0)"


def test_the_long_names_of_dtypes() -> None:
    names = [array(_numbers(dtype)).dtype for dtype in SCALAR_DTYPES]
    assert {"float32", "bfloat16", "bool", "int8", "uint64", "float16"} <= set(names)


def test_a_single_element_has_no_length() -> None:
    with pytest.raises(TypeError, match="without dimensions"):
        len(array(1.0))


# ---- copies ----------------------------------------------------------------------------------


@DTYPES
def test_array_copies(dtype: DType) -> None:
    source = _numbers(dtype)
    a = array(source)
    assert not np.shares_memory(a.numpy(), source)
    np.testing.assert_array_equal(a.asnumpy(), source)
    assert a.asnumpy().dtype == source.dtype
    source[:] = 0
    assert a.asnumpy()[1, 2] != 0


def test_asnumpy_copies() -> None:
    a = array([1.0, 2.0])
    copy = a.asnumpy()
    assert not np.shares_memory(copy, a.numpy())
    assert copy.flags.owndata
    assert copy.flags.writeable


def test_array_reads_what_numpy_reads() -> None:
    assert array(3).shape == ()
    assert array([[1, 2], [3, 4]]).dtype == "int64"
    assert array([1, 2], dtype="float32").dtype == "float32"
    assert array([1, 2], dtype="bf16").asnumpy().dtype == ml_dtypes.bfloat16
    assert array(range(3)).asnumpy().tolist() == [0, 1, 2]
    assert array(array([1, 2]), cpu(0), "int8").dtype == "int8"
    assert array(np.zeros((2, 0, 3))).shape == (2, 0, 3)


def test_array_makes_any_layout_compact() -> None:
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    for source in (base.T, base[::2, ::-1], np.broadcast_to(base[0], (3, 6)), base.astype(">f4")):
        a = array(source)
        assert a.numpy().flags.c_contiguous
        assert a.numpy().dtype.isnative
        np.testing.assert_array_equal(a.asnumpy(), source)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([[1], [1, 2]], r"a list cannot be read as an array\n.*inhomogeneous(.|\n)*equal lengths"),
        (np.array([1j]), "unknown dtype 'complex128'"),
        (["text"], "unknown dtype 'str128'"),
        ([None], "unknown dtype 'object'"),
        (np.array(["2020"], "datetime64[D]"), r"unknown dtype 'datetime64\[D\]'"),
        (np.ma.masked_array([1], [True]), r"a masked array cannot be converted\n.*filled"),
    ],
)
def test_array_refuses(source: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        array(source)


def test_array_refuses_vectors_and_values_that_do_not_fit() -> None:
    with pytest.raises(
        UserError, match=r"the elements of an array cannot be vectors \(f32x4\)\n.*use f32"
    ):
        array([1.0], dtype="float32x4")
    with pytest.raises(UserError, match="a list cannot be read as an array"):
        array([300], dtype="int8")
    with pytest.raises(UserError, match="this machine has no device cpu:1"):
        array([1.0], cpu(1))


# ---- empty -----------------------------------------------------------------------------------


@DTYPES
def test_empty(dtype: DType) -> None:
    a = empty((3, 5), str(dtype))
    assert (a.shape, a.type) == ((3, 5), dtype)
    assert a.address % 64 == 0
    assert a.numpy().flags.writeable
    a[:] = np.ones((3, 5), to_numpy(dtype))
    assert a.asnumpy().astype(int).sum() == 15


def test_empty_shapes() -> None:
    assert empty(4).shape == (4,)
    assert empty([2, np.int64(3)]).shape == (2, 3)
    assert empty(()).asnumpy().shape == ()
    assert empty((0, 7)).asnumpy().size == 0
    assert empty(2).dtype == "float32"
    for shape in ((-1,), (1.5,), ("2",), (True,)):
        with pytest.raises(UserError, match=r"is not an extent, in shape .*\n.*integers >= 0"):
            empty(shape)  # type: ignore[arg-type]


# ---- sharing with numpy ----------------------------------------------------------------------


@DTYPES
def test_from_numpy_and_numpy_share(dtype: DType) -> None:
    source = _numbers(dtype)
    a = from_numpy(source)
    assert np.shares_memory(a.numpy(), source)
    assert a.address == source.__array_interface__["data"][0]
    source[0, 0] = 1
    assert a.asnumpy()[0, 0] == 1
    a.numpy()[0, 1] = 0
    assert source[0, 1] == 0


@pytest.mark.search
@given(hnp.arrays(np.int16, hnp.array_shapes(min_dims=0, min_side=0, max_dims=4)))
def test_numpy_there_and_back(source: np.ndarray) -> None:
    a = from_numpy(source)
    assert a.shape == source.shape
    np.testing.assert_array_equal(a.numpy(), source)
    np.testing.assert_array_equal(array(source).asnumpy(), source)
    assert np.shares_memory(a.numpy(), source) or source.size == 0


def test_a_view_cannot_change_the_array() -> None:
    source = np.zeros((2, 3), np.float32)
    a = from_numpy(source)
    view = a.numpy()
    view.shape = (6,)
    source.shape = (3, 2)
    assert a.shape == a.numpy().shape == (2, 3)


@pytest.mark.search
def test_memory_lives_as_long_as_anything_that_shares_it() -> None:
    source = np.ones(1000)
    alive = weakref.ref(source)
    a = from_numpy(source)
    del source
    view = a.numpy()
    del a
    gc.collect()
    assert alive() is not None
    assert view.sum() == 1000
    del view
    gc.collect()
    assert alive() is None


@pytest.mark.search
def test_own_memory_lives_as_long_as_a_view() -> None:
    views = [array(np.full(1000, k)).numpy() for k in range(50)]
    gc.collect()
    assert [view.sum() for view in views] == [1000 * k for k in range(50)]


def _misaligned() -> np.ndarray:
    return np.zeros(9, np.uint8)[1:].view(np.float32)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (np.zeros((2, 3)).T, r"it is not C-contiguous \(shape \(3, 2\), strides \(8, 24\) bytes\)"),
        (np.zeros(6)[::2], r"not C-contiguous \(shape \(3,\), strides \(16,\) bytes\)"),
        (_misaligned(), "its start is not a multiple of 4 bytes"),
        (np.zeros(3, ">f4"), r"its byte order is not this machine's \(dtype >f4\)"),
    ],
)
def test_from_numpy_refuses_what_it_cannot_share(source: np.ndarray, reason: str) -> None:
    with pytest.raises(UserError, match=rf"cannot be shared: .*{reason}\n.*array\(a\) copies"):
        from_numpy(source)
    np.testing.assert_array_equal(array(source).asnumpy(), source)


def test_from_numpy_refuses_other_things() -> None:
    with pytest.raises(UserError, match=r"a list is not a numpy array\n.*refcomp.array"):
        from_numpy([1.0])  # type: ignore[arg-type]
    with pytest.raises(UserError, match="a masked array"):
        from_numpy(np.ma.masked_array([1.0]))
    with pytest.raises(UserError, match="unknown dtype 'complex64'"):
        from_numpy(np.zeros(1, np.complex64))


def test_read_only_memory_stays_read_only() -> None:
    source = np.ones(3)
    source.flags.writeable = False
    a = from_numpy(source)
    assert not a.numpy().flags.writeable
    for write in (lambda: a.copyfrom([1, 2, 3]), lambda: a.__setitem__(slice(None), 1)):
        with pytest.raises(UserError, match=r"the array is read-only\n(.|\n)*refcomp.array\(a\)"):
            write()
    assert source.sum() == 3


def test_the_array_protocol() -> None:
    a = array([1.5, 2.5])
    assert np.shares_memory(np.asarray(a), a.numpy())
    assert np.asarray(a, np.int32).tolist() == [1, 2]
    assert not np.shares_memory(np.array(a, copy=True), a.numpy())
    with pytest.raises(ValueError, match="copy"):
        a.__array__(np.int32, copy=False)
    assert (np.ones(2) + np.asarray(a)).tolist() == [2.5, 3.5]


# ---- copyto, copyfrom, items -----------------------------------------------------------------


def test_copyto() -> None:
    a, b = array([1.0, 2.0]), empty(2, "float64")
    assert a.copyto(b) is b
    assert b.asnumpy().tolist() == [1.0, 2.0]
    c = a.copyto(cpu(0))
    assert c.asnumpy().tolist() == [1.0, 2.0]
    assert not np.shares_memory(c.numpy(), a.numpy())


def test_copyto_refuses() -> None:
    a = array([1.0, 2.0])
    with pytest.raises(
        UserError,
        match=r"copyto cannot convert float64 to float32\n.*copyfrom\(a\), which converts",
    ):
        a.copyto(empty(2))
    with pytest.raises(
        UserError, match=r"of shape \(2,\) cannot be copied to an array of shape \(3,\)"
    ):
        a.copyto(empty(3, "float64"))
    with pytest.raises(UserError, match=r"cannot write a ndarray\n.*a.asnumpy\(\)"):
        a.copyto(np.zeros(2))  # type: ignore[arg-type]


def test_copyfrom_converts_but_does_not_broadcast() -> None:
    a = empty((2, 2))
    assert a.copyfrom([[1, 2], [3, 4]]) is a
    assert a.asnumpy().tolist() == [[1, 2], [3, 4]]
    a.copyfrom(array(np.full((2, 2), 7, np.int8)))
    assert a.asnumpy().tolist() == [[7, 7], [7, 7]]
    for source in ([1, 2], 1.0, [[[1, 2], [3, 4]]]):
        with pytest.raises(UserError, match=r"copied to an array of shape \(2, 2\)"):
            a.copyfrom(source)


def test_copyfrom_reads_any_layout_and_refuses_masks() -> None:
    target = empty((2, 3), "float32")
    expected = np.arange(6, dtype=np.float32).reshape(2, 3)
    for source in (
        expected,
        expected.copy(order="F"),
        expected.astype(">f4"),
        expected.astype(np.float64),
        np.arange(12, dtype=np.float32).reshape(2, 6)[:, ::2] / 2,
        array(expected),
        expected.tolist(),
    ):
        target[:] = -1.0
        np.testing.assert_array_equal(target.copyfrom(source).numpy(), expected)
    with pytest.raises(UserError, match="a masked array cannot be converted"):
        target.copyfrom(np.ma.masked_array(expected))


def test_items() -> None:
    a = array(np.arange(6).reshape(2, 3))
    assert a[1, 2] == 5
    assert a[0].tolist() == [0, 1, 2]
    assert a[:, 1:].tolist() == [[1, 2], [4, 5]]
    a[0][0] = 9
    assert a[0, 0] == 0, "what is read is a copy"
    a[:] = np.ones((2, 3))
    assert a.asnumpy().sum() == 6
    a[...] = 4
    assert a.asnumpy().sum() == 24
    single = array(1)
    single[()] = 5
    assert single.asnumpy() == 5


@pytest.mark.parametrize("index", [0, (0, 1), slice(0, 1), [True, False], np.array([0]), None])
def test_only_a_whole_array_can_be_set(index: Any) -> None:
    a = array([1.0, 2.0])
    with pytest.raises(UserError, match=r"only a whole array can be set\n.*numpy\(\)\[index\]"):
        a[index] = 0
    assert a.asnumpy().tolist() == [1.0, 2.0]


# ---- DLPack ----------------------------------------------------------------------------------

PORTABLE = [dtype for dtype in SCALAR_DTYPES if dtype.kind != "bfloat"]


@pytest.mark.parametrize("dtype", PORTABLE, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4)])
def test_dlpack_there_and_back_shares(dtype: DType, shape: tuple[int, ...]) -> None:
    a = array(_numbers(dtype, shape))
    there = np.from_dlpack(a)
    assert there.shape == shape
    assert there.dtype == to_numpy(dtype)
    back = from_dlpack(there)
    assert np.shares_memory(back.numpy(), a.numpy()) or there.size == 0
    np.testing.assert_array_equal(back.asnumpy(), a.asnumpy())


class Producer:
    """Offers DLPack and nothing else of an array."""

    def __init__(self, array: np.ndarray, device: tuple[int, int] = (1, 0)) -> None:
        self.array, self.device = array, device

    def __dlpack__(self, **request: Any) -> Any:
        return self.array.__dlpack__(**request)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


def test_from_any_producer() -> None:
    source = np.arange(4.0)
    a = from_dlpack(Producer(source))
    a.numpy()[0] = 7
    assert source[0] == 7


@pytest.mark.search
def test_dlpack_keeps_memory_alive() -> None:
    a = array(np.full(1000, 3))
    there = np.from_dlpack(a)
    back = from_dlpack(Producer(there))
    del a, there
    gc.collect()
    assert back.asnumpy().sum() == 3000


def test_an_own_array_needs_no_capsule() -> None:
    a = array([1.0], dtype="bfloat16")
    assert np.shares_memory(from_dlpack(a).numpy(), a.numpy())


def test_dlpack_device() -> None:
    assert array([1.0]).__dlpack_device__() == (1, 0)
    assert array([1.0], dtype="bfloat16").__dlpack_device__() == (1, 0)


def test_bfloat16_is_not_exported() -> None:
    a = array([1.0], dtype="bfloat16")
    with pytest.raises(Unsupported) as caught:
        np.from_dlpack(a)
    assert caught.value.what == "a bfloat16 array cannot be shared by DLPack"
    assert caught.value.remedy
    assert np.from_dlpack(from_numpy(a.numpy().view("uint16"))).tolist() == [0x3F80]


def test_read_only_memory_and_dlpack() -> None:
    source = np.ones(3)
    source.flags.writeable = False
    a = from_numpy(source)
    assert not np.from_dlpack(a).flags.writeable
    with pytest.raises(UserError, match=r"cannot be shared by DLPack\n.*readonly(.|\n)*a copy"):
        a.__dlpack__()


def test_from_dlpack_refuses() -> None:
    with pytest.raises(UserError, match=r"a list does not offer DLPack\n.*refcomp.array"):
        from_dlpack([1.0])
    with pytest.raises(UserError, match="not C-contiguous"):
        from_dlpack(np.zeros((2, 3)).T)
    with pytest.raises(UserError, match="unknown dtype 'complex64'"):
        from_dlpack(np.zeros(2, np.complex64))
    with pytest.raises(Unsupported, match=r"this ndarray cannot be shared by DLPack\n  why: .+\n"):
        from_dlpack(np.zeros(2, ml_dtypes.bfloat16))
    with pytest.raises(Unsupported, match=r"lies on DLPack's device \(4, 0\)\n.*\(1, 0\)"):
        from_dlpack(Producer(np.zeros(2), device=(4, 0)))


# ---- another kind of device ------------------------------------------------------------------


def test_an_array_on_a_device_the_host_cannot_reach(far: Device) -> None:
    source = np.arange(6, dtype=np.float32).reshape(2, 3)
    a = array(source, far)
    assert a.device == far
    np.testing.assert_array_equal(a.asnumpy(), source)
    np.testing.assert_array_equal(np.asarray(a), source)
    assert a[1, 2] == 5
    a[:] = 2
    assert a.copyto(cpu(0)).numpy().sum() == 12
    assert array([[1, 1, 1], [1, 1, 1]], dtype="float32").copyto(a) is a
    assert array(a).asnumpy().sum() == 6


def test_its_memory_is_not_shared(far: Device) -> None:
    a = empty(3, "float32", far)
    with pytest.raises(UserError, match=r"on far:0 cannot be shared with numpy\n(.|\n)*a.asnumpy"):
        a.numpy()
    with pytest.raises(ValueError, match="far:0 cannot become a numpy array without a copy"):
        a.__array__(copy=False)
    for share in (a.__dlpack__, a.__dlpack_device__):
        with pytest.raises(
            Unsupported, match=r"on far:0 cannot be shared by DLPack\n(.|\n)*copyto"
        ):
            share()


def test_arrays_are_values_of_their_own() -> None:
    a = array([1.0])
    assert a != array([1.0])
    assert a in {a}
    assert not hasattr(a, "__dict__")
    with pytest.raises(AttributeError):
        a.shape = (2,)  # type: ignore[misc]
    assert isinstance(a, NDArray)


def test_lanes_are_the_last_dimension() -> None:
    made = empty((3, 2), "float32x4")
    assert made.shape == (3, 2, 4) and made.dtype == "float32"
    assert empty(5, "int8x16").asnumpy().shape == (5, 16)
    with pytest.raises(UserError, match="use f32, with the lanes as the last dimension"):
        array(np.zeros((3, 4)), dtype="float32x4")
