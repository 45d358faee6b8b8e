"""The table of primitives has all of them, under their own names."""

from importlib import import_module
from pkgutil import iter_modules

from refcomp.schedule import primitives
from refcomp.schedule.primitives.table import PRIMITIVES, REPLAYED


def test_each_primitive_stands_under_its_name():
    assert all(primitive.__name__ == name for name, primitive in REPLAYED.items())


def test_each_file_of_primitives_has_one_in_the_table():
    files = {found.name for found in iter_modules(primitives.__path__)} - {"table"}
    homes = {primitive.__module__.rpartition(".")[2] for primitive in REPLAYED.values()}
    assert homes == files
    for name, primitive in REPLAYED.items():
        assert getattr(import_module(primitive.__module__), name) is primitive


def test_groups_are_repeated_though_they_change_no_stage():
    assert REPLAYED.keys() - PRIMITIVES.keys() == {"create_group"}
