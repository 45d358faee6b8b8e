"""Operators on sequences: results, positions from both ends, and what they refuse."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.parser import parse_graph
from tests.graph.control.runs import f32, i64, run_text

HEAD = "graph g(p: i64[], x: f32[N], y: f32[1, M], s: seq(f32)) -> (r) {\n  "


def feeds(p: int = 0, s: tuple[np.ndarray, ...] = ()) -> dict[str, object]:
    return {"p": i64(p), "x": f32(1, 2), "y": f32(3)[None], "s": list(s)}


def result(node: str, p: int = 0, s: tuple[np.ndarray, ...] = ()) -> object:
    (made,) = run_text(f"{HEAD}{node}\n}}", **feeds(p, s))
    return made


def lists(sequence: object) -> list[object]:
    assert isinstance(sequence, tuple)
    return [one.tolist() for one in sequence]


A, B, C = f32(1), f32(2, 3), f32(4)


def test_construct_and_empty() -> None:
    made = result("r: seq(f32) = sequence_construct(x, y, x)")
    assert lists(made) == [[1, 2], [[3]], [1, 2]]
    assert result('r: seq(i8) = sequence_empty() {dtype="i8"}') == ()


@pytest.mark.parametrize(("place", "expected"), [(0, [1]), (2, [4]), (-1, [4]), (-3, [1])])
def test_at(place: int, expected: list[int]) -> None:
    made = result("r: f32[*] = sequence_at(s, p)", place, (A, B, C))
    assert made.tolist() == expected


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (0, [[1, 2], [1], [4]]),
        (1, [[1], [1, 2], [4]]),
        (2, [[1], [4], [1, 2]]),
        (-1, [[1], [1, 2], [4]]),
        (-2, [[1, 2], [1], [4]]),
    ],
)
def test_insert(place: int, expected: list[list[int]]) -> None:
    made = result("r: seq(f32) = sequence_insert(s, x, p)", place, (A, C))
    assert lists(made) == expected


def test_insert_and_erase_at_the_end_by_default() -> None:
    assert lists(result("r: seq(f32) = sequence_insert(s, x)", 0, (A,))) == [[1], [1, 2]]
    assert lists(result("r: seq(f32) = sequence_erase(s)", 0, (A, B))) == [[1]]
    assert lists(result("r: seq(f32) = sequence_erase(s, p)", 0, (A, B))) == [[2, 3]]
    assert lists(result("r: seq(f32) = sequence_erase(s, p)", -2, (A, B))) == [[2, 3]]


def test_length() -> None:
    assert result("r: i64[] = sequence_length(s)", 0, (A, B, C)).tolist() == 3
    assert result("r: i64[] = sequence_length(s)").tolist() == 0


def test_concat() -> None:
    made = result("r: f32[*] = concat_from_sequence(s) {axis=0}", 0, (A, B))
    assert made.tolist() == [1, 2, 3]
    made = result("r: f32[*] = concat_from_sequence(s) {axis=-1, new_axis=True}", 0, (A, C))
    assert made.tolist() == [[1, 4]]


def split(sizes: str, given: np.ndarray, more: str = "") -> object:
    text = f"""
