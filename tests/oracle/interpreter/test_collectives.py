"""What threads compute together, held against numpy on whole matrices and groups.

Where elements of matrices lie is written down here anew, from the manuals' formulas.
"""

import numpy as np
import pytest

import refcomp
from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.ir.gpu_instructions.amd import AMD
from refcomp.ir.gpu_instructions.records import MatrixProduct
from refcomp.ir.parser import parse_func
from refcomp.ir.verify import find_fault
from refcomp.oracle.interpreter.collectives import Arrival, compute_together
from refcomp.oracle.interpreter.interpret import InterpretError, interpret
from refcomp.passes.lower_bfloat16 import lower_bfloat16

PRODUCTS = [p for p in AMD if isinstance(p, MatrixProduct)]


def _size(product):
    """The rows of C, which has as many columns."""
    return 32 if "32x32" in product.name else 16


def _depth_and_row(product, thread, number):
    """Where along the depth an element of a factor lies, and in which row one of the sum."""
    size = _size(product)
    part, factors = thread // size, product.a.count
    if ".mfma." in product.name:
        row = number // 4 * 8 + part * 4 + number % 4 if size == 32 else 4 * part + number
        return part * factors + number, row
    if factors == 16:
        return number, 2 * number + part
    return part * 8 + number, 8 * part + number


def _spread(matrix, product):
    """What each thread holds of a factor: [row or column, depth]."""
    places = [[_depth_and_row(product, t, n)[0] for n in range(product.a.count)] for t in _threads]
    columns = [[t % _size(product)] * product.b.count for t in _threads]
    return matrix[columns[: product.wave], places[: product.wave]]


_threads = range(64)


def _loop(params, body, threads=64, kind="threadIdx.x"):
    """A kernel of one group whose threads t do `body`."""
    return parse_func(f"func f({params}) {{ for t in range({threads}) {kind} {{ {body} }} }}")


def _kernel(product):
    """Each thread writes all its elements of A B + C."""
    q, v, threads = product.a.count, product.c.count, product.wave
    loads = [
        f"{name}@[t * {n} + {k}]" for name, n in (("A", q), ("B", q), ("C", v)) for k in range(n)
    ]
    e, s = product.element, product.sum
    asked = f"extern {s} {product.name}({', '.join(loads)}, "
    stores = " ".join(f"D@[t * {v} + {k}] = {asked}{k}i32)" for k in range(v))
    factors = f"A: {e}[{threads * q}], B: {e}[{threads * q}]"
    sums = f"C: {s}[{threads * v}], D: {s}[{threads * v}] out"
    return _loop(f"{factors}, {sums}", stores, threads)


@pytest.mark.search
@pytest.mark.parametrize("product", PRODUCTS, ids=lambda p: p.name.removeprefix("llvm.amdgcn."))
def test_products_of_matrices_agree_with_numpy(product):
    rng, size, threads = np.random.default_rng(3), _size(product), product.wave
    a, b = rng.integers(-8, 9, (2, size, product.depth))
    c = rng.integers(-99, 99, (size, size))
    rows = [
        [_depth_and_row(product, t, n)[1] for n in range(product.c.count)] for t in range(threads)
    ]
    columns = np.arange(threads)[:, None] % size
    factors = [_spread(m, product).astype(to_numpy(product.element)).ravel() for m in (a, b)]
    old = c[rows, columns].astype(to_numpy(product.sum)).ravel()
    result, kernel = np.zeros_like(old), _kernel(product)
    assert find_fault(kernel, "flat") is None
    interpret(kernel, [*factors, old, result])
    expected = (a @ b.T + c)[rows, columns].ravel()
    np.testing.assert_array_equal(result, expected)
    if product.element.kind == "bfloat":
        # Passes leave the bits of bf16: they mean the same.
        again = np.zeros_like(old)
        lowered = lower_bfloat16(kernel)
        assert find_fault(lowered, "device") is None
        interpret(lowered, [*(f.view(np.uint16) for f in factors), old, again])
        np.testing.assert_array_equal(again, expected)


def _dot(name, element, a, b, total):
    operands = ", ".join(
        [*(f"A@[{k}]" for k in range(2)), *(f"B@[{k}]" for k in range(2)), "C@[0]"]
    )
    params = f"A: {element}[2], B: {element}[2], C: f32[1] out"
    kernel = _loop(params, f"C@[0] = extern f32 llvm.amdgcn.{name}({operands})", threads=1)
    dtype, result = to_numpy(as_dtype(element)), np.array([total], np.float32)
    interpret(kernel, [np.array(a, dtype), np.array(b, dtype), result])
    return result[0]


@pytest.mark.parametrize(("name", "element"), [("fdot2", "f16"), ("fdot2.f32.bf16", "bf16")])
def test_dot_products_of_halves_round_once(name, element):
    assert _dot(name, element, [3, -5], [7, 2], 0.5) == 11.5
    # 2^24 + 1 is no number of f32, and rounds down; with another 1 it is one.
    assert _dot(name, element, [4096, 1], [4096, 1], 0) == 2**24
    assert _dot(name, element, [4096, 1], [4096, 1], 1) == 2**24 + 2
    assert np.isnan(_dot(name, element, [np.inf, np.inf], [1, -1], 0))
    assert np.signbit(_dot(name, element, [0, 0], [-1, -1], -0.0))


