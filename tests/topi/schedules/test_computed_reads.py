"""Computed reads: computes are written out down to tensors in memory, or to values at hand."""

import refcomp
from refcomp.topi.schedules.computed_reads import as_loads, element_of


def _pointer(ib, tensor):
    return ib.buffer_ptr(refcomp.decl_buffer(tensor.shape, name=tensor.name))


def test_computes_are_written_out_down_to_memory() -> None:
    ib = refcomp.ir_builder.create()
    a = refcomp.placeholder((4, 8), name="A")
    turned = refcomp.topi.negative(refcomp.topi.transpose(a, axes=(1, 0)))
    i, j = refcomp.var("i", "int64"), refcomp.var("j", "int64")
    found = element_of(turned, (i + 1, j), {a: _pointer(ib, a)})
    assert str(found) == "A[j, i + 1] * -1.0f32"


def test_a_stored_compute_is_loaded() -> None:
    ib = refcomp.ir_builder.create()
    a = refcomp.placeholder((4,), name="A")
    half = refcomp.compute((4,), lambda i: a[i] * 0.5, name="half")
    i = refcomp.var("i", "int64")
    found = element_of(refcomp.topi.negative(half), (i,), {half: _pointer(ib, half)})
    assert str(found) == "half[i] * -1.0f32"


def test_known_values_take_the_place_of_reads() -> None:
    a = refcomp.placeholder((4,), name="A")
    i, held = refcomp.var("i", "int64"), refcomp.var("held", "float32")
    assert str(as_loads(a[i] + 1.0, {}, {a: held})) == "held + 1.0f32"
