"""Symbols from names, from lists and from files."""

from pathlib import Path

import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.graph.symbol import sources

X = rc.sym.Variable("x")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rc.sym.Group([]), r"\[\] is not a list of symbols"),
        (lambda: rc.sym.Group([X, 3]), "is not a list of symbols"),
        (lambda: rc.sym.Group("xy"), "'xy' is not a list of symbols"),
        (lambda: rc.sym.Variable(""), "a variable cannot be called ''"),
        (lambda: rc.sym.Variable(3), "3 is not a name for a variable"),
        (lambda: rc.sym.Variable("v", shape=(-1,)), r"\(-1,\) is not a shape for variable 'v'"),
        (lambda: rc.sym.Variable("v", dtype="int9"), "int9"),
        (lambda: rc.sym.Variable("v", init=3), "3 is not a name for an initializer"),
        (
            lambda: rc.sym.Variable("v", scale="2"),
            "the variable 'v' cannot have the attribute scale='2'\n(.|\n)*begins and ends with __",
        ),
    ],
)
def test_wrong_use_is_refused_in_words(call: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        call()


def test_files_are_written_and_read(tmp_path: Path) -> None:
    net = rc.sym.dense(X, units=2, name="fc")
    path = tmp_path / "net.json"
    net.save(path)
    assert rc.sym.load(path).json() == net.json()
    path.write_text(net.json()[:-10], encoding="utf-8")
    with pytest.raises(UserError, match=r"cannot be read from JSON(.|\n)*net\.json(.|\n)*not JSON"):
        rc.sym.load(path)
    path.write_bytes(b"\xff")
    with pytest.raises(UserError, match=r"the symbol in .*net\.json' cannot be read"):
        rc.sym.load(path)
    with pytest.raises(UserError, match="cannot be read"):
        rc.sym.load(tmp_path / "missing.json")
    with pytest.raises(UserError, match="the symbol cannot be written to"):
        net.save(tmp_path / "missing" / "net.json")
    with pytest.raises(UserError, match="3 is not a path for a symbol"):
        net.save(3)


def test_huge_file_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "net.json"
    path.write_text(" " * 100, encoding="utf-8")
    monkeypatch.setattr(sources, "MAX_JSON", 20)
    monkeypatch.setattr("refcomp.graph.symbol.json.MAX_JSON", 20)
    with pytest.raises(UserError, match="it has 21 characters; at most 20 are read"):
        rc.sym.load(path)
