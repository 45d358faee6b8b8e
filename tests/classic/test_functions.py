"""Functions with classic arguments: arrays with `ctx=`, LLVM intrinsics, temporary folders."""

import os

import numpy as np
import pytest

import refcomp as rc
from refcomp import classic as tvm
from refcomp.foundation.errors import UserError


def test_arrays_take_their_device_as_ctx() -> None:
    a = tvm.nd.array(np.arange(3, dtype="int8"), ctx=tvm.cpu(0))
    assert (a.ctx, a.dtype, a.asnumpy().tolist()) == (rc.cpu(), "int8", [0, 1, 2])
    b = tvm.nd.empty((3,), ctx=tvm.context("llvm", 0))
    assert (b.shape, b.dtype, b.ctx) == ((3,), "float32", rc.cpu())
    assert tvm.nd.empty((), "int32", tvm.cpu()).dtype == "int32"
    with pytest.raises(UserError):
        tvm.nd.array([1.0], ctx="opencl")


def test_intrinsics_take_the_number_of_arguments_of_the_overload() -> None:
    x = tvm.var("x", "uint32")
    call = rc.call_llvm_intrin("uint32", "llvm.ctpop.i32", x)
    one = tvm.const(1, "uint32")
    for args in ((one, x), (x,)):
        made = tvm.call_llvm_intrin("uint32", "llvm.ctpop.i32", *args)
        assert str(made) == str(call) == "popcount(x)"
    assert tvm.intrin.call_llvm_intrin is tvm.call_llvm_intrin


def test_an_only_constant_is_an_argument() -> None:
    one = tvm.const(1, "uint32")
    assert str(tvm.call_llvm_intrin("uint32", "llvm.ctpop.i32", one)) == "popcount(1u32)"


def test_a_signed_constant_is_an_argument() -> None:
    x = tvm.var("x", "int32")
    made = tvm.call_llvm_intrin("int32", "llvm.fshl.i32", tvm.const(1, "int32"), x, x)
    assert str(made) == "extern i32 llvm.fshl.i32(1i32, x, x)"


def test_a_temporary_folder_is_removed() -> None:
    folder = tvm.contrib.util.tempdir()
    path = folder.relpath("a.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write("a")
    assert folder.listdir() == ["a.txt"]
    assert os.path.dirname(path) == folder.temp_dir
    folder.remove()
    assert not os.path.exists(folder.temp_dir)
