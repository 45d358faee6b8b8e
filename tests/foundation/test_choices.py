"""Enumerations that are strings."""

import json

import pytest

from refcomp.foundation.choices import Choice
from refcomp.foundation.errors import UserError


class Fruit(Choice):
    APPLE = "apple"
    PEAR = "pear"


def test_a_member_cannot_be_told_from_its_string():
    assert Fruit.APPLE == "apple"
    assert {"apple": 1}[Fruit.APPLE] == 1
    assert {Fruit.PEAR: 2}["pear"] == 2
    assert (f"{Fruit.APPLE}", str(Fruit.APPLE), repr(Fruit.APPLE)) == ("apple", "apple", "'apple'")
    assert json.dumps([Fruit.PEAR]) == '["pear"]'


def test_strings_and_members_are_parsed():
    assert Fruit.parse("pear", "fruit") is Fruit.PEAR
    assert Fruit.parse(Fruit.PEAR, "fruit") is Fruit.PEAR


@pytest.mark.parametrize(
    ("value", "message", "remedy"),
    [
        ("aple", "'aple' is not a fruit", "did you mean apple? use one of apple, pear"),
        ("stone", "'stone' is not a fruit", "use one of apple, pear"),
        (None, "None is not a fruit", "use one of apple, pear"),
        ([], "[] is not a fruit", "use one of apple, pear"),
    ],
)
def test_other_values_are_refused(value, message, remedy):
    with pytest.raises(UserError) as caught:
        Fruit.parse(value, "fruit")
    assert caught.value.what == message
    assert caught.value.remedy == remedy
