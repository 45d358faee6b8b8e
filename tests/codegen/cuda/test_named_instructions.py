"""Instructions of NVIDIA GPUs that kernels name: printed, judged on this machine, and refused.

tests/ir/gpu_instructions/test_nvidia.py compares the fragments with the PTX ISA. The judge
(cuda_on_host.h) has formulas of its own, which say where an element comes from.
"""

import dataclasses
import re

import numpy as np
import pytest

import refcomp
from refcomp.codegen.cuda.module import print_cuda
from refcomp.codegen.signature import machine_symbol
from refcomp.foundation.compute_capability import capability_of
from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.foundation.errors import Unsupported
from refcomp.ir.expr import PureExtern
from refcomp.ir.gpu_instructions.nvidia import sum_error_bound
from refcomp.ir.parser import parse_func
from refcomp.ir.rewrite import walk
from refcomp.oracle.interpreter.interpret import interpret
from refcomp.toolchain import compile_source, disassemble
from tests.codegen.cuda.host_kernels import HostKernels
from tests.codegen.cuda.matrix_kernels import (
    DOTS,
    LOADS,
    OPCODES,
    PRODUCTS,
    as_kernel,
    dot_func,
    draw_case,
    load_func,
    product_func,
)

_WHOLE = {p.name: product_func(p, f"whole{k}", [*range(p.c.count)]) for k, p in enumerate(PRODUCTS)}
_ONE = {p.name: product_func(p, f"one{k}", [1]) for k, p in enumerate(PRODUCTS)}
_SHORT = {p.name.removeprefix("llvm.nvvm.mma."): p for p in PRODUCTS}


@pytest.mark.parametrize("product", PRODUCTS, ids=_SHORT)
def test_the_interpreter_agrees_with_numpy(product):
    case = draw_case(product)
    result = np.zeros_like(case.d)
    interpret(_WHOLE[product.name], [case.a, case.b, case.c, result])
    np.testing.assert_array_equal(result, case.d)


@pytest.fixture(scope="module")
def built():
    """All kernels of this file as one file, by name."""
    funcs = [*_WHOLE.values(), *_ONE.values(), *map(dot_func, DOTS), *map(load_func, LOADS)]
    kernels = {func.name: as_kernel(func) for func in funcs}
    return kernels, HostKernels(list(kernels.values()))


def _run(built, func, *args):
    """Run the kernel of a function with the function's arguments."""
    kernels, library = built
    given = {param.name: _bits(arg) for param, arg in zip(func.params, args, strict=True)}
    kernel = kernels[func.name]
    library.call(kernel, [given[param.name] for param in kernel.params])


def _bits(array):
    """A bf16 is passed as its bits."""
    is_standard = array.dtype.kind in "iuf"
    return array if is_standard else array.view(np.uint16)


@pytest.mark.gcc
@pytest.mark.parametrize("product", PRODUCTS, ids=_SHORT)
def test_the_printed_text_agrees_with_numpy(product, built):
    case = draw_case(product)
    args = [case.a, case.b, case.c]
    func = _WHOLE[product.name]
    result = np.zeros_like(case.d)
    _run(built, func, *args, result)
    np.testing.assert_array_equal(result, case.d)
    one = np.zeros_like(case.d)
    _run(built, _ONE[product.name], *args, one)
    np.testing.assert_array_equal(one[:, 1], case.d[:, 1])
    assert not one[:, 0].any()


@pytest.mark.gcc
@pytest.mark.parametrize("product", DOTS, ids=lambda p: str(p.element))
def test_dot_products_of_bytes(product, built):
    kernels, _ = built
    func = dot_func(product)
    rng, dtype = np.random.default_rng(2), to_numpy(product.element)
    info = np.iinfo(dtype)
    a, b = (rng.integers(info.min, info.max, (8, 4), endpoint=True) for _ in "ab")
    c = rng.integers(0, 2**31, 8)
    expected = (a * b).sum(1) + c
    args = [a.astype(dtype), b.astype(dtype), c.astype(to_numpy(product.sum))]
    for run in (
        lambda out: interpret(func, [*args, out]),
        lambda out: _run(built, func, *args, out),
    ):
        result = np.zeros(8, args[2].dtype)
        run(result)
        np.testing.assert_array_equal(result, expected.astype(result.dtype))
    text = print_cuda([kernels[func.name]]).text
    kind = "int" if product.element.kind == "int" else "unsigned"
    assert f"__dp4a(({kind})packed(" in text


