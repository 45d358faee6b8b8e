"""all-MiniLM-L6-v2: a BERT of 22.7 million weights, whose results compare the meaning of sentences.

The package holds the weights, from which the graph is written here, for any number of sentences of
any length. It also holds the vocabulary, with which `Tokenizer` splits words as BERT does.

Source: J. Devlin et al., BERT (2018); N. Reimers and I. Gurevych, Sentence-BERT (2019).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.real_models.network import Answer, Array, Feeds, Run
from benchmarks.real_models.onnx_writer import OnnxWriter
from benchmarks.real_models.weight_files import read_safetensors

PACKAGE = "minilm"
_LAYERS, _HEADS, _WIDTH = 6, 12, 384
_EPSILON = 1e-12
_MASKED = -1e4  # added to the score of a token that is padding
# Each sentence, and the one that means nearly the same.
PAIRS = (
    ("A man is eating food.", "Someone is having a meal."),
    ("The new movie is awesome.", "I really enjoyed that film."),
    ("How do I bake bread at home?", "What is a good recipe for a loaf?"),
    ("The stock market fell sharply today.", "Share prices dropped a lot this afternoon."),
    ("A compiler translates programs.", "Source code is turned into machine instructions."),
)


def models(folder: Path) -> dict[str, bytes]:
    """Return the model `sentences`: `ids`, `mask` i64 [n, l] -> `embedding` f32 [n, 384]."""
    weights = read_safetensors((folder / "model.safetensors").read_bytes())
    return {"sentences": write_network(weights)}


def judge(folder: Path, run: Run) -> list[Answer]:
    """Ask for the sentence that means the same as each of five, in one batch and one by one."""
    tokenizer = Tokenizer((folder / "vocab.txt").read_text(encoding="utf-8").splitlines())
    firsts, seconds = zip(*PAIRS, strict=True)
    (left,) = run("sentences", tokenizer.feeds(firsts))
    rows = [run("sentences", tokenizer.feeds([sentence]))[0] for sentence in seconds]
    similarity = left @ np.concatenate(rows).T
    found = [seconds[place] for place in similarity.argmax(axis=1)]
    return [Answer.of(one, two, other) for (one, two), other in zip(PAIRS, found, strict=True)]


def shrink(model: bytes, feeds: Feeds) -> tuple[bytes, Feeds]:
    """Return the model as it is, and the first words of two sentences."""
    return model, {name: array[:2, :6] for name, array in feeds.items()}


class Tokenizer:
    """Splits sentences into the words and pieces of words of a vocabulary."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._ids = {piece: place for place, piece in enumerate(vocabulary)}

    def tokens(self, sentence: str) -> list[int]:
        """Return the numbers of the pieces, between [CLS] and [SEP]."""
        plain = unicodedata.normalize("NFD", sentence.lower())
        plain = "".join(c for c in plain if unicodedata.category(c) != "Mn")
        words = re.findall(r"\w+|[^\w\s]", plain.replace("_", " _ "))
        pieces = [piece for word in words for piece in self._pieces(word)]
        return [self._ids[piece] for piece in ("[CLS]", *pieces, "[SEP]")]

    def _pieces(self, word: str) -> list[str]:
        """Return the longest piece that begins a word, then that of the rest, and so on."""
        pieces: list[str] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((e for e in ends if prefix + word[start:e] in self._ids), None)
            if end is None:
                return ["[UNK]"]
            pieces.append(prefix + word[start:end])
            start = end
        return pieces

    def feeds(self, sentences: Sequence[str]) -> Feeds:
        """Return `ids` and `mask` of a batch, i64; short sentences are padded by 0."""
        rows = [self.tokens(sentence) for sentence in sentences]
        ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
        for row, tokens in zip(ids, rows, strict=True):
            row[: len(tokens)] = tokens
        return {"ids": ids, "mask": (ids != 0).astype(np.int64)}


def write_network(weights: Mapping[str, Array]) -> bytes:
    """Return the network as a model: embeddings, six layers, mean over the words, length 1."""
    layers = _Layers(weights)
    writer = layers.writer
    value = layers.embed()
    mask = writer.node("Cast", "mask", name="mask_f32", to=1)
    bias = layers.masked_scores(mask)
    for place in range(_LAYERS):
        value = layers.transform(f"encoder.layer.{place}", value, bias)
    weight = writer.node("Unsqueeze", mask, writer.integers(-1), name="weight")
    kept = writer.node("Mul", value, weight, name="kept")
    total = writer.node("ReduceSum", kept, writer.integers(1), name="total", keepdims=0)
    count = writer.node("ReduceSum", weight, writer.integers(1), name="count", keepdims=0)
    mean = writer.node("Div", total, count, name="mean")
    length = writer.node("ReduceL2", mean, name="length", axes=[1], keepdims=1)
    writer.node("Div", mean, length, name="embedding")
    inputs = {name: (np.int64, ["N", "L"]) for name in ("ids", "mask")}
    return writer.finish("all_minilm_l6_v2", inputs, {"embedding": ["N", _WIDTH]})


