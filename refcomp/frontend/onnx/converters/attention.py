"""Attention, and rotations by position."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from refcomp.foundation.artifacts import Dim
from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.element_types import DOUBLE, element_type
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph import dims
from refcomp.graph.graph import Value
from refcomp.graph.macros import NotKnownError
from refcomp.topi.operator import Attribute

# What the fourth output of Attention holds, by qk_matmul_output_mode.
_RAW, _CAPPED, _MASKED, _WEIGHTS = range(4)


@dataclass(frozen=True, slots=True)
class _Attention:
    """The operands of an Attention node.

    Attributes:
        node: the node.
        query: [batch, heads, queries, channels], or [batch, queries, heads * channels].
        key: likewise, as is the value.
        value: of the dtype of the query.
        mask: bools, or floats of the dtype of the query, which broadcast to the scores.
        past_key: [batch, key_heads, past, channels].
        past_value: [batch, key_heads, past, out_channels].
        lengths: [batch], the number of keys of each sample that count.
    """

    node: OnnxNode
    query: Value
    key: Value
    value: Value
    mask: Value | None
    past_key: Value | None
    past_value: Value | None
    lengths: Value | None

    @property
    def queries(self) -> Dim:
        """Return the number of queries of a sample."""
        return self.query.shape[-2 if len(self.query.shape) == 4 else 1]

    @property
    def past(self) -> Dim:
        """Return the number of keys before the first one of this node."""
        return 0 if self.past_key is None else self.past_key.shape[2]

    @property
    def keys(self) -> Dim:
        """Return the number of all keys of a sample."""
        own = self.key.shape[-2 if len(self.key.shape) == 4 else 1]
        return dims.add(self.past, own)

    def bound(self, name: str) -> int:
        """Return the extent of the window on one side; -1 for no bound."""
        bound = int(self.node.attributes.get(name, -1))
        if bound < -1:
            raise UserError(
                f"its attribute {name} is {bound}",
                remedy="give a number of positions, or -1 for no bound",
            )
        return bound

    @property
    def has_window(self) -> bool:
        """Return True if keys that are far away do not count."""
        return max(self.bound("left_window_size"), self.bound("right_window_size")) >= 0

    @property
    def is_causal(self) -> bool:
        """Return True if a query does not see the keys behind its position."""
        return bool(self.node.attributes.get("is_causal", 0))


@converter("Attention", since=23)
def attention(node: OnnxNode) -> list[Value | None]:
    """Convert Attention of any version."""
    given = _operands(node)
    query = given.query
    dtype = query.dtype
    if node.attributes.get("softmax_precision") == DOUBLE:
        # The kernel computes in at least f32, the other precisions.
        given = _as_double(given)
    # The kernel's own rule for causal attention knows one offset for all samples.
    is_own_rule = given.lengths is not None
    mask = given.mask
    if is_own_rule or given.has_window:
        allowed = _allowed(given, with_causal=is_own_rule and given.is_causal)
        mask = _restricted(given, allowed)
    operands = [given.query, given.key, given.value, mask]
    attributes = _heads(node, query)
    made = node.make_all_fitting(
        "attention",
        [*operands, given.past_key, given.past_value],
        **attributes,
        **_scale(node),
        is_causal=given.is_causal and not is_own_rule,
        softcap=float(node.attributes.get("softcap", 0.0)),
    )
    results: list[Value | None] = [node.cast(value, dtype) for value in made]
    value = node.required(2)
    if value.dtype != dtype and node.is_used(2):
        results[2] = node.cast(made[2], value.dtype)
    results.append(_scores(given) if node.is_used(3) else None)
    return results[: len(node.outputs)]


def _operands(node: OnnxNode) -> _Attention:
    query, key, value = (node.required(place) for place in range(3))
    ranks = {len(one.shape) for one in (query, key, value)}
    if ranks not in ({3}, {4}):
        raise UserError(
            f"its inputs are {query}, {key} and {value}",
            remedy="give three tensors of 3 dimensions, or three of 4",
        )
    past_key, past_value, lengths = (node.input(place) for place in (4, 5, 6))
    if (past_key is None) != (past_value is None):
        raise UserError(
            "it has only one of past_key and past_value",
            remedy="give both inputs, or none",
        )
    if past_key is not None and lengths is not None:
        raise UserError(
            "it has both past_key and nonpad_kv_seqlen",
            why="these belong to different ways to keep keys",
            remedy="leave one of them out",
        )
    given = _Attention(
        node,
        query,
        node.cast(key, query.dtype),
        node.cast(value, query.dtype),
        node.input(3),
        None if past_key is None else node.cast(past_key, query.dtype),
        None if past_value is None else node.cast(past_value, query.dtype),
        lengths,
    )
    return _with_whole_mask(given)


def _with_whole_mask(given: _Attention) -> _Attention:
    """Extend the mask to all keys. Those behind its end do not count, since version 24."""
    mask = given.mask
    if mask is None:
        return given
    node = given.node
    if not mask.dtype.is_bool:
        mask = node.cast(mask, given.query.dtype)
    has, wanted = mask.shape[-1] if mask.shape else 1, given.keys
    if node.version >= 24 and mask.shape and has != wanted:
        missing = _number(wanted) - _number(has)
        if missing > 0:
            before = (0,) * len(mask.shape)
            after = (*before[1:], missing)
            lowest = 0 if mask.dtype.is_bool else -math.inf
            mask = node.make(
                "pad", [mask], pad_before=before, pad_after=after, pad_value=lowest
            )
    return replace(given, mask=mask)


def _as_double(given: _Attention) -> _Attention:
    def wide(value: Value | None) -> Value | None:
        is_float = value is not None and value.dtype.is_float
        return given.node.cast(value, "float64") if value and is_float else value

    return replace(
        given,
        query=given.node.cast(given.query, "float64"),
        key=given.node.cast(given.key, "float64"),
        value=given.node.cast(given.value, "float64"),
        mask=wide(given.mask),
        past_key=wide(given.past_key),
        past_value=wide(given.past_value),
    )


def _number(dim: Dim) -> int:
    """Return an extent, or raise NotKnownError for a symbolic one."""
    if not isinstance(dim, int):
        raise NotKnownError
    return dim


def _heads(node: OnnxNode, query: Value) -> dict[str, Attribute]:
    """Return the numbers of heads, which only tensors of 3 dimensions need."""
    if len(query.shape) == 4:
        return {}
    names = ("q_num_heads", "kv_num_heads")
    for name in names:
        if int(node.attributes.get(name, 0)) < 1:
            raise UserError(
                f"its attribute {name} is {node.attributes.get(name, 'missing')}",
                why="its inputs have 3 dimensions, of which the last holds all heads",
                remedy="give the number of heads",
            )
    return {name: int(node.attributes[name]) for name in names}


def _scale(node: OnnxNode) -> dict[str, Attribute]:
    scale = node.attributes.get("scale")
    return {} if scale is None else {"scale": float(scale)}


def _allowed(given: _Attention, *, with_causal: bool) -> Value | None:
    """Return bools, True for keys that a query may see; None if it may see all of them.

    They are of the shape [batch or 1, 1, queries, keys].
    """
    node = given.node
    queries, keys = _number(given.queries), _number(given.keys)
    rows = node.make("arange", [], stop=queries, dtype="int64")
    columns = node.make("arange", [], stop=keys, dtype="int64")
    rows = node.make("reshape", [rows], shape=(1, 1, queries, 1))
    columns = node.make("reshape", [columns], shape=(1, 1, 1, keys))
    offset = node.constant(_number(given.past), "int64")
    rules: list[Value] = []
    if given.lengths is not None:
        lengths = node.cast(given.lengths, "int64")
        lengths = node.make("reshape", [lengths], shape=(-1, 1, 1, 1))
        offset = node.make("subtract", [lengths, node.constant(queries, "int64")])
        rules.append(node.make("less", [columns, lengths]))
    position = node.make("add", [rows, offset])
    left, right = given.bound("left_window_size"), given.bound("right_window_size")
    if left >= 0:
        first = node.make("subtract", [position, node.constant(left, "int64")])
        rules.append(node.make("greater_equal", [columns, first]))
    if right >= 0:
        last = node.make("add", [position, node.constant(right, "int64")])
        rules.append(node.make("less_equal", [columns, last]))
    if with_causal:
        rules.append(node.make("less_equal", [columns, position]))
    result: Value | None = None
    for rule in rules:
        result = rule if result is None else node.make("logical_and", [result, rule])
    return result


def _restricted(given: _Attention, allowed: Value | None) -> Value | None:
    """Return the mask where a key is allowed, and False or minus infinity elsewhere."""
    node = given.node
    mask = given.mask
    if mask is None or allowed is None:
        return mask if allowed is None else allowed
    if mask.dtype.is_bool:
        return node.make_fitting("logical_and", [mask, allowed])
    lowest = node.constant(-math.inf, mask.dtype.dtype)
    return node.make_fitting("where", [allowed, mask, lowest])


def _scores(given: _Attention) -> Value:
    """Return the scores or weights that the fourth output holds."""
    node = given.node
    dtype = node.required(0).dtype
    mode = int(node.attributes.get("qk_matmul_output_mode", 0))
    if mode not in range(4):
        raise UserError(
            f"its attribute qk_matmul_output_mode is {mode}", remedy="give 0, 1, 2 or 3"
        )
    scores = _products(given)
    softcap = float(node.attributes.get("softcap", 0.0))
    if mode >= _CAPPED and softcap:
        limit = node.constant(softcap, scores.dtype.dtype)
        bent = node.make("tanh", [node.make("divide", [scores, limit])])
        scores = node.make("multiply", [bent, limit])
    if mode < _MASKED:
        return node.cast(scores, dtype)
    bias = _bias(given, scores)
    if bias is not None:
        scores = node.make_fitting("add", [scores, bias])
    if mode == _MASKED:
        return node.cast(scores, dtype)
    precision = node.attributes.get("softmax_precision")
    if precision is not None:
        kind = element_type(int(precision), "its attribute softmax_precision")
        scores = node.cast(scores, kind.storage)
    weights = node.cast(node.make("softmax", [scores], axis=-1), dtype)
    if bias is None:
        return weights
    greatest = node.make("max", [bias], axis=(-1,), keepdims=True)
    lowest = node.constant(-math.inf, bias.dtype.dtype)
    is_masked = node.make("equal", [greatest, lowest])
    zero = node.constant(0, dtype.dtype)
    return node.make("where", [is_masked, zero, weights])


def _products(given: _Attention) -> Value:
    """Return the scaled products of queries and keys: [batch, heads, queries, keys]."""
    node = given.node
    query, key = given.query, given.key
    if len(query.shape) == 3:
        heads = _heads(node, query)
        query = _split_heads(node, query, int(str(heads["q_num_heads"])))
        key = _split_heads(node, key, int(str(heads["kv_num_heads"])))
    if given.past_key is not None:
        key = node.make_fitting("concatenate", [given.past_key, key], axis=2)
    shared = _number(query.shape[1]) // max(1, _number(key.shape[1]))
    if shared != 1:
        key = node.make("repeat", [key], repeats=shared, axis=1)
    wide = "float64" if query.dtype.bits > 32 else "float32"
    scale = node.attributes.get("scale")
    scale = 1 / math.sqrt(_number(query.shape[3])) if scale is None else float(scale)
    key = node.make("swap_axes", [node.cast(key, wide)], axis1=2, axis2=3)
    products = node.make_fitting("matmul", [node.cast(query, wide), key])
    return node.make("multiply", [products, node.constant(scale, wide)])


def _split_heads(node: OnnxNode, value: Value, heads: int) -> Value:
    """Return [batch, heads, length, channels] of [batch, length, heads * channels]."""
    width = _number(value.shape[2])
    if heads < 1 or width % heads:
        raise UserError(
            f"its input {value} cannot be divided into {heads} heads",
            remedy="give a number of heads that divides its last extent",
        )
    parts = node.make("reshape", [value], shape=(0, 0, heads, width // heads))
    return node.make("transpose", [parts], axes=(0, 2, 1, 3))


def _bias(given: _Attention, scores: Value) -> Value | None:
    """Return what is added to the scores; None for nothing."""
    node = given.node
    needs_rules = given.is_causal or given.lengths is not None or given.has_window
    allowed = _allowed(given, with_causal=given.is_causal) if needs_rules else None
    mask = _restricted(given, allowed)
    if mask is None:
        return None
    if not mask.dtype.is_bool:
        return node.cast(mask, scores.dtype)
    zero = node.constant(0, scores.dtype.dtype)
    lowest = node.constant(-math.inf, scores.dtype.dtype)
    return node.make("where", [mask, zero, lowest])


@converter("RotaryEmbedding", since=23)
def rotary_embedding(node: OnnxNode) -> Value:
    """Convert RotaryEmbedding."""
    data = node.required(0)
    attributes: dict[str, Attribute] = {
        "interleaved": bool(node.attributes.get("interleaved", 0)),
        "rotary_dim": int(node.attributes.get("rotary_embedding_dim", 0)),
    }
    operands = [node.required(1), node.required(2), node.input(3)]
    if len(data.shape) != 3:
        return node.make_fitting("rotary_embedding", [data, *operands], **attributes)
    heads = int(node.attributes.get("num_heads", 0))
    parts = _split_heads(node, data, heads)
    rotated = node.make_fitting("rotary_embedding", [parts, *operands], **attributes)
    rotated = node.make("transpose", [rotated], axes=(0, 2, 1, 3))
    return node.make("reshape", [rotated], shape=(0, 0, _number(data.shape[2])))
