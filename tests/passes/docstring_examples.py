"""The Before and After that a pass's module docstring shows, for its test to run."""

import ast
import inspect
import re
import textwrap
from types import ModuleType

from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func

_EXAMPLE = re.compile(r"(?m)^(?P<title>\w+)::\n\n(?P<text>(?:    .*\n|\n)+)")


def docstring_example(module: ModuleType, title: str) -> str:
    """The loop-IR text under `title` (Before, After) in the module's docstring."""
    docstring = ast.get_docstring(ast.parse(inspect.getsource(module))) or ""
    found = {match["title"]: match["text"] for match in _EXAMPLE.finditer(docstring)}
    return textwrap.dedent(found[title]).strip() + "\n"


def assert_docstring_holds(module: ModuleType, function: object) -> None:
    """The pass turns its Before into its After, to the letter, and After into itself."""
    before = parse_func(docstring_example(module, "Before"))
    after = docstring_example(module, "After")
    assert print_func(before) == docstring_example(module, "Before")
    assert print_func(function(before)) == after
    assert print_func(function(parse_func(after))) == after
