import numpy as np
import pytest

from refcomp import onnx_backend
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.models import make_model, single
from tests.frontend.onnx.converters.cases import EVALUATOR, RUNTIME, NodeCase, check

TOKENS = np.array([1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8], np.int32)
POOL = {
    "mode": "TF",
    "min_gram_length": 1,
    "max_gram_length": 2,
    "max_skip_count": 0,
    "ngram_counts": [0, 4],
    "ngram_indexes": [0, 1, 2, 3, 4, 5, 6],
    "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7],
}
WORDS = {**POOL, "pool_strings": [str(one) for one in POOL["pool_int64s"]]}
del WORDS["pool_int64s"]
ROW = np.array([0, 3, 1, 0, 1, 1, 1], np.float32)
WEIGHTS = [0.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
SHARED = {**POOL, "ngram_indexes": [0, 1, 1, 3, 3, 6, 1], "mode": "IDF", "weights": WEIGHTS}
SHARED_ROW = np.array([0, 2 + 3 + 7, 0, 5, 0, 0, 6], np.float32)
BY_PLACE = "it takes the weight of an output, the text that of an n-gram"
CASES = [
    NodeCase("TfIdfVectorizer", 9, [TOKENS], POOL, expected=[ROW]),
    NodeCase("TfIdfVectorizer", 9, [TOKENS.astype(np.int64)], {**POOL, "max_skip_count": 3}),
    NodeCase("TfIdfVectorizer", 9, [TOKENS.reshape(2, 6)], {**POOL, "max_skip_count": 9}),
    NodeCase("TfIdfVectorizer", 9, [TOKENS], {**POOL, "min_gram_length": 2}, label="pairs"),
    NodeCase("TfIdfVectorizer", 9, [TOKENS], {**POOL, "mode": "IDF", "weights": WEIGHTS}),
    NodeCase("TfIdfVectorizer", 9, [TOKENS], {**POOL, "mode": "TFIDF", "weights": WEIGHTS}),
    NodeCase("TfIdfVectorizer", 9, [TOKENS], {**POOL, "ngram_indexes": [6, 4, 0, 1, 3, 8, 2]}),
    NodeCase("TfIdfVectorizer", 9, [TOKENS[:1]], POOL, label="short"),
    NodeCase("TfIdfVectorizer", 9, [TOKENS.astype(str).astype(object)], WORDS, label="strings"),
    NodeCase(
        "TfIdfVectorizer",
        9,
        [TOKENS],
        SHARED,
        expected=[SHARED_ROW],
        wrong={RUNTIME: BY_PLACE, EVALUATOR: BY_PLACE},
        label="shared",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.label or None)
def test_node(case):
    check(case)


def model_of(**attributes):
    node = single("TfIdfVectorizer", "x", **{**POOL, **attributes})
    return make_model([node], {"x": ("N",)}, ["y"], dtype=6)


def test_a_run_knows_the_number_of_tokens() -> None:
    prepared = onnx_backend.prepare(model_of(), "INTERP")
    for length in (12, 3, 0):
        (made,) = prepared.run([TOKENS[:length]])
        assert made.tolist() == (ROW.tolist() if length == 12 else [0, min(length, 1), *[0] * 5])


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"ngram_counts": [0, 3]}, "its attribute ngram_counts is .0, 3. for 10 tokens"),
        ({"ngram_counts": [0, 40]}, "ngram_counts is .0, 40. for 10 tokens"),
        ({"ngram_indexes": [1, 2]}, "it has 2 ngram_indexes for 7 n-grams"),
        ({"ngram_indexes": [0, 1, 2, 3, 4, 5, -1]}, "has an index out of range"),
        ({"ngram_indexes": [0, 1, 2, 3, 4, 5, 1 << 40]}, "has an index out of range"),
        ({"mode": "TI"}, "its attribute mode is 'TI'.*choose TF, IDF, TFIDF"),
        ({"mode": "IDF", "weights": [1.0]}, "it has 1 weights for 7 n-grams"),
        ({"max_skip_count": -1}, "skip a negative number"),
        ({"min_gram_length": 0}, "n-grams have no tokens"),
    ],
)
def test_what_is_ill_formed(attributes, message) -> None:
    with pytest.raises(UserError, match=f"(?s){message}") as caught:
        onnx_backend.run_model(model_of(**attributes), [TOKENS], "INTERP")
    assert "node" in caught.value.where


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"max_skip_count": 1 << 40}, "it skips up to 1099511627776 tokens"),
        (
            {"ngram_counts": [0, 65], "ngram_indexes": [0] * 65, "pool_int64s": [*range(65)]},
            "more than 64 of its n-grams have one place",
        ),
    ],
)
def test_what_is_not_supported(attributes, message) -> None:
    node = single("TfIdfVectorizer", "x", **{**POOL, **attributes})
    model = make_model([node], {"x": (3,)}, ["y"], dtype=6)
    with pytest.raises(Unsupported, match="cannot run 1 node") as caught:
        from_onnx(model.SerializeToString())
    assert message in str(caught.value)
