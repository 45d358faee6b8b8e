import pytest

from refcomp.codegen.accumulator import BODY, Chunk, Chunks, Declarations, join_chunks


def test_chunks_carry_their_source():
    out = Chunks()
    out.source = "first"
    out.emit("a\nb\n")
    out.source = "second"
    out.emit("c\n")
    assert join_chunks(out.chunks) == ("a\nb\nc\n", ("first", "first", "second"))


def test_capture_keeps_apart_and_restores_the_source():
    out = Chunks()
    out.source = "outer"

    def print_body():
        out.source = "inner"
        out.emit("x\n")

    captured = out.capture(print_body)
    out.emit("y\n")
    assert captured == [Chunk("x\n", "inner")]
    assert out.chunks == [Chunk("y\n", "outer")]


def test_bodies_stand_where_their_marks_stand():
    out = Chunks()
    out.source = "loop"
    out.emit_around(f"head\n{BODY}\nmiddle\n{BODY}\n", [Chunk("one\n", "1")], [Chunk("two\n", "2")])
    text, sources = join_chunks(out.chunks)
    assert text == "head\none\nmiddle\ntwo\n"
    assert sources == ("loop", "1", "loop", "2")


def test_a_body_without_its_mark_is_refused():
    with pytest.raises(ValueError, match=r"zip\(\)"):
        Chunks().emit_around("head\n", [Chunk("lost\n", "")])


def test_declarations_stand_once_in_the_order_of_asking():
    declarations = Declarations()
    for name in ("b", "a", "b"):
        declarations.add(name, lambda name=name: f"declare {name}\n")
    assert declarations.text == "declare b\ndeclare a\n"


def test_declarations_of_several_files_are_each_kept_once():
    whole, part = Declarations(), Declarations()
    whole.add("a", str, object="a\n")
    part.add("b", str, object="b\n")
    part.add("a", str, object="a\n")
    whole.update(part)
    assert whole.text == "a\nb\n"
