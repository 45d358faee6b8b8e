"""Instructions of NVIDIA GPUs that kernels name, by LLVM: text, PTX, machine code, refusals."""

import re

import pytest

from refcomp.foundation.errors import Unsupported
from refcomp.ir.expr import PureExtern
from refcomp.ir.rewrite import walk
from refcomp.toolchain import disassemble
from tests.codegen.cuda.matrix_kernels import (
    DOTS,
    LOADS,
    OPCODES,
    PRODUCTS,
    as_kernel,
    dot_func,
    load_func,
    product_func,
)
from tests.codegen.nvptx.kernels import assemble, compile_ptx, print_kernels, use_llvm


def _kernels():
    funcs = [
        product_func(product, f"{what}{k}", numbers)
        for k, product in enumerate(PRODUCTS)
        for what, numbers in (("whole", [*range(product.c.count)]), ("one", [1]))
    ]
    funcs += [*map(dot_func, DOTS), *map(load_func, LOADS)]
    return [as_kernel(func, "nvptx") for func in funcs]


@pytest.mark.llvm
@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ["sm_90"])
def test_each_call_is_one_instruction(arch):
    kernels = _kernels()
    ptx = compile_ptx(kernels, arch)
    parts = re.split(r"\.text\.(\w+):\n", disassemble(assemble(ptx, arch)))[1:]
    texts = dict(zip(parts[::2], parts[1::2], strict=True))
    for kernel in kernels:
        (call,) = {node.name for node in walk(kernel.body) if isinstance(node, PureExtern)}
        (opcode,) = [opcode for part, opcode in OPCODES.items() if part in call]
        assert texts[kernel.name].count(f" {opcode}") == 1, (kernel.name, opcode)


@pytest.mark.llvm15
def test_the_oldest_llvm_takes_the_text(monkeypatch):
    use_llvm("15", monkeypatch)
    ptx = compile_ptx(_kernels(), "sm_80")
    assert ptx.count("mma.sync.aligned") == 2 * len(PRODUCTS)
    assert ptx.count("ldmatrix.sync.aligned") == len(LOADS)


@pytest.mark.parametrize("name", ["m16n8k16.row.col.f32.f32", "m16n8k32.row.col.s8"])
def test_golden(name, golden):
    (product,) = [p for p in PRODUCTS if p.name.endswith(f"mma.{name}")]
    func = product_func(product, "whole", [*range(4)])
    golden(f"nvptx/{name}.ll", print_kernels([as_kernel(func, "nvptx")], "sm_80").text)


def test_golden_matrix_load(golden):
    kernel = as_kernel(load_func((".trans", "bf16")), "nvptx")
    golden("nvptx/ldmatrix.ll", print_kernels([kernel], "sm_80").text)


def test_an_older_gpu_refuses():
    (product,) = [p for p in PRODUCTS if p.name.endswith(".bf16")]
    kernel = as_kernel(product_func(product, "whole", [0]), "nvptx")
    with pytest.raises(Unsupported, match="m16n8k16.row.col.bf16 need sm_80 or newer"):
        print_kernels([kernel], "sm_75")


def test_llvm_has_matrix_instructions_from_sm_80_on():
    """LLVM's PTX for sm_75 is older than the instructions of sm_75."""
    kernel = as_kernel(load_func(("", "f16")), "nvptx")
    with pytest.raises(Unsupported, match="m8n8.x4.b16 need sm_80 or newer"):
        print_kernels([kernel], "sm_75")
    dots = [as_kernel(dot_func(product), "nvptx") for product in DOTS]
    assert "dp4a.s32.s32 $0, $1, $2, $3;" in print_kernels(dots, "sm_75").text


def test_a_row_begins_at_a_multiple_of_its_size():
    kernel = as_kernel(load_func(("", "f16"), row=20), "nvptx")
    with pytest.raises(Unsupported, match="x4.b16 cannot load this row") as caught:
        print_kernels([kernel], "sm_80")
    assert "of S; a row is 16 bytes of shared memory" in caught.value.why