@pytest.mark.gcc
@pytest.mark.parametrize("case", LOADS, ids="".join)
def test_matrix_loads(case, built):
    func = load_func(case)
    transposed, dtype = case
    count = 128 // as_dtype(dtype).bits
    a = np.random.default_rng(3).integers(-99, 99, (32, count)).astype(to_numpy(as_dtype(dtype)))
    matrices = a.reshape(4, 8, count)
    if transposed:
        matrices = matrices.swapaxes(1, 2)
    # Lane t has a register of row t // 4 of each matrix.
    registers = matrices.reshape(4, 8, 4, count // 4)
    expected = registers.transpose(1, 2, 0, 3).reshape(32, count)
    for run in (
        lambda out: interpret(func, [a, out]),
        lambda out: _run(built, func, a, out),
    ):
        result = np.zeros_like(a)
        run(result)
        np.testing.assert_array_equal(result, expected)


def test_a_tf32_factor_loses_its_low_bits():
    product = _SHORT["m16n8k8.row.col.tf32"]
    case = draw_case(product)
    case.a[:] = 0
    case.a[0, 0] = 1 + 2**-10 + 2**-12  # tf32 has 10 bits of fraction
    case.b[:] = np.float32(1) + np.float32(2**-11)
    result = np.zeros_like(case.d)
    interpret(_WHOLE[product.name], [case.a, case.b, case.c, result])
    assert result[0, 0] - case.c[0, 0] == 1 + 2**-10


def test_sums_round_once_in_the_interpreter():
    product = _SHORT["m16n8k16.row.col.f32.f32"]
    case = draw_case(product)
    case.a[:], case.b[:], case.c[:] = 1, 1, 2**24
    result = np.zeros_like(case.d)
    interpret(_WHOLE[product.name], [case.a, case.b, case.c, result])
    assert (result == 2**24 + 16).all()


@pytest.mark.gcc
def test_random_sums_are_within_the_bound_of_tensor_cores(built):
    product = _SHORT["m16n8k16.row.col.bf16"]
    rng = np.random.default_rng(5)
    case = draw_case(product)
    for array in (case.a, case.b, case.c):
        array[:] = rng.standard_normal(array.shape) * 100.0 ** rng.integers(-2, 3, array.shape)
    func, results = _WHOLE[product.name], [np.zeros_like(case.d) for _ in "ab"]
    interpret(func, [case.a, case.b, case.c, results[0]])
    args = [case.a, case.b, case.c]
    _run(built, func, *args, results[1])
    magnitude = max(np.abs(results[0]).max(), np.abs(case.c).max())
    assert np.abs(results[0] - results[1]).max() <= sum_error_bound(product, magnitude)


# tensorize.


def _dot_intrinsic(product):
    """The intrinsic of four products; what it resets and updates is one number."""
    element, total = product.element, product.sum
    a, b = (refcomp.placeholder((4,), element, name=letter) for letter in "ab")
    k = refcomp.reduce_axis((0, 4), name="k")
    terms = a[k].astype(total) * b[k].astype(total)
    c = refcomp.compute((1,), lambda i: refcomp.sum(terms, axis=k), name="c")

    def statement(value, out):
        ib = refcomp.ir_builder.create()
        ib.buffer_ptr(out)[0] = value
        return ib.get()

    def statements(ins, outs):
        reset = statement(refcomp.const(0, total), outs[0])
        factors = [view[i] for view in ins for i in range(4)]
        update = refcomp.call_llvm_intrin(total, product.name, *factors, outs[0][0])
        return None, reset, statement(update, outs[0])

    return refcomp.decl_tensor_intrin(
        c.op, statements, "dot", default_buffer_params={"offset_factor": 4}
    )


def _tensorized(product):
    """C = A B^T, each thread adding up one element four products at a time."""
    element, total = product.element, product.sum
    a, b = (refcomp.placeholder((8, 32), element, name=letter) for letter in "AB")
    k = refcomp.reduce_axis((0, 32), name="k")
    c = refcomp.compute(
        (8, 8),
        lambda i, j: refcomp.sum(a[i, k].astype(total) * b[j, k].astype(total), axis=k),
        name="C",
    )
    s = refcomp.create_schedule(c)
    sums = s.cache_write(c, "local")
    i, j = s[c].op.axis
    s[c].bind(i, refcomp.thread_axis("blockIdx.x"))
    s[c].bind(j, refcomp.thread_axis("threadIdx.x"))
    s[sums].compute_at(s[c], j)
    outer, inner = s[sums].split(s[sums].op.reduce_axis[0], factor=4)
    one, row = s[sums].op.axis
    s[sums].reorder(outer, one, row, inner)
    s[sums].tensorize(row, _dot_intrinsic(product))
    return s, [a, b, c]


@pytest.mark.gcc
@pytest.mark.parametrize("product", DOTS, ids=lambda p: str(p.element))
def test_dot_products_by_tensorize(product):
    schedule, args = _tensorized(product)
    rng, dtype = np.random.default_rng(4), to_numpy(product.element)
    info = np.iinfo(dtype)
    a, b = (rng.integers(info.min, info.max, (8, 32), endpoint=True).astype(dtype) for _ in "ab")
    expected = a.astype(np.int64) @ b.T.astype(np.int64)
    c = np.zeros((8, 8), to_numpy(product.sum))
    refcomp.build(schedule, args, "interp")(a, b, c)
    np.testing.assert_array_equal(c, expected)
    kernel = as_kernel(refcomp.lower(schedule, args, "dots"))
    given = {"A": a, "B": b, "C": np.zeros_like(c)}
    HostKernels([kernel]).call(kernel, [given[param.name] for param in kernel.params])
    np.testing.assert_array_equal(given["C"], expected)


# What the tests above would notice.


def _mistakes():
    """Copies of a product with one fragment that lies otherwise."""
    product = _SHORT["m16n8k16.row.col.f32.f32"]
    for matrix in "abc":
        fragment = getattr(product, matrix)
        swapped = {0: 1, 1: 0} if matrix == "b" else {0: 2, 2: 0}

        def place(thread, number, fragment=fragment, swapped=swapped):
            return fragment.place(thread, swapped.get(number, number))

        wrong = dataclasses.replace(fragment, place=place)
        yield dataclasses.replace(product, **{matrix: wrong})


@pytest.mark.gcc
@pytest.mark.parametrize("wrong", list(_mistakes()), ids="abc")
def test_the_judge_notices_a_wrong_layout(wrong, built):
    case = draw_case(wrong)
    result = np.zeros_like(case.d)
    _run(built, _WHOLE[wrong.name], case.a, case.b, case.c, result)
    assert (result != case.d).any()


@pytest.mark.gcc
@pytest.mark.parametrize(
    ("old", "mistake"),
    [("{%4, %5, %6, %7}", "{%5, %4, %6, %7}"), (".f32.f16.f16.f32", ".f32.bf16.bf16.f32")],
)
def test_the_judge_reads_the_instruction(old, mistake):
    """The operands of the text are numbered in another order, or their type is another one."""
    product = _SHORT["m16n8k16.row.col.f32.f32"]
    kernel = as_kernel(_WHOLE[product.name])
    text = print_cuda([kernel], "sm_80").text
    assert text.count(old) == 1
    case = draw_case(product)
    result = np.zeros_like(case.d)
    wrong = HostKernels([kernel], text.replace(old, mistake))
    func = _WHOLE[product.name]
    _run(({func.name: kernel}, wrong), func, case.a, case.b, case.c, result)
    assert (result != case.d).any()


# Text, and compilers.


def _kernels_for(arch):
    """Kernels of all instructions that an architecture has."""
    major, minor = capability_of(arch)
    funcs = [
        func
        for product in PRODUCTS
        if product.capability <= 10 * major + minor
        for func in (_WHOLE[product.name], _ONE[product.name])
    ]
    return [as_kernel(f) for f in (*funcs, *map(dot_func, DOTS), *map(load_func, LOADS))]


@pytest.mark.parametrize("name", ["m16n8k16.row.col.f32.f32", "m16n8k32.row.col.s8"])
def test_golden(name, golden):
    kernel = as_kernel(_WHOLE[f"llvm.nvvm.mma.{name}"])
    golden(f"cuda/{name}.cu", print_cuda([kernel], "sm_80").text)


def test_golden_matrix_load(golden):
    kernel = as_kernel(load_func((".trans", "bf16")))
    golden("cuda/ldmatrix.cu", print_cuda([kernel], "sm_80").text)


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_nvcc_makes_one_instruction_of_each_call(arch):
    kernels = _kernels_for(arch)
    source = print_cuda(kernels, arch)
    binary = compile_source(source, {"arch": arch}, "cubin", description="cuda")
    parts = re.split(r"\.text\.(\w+):\n", disassemble(binary))[1:]
    texts = dict(zip(parts[::2], parts[1::2], strict=True))
    for kernel in kernels:
        (call,) = {node.name for node in walk(kernel.body) if isinstance(node, PureExtern)}
        (opcode,) = [opcode for part, opcode in OPCODES.items() if part in call]
        assert texts[machine_symbol(kernel.name)].count(f" {opcode}") == 1, (kernel.name, opcode)


def test_an_instruction_is_issued_once_for_all_its_elements():
    kernel = as_kernel(_WHOLE["llvm.nvvm.mma.m16n8k16.row.col.f32.f32"])
    text = print_cuda([kernel], "sm_80").text
    (body,) = re.findall(r"whole\d+_kernel0\((?s:.*)", text)
    assert body.count("mma_m16n8k16_row_col_f32_f32(") == 1


def test_an_older_gpu_refuses():
    kernel = as_kernel(_WHOLE["llvm.nvvm.mma.m16n8k16.row.col.bf16"])
    message = "calls of llvm.nvvm.mma.m16n8k16.row.col.bf16 need sm_80 or newer"
    with pytest.raises(Unsupported, match=message) as caught:
        print_cuda([kernel], "sm_75")
    assert "-arch=sm_80" in caught.value.remedy


def _changed_load(old, new):
    text = str(load_func(("", "f16")))
    assert old in text
    return as_kernel(parse_func(text.replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("[32, 24]", "[32, 20]", "it begins at element .* of S"),
        ("S[t, 7]", "S[t, 6]", "its elements are not neighbours"),
        ("] shared", "] local", "S lies in local memory"),
    ],
)
def test_a_row_must_lie_in_shared_memory_at_a_multiple_of_its_size(old, new, why):
    with pytest.raises(Unsupported, match="x4.b16 cannot load this row") as caught:
        print_cuda([_changed_load(old, new)])
    assert re.match(why, caught.value.why)
    assert caught.value.remedy == "pad the rows of the shared buffer to multiples of 16 bytes"
