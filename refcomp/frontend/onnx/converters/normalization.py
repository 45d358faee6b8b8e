"""Operators that scale by statistics of the data."""

from __future__ import annotations

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.element_types import element_type
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value
from refcomp.graph.macros import NotKnownError

_MAX_BATCH_OUTPUTS = 5


@converter("BatchNormalization")
def batch_normalization_by_is_test(node: OnnxNode) -> list[Value]:
    """Convert BatchNormalization of versions 1 and 6, where `is_test` chooses the mode."""
    is_training = not node.attributes.get("is_test", 0)
    return _batch_normalization(node, is_training=is_training)


@converter("BatchNormalization", since=7)
def batch_normalization_by_outputs(node: OnnxNode) -> list[Value]:
    """Convert BatchNormalization of versions 7 and 9, where the outputs choose the mode."""
    is_training = any(node.is_used(place) for place in range(1, _MAX_BATCH_OUTPUTS))
    return _batch_normalization(node, is_training=is_training)


@converter("BatchNormalization", since=14)
def batch_normalization(node: OnnxNode) -> list[Value]:
    """Convert BatchNormalization, where an attribute chooses the mode."""
    is_training = bool(node.attributes.get("training_mode", 0))
    return _batch_normalization(node, is_training=is_training)


def _batch_normalization(node: OnnxNode, *, is_training: bool) -> list[Value]:
    """Return the result; in training also the running statistics, then those of the batch.

    Where dtypes differ, all is computed in the widest of them, or in f32.
    """
    given = [node.required(place) for place in range(5)]
    bits = max(value.dtype.bits for value in given)
    same = all(value.dtype == given[0].dtype for value in given)
    dtype = str(given[0].dtype) if same else "float64" if bits > 32 else "float32"
    data, *parts = (node.cast(value, dtype) for value in given)
    shape = data.shape
    is_flat = len(shape) == 1  # one channel
    per_element = not node.attributes.get("spatial", 1) and len(parts[0].shape) > 1
    if is_flat:
        data = node.make("expand_dims", [data], axis=1)
    elif per_element:
        # Each element of a sample is a channel, by the text of version 9.
        data = node.make("flatten", [data], axis=1)
        parts = [node.make("reshape", [part], shape=(-1,)) for part in parts]
    epsilon = float(node.attributes.get("epsilon", 1e-5))
    if is_training:
        momentum = float(node.attributes.get("momentum", 0.9))
        results = list(
            node.make_all_fitting(
                "batch_norm_train", [data, *parts], epsilon=epsilon, momentum=momentum
            )
        )
    else:
        results = [node.make_fitting("batch_norm", [data, *parts], epsilon=epsilon)]
    if is_flat:
        results[0] = node.make("squeeze", [results[0]], axis=(1,))
    elif per_element:
        results[0] = _reshaped_like(node, results[0], given[0])
        results[1:] = [_reshaped_like(node, one, given[1]) for one in results[1:]]
    dtypes = [given[0].dtype, given[3].dtype, given[4].dtype, *[given[3].dtype] * 2]
    pairs = zip(results, dtypes, strict=False)
    return [node.cast(value, one) for value, one in pairs]


def _reshaped_like(node: OnnxNode, value: Value, like: Value) -> Value:
    """Return the elements of a tensor in the shape of another, but for its first extent."""
    rest = [dim for dim in like.shape[1:] if isinstance(dim, int)]
    if len(rest) + 1 != len(like.shape):
        raise NotKnownError
    first = like.shape[0]
    return node.make(
        "reshape", [value], shape=(first if isinstance(first, int) else -1, *rest)
    )


@converter("InstanceNormalization")
def instance_normalization(node: OnnxNode) -> Value:
    """Convert InstanceNormalization of any version."""
    operands = [node.required(place) for place in range(3)]
    epsilon = float(node.attributes.get("epsilon", 1e-5))
    return node.make_fitting("instance_norm", operands, epsilon=epsilon)


@converter("GroupNormalization", since=18)
def group_normalization_by_groups(node: OnnxNode) -> Value:
    """Convert GroupNormalization-18, with a scale and a shift for each group."""
    data = node.required(0)
    channels = data.shape[1] if len(data.shape) > 1 else 0
    if not isinstance(channels, int):
        raise NotKnownError
    groups = int(node.attributes["num_groups"])
    if groups < 1 or channels % groups:
        raise UserError(
            f"its attribute num_groups is {groups}",
            why=f"its input {data} has {channels} channels",
            remedy="give a number that divides that of the channels",
        )
    size = channels // groups
    parts = [
        node.make("repeat", [node.required(place)], repeats=size, axis=0)
        for place in (1, 2)
    ]
    return _group_norm(node, parts)


