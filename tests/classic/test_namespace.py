"""Aliases of `refcomp.classic` are the objects that the table names, and nothing else."""

import importlib
import sys

import pytest

import refcomp as rc
from refcomp import classic
from refcomp.classic import executors
from refcomp.classic.namespace import (
    AbsentNames,
    Namespace,
    look_up,
    make_namespaces,
    public_names,
)
from refcomp.classic.table import by_place, resolve

ALIASES = {place: entry for place, entry in by_place().items() if entry.is_alias}


def at(place: str) -> object:
    found: object = classic
    for part in place.split("."):
        found = getattr(found, part)
    return found


def test_every_alias_is_the_object_that_the_table_names() -> None:
    assert len(ALIASES) > 300
    for place, entry in ALIASES.items():
        assert at(place) is resolve(entry.target), place


@pytest.mark.parametrize(
    ("alias", "meant"),
    [
        (classic.indexdiv, rc.floordiv),
        (classic.nd.from_dlpack, rc.from_dlpack),
        (classic.cl, rc.opencl),
        (classic.module.load, rc.load_module),
        (classic.tensor.ComputeOp, rc.te.ComputeOp),
        (classic.topi.nn.relu, rc.topi.relu),
        (classic.topi.nn.dense, classic.operators.dense),
        (classic.topi.generic.schedule_softmax, rc.topi.schedule_softmax),
        (classic.nnvm.compiler.build, classic.networks.build),
        (classic.nnvm.compiler.save_param_dict, rc.graph.save_param_dict),
        (classic.nnvm.testing.resnet, rc.graph.testing.resnet),
        (classic.nnvm.sym.__lshift_scalar__, rc.sym.__left_shift_scalar__),
    ],
)
def test_aliases_of_another_name_mean_what_users_expect(alias: object, meant: object) -> None:
    assert alias is meant


def test_every_other_name_says_what_to_write_instead() -> None:
    for place, entry in by_place().items():
        if not entry.is_alias:
            with pytest.raises(AttributeError) as info:
                at(place)
            assert entry.note in str(info.value), place
            assert entry.target in str(info.value), place


def test_unknown_names_are_refused_in_pythons_words() -> None:
    with pytest.raises(AttributeError, match=r"'refcomp.classic.nd' has no attribute 'arrays'$"):
        classic.nd.arrays  # noqa: B018
    with pytest.raises(AttributeError, match=r"'refcomp.classic' has no attribute 'nonsense'$"):
        look_up("refcomp.classic", "nonsense")


def test_namespaces_can_be_imported() -> None:
    module = importlib.import_module("refcomp.classic.contrib.graph_runtime")
    assert module is classic.contrib.graph_runtime
    assert module.create is executors.create_graph_runtime
    assert isinstance(sys.modules["refcomp.classic.topi.nn"], Namespace)


def test_namespaces_at_the_top_are_returned() -> None:
    made = make_namespaces()
    assert {"nd", "topi", "nnvm", "contrib", "autotvm"} <= set(made)
    assert not any("." in name for name in made)


def test_namespaces_have_their_other_classic_names() -> None:
    assert importlib.import_module("refcomp.classic.nnvm.symbol") is classic.nnvm.sym
    assert classic.nnvm.symbol.dense is rc.sym.dense
    assert importlib.import_module("refcomp.classic.ndarray").array is classic.nd.array
    assert {"sym", "symbol"} <= set(dir(classic.nnvm))


@pytest.mark.parametrize(
    ("module", "name", "advice"),
    [
        ("refcomp.classic", "div", "'div' from 'refcomp.classic': see refcomp.truncdiv."),
        ("refcomp.classic.contrib.cblas", "matmul", ": write `refcomp.topi.matmul` with"),
        ("refcomp.classic.relay.frontend", "from_onnx", "see refcomp.from_onnx. It takes"),
        ("refcomp.classic.relay.nn", "conv2d", "there is no Relay. Load an ONNX model"),
    ],
)
def test_imports_of_absent_names_say_what_to_write(module: str, name: str, advice: str) -> None:
    with pytest.raises(ImportError) as info:
        __import__(module, fromlist=[name])  # from module import name
    assert advice in str(info.value)


def test_imports_of_unknown_names_are_refused_in_pythons_words() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'refcomp.classic.nonsense'"):
        importlib.import_module("refcomp.classic.nonsense")


def test_names_of_absent_namespaces_say_what_to_write() -> None:
    relay = importlib.import_module("refcomp.classic.relay")
    with pytest.raises(AttributeError, match="no attribute 'build': see refcomp.graph.build"):
        relay.build  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'Module': there is no Relay"):
        relay.Module  # noqa: B018
    assert dir(relay) == []


def test_the_finder_of_absent_names_is_entered_once() -> None:
    make_namespaces()
    assert sum(isinstance(finder, AbsentNames) for finder in sys.meta_path) == 1


def test_names_are_listed() -> None:
    assert public_names("refcomp.classic.nnvm.compiler") == dir(classic.nnvm.compiler)
    assert "build_config" in dir(classic.nnvm.compiler)
    assert {"placeholder", "nd", "topi"} <= set(dir(classic))
    assert "autotvm" not in dir(classic)  # a namespace of notes only
    assert not hasattr(classic, "Module")  # its methods are notes, too
