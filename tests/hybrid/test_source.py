import pytest

from refcomp.foundation.errors import UserError
from refcomp.hybrid.source import read_source
from tests.quotations import quoted

OUTSIDE = 7


def make(inner):
    def function(a):
        return a + inner + OUTSIDE

    return function


def test_definition_and_outer_names():
    source = read_source(make(3))
    assert (source.name, source.definition.name) == ("function", "function")
    assert (source.outer["inner"], source.outer["OUTSIDE"], source.outer["len"]) == (3, 7, len)
    assert source.filename.endswith("test_source.py")


def test_places():
    source = read_source(make(3))
    returned = source.definition.body[0]
    assert source.place(returned) == f"{source.filename}:{make.__code__.co_firstlineno + 2}"
    with pytest.raises(UserError, match="hybrid function function: so not") as caught:
        source.refuse(returned, "so not", "so")
    assert quoted(caught.value, "") == "return a + inner + OUTSIDE"
    assert caught.value.remedy == "so"
    with pytest.raises(UserError) as caught:
        source.refuse(returned.value.right, "so not")
    assert str(caught.value).endswith(
        "     return a + inner + OUTSIDE\n   |                        ^^^^^^^"
    )


def test_a_name_that_is_bound_later():
    def function(a):
        return a + later

    source = read_source(function)
    assert "later" not in source.outer
    later = 1
