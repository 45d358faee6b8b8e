"""The examples of the public names of the debugger run, as `tests/test_help.py` runs others."""

import doctest
import inspect

import numpy as np
import pytest

import refcomp as rc

NAMES = [name for name in rc.graph.debug.__all__ if callable(getattr(rc.graph.debug, name))]
# Their examples are those of the functions that make or take them, or need matplotlib or seconds.
WITHOUT = {
    *("Recording", "Divergence", "NodeComparison", "WrongElement", "Cause", "Peer"),
    *("NetworkProfile", "NodeProfile", "Peaks", "MemoryMap", "MemoryBox", "measure_peaks"),
    *("find_inside", "save_profile", "save_memory", "save_page", "page_of_network"),
}


@pytest.mark.llvm
@pytest.mark.parametrize("name", NAMES)
def test_examples_run(name: str) -> None:
    finder = doctest.DocTestFinder(recurse=False)
    (page,) = finder.find(getattr(rc.graph.debug, name), name, globs={"rc": rc, "np": np})
    assert bool(page.examples) == (name not in WITHOUT)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.DocTestRunner(optionflags=flags).run(page).failed == 0
    assert inspect.getdoc(getattr(rc.graph.debug, name))
