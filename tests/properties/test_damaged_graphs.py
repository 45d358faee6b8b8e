"""Damaged texts of graphs: each is read, or refused by an error that shows its place."""

import random

import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.parser import parse_graph
from refcomp.graph.verify import verify_graph
from tests.graph.control.test_loops import CUMULATIVE, doubling
from tests.strategies.graphs import digits_graph

GRAPH = digits_graph()
CONSTANTS = {value.name: array for value, array in GRAPH.constants.items()}
TEXTS = {
    "digits": str(GRAPH),
    "loop": doubling(),
    "scan": CUMULATIVE.replace("TYPE", "3, 2").replace(" MORE", ""),
    "kinds": """
graph kinds(o: optional(seq(f32)), x: f32[N, (M + 2)], k: i64[1]) -> (t, y) {
  require N % 4 == 0 and M < 7
  const w: i8[2, 2] = [1, -2, 3, 4]
  s: seq(f32) = optional_get_element(o)
  t: seq(f32) = sequence_insert(s, x)
  y: f32[*] = softmax(x) {axis=@k}
}""",
}
# Pieces that a line may get instead of one of its own.
PIECES = ["", "(", ")", "[", "]", "{", "}", ",", ":", "=", "@", "*", "-", '"', "\\", "_", "graph"]
PIECES += [
    "const",
    "require",
    "f32",
    "seq(",
    "9" * 30,
    "1e999",
    "-1",
    "nan",
    "N",
    "\0",
    "é",
    "min(",
]


def damaged(text: str, chance: random.Random) -> str:
    """The text with one to three pieces replaced, moved or lost."""
    for _ in range(chance.randint(1, 3)):
        begin = chance.randrange(len(text))
        end = min(len(text), begin + chance.choice([0, 1, 1, 2, 5, 40]))
        piece = chance.choice([*PIECES, text[begin:end] * 2, text[end : end + 20]])
        text = text[:begin] + piece + text[end:]
    return text


@pytest.mark.parametrize("name", TEXTS)
def test_damaged_text_is_read_or_refused(name: str, pytestconfig: pytest.Config) -> None:
    chance = random.Random(name)
    refused = 0
    for _ in range(20_000 if pytestconfig.getoption("--nightly") else 1500):
        text = damaged(TEXTS[name], chance)
        try:
            graph = parse_graph(text, CONSTANTS)
        except UserError as error:
            assert "<graph>:" in error.message(), f"{error.message()}\n{text}"
            refused += 1
        else:
            verify_graph(graph)
    assert refused > 300


def test_texts_are_whole_before_they_are_damaged() -> None:
    for text in TEXTS.values():
        verify_graph(parse_graph(text, CONSTANTS))
