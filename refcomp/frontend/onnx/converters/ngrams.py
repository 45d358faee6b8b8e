"""TfIdfVectorizer: how often a list of tokens has each n-gram of a pool.

The j-th token of an n-gram lies `j * (skip + 1)` places behind its first one. So the windows of the
tokens are compared with all n-grams at once, and the matches are summed.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from refcomp.foundation.errors import Unsupported, UserError
from refcomp.frontend.onnx.deferred import defer
from refcomp.frontend.onnx.element_types import FLOAT
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Array, Value

_MODES = ("TF", "IDF", "TFIDF")
_MAX_SHARING = 64  # n-grams that are counted at one place of the output
_MAX_OUTPUTS = 1 << 24
_MAX_WINDOWS = 1024


class _Pool(NamedTuple):
    """The n-grams of one length, as their places in the pool's list of tokens.

    Attributes:
        length: the number of tokens of each n-gram.
        start: the place of the first token.
        size: the number of n-grams.
    """

    length: int
    start: int
    size: int


@converter("TfIdfVectorizer", since=9)
def tf_idf_vectorizer(node: OnnxNode) -> Value:
    """Convert TfIdfVectorizer. Strings are compared as their numbers."""
    tokens = node.required(0)
    if node.is_string(tokens):
        return _on_codes(node, tokens)
    pool = node.input(1)  # the numbers of strings
    if pool is None:
        numbers = node.attributes.get("pool_int64s", ())
        pool = node.constant(numbers, np.int64)
    shape = node.extents(tokens)
    if len(shape) not in (1, 2):
        raise UserError(f"its input {tokens} is not a list of tokens, or a row of such")
    rows = node.cast(tokens, "int64")
    if len(shape) == 1:
        rows = node.make("expand_dims", [rows], axis=0)
    pools = _pools(node, node.extents(pool)[0])
    counts = [
        _counts(node, rows, node.make("strided_slice", [pool], **_span(one)), one)
        for one in pools
    ]
    total = sum(one.size for one in pools)
    every = counts[0]
    if len(counts) > 1:
        every = node.make("concatenate", counts, axis=1)
    made = _placed(node, _weighted(node, every, total), total)
    return made if len(shape) == 2 else node.make("squeeze", [made], axis=(0,))


def _on_codes(node: OnnxNode, tokens: Value) -> Value:
    """Return the outputs for strings: numbers take their place in the input and in the pool."""
    texts = node.attributes.get("pool_strings", ())
    pool = node.make(
        "string_constant", [], elements=json.dumps(texts), shape=(len(texts),)
    )
    codes, pool_codes, _ = node.make_all("string_codes", [tokens, pool])
    inner = replace(node, inputs=(codes, pool_codes))
    return defer(inner, "", "", [FLOAT])[0]


def _span(pool: _Pool) -> dict[str, tuple[int, ...]]:
    end = pool.start + pool.size * pool.length
    return {"begin": (pool.start,), "end": (end,)}


def _pools(node: OnnxNode, tokens: int) -> list[_Pool]:
    """Return the n-grams of each length, after checks of all attributes."""
    starts = [*node.attributes["ngram_counts"], tokens]
    pools = []
    for length, (start, end) in enumerate(pairwise(starts), start=1):
        if not 0 <= start <= end <= tokens or (end - start) % length:
            raise UserError(
                f"its attribute ngram_counts is {list(starts[:-1])} for {tokens} tokens",
                why="it holds the place of the first n-gram of each length",
            )
        pools.append(_Pool(length, start, (end - start) // length))
    indices = node.attributes["ngram_indexes"]
    if len(indices) != sum(one.size for one in pools):
        raise UserError(
            f"it has {len(indices)} ngram_indexes for {sum(p.size for p in pools)} n-grams"
        )
    if not indices or min(indices) < 0 or max(indices) >= _MAX_OUTPUTS:
        raise UserError(
            "its attribute ngram_indexes is empty, or has an index out of range",
            why=f"an index is from 0 to {_MAX_OUTPUTS - 1}",
        )
    skips = node.attributes["max_skip_count"]
    longest = node.attributes["max_gram_length"]
    if skips < 0 or node.attributes["min_gram_length"] < 1 or longest < 1:
        raise UserError("its n-grams have no tokens, or skip a negative number of them")
    if (skips + 1) * min(longest, len(pools)) > _MAX_WINDOWS:
        raise Unsupported(f"it skips up to {skips} tokens")
    return pools


def _counts(node: OnnxNode, rows: Value, pool: Value, grams: _Pool) -> Value:
    """Return how often each row of tokens has each n-gram of one length, as f32."""
    batch, tokens = node.extents(rows)
    least, most = (node.attributes[f"{m}_gram_length"] for m in ("min", "max"))
    if not least <= grams.length <= most or grams.size == 0:
        return _zeros(node, batch, grams.size)
    table = node.make("reshape", [pool], shape=(grams.size, grams.length))
    total: Value | None = None
    # A single token has none behind it that a skip would move.
    for skip in range(node.attributes["max_skip_count"] + 1 if grams.length > 1 else 1):
        windows = tokens - (grams.length - 1) * (skip + 1)
        if windows <= 0:
            break
        matches: Value | None = None
        for place in range(grams.length):
            first = place * (skip + 1)
            span = {"begin": (0, first), "end": (batch, first + windows)}
            window = node.make("strided_slice", [rows], **span)
            column = {"begin": (0, place), "end": (grams.size, place + 1)}
            wanted = node.make("strided_slice", [table], **column)
            pair = [
                node.make("expand_dims", [window], axis=2),
                node.make("reshape", [wanted], shape=(1, 1, grams.size)),
            ]
            same = node.make("equal", pair)
            matches = (
                same if matches is None else node.make("logical_and", [matches, same])
            )
        assert matches is not None
        found = node.make("sum", [node.cast(matches, "float32")], axis=(1,))
        total = found if total is None else node.make("add", [total, found])
    return _zeros(node, batch, grams.size) if total is None else total


def _zeros(node: OnnxNode, batch: int, size: int) -> Value:
    return node.make("zeros", [], shape=(batch, size), dtype="float32")


def _weighted(node: OnnxNode, counts: Value, total: int) -> Value:
    """Return the counts as the mode asks for them."""
    mode = node.attributes["mode"]
    if mode not in _MODES:
        raise UserError(
            f"its attribute mode is {mode!r}", remedy=f"choose {', '.join(_MODES)}"
        )
    weights = node.attributes.get("weights", (1.0,) * total)
    if len(weights) != total:
        raise UserError(f"it has {len(weights)} weights for {total} n-grams")
    if mode == "TF":
        return counts
    if mode == "IDF":
        counts = node.make("minimum", [counts, node.constant(1, np.float32)])
    return node.make("multiply", [counts, node.constant(weights, np.float32)])


def _placed(node: OnnxNode, counts: Value, total: int) -> Value:
    """Return the counts at the places of `ngram_indexes`; those at one place are added."""
    indices = np.array(node.attributes["ngram_indexes"], np.int64)
    size = int(indices.max()) + 1
    order = np.argsort(indices, kind="stable")
    # The number of n-grams before this one that have the same place.
    rank = np.empty(total, np.int64)
    rank[order] = np.arange(total) - np.searchsorted(indices[order], indices[order])
    if rank.max() >= _MAX_SHARING:
        raise Unsupported(f"more than {_MAX_SHARING} of its n-grams have one place")
    made: Value | None = None
    for number in range(int(rank.max()) + 1):
        chosen = np.flatnonzero(rank == number)
        source: Array = np.zeros(size, np.int64)
        mask: Array = np.zeros(size, np.float32)
        source[indices[chosen]], mask[indices[chosen]] = chosen, 1
        part = node.make("take", [counts, node.constant(source)], axis=1)
        part = node.make("multiply", [part, node.constant(mask)])
        made = part if made is None else node.make("add", [made, part])
    assert made is not None
    return made
