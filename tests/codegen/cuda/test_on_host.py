"""CUDA C++ as g++ gets it: the lines keep their numbers, and each kernel can be called."""

from refcomp.codegen.cuda.module import print_cuda
from refcomp.codegen.cuda.on_host import host_text, on_host
from refcomp.codegen.line_map import LineMap
from refcomp.foundation.artifacts import Source
from tests.codegen.device_kernels import device_kernel


def _body(text):
    return text.split('#line 1 "kernel.cu"\n')[1]


def test_lines_of_kernels_keep_their_numbers():
    source = print_cuda([device_kernel("group_sum"), device_kernel("halves")])
    ours = on_host(source)
    pairs = zip(source.text.splitlines(), _body(ours.text).splitlines(), strict=False)
    changed = [line for line, other in pairs if line != other]
    assert changed == [
        "#include <cuda_fp16.h>",
        "extern __shared__ __align__(16) unsigned char dynamic_shared[];",
    ]
    assert ours.line_map == source.line_map
    assert ours.text.startswith(host_text("kernels.h"))


def test_a_statement_of_ptx_becomes_a_call_on_as_many_lines():
    text = 'asm volatile(\n  "mma %0, %1;"\n  : "+f"(c0)\n  : "r"(a0)\n  : "memory");\nint last;\n'
    body = _body(on_host(Source(text, "cuda", LineMap([], []))).text)
    assert body.startswith('ptx("mma %0, %1;", c0, a0);\n\n\n\n\nint last;')


def test_each_kernel_has_an_entry_with_its_launch_bound():
    kernels = [device_kernel("matmul"), device_kernel("vector_add"), device_kernel("group_sum")]
    lines = _body(on_host(print_cuda(kernels)).text).splitlines()
    entries = [line for line in lines if line.startswith("KERNEL")]
    assert entries == ["KERNEL(matmul, 256)", "KERNEL(vector_add, 64)", "KERNEL(group_sum, 1024)"]
