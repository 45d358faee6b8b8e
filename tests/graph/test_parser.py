"""The parser of graphs: text to graph and back, and an error for everything else."""

import re

import numpy as np
import pytest
from hypothesis import given, settings

from refcomp.foundation.errors import UserError
from refcomp.graph.builder import GraphBuilder
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.graph import Graph, Value
from refcomp.graph.optimize import optimize
from refcomp.graph.parser import parse_condition, parse_graph
from refcomp.graph.verify import verify_graph
from tests.strategies.graphs import digits_graph, make_graph, networks
from tests.strategies.operands import floats


def arrays_of(graph: Graph) -> dict[str, np.ndarray]:
    """The constants of a graph by name."""
    return {value.name: array for value, array in graph.constants.items()}


def assert_parses_back(graph: Graph) -> None:
    text = str(graph)
    parsed = parse_graph(text, arrays_of(graph))
    verify_graph(parsed)
    assert str(parsed) == text
    assert parsed.requires == graph.requires


@settings(max_examples=30, deadline=None)
@given(networks())
def test_networks_parse_back(graph: Graph) -> None:
    assert_parses_back(graph)
    assert_parses_back(optimize(graph))  # with fused nodes


def test_the_digit_network_parses_back_to_the_same_meaning() -> None:
    graph = digits_graph()
    parsed = parse_graph(str(graph), arrays_of(graph))
    image = floats(0, 2, 1, 8, 8)
    (expected,) = evaluate_graph(graph, {"image": image})
    (actual,) = evaluate_graph(parsed, {"image": image})
    np.testing.assert_array_equal(actual, expected)


def test_hostile_names_parse_back() -> None:
    evil = 'x) -> () {\n "}'

    def build(builder: GraphBuilder, x: Value) -> Value:
        constant = builder.constant(evil, floats(0, 6))
        return builder.node("add", [x, constant], name="evil\n2")

    assert_parses_back(make_graph(build, ("N\n", 6)))


@pytest.mark.parametrize(
    "array",
    [
        np.array([1.5, -0.0, np.inf, -np.inf, 1e-30], "float32"),
        np.array(3.25, "float64"),
        np.array([[1, -2], [3, 4]], "int8"),
        np.array([2**64 - 1], "uint64"),
        np.array([True, False]),
        np.zeros((0, 3), "float32"),
        np.array([0.1, 65504], "float16"),
    ],
)
def test_elements_of_small_constants_parse_back_to_the_bit(array: np.ndarray) -> None:
    graph = make_graph(lambda b, x: [x, b.constant("c", array)])
    parsed = parse_graph(str(graph))
    (constant,) = parsed.constants.values()
    assert constant.tobytes() == array.tobytes()
    assert constant.shape == array.shape
    assert not constant.flags.writeable


def test_nodes_that_no_output_needs_stay() -> None:
    text = "graph g(x: f32[2]) -> (x) {\n  y: f32[2] = relu(x)\n}"
    assert str(parse_graph(text)) == text


def test_values_may_be_named_like_keywords() -> None:
    text = (
        "graph g(const: f32[2]) -> (graph) {\n"
        "  require: f32[2] = relu(const)\n"
        "  graph: f32[2] = relu(require)\n}"
    )
    assert str(parse_graph(text)) == text


@pytest.mark.parametrize(
    "condition",
    ["N % 4 == 0", "N + 1 <= M * 2", "N == 1 or N == 2 and M < 3", "min(N, 2) != M - 3"],
)
def test_conditions_parse_back(condition: str) -> None:
    builder = GraphBuilder("g")
    x = builder.input("x", "f32", ("N", "M"))
    builder.require(parse_condition(condition))
    graph = builder.finish([x])
    assert f"  require {condition}\n" in str(graph)
    assert_parses_back(graph)


