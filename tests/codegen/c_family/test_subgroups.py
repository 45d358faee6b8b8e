"""What threads of a subgroup compute together: no driver here runs it, clang reads it."""

import re

import pytest

from refcomp.foundation.artifacts import Source
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.toolchain import compile_source
from tests.codegen.opencl.kernels import ALL, POCL, print_body

PARAMS = "A: {dtype}[64], B: {dtype}[64] out"


def _printed(call: str, dtype: str, extensions=ALL) -> str:
    body = f"for t in range(64) threadIdx.x {{ B@[t] = {call} }}"
    return print_body(body, PARAMS.format(dtype=dtype), extensions)


def test_a_shuffle_is_evaluated_by_all_threads_whatever_needs_its_result():
    call = "select(t < 3, subgroup_shuffle_xor(A@[t], 16i32, 32i32), 0.0f32)"
    text = _printed(call, "f32")
    assert "  const float t_1 = sub_group_shuffle_xor(A[t], 16u);\n" in text
    assert "  B[t] = t < 3l ? t_1 : 0.0f;\n" in text
    assert "EXTENSION" not in text  # clang knows of none that must be enabled for it


def test_floats_are_added_in_one_order_and_integers_in_any():
    floats = _printed("subgroup_reduce_add(A@[t], 16i32)", "f32")
    assert re.findall(r"sub_group_shuffle_xor\(\w+, (\d+)u\)", floats) == ["1", "2", "4", "8"]
    assert "clustered" not in floats
    ints = _printed("subgroup_reduce_add(A@[t], 16i32)", "i32")
    assert "sub_group_clustered_reduce_add(A[t], 16u);" in ints and "shuffle" not in ints


def test_of_several_subgroups_in_one_each_reads_its_own():
    text = _printed("subgroup_shuffle(A@[t], i32(t) + 3i32, 16i32)", "f32")
    assert "sub_group_shuffle(A[t], (get_sub_group_local_id() & 4294967280u) | t_1)" in text


def test_a_device_without_them_is_told_so():
    with pytest.raises(Unsupported, match="threads cannot exchange values within subgroups"):
        _printed("subgroup_reduce_add(A@[t], 16i32)", "f32", POCL)


def test_a_width_that_does_not_divide_the_group_is_refused():
    body = "for t in range(24) threadIdx.x { B@[t] = subgroup_reduce_add(A@[t], 16i32) }"
    with pytest.raises(
        UserError, match="a group of 24 threads cannot be divided into subgroups of 16"
    ):
        print_body(body, PARAMS.format(dtype="f32"), ALL)


@pytest.mark.clang
@pytest.mark.parametrize("dtype", ["i8", "u16", "i32", "u64", "f16", "f32", "f64"])
@pytest.mark.parametrize(
    "call",
    [
        "subgroup_shuffle_xor(A@[t], 4i32, 8i32)",
        "subgroup_reduce_add(A@[t], 64i32)",
        "subgroup_shuffle(A@[t], 4i32, 8i32)",
    ],
)
def test_clang_takes_them_of_each_dtype(dtype, call):
    source = Source(_printed(f"{call} + A@[0]", dtype), "opencl")
    text = compile_source(source, {}, "ll", description="opencl_c").data.decode()
    assert "sub_group" in text
