"""Lines of text: names are used once."""

from refcomp.emulator.translation.names import Lines

FRAME = {"table": {"sum": "  %{t} = add i32 {a}, {b}\n"}}


def test_values_get_names_of_their_own():
    lines = Lines(FRAME, "x")
    first = lines.put("table", "sum", a="1", b="2")
    second = lines.put("table", "sum", a=first, b=first)
    assert (first, second) == ("%x1", "%x2")
    assert lines.text() == "  %x1 = add i32 1, 2\n  %x2 = add i32 %x1, %x1\n"


def test_a_name_may_be_given():
    lines = Lines(FRAME, "x")
    name = lines.fresh()
    assert lines.put("table", "sum", name, a="1", b="2") == f"%{name}"
