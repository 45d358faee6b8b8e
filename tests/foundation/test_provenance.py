from pathlib import Path

import pytest

import refcomp
from refcomp.foundation.provenance import caller_line, declared_at, done_at
from refcomp.foundation.snippets import Snippet


def test_names_the_line_outside_the_package():
    file, number = caller_line().rsplit(":", 1)
    assert file == __file__
    assert "caller_line()" in Path(__file__).read_text().splitlines()[int(number) - 1]


def test_frames_of_the_package_are_passed_over():
    tensor = refcomp.placeholder((4,), name="A")  # the line the message must name
    number = int(tensor.op.line.rsplit(":", 1)[1])
    assert "the line the message must name" in Path(__file__).read_text().splitlines()[number - 1]


@pytest.mark.parametrize(
    ("primitive", "label"),
    [
        ("split", "split here"),
        ("vectorize", "vectorized here"),
        ("compute_at", "attached here"),
        ("", "declared here"),
    ],
)
def test_the_line_of_a_primitive_is_labelled_by_what_it_did(primitive: str, label: str) -> None:
    assert done_at(primitive, "x.py:3") == Snippet("x.py:3", label)
    assert done_at(primitive, "x.py:3", "axis i") == Snippet("x.py:3", f"axis i is {label}")


def test_the_line_of_a_declaration_may_name_what_it_declares() -> None:
    assert declared_at("x.py:3") == Snippet("x.py:3", "declared here")
    assert declared_at("x.py:3", "A") == Snippet("x.py:3", "A is declared here")
