"""The register of back ends."""

import pytest

import refcomp
from refcomp.driver import backend as module
from refcomp.driver.backend import Backend, backend_of, backends, register_backend, usual_backend
from refcomp.driver.steps import INTERPRETER_STEPS
from refcomp.foundation import target
from refcomp.foundation.errors import UserError
from refcomp.foundation.target import DeviceLimits


@pytest.fixture(autouse=True)
def apart(monkeypatch):
    monkeypatch.setattr(module, "_BACKENDS", dict(module._BACKENDS))
    monkeypatch.setattr(target, "_KINDS", dict(target._KINDS))


def _mine(**fields):
    return Backend("mine", "a back end of a user's own", INTERPRETER_STEPS, load=None, **fields)


def test_the_own_back_ends_are_there_from_the_beginning():
    assert [one.name for one in backends()] == ["llvm", "interp", "opencl", "rocm"]
    assert backend_of("rocm -mcpu=gfx942").name == "rocm"


def test_a_registered_back_end_is_a_target():
    register_backend(_mine(options={"level": "how much"}))
    assert refcomp.as_target("mine -level=3").option("level", "") == "3"
    assert refcomp.context("mine") == refcomp.cpu()
    with pytest.raises(UserError, match="'mine' is registered already"):
        register_backend(_mine())


def test_targets_without_a_back_end():
    with pytest.raises(UserError, match="unknown target 'yours'"):
        backend_of("yours")


def test_kernels_are_what_has_limits():
    assert not _mine().has_kernels
    assert _mine(limits=DeviceLimits((1, 1, 1), 1, 1)).has_kernels
    assert (usual_backend(False).name, usual_backend(True).name) == ("llvm", "opencl")
