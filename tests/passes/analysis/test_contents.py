import gc
from weakref import ref

import pytest

from refcomp.driver.pipeline import passes_for, run_passes
from refcomp.foundation.dtype import F32, I64, as_dtype
from refcomp.ir.expr import Add, Select
from refcomp.ir.parser import parse_func
from refcomp.ir.stmt import PARALLEL, SERIAL, Allocate, For
from refcomp.passes.analysis import contents as module
from refcomp.passes.analysis.contents import dtypes_in, holds

BF16 = as_dtype("bfloat16")
TEXT = "func f(A: f32[n], B: f32[n] out) { for i in range(n) { B[i] = A[i] + 1.0f32 } }"


@pytest.fixture
def walked(monkeypatch):
    """The bodies that are walked for the contents of functions, in order."""
    bodies = []
    keep = module.walk

    def note(root):
        bodies.append(root)
        return keep(root)

    monkeypatch.setattr(module, "walk", note)
    return bodies


def test_classes_of_nodes_and_kinds_of_loops_are_known():
    func = parse_func(TEXT)
    assert holds(func, Add) and holds(func, For) and holds(func, SERIAL)
    assert holds(func, Select, Add)
    assert not holds(func, Select, PARALLEL, Allocate)


def test_dtypes_are_those_of_values_parameters_and_buffers():
    assert dtypes_in(parse_func(TEXT)) == {F32, I64}
    unused = parse_func("func f(A: bf16[n], B: i64[n] out) { B[0] = 1 }")
    assert BF16 in dtypes_in(unused)
    allocated = parse_func("func f(B: i64[n] out) { alloc T: bf16[4] local { B[0] = 1 } }")
    assert BF16 in dtypes_in(allocated)


def test_a_function_is_walked_once_for_all_passes(walked):
    func = parse_func(TEXT)
    assert holds(func, Add) and not holds(func, Select) and dtypes_in(func)
    assert walked == [func.body]


def test_passes_that_concern_nothing_do_not_walk(walked):
    """Of all passes of a host, two change this function: each result is walked once."""
    func = parse_func(TEXT)
    passes = len(passes_for("llvm"))
    assert passes > 15
    run_passes(func, "llvm")
    assert walked[0] is func.body and len(walked) <= 3


def test_results_do_not_keep_a_function_alive():
    func = parse_func(TEXT)
    assert holds(func, Add)
    dead = ref(func)
    del func
    gc.collect()
    assert dead() is None
