"""Manual pages of classic operators."""

import doctest
import inspect
import re

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import CompilerBug
from refcomp.graph.symbol.manual import manual_page
from refcomp.graph.symbol.operator import find_symbol_operator, known_operators


def test_page_explains_inputs_attributes_and_defaults() -> None:
    page = inspect.getdoc(rc.sym.conv2d) or ""
    assert page.startswith("Return the convolution of images with filters, plus a bias.\n")
    assert "\n    weight: filters [channels, c / groups, kh, kw], or [kh, kw" in page
    assert "\n    strides: a tuple of two integers. Elements from one window" in page
    assert " The default is (1, 1).\n" in page
    assert "\n    channels: an integer. The number of channels of the result.\n" in page


@pytest.mark.parametrize("name", sorted(set(rc.sym.__all__) & set(known_operators())))
def test_page_has_each_parameter_and_an_example_that_runs(name: str) -> None:
    function = getattr(rc.sym, name)
    page = inspect.getdoc(function) or ""
    for parameter in inspect.signature(function).parameters:
        assert re.search(rf"(?m)^ +\*?{parameter}: ", page)
    parser = doctest.DocTestParser()
    found = parser.get_doctest(page, {"rc": rc, "np": np}, name, None, None)
    assert found.examples
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(found, out=report.append)
    assert runner.failures == 0, "".join(report)


def test_missing_texts_and_examples_are_bugs() -> None:
    clip = find_symbol_operator("clip")
    with pytest.raises(CompilerBug, match="the parameter a_min of clip has no text"):
        manual_page(clip, "Clip.", {})
    with pytest.raises(CompilerBug, match="clip needs an example in its docstring"):
        manual_page(clip, "Clip.", {"a_min": "low.", "a_max": "high."})
