"""A TOML table gives typed values, and refuses the rest by file and key."""

from collections.abc import Callable
from pathlib import Path

import pytest

from refcomp.foundation.errors import UserError
from refcomp.toolchain.table import TomlTable, read_table
from tests.quotations import quoted

CONTENT = """
text = "a"
texts = ["a", "b"]
flag = false
[group.one]
key = "1"
[group.two]
key = "2"
[texts_by_name]
x = ["y"]
[words]
a = "b"
"""


@pytest.fixture
def table(tmp_path: Path) -> TomlTable:
    path = tmp_path / "some.toml"
    path.write_text(CONTENT)
    return read_table(path)


def test_values(table: TomlTable) -> None:
    assert table.text("text") == "a"
    assert table.texts("texts") == ("a", "b")
    assert table.flag("flag", True) is False
    assert {name: sub.text("key") for name, sub in table.tables("group")} == {
        "one": "1",
        "two": "2",
    }
    assert table.lists("texts_by_name") == {"x": ("y",)}
    assert table.mapping("words") == {"a": "b"}
    assert "text" in table and "absent" not in table
    table.close()


def test_defaults(table: TomlTable) -> None:
    assert table.text("absent", "d") == "d"
    assert table.texts("absent", ()) == ()
    assert table.flag("absent", True) is True
    assert table.mapping("absent") == {}
    assert list(table.tables("absent")) == []


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda t: t.text("absent"), "^absent is missing"),
        (lambda t: t.texts("absent"), "^absent is missing"),
        (lambda t: t.text("flag"), "^flag must be a string, not False"),
        (lambda t: t.texts("text"), "^text must be an array of strings, not 'a'"),
        (lambda t: t.flag("text", True), "^text must be true or false, not 'a'"),
        (lambda t: t.table("text"), "^text must be a table, not 'a'"),
        (lambda t: t.table("group").table("one").flag("key", True), r"^group\.one\.key must be"),
        (lambda t: t.mapping("group"), r"^group\.one must be a string"),
        (lambda t: t.close(), "^text is not a key that a toolchain file has here"),
    ],
)
def test_what_does_not_fit_is_refused(
    table: TomlTable, read: Callable[[TomlTable], object], message: str
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        read(table)
    place = caught.value.at.place if caught.value.at else caught.value.where
    name = message.strip("^").partition(" ")[0].replace("\\", "")
    lines = {"flag": ":4", "text": ":2", "group.one.key": ":6", "group.one": ":5"}
    assert place == f"{table.path}{lines.get(name, '')}"


@pytest.mark.parametrize("content", [b"key = ", b"\xff\xfe", b"a = 1\na = = 2"])
def test_what_is_not_toml_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign.toml"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"foreign\.toml is not a toolchain file") as caught:
        read_table(path)
    assert str(path) in str(caught.value)
    if content == b"a = 1\na = = 2":
        assert quoted(caught.value, "") == "a = = 2"
        assert caught.value.at.place == f"{path}:2"


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.toml is not a toolchain file") as caught:
        read_table(tmp_path / "none.toml")
    assert "No such file" in str(caught.value)
