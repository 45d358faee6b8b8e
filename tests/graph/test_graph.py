"""The graph as data: its text, with names that try to escape from it."""

from refcomp.graph.graph import spell, spell_dim
from tests.strategies.graphs import digits_graph, make_graph
from tests.strategies.operands import floats


def test_text_of_the_digit_network(golden) -> None:
    golden("graph/digits.txt", str(digits_graph()) + "\n")


def test_hostile_names_are_quoted() -> None:
    evil = 'x) -> () {\n "}'

    def build(builder, x):
        constant = builder.constant(evil, floats(0, 6))
        return builder.node("add", [x, constant], name="evil\n2")

    text = str(make_graph(build, ("N\n", 6)))
    assert len(text.splitlines()) == 4
    assert 'const "x) -> () {\\n \\"}": f32[6]' in text
    assert '"evil\\n2": f32["N\\n", 6] = add(x, "x) -> () {\\n \\"}")' in text


def test_spelling() -> None:
    assert spell("a.b_1") == "a.b_1"
    assert spell("1a") == '"1a"'
    assert spell("naïve") == '"na\\u00efve"'
    assert spell_dim(("add", "N", ("mul", "M 2", 3))) == '(N + ("M 2" * 3))'


def test_readers_and_omitted_inputs() -> None:
    graph = make_graph(
        lambda b, x: b.node("conv2d", [x, b.constant("w", floats(0, 2, 3, 1, 1)), None])
    )
    (node,) = graph.nodes
    assert "conv2d(x, w, _)" in str(node)
    assert [value.name for value in node.reads] == ["x", "w"]
    assert graph.readers()[graph.inputs[0]] == [node]
