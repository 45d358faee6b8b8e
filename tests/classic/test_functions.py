"""Functions with classic arguments: arrays with `ctx=`, LLVM intrinsics, temporary folders."""

import os

import numpy as np
import pytest

import refcomp as rc
from refcomp import classic as tvm
from refcomp.foundation.errors import UserError
from refcomp.foundation.registry import remove_global_func


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


def test_a_range_is_taken_by_reductions_and_threads() -> None:
    assert [str(part) for part in (tvm.Range(2, 8).min, tvm.Range(2, 8).extent)] == ["2", "6"]
    k = tvm.reduce_axis(tvm.Range(2, 8), name="k")
    assert (str(k.dom.min), str(k.dom.extent)) == ("2", "6")
    assert str(tvm.thread_axis(tvm.Range(0, 32), "threadIdx.x").dom.extent) == "32"
    with pytest.raises(UserError, match="must be an integer"):
        tvm.Range(tvm.var("x", "float32"))


def test_functions_are_registered_but_not_as_callbacks_on_texts() -> None:
    assert tvm.register_func("classic.next", lambda x: x + 1, True)(1) == 2
    assert tvm.get_global_func("classic.next")(1) == 2

    @tvm.register_func
    def tvm_callback_cuda_compile(code):  # refcomp calls nvcc itself
        return code

    remove_global_func("tvm_callback_cuda_compile")
    with pytest.raises(UserError) as info:

        @tvm.register_func
        def tvm_callback_cuda_postproc(code):
            return code

    assert info.value.what == "no compiler calls tvm_callback_cuda_postproc"
    assert "compile it yourself" in info.value.remedy
    with pytest.raises(UserError, match="no compiler calls tvm_callback_opencl_postproc"):
        tvm.register_func("tvm_callback_opencl_postproc", str)


def test_errors_of_refcomp_are_those_of_the_classic_system() -> None:
    with pytest.raises(tvm.TVMError):
        tvm.create_schedule(3)
    assert tvm._ffi.base.TVMError is tvm.TVMError is rc.RefcompError


def test_a_temporary_folder_is_removed() -> None:
    folder = tvm.contrib.util.tempdir()
    path = folder.relpath("a.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write("a")
    assert folder.listdir() == ["a.txt"]
    assert os.path.dirname(path) == folder.temp_dir
    folder.remove()
    assert not os.path.exists(folder.temp_dir)