BODY = "graph g(x: f32[N, 4]) -> (y) {{\n  {}\n}}"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("y: f32[N, 4] = rely(x)", "node y: unknown operator 'rely'.*relu"),
        ("y: f32[N, 4] = relu(z)", "no value before this place is named 'z'"),
        ("y: f32[N, 4] = relu(y)", "no value before this place is named 'y'"),
        ("x: f32[N, 4] = relu(x)", "two values are named 'x'.*rename one"),
        ("y: f32[N, 5] = relu(x)", r"declared as f32\[N, 5\], but relu makes f32\[N, 4\]"),
        ("y: f16[N, 4] = relu(x)", r"declared as f16\[N, 4\], but relu makes"),
        ("y: f32[*] = relu(x)", r"declared as f32\[\*\], but relu makes"),
        ("y: f99[N, 4] = relu(x)", "`f99` is not a dtype"),
        ("y: f32[N, 4] = relu(x, x)", "node y: relu cannot be applied to 2 inputs"),
        ("y: f32[N, 4] = relu(_)", "without data"),
        ("y: f32[N, 4] = softmax(x) {axis=1.5}", "attribute axis of softmax is 1.5"),
        ("y: f32[N, 4] = softmax(x) {axs=1}", "softmax has no attribute 'axs'"),
        ("y: f32[N, 4] = softmax(x) {axis=1, axis=1}", "the attribute `axis` is given twice"),
        ("y: f32[N, 4] = softmax(x) {axis=oops}", "expected a number, found `oops`"),
        ("y: f32[*] = softmax(x) {axis=@z}", "no value before this place is named 'z'"),
        ("y: f32[N, 4] relu(x)", "expected `=` after the outputs of a node"),
        ("y f32[N, 4] = relu(x)", "expected a node, `const`, `require` or `}`, found `y`"),
        ("y: f32[N, 4 = relu(x)", "expected `,` between two items"),
        ("y: f32[N, 4] = relu(x", "expected `,` between two items"),
        ("y: f32[N, 4] = relu(x)\n  ?", "the character '.' begins nothing"),
        ("const c: f32[3]", "no array is given for constant 'c'.*none"),
        ("const c: f32[3] = [1, 2]", "cannot have 2 elements"),
        ("const c: f32[N] = [1, 2]", "cannot have 2 elements"),
        ("const c: i8[1] = [300]", "constant c: i8.1.: .*300"),
        ("const c: i8[1] = [x]", "expected a number, found `x`"),
        ("require", "expected an extent, found `}`"),
        ("require N ==", "expected an extent, found `}`"),
        (
            "require M < 3\n  y: f32[N, 4] = relu(x)",
            "no input has the symbol M of the condition M < 3",
        ),
        (
            'y: f32[N, N] = narrow(x, c) {axis=1, symbol="N"}\n  const c: i64[1] = [1]',
            "no value before this place is named 'c'",
        ),
        (
            'const c: i64[1] = [1]\n  y: f32[N, N] = narrow(x, c) {axis=1, symbol="N"}',
            "node y gives N a second value.*give each symbol one value",
        ),
        ("y: seq(optional(f32)) = sequence_construct(x)", "a sequence holds neither"),
        ("y: f32[N, 4] = fused(x)", "node y: fused has 0 subgraphs"),
        ("y: seq(f32) = sequence_construct(x) graph h() -> () { }", "has 1 subgraphs"),
    ],
)
def test_wrong_text_is_refused_with_its_place(body: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_graph(BODY.format(body))
    text = caught.value.message()
    assert re.search(rf"(?s){message}", text), text
    assert re.search(r"--> <graph>:\d+:\d+", text), text


def test_a_text_without_end_is_refused() -> None:
    with pytest.raises(UserError, match="expected a node.* found the end of the text"):
        parse_graph("graph g() -> () {")
    with pytest.raises(UserError, match="expected the end of the text, found `graph`"):
        parse_graph("graph g() -> () { } graph h() -> () { }")
    with pytest.raises(UserError, match="a int is not a text to parse"):
        parse_graph(3)  # type: ignore[arg-type]


def test_deep_nesting_is_refused() -> None:
    deep = "(" * 2000 + "N" + ")" * 2000
    with pytest.raises(UserError, match="more than 50 operators are nested"):
        parse_graph(f"graph g(x: f32[{deep}]) -> () {{ }}")
    chained = "max(1, " * 2000
    with pytest.raises(UserError, match="more than 50 operators are nested"):
        parse_graph(f"graph g(x: f32[{chained}")
    nested = "graph g(x: f32[1]) -> () { y: f32[1] = if(x) " * 2000
    with pytest.raises(UserError, match="more than 50 graphs are nested"):
        parse_graph(nested)


def test_a_given_constant_of_another_type_is_refused() -> None:
    text = "graph g() -> (c) {\n  const c: f32[9]\n}"
    with pytest.raises(UserError, match=r"constant c: f32\[9\] is given f64\[9\]"):
        parse_graph(text, {"c": np.zeros(9)})
    with pytest.raises(UserError, match="(?s)no array is given.*did you mean C"):
        parse_graph(text, {"C": np.zeros(9, "float32")})


def test_given_constants_share_memory_and_stay_writable_for_the_caller() -> None:
    elements = np.zeros(9, "float32")
    graph = parse_graph("graph g() -> (c) {\n  const c: f32[9]\n}", {"c": elements})
    (constant,) = graph.constants.values()
    assert np.shares_memory(constant, elements)
    assert elements.flags.writeable
    assert not constant.flags.writeable
