"""Which device a name means."""

import pytest

import refcomp
from refcomp.devices import context, cpu, device_for, opencl, rocm
from refcomp.errors import UserError
from refcomp.target import as_target


@pytest.mark.parametrize("name", ["llvm", "interp", "cpu", "llvm -mcpu=znver4"])
def test_targets_of_the_host(name: str) -> None:
    assert context(name) == context(name, 0) == cpu(0)
    assert context(name, 1) == cpu(1)


def test_other_kinds() -> None:
    assert context("opencl", 2) == opencl(2) == refcomp.context("opencl", 2) == refcomp.opencl(2)
    assert str(opencl()) == "opencl:0"
    assert context("rocm -mcpu=gfx90a", 1) == rocm(1) == refcomp.rocm(1) != opencl(1)


def test_the_device_of_a_target() -> None:
    assert device_for("llvm") == device_for(as_target("interp")) == cpu(0)
    assert context(as_target("llvm -mcpu=znver4")) == cpu(0)


@pytest.mark.parametrize("name", ["vulkan", "", 7, None])
def test_names_that_mean_no_device(name: str) -> None:
    with pytest.raises(
        UserError, match=r"means no device\n  what to do: use one of: cpu, opencl, rocm"
    ):
        context(name)


def test_indices_are_checked() -> None:
    with pytest.raises(UserError, match="-1 is no index of a device"):
        context("opencl", -1)