def _each(call, kind="threadIdx.x"):
    """16 threads do `call` on A and B."""
    kernel = _loop("A: i32[16], B: i32[16] out", call, 16, kind)
    a = np.arange(16, dtype=np.int32) * 3
    b = np.zeros_like(a)
    interpret(kernel, [a, b])
    return a, b


def test_threads_exchange_values():
    a, b = _each("B@[t] = subgroup_shuffle_xor(A@[t], 5i32, 8i32) + 1i32")
    np.testing.assert_array_equal(b, a[np.arange(16) ^ 5] + 1)
    a, b = _each("B@[t] = subgroup_shuffle(A@[t], 5i32 - i32(t), 8i32)")
    np.testing.assert_array_equal(b, a.reshape(2, 8)[:, (5 - np.arange(8)) % 8].ravel())
    a, b = _each("B@[t] = subgroup_reduce_add(A@[t] * 2i32, 4i32)")
    np.testing.assert_array_equal(b, np.repeat(2 * a.reshape(4, 4).sum(1), 4))


def test_calls_stand_within_calls_lets_and_memory_of_their_own():
    nested = "subgroup_reduce_add(subgroup_shuffle_xor(x, 1i32, 2i32), 2i32)"
    a, b = _each(
        f"alloc L: i32[1] local {{ L@[0] = A@[t] B@[t] = (let x: i32 = L@[0] in {nested}) }}"
    )
    np.testing.assert_array_equal(b, np.repeat(a.reshape(8, 2).sum(1), 2))


def test_floats_are_added_in_the_order_of_the_note():
    pairs = np.float32([1, 2**24, 1, -(2**24)])
    kernel = _loop("A: f32[4], B: f32[4] out", "B@[t] = subgroup_reduce_add(A@[t], 4i32)", 4)
    result = np.zeros(4, np.float32)
    interpret(kernel, [pairs, result])
    expected = (pairs[0] + pairs[1]) + (pairs[2] + pairs[3])
    assert (result == expected).all() and expected != pairs.astype(np.float64).sum()


def test_numbers_follow_the_axes_of_a_group():
    kernel = parse_func("""
    func f(A: i32[8], B: i32[8] out) {
      for y in range(4) threadIdx.y { for x in range(2) threadIdx.x {
        B@[y * 2 + x] = subgroup_shuffle_xor(A@[y * 2 + x], 2i32, 4i32)
      } }
    }
    """)
    a, b = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    interpret(kernel, [a, b])
    np.testing.assert_array_equal(b, a ^ 2)


def test_memory_is_not_waited_for():
    """Threads meet, but only a barrier lets one read what another one wrote."""
    with pytest.raises(InterpretError, match="a race on element 0 of S"):
        _each(
            "alloc S: i32[16] shared { S@[t] = A@[t] "
            "B@[t] = subgroup_shuffle_xor(A@[t], 1i32, 2i32) + S@[15 - t] }"
        )


@pytest.mark.parametrize("writer", [0, 1, 2, 15])
def test_a_write_races_with_earlier_reads_of_others(writer):
    """Threads take turns at a collective call, so the writer may also be the first reader."""
    with pytest.raises(InterpretError, match="a race on element 0 of A: .* writes it, .* reads it"):
        _each(
            "let x: i32 = A[0] { B[t] = subgroup_shuffle_xor(x, 1i32, 2i32) "
            f"if (t == {writer}) {{ A[0] = x }} }}"
        )


def test_all_threads_of_a_group_come():
    with pytest.raises(InterpretError, match="not all threads of a group come to subgroup_shuffle"):
        _each("if (t < 3) { B@[t] = subgroup_shuffle_xor(A@[t], 1i32, 2i32) }")
    with pytest.raises(InterpretError, match="which do not fill all of them") as caught:
        _each("B@[t] = subgroup_reduce_add(A@[t], 32i32)")
    assert "the group has 16" in str(caught.value) and "a multiple of 32 threads" in str(
        caught.value
    )


def test_nobody_waits_outside_a_kernel():
    with pytest.raises(InterpretError, match="is computed by several threads together") as caught:
        _each("B@[t] = subgroup_shuffle_xor(A@[t], 1i32, 2i32)", kind="")
    assert "let it stand in a statement of a kernel" in str(caught.value)


def test_results_of_a_group_without_an_interpreter():
    call = _loop(
        "A: i32[2] out", "A@[t] = subgroup_shuffle_xor(A@[t], 1i32, 2i32)", 2
    ).body.body.value
    arrivals = [Arrival(call, [value, 1, 2]) for value in (5, 7)]
    compute_together(arrivals)
    assert [arrival.result for arrival in arrivals] == [7, 5]


@pytest.mark.parametrize("target", ["llvm", "opencl"])
def test_other_targets_do_not_know_products_of_matrices(target):
    nested = parse_func(
        "func f(A: f32[64], C: f32[64] out) { for t in range(64) threadIdx.x { C[t] = extern f32 "
        "llvm.amdgcn.mfma.f32.16x16x4f32(A[t], A[t], 0f32, 0f32, 0f32, 0f32, 0i32) } }"
    )
    with pytest.raises(UserError, match="does not know llvm.amdgcn.mfma"):
        refcomp.build(nested, target=target)
