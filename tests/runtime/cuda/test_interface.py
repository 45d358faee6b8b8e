"""The table of pycuda's names: each has a meaning, and the stand-in has no others."""

from types import SimpleNamespace

from refcomp.runtime.cuda import interface
from refcomp.runtime.cuda.interface import missing_names, names
from tests.runtime.cuda.recording_pycuda import RecordingPycuda


def offered_names(driver):
    """The names of a module and of its classes, without private ones."""
    for name, value in vars(driver).items():
        if not isinstance(value, type) or issubclass(value, Exception):
            yield name
            continue
        members = {member for base in value.__mro__[:-1] for member in vars(base)}
        yield from (f"{name}.{member}" for member in members if not member.startswith("_"))


def test_the_stand_in_has_exactly_these_names():
    offered = {*offered_names(RecordingPycuda().driver), "Function.__call__"}
    assert offered == set(names())
    assert len(names()) == len(set(names()))


def test_each_function_has_a_meaning():
    protocols = [interface.PycudaDriver, *(p for ps in interface._MEMBERS.values() for p in ps)]
    for protocol in protocols:
        for name, value in vars(protocol).items():
            assert name.startswith("_") or value.__doc__, f"{protocol.__name__}.{name}"


def test_missing_names_are_found():
    driver = RecordingPycuda().driver
    assert missing_names(driver) == []
    del driver.mem_alloc
    del driver.Context.pop
    driver.Function = type("Function", (), {"get_attribute": 0})
    lacking = ["mem_alloc", "Context.pop", "Function.set_attribute", "Function.__call__"]
    assert missing_names(driver) == lacking
    assert missing_names(SimpleNamespace()) == list(names())
