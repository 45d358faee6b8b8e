"""The register of back ends."""

import pytest

import refcomp
from refcomp.driver import backend as module
from refcomp.driver.backend import Backend, backend_of, backends, register_backend, usual_backend
from refcomp.driver.steps import INTERPRETER_STEPS, OPENCL_STEPS, PipelineStep
from refcomp.foundation import target
from refcomp.foundation.errors import UserError
from refcomp.foundation.target import kind_of
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.passes.flatten_storage import flatten_storage


@pytest.fixture(autouse=True)
def apart(monkeypatch):
    monkeypatch.setattr(module, "_BACKENDS", dict(module._BACKENDS))
    monkeypatch.setattr(target, "_KINDS", dict(target._KINDS))


def _load(compiled, loading):
    raise AssertionError("nothing is built here")


def _mine(**fields):
    usual = {"steps": INTERPRETER_STEPS, "load": _load}
    return Backend(**{"name": "mine", "summary": "a back end of a user's own", **usual, **fields})


def test_the_own_back_ends_are_there_from_the_beginning():
    assert [one.name for one in backends()] == ["llvm", "interp", "opencl", "rocm", "cuda", "nvptx"]
    assert backend_of("rocm -mcpu=gfx942").name == "rocm"


def test_a_registered_back_end_is_a_target():
    register_backend(_mine(options={"level": "how much"}))
    assert refcomp.as_target("mine -level=3").option("level", "") == "3"
    assert refcomp.context("mine") == refcomp.cpu()
    assert (kind_of("mine").device, kind_of("mine").schedules) == ("cpu", "cpu")
    with pytest.raises(UserError, match="'mine' is registered already"):
        register_backend(_mine())


def test_targets_without_a_back_end():
    with pytest.raises(UserError, match="unknown target 'yours'"):
        backend_of("yours")


def test_kernels_are_what_has_limits():
    assert not _mine().has_kernels
    assert _mine(limits=DeviceLimits((1, 1, 1), 1, 1)).has_kernels
    assert (usual_backend(False).name, usual_backend(True).name) == ("llvm", "opencl")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"name": "my host"}, "its name is not a word"),
        ({"name": ""}, "its name is not a word"),
        ({"name": None}, "its name is not a word"),
        ({"options": None}, "its options are not a mapping"),
        ({"load": None}, "it has no loader"),
        ({"steps": (flatten_storage,)}, "a step is not a PipelineStep"),
        (
            {"steps": (PipelineStep(flatten_storage, "flat", "", licence="nope"),)},
            "no build option is called nope",
        ),
        ({"limits": DeviceLimits((1, 1, 1), 1, 1)}, "no step that splits kernels off"),
        ({"steps": OPENCL_STEPS}, "a step splits kernels off, and it has no limits"),
        (
            {"steps": OPENCL_STEPS, "limits": DeviceLimits((1, 1, 1), 1, 1)},
            "it has kernels, and its device is the host",
        ),
    ],
)
def test_records_that_cannot_work_are_refused(fields, why):
    with pytest.raises(UserError, match=f"cannot be registered\n  why: .*{why}"):
        register_backend(_mine(**fields))
    assert "mine" not in [one.name for one in backends()]


def test_what_is_no_record_is_refused():
    with pytest.raises(UserError, match="'toy' is not a back end"):
        register_backend("toy")
