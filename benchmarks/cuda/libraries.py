"""cuBLAS and cuDNN through ctypes: the functions that the benchmarks call, with their C signatures.

Arguments are addresses of device memory. All work goes to the default stream, like refcomp's. No
TF32: math modes allow only multiply-adds of f32.

Raises NotFound if a library is not there, and RuntimeError if a function fails.

Source: NVIDIA, cuBLAS Library (cublas_api.h) and cuDNN (cudnn_cnn.h, cudnn_ops.h).
"""

from __future__ import annotations

import ctypes
import glob
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from ctypes import POINTER, c_float, c_int, c_size_t, c_void_p
from typing import Any

_CUBLAS = ("libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so")
_CUDNN = ("libcudnn.so.9", "libcudnn.so.8", "libcudnn.so")
# Below each of these. Wheels of NVIDIA have a folder of their own, or share nvidia/cu13.
_FOLDERS = ("lib64", "lib", "targets/*/lib")

_F32, _F16 = 0, 2  # cudaDataType: CUDA_R_32F, CUDA_R_16F
_COMPUTE_F32 = 68  # CUBLAS_COMPUTE_32F
_DEFAULT_ALGORITHM = -1  # CUBLAS_GEMM_DEFAULT
_DEFAULT_MATH = 0  # CUBLAS_DEFAULT_MATH: sums of f32 in f32; CUDNN_DEFAULT_MATH
_NO_TRANSPOSE = 0  # CUBLAS_OP_N
_FMA_MATH = 3  # CUDNN_FMA_MATH
_CROSS_CORRELATION = 1
LAYOUTS = {"NCHW": 0, "NHWC": 1}  # CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC
_MAX_ALGORITHMS = 16

_CUBLAS_FUNCTIONS: Mapping[str, Sequence[Any]] = {
    "cublasCreate_v2": [POINTER(c_void_p)],
    "cublasDestroy_v2": [c_void_p],
    "cublasGetVersion_v2": [c_void_p, POINTER(c_int)],
    "cublasSetMathMode": [c_void_p, c_int],
    "cublasSgemm_v2": [
        *(c_void_p, c_int, c_int, c_int, c_int, c_int),  # handle, transposed a and b, m, n, k
        *(POINTER(c_float), c_void_p, c_int, c_void_p, c_int),  # alpha, a, b
        *(POINTER(c_float), c_void_p, c_int),  # beta, c
    ],
    "cublasGemmEx": [
        *(c_void_p, c_int, c_int, c_int, c_int, c_int),
        *(POINTER(c_float), c_void_p, c_int, c_int, c_void_p, c_int, c_int),
        *(POINTER(c_float), c_void_p, c_int, c_int),
        *(c_int, c_int),  # type of the sums, algorithm
    ],
}


class AlgorithmTime(ctypes.Structure):
    """An algorithm of a convolution and its time: cudnnConvolutionFwdAlgoPerf_t."""

    _fields_ = (
        ("algorithm", c_int),
        ("status", c_int),
        ("milliseconds", c_float),
        ("memory", c_size_t),
        ("determinism", c_int),
        ("math", c_int),
        ("reserved", c_int * 3),
    )


