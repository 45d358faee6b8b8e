"""Rules of poolings of images, by the operators that compute their gradients.

Other layouts, dilated windows, and images whose sizes are symbols are left to `vjp`. In
`max_pool2d`, the adjoint of a window goes to its first greatest element.
"""

from __future__ import annotations

from refcomp.graph.gradients.pullback import (
    Adjoints,
    Pullback,
    Rule,
    constant_extents,
    element_count,
)

_WINDOWS = ("kernel", "strides", "padding", "ceil_mode", "count_include_pad")


def _pool2d(pull: Pullback) -> Adjoints | None:
    is_plain = pull.attribute("layout") == "NCHW"
    is_dense = set(pull.integers("dilation")) == {1}
    sizes = constant_extents(pull.output.shape[2:])
    if not is_plain or not is_dense or sizes is None:
        return None
    name = f"{pull.node.operator}_grad"
    return [pull.add(name, pull.head, pull.input(0), **pull.given(*_WINDOWS))]


def _global_avg_pool(pull: Pullback) -> Adjoints | None:
    data = pull.input(0)
    layout = pull.attribute("layout")
    assert isinstance(layout, str)
    axes = [place for place, letter in enumerate(layout) if letter in "DHW"]
    count = element_count(data, axes)
    if not count:
        return None
    share = pull.scaled(pull.head, 1 / count)
    return [pull.add("broadcast_like", share, data)]


RULES: dict[str, Rule] = {
    "max_pool2d": _pool2d,
    "avg_pool2d": _pool2d,
    "global_avg_pool1d": _global_avg_pool,
    "global_avg_pool2d": _global_avg_pool,
    "global_avg_pool3d": _global_avg_pool,
}