@converter("GroupNormalization", since=21)
def group_normalization(node: OnnxNode) -> Value:
    """Convert GroupNormalization, with a scale and a shift for each channel."""
    return _group_norm(node, [node.required(1), node.required(2)])


def _group_norm(node: OnnxNode, parts: list[Value]) -> Value:
    return node.make_fitting(
        "group_norm",
        [node.required(0), *parts],
        num_groups=int(node.attributes["num_groups"]),
        epsilon=float(node.attributes.get("epsilon", 1e-5)),
    )


@converter("LayerNormalization", since=17)
def layer_normalization(node: OnnxNode) -> list[Value]:
    """Convert LayerNormalization; its mean and its deviation are computed if they are used."""
    data, scale, shift = node.required(0), node.required(1), node.input(2)
    first = node.axis(node.attributes.get("axis", -1), len(data.shape))
    epsilon = float(node.attributes.get("epsilon", 1e-5))
    parts = [scale] if shift is None else [scale, shift]
    fits = all(_scales(part, data, first) for part in parts)
    if fits and not node.is_used(1) and not node.is_used(2):
        operands = [data, scale, shift]
        return [node.make("layer_norm", operands, axis=first, epsilon=epsilon)]
    axes = tuple(range(first, len(data.shape)))
    wide = _stashed(node, data)
    mean = node.make("mean", [wide], axis=axes, keepdims=True)
    difference = node.make("subtract", [wide, mean])
    squares = node.make("square", [difference])
    factor = _inverse_root(node, squares, axes, epsilon)
    normalized = node.cast(node.make("multiply", [difference, factor]), data.dtype)
    result = node.make_fitting("multiply", [normalized, scale])
    if shift is not None:
        result = node.make_fitting("add", [result, shift])
    return [result, mean, factor]


def _scales(part: Value, data: Value, first: int) -> bool:
    """Return True for a scale with an element for each one that is normalized."""
    return part.shape == data.shape[first:] and part.dtype == data.dtype


def _stashed(node: OnnxNode, data: Value) -> Value:
    """Return data in the dtype of the first stage, which an attribute names."""
    code = int(node.attributes.get("stash_type", 1))
    kind = element_type(code, "its attribute stash_type")
    if not kind.storage.is_float or kind.is_narrow:
        raise UserError(
            f"its attribute stash_type is {kind.name}",
            remedy="give the number of a float of 16, 32 or 64 bits",
        )
    return node.cast(data, kind.storage)


def _inverse_root(
    node: OnnxNode, squares: Value, axes: tuple[int, ...], epsilon: float
) -> Value:
    """Return 1 / sqrt(mean of squares + epsilon)."""
    mean = node.make("mean", [squares], axis=axes, keepdims=True)
    shift = node.constant(epsilon, squares.dtype.dtype)
    return node.make("rsqrt", [node.make("add", [mean, shift])])


@converter("RMSNormalization", since=23)
def rms_normalization(node: OnnxNode) -> Value:
    """Convert RMSNormalization."""
    data, scale = node.required(0), node.required(1)
    first = node.axis(node.attributes.get("axis", -1), len(data.shape))
    epsilon = float(node.attributes.get("epsilon", 1e-5))
    if _scales(scale, data, first):
        return node.make("rms_norm", [data, scale], axis=first, epsilon=epsilon)
    axes = tuple(range(first, len(data.shape)))
    wide = _stashed(node, data)
    factor = _inverse_root(node, node.make("square", [wide]), axes, epsilon)
    # The result has the type of the scale.
    normalized = node.cast(node.make("multiply", [wide, factor]), scale.dtype)
    return node.make_fitting("multiply", [normalized, scale])


@converter("LRN")
def lrn(node: OnnxNode) -> Value:
    """Convert LRN of any version."""
    attributes = node.attributes
    return node.make(
        "lrn",
        [node.required(0)],
        size=int(attributes["size"]),
        axis=1,
        alpha=float(attributes.get("alpha", 1e-4)),
        beta=float(attributes.get("beta", 0.75)),
        bias=float(attributes.get("bias", 1.0)),
    )


@converter("LpNormalization")
def lp_normalization(node: OnnxNode) -> Value:
    """Convert LpNormalization of any version. Where the norm is 0, the result is 0."""
    data = node.required(0)
    axis = node.axis(node.attributes.get("axis", -1), len(data.shape))
    p = int(node.attributes.get("p", 2))
    return node.make("lp_normalize", [data], axis=axis, p=p)


@converter("MeanVarianceNormalization", since=9)
def mean_variance_normalization(node: OnnxNode) -> Value:
    """Convert MeanVarianceNormalization of any version."""
    data = node.required(0)
    rank = len(data.shape)
    axes = tuple(node.axis(one, rank) for one in node.attributes["axes"])
    return node.make("mean_variance_normalization", [data], axis=axes)
