"""Symbols: the classic way to describe networks, as NNVM and early TVM had it.

Programs make variables, apply operators, and compile the result by `refcomp.graph.build`.
Parameters such as `conv1_weight` become variables of their own. An attribute is a Python value or
the text of the classic JSON form.

Reading order::

    attributes.py, names.py          kinds of attributes, automatic names
    operator.py, nodes.py            operators with their rules; nodes and their order
    inference.py                     shapes, dtypes, conversion to graphs
    json.py, symbol.py, sources.py   the classic JSON form; symbols; variables, groups, files
    manual.py, declare.py            how an operator becomes a function with a manual page
    layers.py, images.py, ...        the operators by family

Example::

    >>> data = rc.sym.Variable("data")
    >>> net = rc.sym.dense(data, units=2, use_bias=False, name="fc")
    >>> net = rc.sym.softmax(rc.sym.relu(net, name="r"), name="probabilities")
    >>> net.list_input_names()
    ['data', 'fc_weight']
    >>> print(net.to_graph({"data": (1, 4)}))
    graph net(data: f32[1, 4], fc_weight: f32[2, 4]) -> (probabilities) {
      fc: f32[1, 2] = dense(data, fc_weight)
      r: f32[1, 2] = relu(fc)
      probabilities: f32[1, 2] = softmax(r)
    }
"""

from refcomp.graph.symbol.broadcast import (
    broadcast_add,
    broadcast_div,
    broadcast_equal,
    broadcast_greater,
    broadcast_greater_equal,
    broadcast_left_shift,
    broadcast_less,
    broadcast_less_equal,
    broadcast_like,
    broadcast_max,
    broadcast_min,
    broadcast_mod,
    broadcast_mul,
    broadcast_not_equal,
    broadcast_pow,
    broadcast_right_shift,
    broadcast_sub,
    broadcast_to,
    elemwise_add,
    elemwise_div,
    elemwise_mod,
    elemwise_mul,
    elemwise_pow,
    elemwise_sub,
    elemwise_sum,
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_or,
    not_equal,
    where,
)
from refcomp.graph.symbol.creation import (
    full,
    full_like,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from refcomp.graph.symbol.detection import (
    get_valid_counts,
    multibox_prior,
    multibox_transform_loc,
    non_max_suppression,
    roi_align,
    roi_pool,
    yolo_region,
    yolo_reorg,
)
from refcomp.graph.symbol.elementwise import (
    abs,
    block_grad,
    cast,
    ceil,
    clip,
    copy,
    exp,
    floor,
    log,
    logical_not,
    negative,
    round,
    sigmoid,
    sign,
    sqrt,
    tanh,
    trunc,
)
from refcomp.graph.symbol.images import (
    avg_pool2d,
    global_avg_pool2d,
    global_max_pool2d,
    lrn,
    max_pool2d,
    pad,
    resize,
    upsampling,
)
from refcomp.graph.symbol.layers import (
    batch_norm,
    conv2d,
    conv2d_transpose,
    dense,
    dropout,
    flatten,
    l2_normalize,
    leaky_relu,
    log_softmax,
    matmul,
    prelu,
    relu,
    softmax,
)
from refcomp.graph.symbol.movement import (
    concatenate,
    expand_dims,
    flip,
    layout_transform,
    repeat,
    reshape,
    reshape_like,
    squeeze,
    stack,
    tile,
    transpose,
)
from refcomp.graph.symbol.names import (
    NameScope,
    Prefix,
)
from refcomp.graph.symbol.reductions import (
    argmax,
    argmin,
    collapse_sum,
    cumsum,
    max,
    mean,
    min,
    prod,
    sum,
)
from refcomp.graph.symbol.scalars import (
    __add_scalar__,
    __div_scalar__,
    __left_shift_scalar__,
    __mul_scalar__,
    __pow_scalar__,
    __rdiv_scalar__,
    __right_shift_scalar__,
    __rpow_scalar__,
    __rsub_scalar__,
    __sub_scalar__,
)
from refcomp.graph.symbol.slices import (
    gather_nd,
    slice_axis,
    slice_like,
    split,
    strided_slice,
    take,
)
from refcomp.graph.symbol.sources import Group, Variable, load, load_json
from refcomp.graph.symbol.symbol import Symbol

# Other names of operators.
identity = copy
fill = full

# fmt: off
__all__ = [
    "Group", "Symbol", "Variable", "load", "load_json", "NameScope", "Prefix",
    "batch_norm", "conv2d", "conv2d_transpose", "dense", "dropout", "flatten",
    "l2_normalize", "leaky_relu", "log_softmax", "matmul", "prelu", "relu", "softmax",
    "avg_pool2d", "global_avg_pool2d", "global_max_pool2d", "lrn", "max_pool2d", "pad",
    "resize", "upsampling",
    "abs", "block_grad", "cast", "ceil", "clip", "copy", "exp", "floor", "log",
    "logical_not", "negative", "round", "sigmoid", "sign", "sqrt", "tanh", "trunc",
    "broadcast_add", "broadcast_div", "broadcast_equal", "broadcast_greater",
    "broadcast_greater_equal", "broadcast_left_shift", "broadcast_less",
    "broadcast_less_equal", "broadcast_like", "broadcast_max", "broadcast_min",
    "broadcast_mod", "broadcast_mul", "broadcast_not_equal", "broadcast_pow",
    "broadcast_right_shift", "broadcast_sub", "broadcast_to", "elemwise_add",
    "elemwise_div", "elemwise_mod", "elemwise_mul", "elemwise_pow", "elemwise_sub",
    "elemwise_sum", "equal", "greater", "greater_equal", "less", "less_equal",
    "logical_and", "logical_or", "not_equal", "where",
    "__add_scalar__", "__div_scalar__", "__left_shift_scalar__", "__mul_scalar__",
    "__pow_scalar__", "__rdiv_scalar__", "__right_shift_scalar__", "__rpow_scalar__",
    "__rsub_scalar__", "__sub_scalar__",
    "argmax", "argmin", "collapse_sum", "cumsum", "max", "mean", "min", "prod", "sum",
    "concatenate", "expand_dims", "flip", "layout_transform", "repeat", "reshape",
    "reshape_like", "squeeze", "stack", "tile", "transpose",
    "gather_nd", "slice_axis", "slice_like", "split", "strided_slice", "take",
    "full", "full_like", "ones", "ones_like", "zeros", "zeros_like",
    "get_valid_counts", "multibox_prior", "multibox_transform_loc", "non_max_suppression",
    "roi_align", "roi_pool", "yolo_region", "yolo_reorg",
    "identity", "fill",
]
# fmt: on
