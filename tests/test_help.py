"""`help` of each public name is a manual page: plain prose, each parameter, an example that runs.

An example knows `rc` and `np`. The page of a class explains its fields and parameters; its methods
have pages of their own. A method without an example is called by the example of its class.
"""

import doctest
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import refcomp as rc

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from check_prose import FIRST_WORDS, NOT_IMPERATIVE, in_prose

# Tools that examples need. All other examples run without any.
MARKS = {
    "build": (pytest.mark.llvm,),
    "load_module": (pytest.mark.llvm,),
    "system_lib": (pytest.mark.llvm,),
    "load_code_object": (pytest.mark.rocm,),
    "cuda_emulator": (pytest.mark.llvm,),
    "rocm_emulator": (pytest.mark.rocm,),
    "Profile": (pytest.mark.rocm,),
    "profile": (pytest.mark.rocm,),
    "profile.ProfileReport": (pytest.mark.rocm,),
    "profile.report_of": (pytest.mark.rocm,),
    "profile.report_to_text": (pytest.mark.rocm,),
    "profile.reports_to_text": (pytest.mark.rocm,),
    "profile.write_page": (pytest.mark.rocm,),
    "runtime.HipDriver": (pytest.mark.rocm,),
    "runtime.OpenCLDriver": (pytest.mark.pocl,),
    "runtime.ProgramFunction": (pytest.mark.pocl,),
    "runtime.Module": (pytest.mark.llvm,),
    "runtime.Module.from_binary": (pytest.mark.llvm,),
    "runtime.Module.from_contents": (pytest.mark.llvm,),
}


def pages() -> Iterator[tuple[str, object]]:
    """Yield each public name with what it names, as `NAME`, `MODULE.NAME` or `CLASS.METHOD`."""
    top = {name: getattr(rc, name) for name in rc.__all__ if name != "__version__"}
    top["contrib.sparse"] = rc.contrib.sparse
    inside = {
        f"{module}.{name}": value
        for module, members in top.items()
        if isinstance(members, ModuleType)
        for name, value in members_of(members)
    }
    known = {id(value) for value in top.values()}
    for name, value in (top | {n: v for n, v in inside.items() if id(v) not in known}).items():
        yield name, value
        if inspect.isclass(value):
            yield from ((f"{name}.{method}", f) for method, f in methods_of(value))


def members_of(module: ModuleType) -> Iterator[tuple[str, object]]:
    """Yield the functions and classes that a module lists, or else defines, as public."""
    for name in getattr(module, "__all__", None) or vars(module):
        value = getattr(module, name)
        listed = hasattr(module, "__all__") or getattr(value, "__module__", "") == module.__name__
        is_code = inspect.isfunction(value) or inspect.isclass(value)
        if listed and is_code and not name.startswith("_"):
            yield name, value


def methods_of(owner: type) -> Iterator[tuple[str, object]]:
    for name, value in vars(owner).items():
        inherited = any(hasattr(base, name) for base in owner.__bases__)
        if name.startswith("_") or inherited or isinstance(value, type):
            continue
        function = getattr(value, "__func__", value)  # of a classmethod or staticmethod
        if inspect.isfunction(function) or isinstance(value, property):
            yield name, function


PAGES = dict(pages())


def page_of(name: str) -> str:
    return inspect.getdoc(PAGES[name]) or ""


def parameters_of(value: object) -> list[str]:
    """Return the names of the parameters that a page explains."""
    if isinstance(value, ModuleType | property):
        return []
    if inspect.isclass(value) and issubclass(value, Exception):
        return []
    return [name for name in inspect.signature(value).parameters if name not in ("self", "cls")]


def with_marks() -> list[object]:
    return [pytest.param(name, marks=MARKS.get(name, ())) for name in PAGES]


def test_only_existing_pages_are_marked() -> None:
    assert set(PAGES) >= set(MARKS)


@pytest.mark.parametrize("name", PAGES)
def test_page_is_plain_prose(name: str) -> None:
    page = page_of(name)
    assert page, f"{name} has no page"
    assert not FIRST_WORDS.match(page)
    assert not (inspect.isfunction(PAGES[name]) and NOT_IMPERATIVE.match(page))
    assert list(in_prose(page)) == []


@pytest.mark.parametrize("name", PAGES)
def test_page_explains_each_parameter(name: str) -> None:
    page = page_of(name)
    missing = [
        parameter
        for parameter in parameters_of(PAGES[name])
        if not re.search(rf"(?m)^ +\*{{0,2}}{parameter}: ", page)
    ]
    assert missing == []


@pytest.mark.parametrize("name", PAGES)
def test_page_has_an_example(name: str) -> None:
    owner, _, method = name.rpartition(".")
    if "\nAfter::" in page_of(name):
        return  # a primitive, whose loops tests/schedule/test_stage_schedule.py compares
    if inspect.isclass(PAGES.get(owner)) and ">>>" not in page_of(name):
        assert re.search(rf"(?m)^ +(>>>|\.\.\.).*\.{method}\b", page_of(owner))
    else:
        assert ">>>" in page_of(name)


@pytest.mark.parametrize("name", with_marks())
def test_example_gives_what_the_page_shows(name: str) -> None:
    found = doctest.DocTestParser().get_doctest(
        page_of(name), {"rc": rc, "np": np, "__name__": "example"}, name, None, None
    )
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(found, out=report.append)
    assert runner.failures == 0, "".join(report)
