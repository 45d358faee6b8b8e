"""The two forms of a scatter: comparisons of short lines, and updates in order for long ones."""

import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.te.operation import ExternOp, reachable_operations
from refcomp.topi.movement import scattering
from refcomp.topi.movement.scatter import scatter
from refcomp.topi.movement.scattering import check_reduction
from refcomp.topi.operator import find_operator
from tests.topi.agreement import WAYS, check_on, make_case

NAMES = ("scatter_elements", "scatter_nd", "index_put")


def _is_extern(size, count):
    data, updates = rc.placeholder((3, size), name="A"), rc.placeholder((3, count), name="U")
    indices = rc.placeholder((3, count), "int32", name="I")
    operations = reachable_operations([scatter(data, indices, updates, axis=1).op])
    return any(isinstance(op, ExternOp) for op in operations)


def test_long_lines_are_updated_in_order():
    assert not _is_extern(256, 256)
    assert _is_extern(256, 257)
    assert not _is_extern(rc.var("n"), 1000)
    assert not _is_extern(100000, 0)


@pytest.fixture
def in_order(monkeypatch):
    monkeypatch.setattr(scattering, "MOST_COMPARED", 0)


def _cases():
    return [make_case(find_operator(name), seed) for name in NAMES for seed in range(6)]


@pytest.mark.search
def test_updates_in_order_agree_with_the_meaning(in_order):
    check_on(WAYS["interp"], _cases())


@pytest.mark.llvm
def test_updates_in_order_on_the_host(in_order):
    check_on(WAYS["llvm"], _cases())


@pytest.mark.pocl
def test_updates_in_order_in_opencl(in_order):
    check_on(WAYS["opencl"], _cases())


@pytest.mark.rocm
@pytest.mark.parametrize("gpu", ["gfx942", "gfx1100"])
def test_updates_in_order_on_emulated_gpus(in_order, gpu):
    check_on(WAYS[gpu], _cases())


def test_unknown_reductions_and_bools_are_refused():
    data = rc.placeholder((3,), "bool", name="A")
    check_reduction("none", data, "scatter")
    with pytest.raises(UserError, match="scatter has no reduction 'sum'"):
        check_reduction("sum", data, "scatter")
    with pytest.raises(UserError, match="scatter cannot combine bools by max"):
        check_reduction("max", data, "scatter")