_FIVE = [c_void_p] * 5  # handle, input, weights, convolution, output: the last four are descriptors
_CUDNN_FUNCTIONS: Mapping[str, Sequence[Any]] = {
    "cudnnCreate": [POINTER(c_void_p)],
    "cudnnDestroy": [c_void_p],
    "cudnnCreateTensorDescriptor": [POINTER(c_void_p)],
    "cudnnDestroyTensorDescriptor": [c_void_p],
    "cudnnSetTensor4dDescriptor": [c_void_p, *[c_int] * 6],  # layout, type, n, c, h, w
    "cudnnCreateFilterDescriptor": [POINTER(c_void_p)],
    "cudnnDestroyFilterDescriptor": [c_void_p],
    "cudnnSetFilter4dDescriptor": [c_void_p, *[c_int] * 6],  # type, layout, k, c, h, w
    "cudnnCreateConvolutionDescriptor": [POINTER(c_void_p)],
    "cudnnDestroyConvolutionDescriptor": [c_void_p],
    # padding, strides and dilation of both axes, mode, type of the sums
    "cudnnSetConvolution2dDescriptor": [c_void_p, *[c_int] * 8],
    "cudnnSetConvolutionMathType": [c_void_p, c_int],
    "cudnnFindConvolutionForwardAlgorithm": [
        *(*_FIVE, c_int, POINTER(c_int), POINTER(AlgorithmTime)),
    ],
    "cudnnGetConvolutionForwardWorkspaceSize": [*_FIVE, c_int, POINTER(c_size_t)],
    "cudnnConvolutionForward": [
        *(c_void_p, POINTER(c_float), c_void_p, c_void_p, c_void_p, c_void_p),  # alpha, x, w
        *(c_void_p, c_int, c_void_p, c_size_t),  # convolution, algorithm, workspace
        *(POINTER(c_float), c_void_p, c_void_p),  # beta, y
    ],
}


class NotFound(Exception):
    """A library of NVIDIA is not on this machine."""


class CuBlas:
    """cuBLAS' products of matrices in rows, on the default stream of the current context."""

    def __init__(self) -> None:
        self._library = _loaded("cuBLAS", _CUBLAS, _CUBLAS_FUNCTIONS)
        self._handle = c_void_p()
        self._call("cublasCreate_v2", ctypes.byref(self._handle))
        self._call("cublasSetMathMode", self._handle, _DEFAULT_MATH)

    @property
    def version(self) -> str:
        """The version, as cuBLAS encodes it."""
        number = c_int()
        self._call("cublasGetVersion_v2", self._handle, ctypes.byref(number))
        return f"cuBLAS {number.value}"

    def product(self, n: int, a: int, b: int, c: int) -> None:
        """Queue C = A B for n x n matrices of f32. It takes columns first: C' = B' A'."""
        one, zero = c_float(1), c_float(0)
        sizes = (_NO_TRANSPOSE, _NO_TRANSPOSE, n, n, n)
        self._call("cublasSgemm_v2", self._handle, *sizes, one, b, n, a, n, zero, c, n)

    def product_of_halves(self, n: int, a: int, b: int, c: int) -> None:
        """Queue C = A B for matrices of f16, with sums and a result of f32."""
        one, zero = c_float(1), c_float(0)
        sizes = (_NO_TRANSPOSE, _NO_TRANSPOSE, n, n, n)
        operands = (one, b, _F16, n, a, _F16, n, zero, c, _F32, n)
        how = (_COMPUTE_F32, _DEFAULT_ALGORITHM)
        self._call("cublasGemmEx", self._handle, *sizes, *operands, *how)

    def close(self) -> None:
        """Give the handle back."""
        self._call("cublasDestroy_v2", self._handle)

    def _call(self, name: str, *args: Any) -> None:
        _checked(self._library, name, *args)


