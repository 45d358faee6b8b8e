"""C functions of this host."""

import ctypes

import numpy as np
import pytest

from refcomp.foundation.c_functions import c_type, call_c_function, find_c_function, library_paths
from refcomp.foundation.dtype import BOOL, F32, F64, I32, SCALAR_DTYPES, as_dtype
from refcomp.foundation.errors import UserError


def test_functions_of_the_c_library_are_found():
    assert call_c_function(find_c_function("hypot"), [(3.0, F64), (4.0, F64)], F64) == 5.0
    assert call_c_function(find_c_function("abs"), [(-7, I32)], I32) == 7


def test_an_array_is_passed_by_its_address():
    a = np.array([1, 0], np.uint8)
    call_c_function(find_c_function("memset"), [a[1:], (9, I32), (1, as_dtype("u64"))], I32)
    assert a.tolist() == [1, 9]


def test_each_caller_gets_an_object_of_its_own():
    first = find_c_function("fabs")
    call_c_function(first, [(-1.0, F64)], F64)
    assert find_c_function("fabs").argtypes is None


def test_a_missing_function_says_where_it_was_sought():
    with pytest.raises(UserError, match="unknown C function 'no_such_function'") as caught:
        find_c_function("no_such_function")
    assert "searched: libm.so.6, libc.so.6" in str(caught.value)
    assert "-libs=/path/to/it.so" in str(caught.value)


def test_what_others_have_loaded_is_not_looked_at():
    with pytest.raises(UserError, match="unknown C function 'Py_IsInitialized'"):
        find_c_function("Py_IsInitialized")


def test_a_shared_object_that_does_not_load(tmp_path):
    path = tmp_path / "mine.so"
    path.write_bytes(b"rubbish")
    with pytest.raises(UserError, match=r"mine\.so cannot be loaded\n  why: (.|\n)*-libs="):
        library_paths(str(path))
    assert library_paths("") == ()


def test_types():
    sizes = {dtype: c_type(dtype) for dtype in SCALAR_DTYPES if dtype.bits >= 32 or dtype.is_int}

    assert all(ctypes.sizeof(c) == dtype.bytes for dtype, c in sizes.items())
    assert c_type(BOOL) is ctypes.c_bool and c_type(F32) is ctypes.c_float