class _Layers:
    """Writes layers by the names of their weights."""

    def __init__(self, weights: Mapping[str, Array]) -> None:
        self.writer = OnnxWriter()
        self._weights = weights

    def embed(self) -> str:
        """Add up what the words, their places and the kind of the text stand for."""
        writer, table = self.writer, "embeddings.word_embeddings.weight"
        words = writer.node("Gather", self._parameter(table), "ids", name="words")
        length = writer.node("Shape", "ids", name="words_count", start=1, end=2)
        places = self._parameter("embeddings.position_embeddings.weight")
        ends = (writer.integers(0), length, writer.integers(0))
        value = writer.node("Slice", places, *ends, name="places")
        value = writer.node("Add", words, value, name="words_and_places")
        kinds = self._weights["embeddings.token_type_embeddings.weight"]
        value = writer.node("Add", value, writer.constant("kind", kinds[0]), name="sum")
        return self._normalize("embeddings.LayerNorm", value)

    def masked_scores(self, mask: str) -> str:
        """Return what is added to the scores [n, heads, l, l]: 0 for words, -1e4 for padding."""
        writer = self.writer
        one = writer.constant("one", np.float32(1))
        low = writer.constant("low", np.float32(_MASKED))
        padding = writer.node("Sub", one, mask, name="padding")
        bias = writer.node("Mul", padding, low, name="masked")
        return writer.node("Unsqueeze", bias, writer.integers(1, 2), name="bias")

    def transform(self, layer: str, value: str, bias: str) -> str:
        """Write one layer: attention, then two dense layers, each added and normalized."""
        writer, own = self.writer, f"{layer}.attention"
        seen = self._attend(f"{own}.self", value, bias)
        seen = self._dense(f"{own}.output.dense", seen)
        value = writer.node("Add", value, seen, name=f"{own}.sum")
        value = self._normalize(f"{own}.output.LayerNorm", value)
        wide = self._gelu(f"{layer}.gelu", self._dense(f"{layer}.intermediate.dense", value))
        made = self._dense(f"{layer}.output.dense", wide)
        value = writer.node("Add", value, made, name=f"{layer}.sum")
        return self._normalize(f"{layer}.output.LayerNorm", value)

    def _attend(self, layer: str, value: str, bias: str) -> str:
        writer = self.writer
        orders = {"query": [0, 2, 1, 3], "key": [0, 2, 3, 1], "value": [0, 2, 1, 3]}
        heads = {}
        for kind, order in orders.items():
            made = self._dense(f"{layer}.{kind}", value)
            shape = writer.integers(0, 0, _HEADS, _WIDTH // _HEADS)
            made = writer.node("Reshape", made, shape, name=f"{layer}.{kind}.split")
            name = f"{layer}.{kind}.heads"
            heads[kind] = writer.node("Transpose", made, name=name, perm=order)
        scores = writer.node("MatMul", heads["query"], heads["key"], name=f"{layer}.products")
        scale = writer.constant("scale", np.float32((_WIDTH // _HEADS) ** -0.5))
        scores = writer.node("Mul", scores, scale, name=f"{layer}.scaled")
        scores = writer.node("Add", scores, bias, name=f"{layer}.scores")
        shares = writer.node("Softmax", scores, name=f"{layer}.shares", axis=-1)
        made = writer.node("MatMul", shares, heads["value"], name=f"{layer}.seen")
        made = writer.node("Transpose", made, name=f"{layer}.joined", perm=[0, 2, 1, 3])
        return writer.node("Reshape", made, writer.integers(0, 0, _WIDTH), name=f"{layer}.all")

    def _gelu(self, name: str, x: str) -> str:
        """Return x * (1 + erf(x / sqrt(2))) / 2."""
        writer = self.writer
        root = writer.constant("root", np.float32(np.sqrt(2)))
        value = writer.node("Div", x, root, name=f"{name}.divided")
        value = writer.node("Erf", value, name=f"{name}.erf")
        one, half = writer.constant("one", np.float32(1)), writer.constant("half", np.float32(0.5))
        value = writer.node("Add", value, one, name=f"{name}.shifted")
        value = writer.node("Mul", x, value, name=f"{name}.product")
        return writer.node("Mul", value, half, name=name)

    def _dense(self, layer: str, value: str) -> str:
        weight = self._weights[f"{layer}.weight"]
        turned = self.writer.constant(f"{layer}.weight", np.ascontiguousarray(weight.T))
        made = self.writer.node("MatMul", value, turned, name=f"{layer}.product")
        return self.writer.node("Add", made, self._parameter(f"{layer}.bias"), name=layer)

    def _normalize(self, layer: str, value: str) -> str:
        own = [self._parameter(f"{layer}.{kind}") for kind in ("weight", "bias")]
        attributes = {"axis": -1, "epsilon": _EPSILON}
        return self.writer.node("LayerNormalization", value, *own, name=layer, **attributes)

    def _parameter(self, name: str) -> str:
        return self.writer.constant(name, self._weights[name])