class CuDnnConvolution:
    """cuDNN's 3 x 3 convolution of f32, of stride 1 with a border of one zero, in one layout.

    Args:
        layout: NCHW, with weights [o, c, y, x], or NHWC, with weights [o, y, x, c].
        batch: images.
        size: height and width.
        channels: of the input and of the output.
    """

    def __init__(self, layout: str, batch: int, size: int, channels: int) -> None:
        self._library = _loaded("cuDNN", _CUDNN, _CUDNN_FUNCTIONS)
        self._handle = self._made("")
        number = LAYOUTS[layout]
        image = (batch, channels, size, size)
        self._input, self._output = self._made("TensorDescriptor"), self._made("TensorDescriptor")
        for descriptor in (self._input, self._output):
            self._call("cudnnSetTensor4dDescriptor", descriptor, number, 0, *image)
        self._weights = self._made("FilterDescriptor")
        window = (channels, channels, 3, 3)
        self._call("cudnnSetFilter4dDescriptor", self._weights, 0, number, *window)
        self._convolution = self._made("ConvolutionDescriptor")
        how = (1, 1, 1, 1, 1, 1, _CROSS_CORRELATION, 0)
        self._call("cudnnSetConvolution2dDescriptor", self._convolution, *how)
        self._call("cudnnSetConvolutionMathType", self._convolution, _FMA_MATH)
        self.algorithm, self.workspace_bytes = 0, 0

    @property
    def _descriptors(self) -> tuple[c_void_p, ...]:
        return self._handle, self._input, self._weights, self._convolution, self._output

    def find(self) -> float:
        """Choose the fastest algorithm, and return its seconds as cuDNN measured them.

        cuDNN also tries algorithms with TF32, which do not count. Default mathematics may use TF32,
        except where NVIDIA_TF32_OVERRIDE is 0. There it counts if nothing else does.
        """
        count, found = c_int(), (AlgorithmTime * _MAX_ALGORITHMS)()
        name = "cudnnFindConvolutionForwardAlgorithm"
        self._call(name, *self._descriptors, len(found), ctypes.byref(count), found)
        done = [f for f in found[: count.value] if f.status == 0]
        usable = [f for f in done if f.math == _FMA_MATH]
        if not usable and os.environ.get("NVIDIA_TF32_OVERRIDE") == "0":
            usable = [f for f in done if f.math == _DEFAULT_MATH]
        if not usable:
            raise RuntimeError("cuDNN has no algorithm without TF32 for this convolution")
        best = min(usable, key=lambda one: one.milliseconds)
        self.algorithm = best.algorithm
        size = c_size_t()
        name = "cudnnGetConvolutionForwardWorkspaceSize"
        self._call(name, *self._descriptors, self.algorithm, ctypes.byref(size))
        self.workspace_bytes = size.value
        return best.milliseconds / 1e3

    def run(self, x: int, w: int, y: int, workspace: int) -> None:
        """Queue the convolution. The arguments are addresses."""
        one, zero = c_float(1), c_float(0)
        handle, of_x, of_w, how, of_y = self._descriptors
        operands = (handle, one, of_x, x, of_w, w, how, self.algorithm)
        rest = (workspace, self.workspace_bytes, zero, of_y, y)
        self._call("cudnnConvolutionForward", *operands, *rest)

    def close(self) -> None:
        """Give the handle and the descriptors back."""
        for kind, made in (
            ("TensorDescriptor", self._input),
            ("TensorDescriptor", self._output),
            ("FilterDescriptor", self._weights),
            ("ConvolutionDescriptor", self._convolution),
            ("", self._handle),
        ):
            self._call(f"cudnnDestroy{kind}", made)

    def _made(self, kind: str) -> c_void_p:
        made = c_void_p()
        self._call(f"cudnnCreate{kind}", ctypes.byref(made))
        return made

    def _call(self, name: str, *args: Any) -> None:
        _checked(self._library, name, *args)


def _checked(library: ctypes.CDLL, name: str, *args: Any) -> None:
    status = getattr(library, name)(*args)
    if status:
        raise RuntimeError(f"{name} returned {status}")


def _loaded(
    title: str, names: Sequence[str], functions: Mapping[str, Sequence[Any]]
) -> ctypes.CDLL:
    for path in _candidates(names):
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for name, types in functions.items():
            function = getattr(library, name)
            function.argtypes, function.restype = types, c_int
        return library
    raise NotFound(
        f"{title} not found: sought {', '.join(names)} by the loader, below CUDA_HOME, "
        "/usr/local/cuda and in Python's packages"
    )


def _candidates(names: Sequence[str]) -> Iterator[str]:
    """Yield names for the loader, then paths in the toolkit and in wheels."""
    yield from names
    roots = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    roots += [os.path.join(place, "nvidia", "*") for place in sys.path if place]
    for root in filter(None, roots):
        for folder in _FOLDERS:
            for name in names:
                yield from sorted(glob.glob(os.path.join(root, folder, name)))
