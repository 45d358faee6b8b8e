"""Whole programs of the target `cuda` on this machine, with workspaces and several kernels."""

import numpy as np
import pytest

import refcomp
from refcomp.driver.cuda_on_host import build_on_host


@pytest.mark.gcc
def test_a_program_with_two_kernels_and_a_workspace():
    n = refcomp.var("n")
    a = refcomp.placeholder((n, 6), name="A")
    b = refcomp.compute((n, 6), lambda i, j: a[i, j] * 2.0, name="B")
    k = refcomp.reduce_axis((0, 6), "k")
    c = refcomp.compute((n,), lambda i: refcomp.sum(b[i, k], axis=k), name="C")
    s = refcomp.create_schedule(c)
    for tensor in (b, c):
        outer, inner = s[tensor].split(tensor.op.axis[0], 4)
        s[tensor].bind(outer, refcomp.thread_axis("blockIdx.x"))
        s[tensor].bind(inner, refcomp.thread_axis("threadIdx.x"))
    module, device = build_on_host([refcomp.lower(s, [a, c], "sums")])
    values = np.arange(30, dtype="float32").reshape(5, 6)
    result = refcomp.array(np.zeros(5, "float32"), device)
    module["sums"](refcomp.array(values, device), result)
    np.testing.assert_array_equal(result.asnumpy(), 2 * values.sum(axis=1))
    assert "launch" in module.get_source("launch")
