import numpy as np
import pytest
from onnx import TensorProto, helper

from refcomp import onnx_backend
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.models import make_model, single
from tests.frontend.onnx.converters.cases import EVALUATOR, RUNTIME, NodeCase, check


def texts(*elements: object) -> np.ndarray:
    return np.array(elements, dtype=object)


WORDS = texts("Monday", "an", "", "Öl ")
PLAIN = "the text asks for plain digits, and for INF and NaN"
DROPS = "it drops accents and empty texts, which are no stopwords"
NUMBERS = np.array([314.15926, 1e-5, np.inf, np.nan, 2], np.float32)
CASES = [
    NodeCase("StringConcat", 20, [WORDS, texts("!")]),
    NodeCase("StringConcat", 20, [texts(["a"], ["b"]), WORDS], label="broadcast"),
    NodeCase("StringSplit", 20, [texts("a b  c", " d ", "")], outputs=2),
    NodeCase("StringSplit", 20, [texts("a,b", ",")], {"delimiter": ",", "maxsplit": 1}, outputs=2),
    NodeCase("StringNormalizer", 10, [WORDS], {"stopwords": ["AN"], "case_change_action": "UPPER"},
             expected=[texts("MONDAY", "", "ÖL ")], wrong={EVALUATOR: DROPS}, label="upper"),
    NodeCase("StringNormalizer", 10, [WORDS], {"is_case_sensitive": 1, "stopwords": ["AN", ""]},
             expected=[texts("Monday", "an", "Öl ")], wrong={EVALUATOR: DROPS}, label="exact"),
    NodeCase("RegexFullMatch", 20, [WORDS], {"pattern": r"\pL*"}, wrong={EVALUATOR: "no RE2"},
             expected=[np.array([True, True, True, False])]),
    NodeCase("Cast", 13, [NUMBERS], {"to": TensorProto.STRING},
             expected=[texts("314.15927", "0.00001", "INF", "NaN", "2")],
             wrong={RUNTIME: PLAIN, EVALUATOR: PLAIN}, label="to-strings"),
    NodeCase("Cast", 13, [texts("3.5", "1e3", "-INF", "nan")], {"to": 1}, label="to-floats"),
    NodeCase("Cast", 9, [texts("12", "-3")], {"to": 6}, label="to-integers"),
    NodeCase("CastLike", 15, [texts("12", "0.5"), NUMBERS], label="from-strings"),
]  # fmt: skip
# Operators that move or compare strings.
MOVING = [
    NodeCase("Equal", 19, [WORDS, texts("an", "an", "", "öl ")]),
    NodeCase("Gather", 13, [WORDS, np.array([[3, -4]])]),
    NodeCase("GatherElements", 13, [WORDS, np.array([1, 0])]),
    NodeCase("GatherND", 13, [WORDS, np.array([[1], [2]])]),
    NodeCase("Reshape", 21, [WORDS, np.array([2, -1])]),
    NodeCase("Flatten", 21, [WORDS.reshape(1, 2, 2)]),
    NodeCase("Concat", 13, [WORDS, texts("x")], {"axis": 0}),
    NodeCase("Split", 18, [WORDS], {"num_outputs": 2}, outputs=2),
    NodeCase("Slice", 13, [WORDS, np.array([3]), np.array([0]), np.array([0]), np.array([-2])]),
    NodeCase("Squeeze", 21, [WORDS.reshape(4, 1)]),
    NodeCase("Unsqueeze", 21, [WORDS, np.array([0])]),
    NodeCase("Transpose", 21, [WORDS.reshape(2, 2)]),
    NodeCase("Tile", 13, [WORDS, np.array([2])]),
    NodeCase("Expand", 13, [WORDS, np.array([2, 4])]),
    NodeCase("Where", 16, [np.array([True, False, True, False]), WORDS, texts("w")]),
    NodeCase("Shape", 21, [WORDS.reshape(2, 2)]),
    NodeCase("Size", 21, [WORDS]),
    NodeCase("Identity", 21, [WORDS]),
    NodeCase("NonZero", 13, [WORDS], expected=[np.array([[0, 1, 3]])], wrong={
        EVALUATOR: "an array of objects has other zeros"}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES + MOVING, ids=str)
def test_node(case):
    check(case)


def string_model(nodes, outputs, opset=21, constants=None):
    model = make_model(nodes, {"x": ("N",)}, outputs, constants, TensorProto.STRING, opset)
    del model.graph.output[:]
    model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in outputs)
    return model


def test_strings_that_are_constants_meet_strings_that_are_given() -> None:
    nodes = [
        single("Constant", outputs=["c"], value_strings=["b", "z"]),
        single("Concat", "x", "c", "w", outputs=["all"], axis=0),
        single("Equal", "all", "one", outputs=["same"]),
        single("Where", "same", "one", "all", outputs=["y"]),
    ]
    stored = {"w": texts("w"), "one": texts("b")}
    model = string_model(nodes, ["y", "same"], constants=stored)
    y, same = onnx_backend.run_model(model, [np.array(["b", "a"])], "INTERP")
    assert y.tolist() == ["b", "a", "b", "z", "w"]
    assert same.tolist() == [True, False, True, False, False]


def test_strings_are_read_as_8_bit_floats_and_written() -> None:
    float8 = TensorProto.FLOAT8E4M3FN
    nodes = [
        single("Cast", "x", outputs=["f"], to=float8),
        single("Cast", "f", outputs=["y"], to=TensorProto.STRING),
    ]
    (y,) = onnx_backend.run_model(string_model(nodes, ["y"]), [texts("0.3", "448", "-1")], "INTERP")
    assert y.tolist() == ["0.3125", "448", "-1"]


def test_a_locale_with_cases_of_its_own_is_not_supported() -> None:
    attributes = {"locale": "tr_TR", "case_change_action": "LOWER"}
    model = string_model([single("StringNormalizer", "x", **attributes)], ["y"])
    with pytest.raises(Unsupported, match="cannot run 1 node") as caught:
        from_onnx(model.SerializeToString())
    assert "its locale 'tr_TR' has upper and lower cases of its own" in str(caught.value)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (single("StringNormalizer", "x", case_change_action="UP"), "case_change_action is 'UP'"),
        (single("RegexFullMatch", "x"), "its attribute pattern is missing"),
        (single("RegexFullMatch", "x", pattern="["), "'.' is not a regular expression of RE2"),
        (single("StringConcat", "x"), "its input 1 is missing"),
        (single("StringConcat", "x", "n"), "its input 1 is n: f32.2., a tensor.float."),
    ],
)
def test_what_is_ill_formed(node, message) -> None:
    model = string_model([node], ["y"], constants={"n": np.zeros(2, np.float32)})
    with pytest.raises(UserError, match=message):
        from_onnx(model.SerializeToString())


def test_elements_that_are_no_texts_are_refused() -> None:
    prepared = onnx_backend.prepare(string_model([single("Identity", "x")], ["y"]), "INTERP")
    with pytest.raises(UserError, match="has an element 3, which is not a text"):
        prepared.run([texts("a", 3)])
    with pytest.raises(UserError, match="is given an array of f32|is string, but the array is f32"):
        prepared.run([np.zeros(2, np.float32)])