graph g(x: f32[N, 2], z: i64[{sizes}]) -> (r) {{
  r: seq(f32) = split_to_sequence(x, z) {more}
}}"""
    x = np.arange(10, dtype="float32").reshape(5, 2)
    (made,) = run_text(text, x=x, z=given)
    return made


def test_split_by_sizes() -> None:
    parts = split("K", np.array([1, 0, 4]))
    assert [part.shape for part in parts] == [(1, 2), (0, 2), (4, 2)]
    assert [part.shape for part in split("", i64(2))] == [(2, 2), (2, 2), (1, 2)]
    assert [part.shape for part in split("", i64(1), "{axis=1}")] == [(5, 1), (5, 1)]


@pytest.mark.parametrize(
    ("sizes", "given"),
    [("K", np.array([1, 2])), ("K", np.array([-1, 6])), ("", i64(0)), ("", i64(-1))],
)
def test_split_by_wrong_sizes_is_refused(sizes: str, given: np.ndarray) -> None:
    with pytest.raises(UserError, match="(?s)cannot split 5 elements into parts.*add up"):
        split(sizes, given)


def test_split_into_slices() -> None:
    made = result("r: seq(f32) = split_to_sequence(x)")
    assert lists(made) == [[1], [2]]
    made = result("r: seq(f32) = split_to_sequence(x) {keep_axis=False}")
    assert lists(made) == [1, 2]
    made = result("r: seq(f32) = split_to_sequence(y) {axis=1}")
    assert lists(made) == [[[3]]]


def test_map() -> None:
    body = "graph b(e: f32[*], x: f32[N]) -> (m, e) { m: f32[*] = add(e, x) }"
    text = "graph g(x: f32[N], s: seq(f32)) -> (r, t) { r: seq(f32), t: seq(f32) = "
    text += f"sequence_map(s, x) {body} }}"
    made, same = run_text(text, x=f32(1), s=[A, B])
    assert lists(made) == [[2], [3, 4]]
    assert lists(same) == [[1], [2, 3]]
    assert run_text(text, x=f32(1), s=[]) == [(), ()]


def test_map_over_two_sequences() -> None:
    body = "graph b(e: f32[*], f: f32[*]) -> (m) { m: f32[*] = add(e, f) }"
    text = f"graph g(s: seq(f32), t: seq(f32)) -> (r) {{ r: seq(f32) = sequence_map(s, t) {body} }}"
    (made,) = run_text(text, s=[A, B], t=[B, A])
    assert lists(made) == [[3, 4], [3, 4]]
    with pytest.raises(UserError, match="sequence_map takes sequences of 2 and 1 elements"):
        run_text(text, s=[A, B], t=[B])


@pytest.mark.parametrize(
    ("node", "place", "message"),
    [
        ("r: f32[*] = sequence_at(s, p)", 2, "asks for element 2 of a sequence of 2.*-2 to 1"),
        ("r: f32[*] = sequence_at(s, p)", -3, "asks for element -3 of a sequence of 2"),
        ("r: seq(f32) = sequence_erase(s, p)", 2, "sequence_erase asks for element 2"),
        ("r: seq(f32) = sequence_insert(s, x, p)", 3, "cannot insert at 3 of a sequence of 2"),
        ("r: seq(f32) = sequence_insert(s, x, p)", -3, "cannot insert at -3"),
        (
            "r: f32[*] = concat_from_sequence(s) {axis=0, new_axis=True}",
            0,
            "of shape .1., .2. along",
        ),
        ("r: f32[*] = concat_from_sequence(s) {axis=1}", 0, "cannot join tensors"),
        ("r: seq(f32) = split_to_sequence(x) {axis=1}", 0, "cannot split axis 1 of .2."),
    ],
)
def test_a_run_refuses_wrong_positions(node: str, place: int, message: str) -> None:
    with pytest.raises(UserError, match=f"(?s){message}") as caught:
        result(node, place, (A, B))
    assert caught.value.where == "node r"


def test_nothing_is_joined() -> None:
    with pytest.raises(UserError, match="joins a sequence without elements"):
        result("r: f32[*] = concat_from_sequence(s) {axis=0}")


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ("sequence_at(x, p)", "the input sequence of sequence_at cannot be x: f32.N.*a sequence"),
        ("sequence_at(s, x)", "the input position of sequence_at cannot be x"),
        ("sequence_at(s)", "sequence_at cannot be applied to 1 inputs"),
        ("sequence_construct(s)", r"the input tensors of sequence_construct cannot be s: seq"),
        ("sequence_construct(x, p)", r"cannot put p: i64.. into x.*convert the tensor to f32"),
        ("sequence_insert(s, p)", r"sequence_insert cannot put p: i64.. into s: seq\(f32\)"),
        ("sequence_length(x)", "the input sequence of sequence_length cannot be x"),
        ("concat_from_sequence(s)", "concat_from_sequence lacks the attribute axis"),
        ("split_to_sequence(s)", "the input data of split_to_sequence cannot be s"),
        ("split_to_sequence(x, y)", "split_to_sequence takes no sizes y"),
        ("sequence_map(s)", "sequence_map has 0 subgraphs"),
        ("relu(s)", r"relu takes tensors, but s: seq\(f32\) is a sequence.*sequence_at"),
    ],
)
def test_wrong_nodes_are_refused(node: str, message: str) -> None:
    with pytest.raises(UserError, match=f"(?s)node r: .*{message}"):
        parse_graph(f"{HEAD}r: seq(f32) = {node}\n}}")
