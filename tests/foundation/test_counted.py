"""Numbers with the nouns that they count."""

import pytest

from refcomp.foundation.counted import counted


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (1, "byte", "1 byte"),
        (0, "byte", "0 bytes"),
        (2, "schedule step", "2 schedule steps"),
        (1, "pass", "1 pass"),
        (3, "pass", "3 passes"),
        (2, "launch", "2 launches"),
        (2, "box", "2 boxes"),
    ],
)
def test_one_is_singular_and_all_else_plural(number, noun, text):
    assert counted(number, noun) == text


def test_an_irregular_plural_is_given():
    assert counted(1, "index", "indices") == "1 index"
    assert counted(2, "index", "indices") == "2 indices"
